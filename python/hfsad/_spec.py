"""hfsad.Spec: the settings of a run."""
from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from . import _core
from ._loss import Loss


class Setting(NamedTuple):
    """One key of a spec, with its default, range and meaning.

    >>> import hfsad
    >>> key = hfsad.settings()["loss.tau"]
    >>> key.type, key.default
    ('real', '0.5')
    """

    key: str
    type: str
    default: str
    range: str
    help: str
    choices: tuple[str, ...]


def settings() -> dict[str, Setting]:
    """All keys of a spec.

    >>> import hfsad
    >>> hfsad.settings()["run.iterations"].range
    'from 0 to 1000000000'
    """
    return {row[0]: Setting(*row) for row in _core.settings()}


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _flat(f"{prefix}.{key}" if prefix else str(key), below)
    elif prefix == "loss" and isinstance(value, (str, Loss)):
        yield "loss.kind", value
    else:
        yield prefix, value


def _plain(value: Any) -> Any:
    """numpy's numbers as Python's; paths as text."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value


class Spec:
    """Settings of a run: from a mapping, a spec file or keyword arguments; later ones override earlier ones.

    Keys are nested (``run={"seed": 7}``) or dotted (``{"run.seed": 7}``). ``docs/settings.md`` and
    :func:`settings` list them. A loss is a name, a mapping or a :class:`Loss`. ``None`` leaves a key at its default.

    >>> import hfsad
    >>> spec = hfsad.Spec(loss={"kind": "quantile", "tau": 0.9}, run={"iterations": 50})
    >>> spec["loss.tau"], spec["run.seed"]
    (0.9, 1)
    >>> hfsad.Spec(run={"iteration": 50})
    Traceback (most recent call last):
    ...
    ValueError: run.iteration=50: unknown key 'run.iteration'; did you mean 'run.iterations'?
    """

    def __init__(self, source: "Spec | Mapping[str, Any] | str | os.PathLike[str] | None" = None, /, **keys: Any):
        self._path: str | None = None
        self._settings: dict[str, Any] = {}
        if isinstance(source, Spec):
            self._path, self._settings = source._path, dict(source._settings)
        elif isinstance(source, Mapping):
            self._settings.update(_flat("", source))
        elif source is not None:
            self._path = os.fspath(source)
        self._settings.update(_flat("", keys))
        self._make()  # a wrong key or value is an error here

    def _make(self) -> _core.Spec:
        core = _core.Spec(self._path) if self._path is not None else _core.Spec()
        for key, value in self._settings.items():
            value = _plain(value)
            if value is None:
                continue
            if isinstance(value, Loss):
                core.set("loss.kind", "own")
            elif isinstance(value, (bool, int, float)):
                core.set(key, value)
            elif isinstance(value, str) and value not in ("auto", "none"):
                core.set(key, value)
            else:
                core.set_yaml(key, value if isinstance(value, str) else json.dumps(value))
        return core

    def _command(self, folder: pathlib.Path, data: Any) -> list[str]:
        """The spec as words of a command line of the program; data in memory is written to the folder."""
        values = {key: _plain(value) for key, value in self._settings.items() if value is not None}
        if data is not None:
            values["data"] = str(data._write(folder))
        elif isinstance(values.get("data"), str):
            values["data"] = os.path.abspath(values["data"])
        if self._path is not None:
            return [self._path, *(f"--set={key}={json.dumps(value)}" for key, value in values.items())]
        nested: dict[str, Any] = {}
        for key, value in values.items():
            *above, last = key.split(".")
            at = nested
            for part in above:
                at = at.setdefault(part, {})
            at[last] = value
        (folder / "spec.yaml").write_text(json.dumps(nested, indent=1))  # JSON is YAML
        return [str(folder / "spec.yaml")]

    @property
    def loss(self) -> Loss | None:
        """The loss in Python, if there is one."""
        value = self._settings.get("loss.kind")
        return value if isinstance(value, Loss) else None

    def to_dict(self) -> dict[str, Any]:
        """All settings by dotted key; None stands for auto and none."""
        return self._make().values()

    def __getitem__(self, key: str) -> Any:
        return self.to_dict()[key]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and (self._path, self._settings) == (other._path, other._settings)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        parts = ([repr(self._path)] if self._path is not None else []) + ([repr(self._settings)] if self._settings else [])
        return f"Spec({', '.join(parts)})" if len(parts) < 2 else f"Spec({parts[0]}, **{parts[1]})"
