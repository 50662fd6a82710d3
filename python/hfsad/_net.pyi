"""The extension over libhfsad-net: a process of a federation."""
from typing import Any, final

@final
class Member:
    def __new__(cls, spec: object, data: object | None, keep: object, role: int, name: str | None, all_of: str | None,
                nodes: str | None, broker: str | None, above: str | None, below: str | None, keys: str | None, ca: str | None,
                certificate: str | None, key: str | None, state: str | None, out: str | None, record: str | None,
                metrics: str | None, insecure: bool, durable_process: bool, linger: float, turn: Any, log: Any, ended: Any,
                data_file: str | None, secret: str | None, audit: str | None) -> Member: ...
    def run(self) -> str: ...
    def cancel(self) -> None: ...
