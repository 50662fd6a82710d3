"""Federations: all processes on this machine, or one process of a federation over several machines."""
from __future__ import annotations

import logging
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from . import _net
from ._data import Data
from ._run import Progress, Result, load
from ._spec import Spec

_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}
_log = logging.getLogger("hfsad")


def _to_log(level: str, node: str, event: str, text: str, topic: str) -> None:
    _log.log(_LEVELS[level], "%s", " ".join(part for part in (node, event, text, topic) if part))


def _nodes_text(nodes: Any, features: int | None) -> str | None:
    """The list of nodes: text, a file, or the paths of all clients."""
    if nodes is None or (isinstance(nodes, str) and "\n" in nodes):
        return nodes
    if isinstance(nodes, (str, os.PathLike)):
        return pathlib.Path(nodes).read_text()
    if features is None:
        raise ValueError("nodes: a list of clients without data; give the text of `hfsad nodes` or its file")
    return f"features {features}\n" + "".join(f"{path}\n" for path in nodes)


class _Member:
    _role = 0

    def __init__(self, spec: Any, name: str | None = None, *, data: Any = None, all_of: str | None = None, nodes: Any = None,
                 broker: str | None = None, above: str | None = None, below: str | None = None, keys: Any = None, ca: Any = None,
                 certificate: Any = None, key: Any = None, secret: Any = None, insecure: bool = False, state: Any = None, out: Any = None,
                 record: Any = None, audit: Any = None, metrics: str | None = None, durability: str = "power", linger: float | None = None,
                 log: Callable[[str, str, str, str, str], None] = _to_log):
        self.spec, self.name, self.all_of = Spec(spec), name, all_of
        self.data = self._rows(data)
        self._texts: dict[str, Any] = {"broker": broker, "above": above, "below": below, "metrics": metrics}
        files = {"keys": keys, "ca": ca, "certificate": certificate, "key": key, "secret": secret, "out": out, "record": record, "audit": audit,
                 "state": state or f"{self.spec['federation.name']}-state/{(name or f'{all_of}+').replace('/', '+')}"}
        self._texts.update({what: None if file is None else os.fspath(file) for what, file in files.items()})
        self._texts["nodes"] = _nodes_text(nodes, self.data.features if isinstance(self.data, Data) else None)
        if durability not in ("power", "process"):
            raise ValueError(f'durability: "{durability}"; expected power or process')
        self._numbers: dict[str, Any] = {"insecure": insecure, "durable_process": durability == "process", "linger": (0.0 if self._role == 2 else 6.0) if linger is None else linger}
        self._log, self._cancelled = log, False

    def _rows(self, data: Any) -> Data | str | None:
        """Rows without clients belong to the client itself."""
        if isinstance(data, tuple) and len(data) == 2:
            data = {"X": data[0], "y": data[1]}
        if isinstance(data, Mapping) and "clients" not in data and self.name is not None:
            data = {**data, "clients": np.full(np.shape(data["X"])[0], self.name)}
        return Data.of(data)

    def join(self, callback: Callable[[int, Progress | None], Any] | None = None) -> Any:
        """Takes part until the run has ended. ``callback(round, figures)`` ends it by returning False; figures are the cloud's.

        A broker or a process that is down is waited for. A process that is killed goes on from its state folder.
        """
        core, loss = self.spec._make(), self.spec.loss._core() if self.spec.loss else None
        if loss is not None:
            loss.attach(core)
        rows = self.data._core if isinstance(self.data, Data) else None

        def turn(round_: int, figures: tuple[Any, ...] | None) -> bool:
            if loss is not None:
                loss.raise_error()
            answer = callback(round_, None if figures is None else Progress(*figures)) if callback is not None else None
            return answer is not False and not self._cancelled

        member = _net.Member(core.handle(), None if rows is None else rows.handle(), (core, rows, loss), role=self._role,
                             name=self.name, all_of=self.all_of, turn=turn, log=self._log, ended=None,
                             data_file=self.data if isinstance(self.data, str) else None, **self._texts, **self._numbers)
        stop = member.run()
        if loss is not None:
            loss.raise_error()
        return self._end(stop)

    def _end(self, stop: str) -> Any:
        return stop

    def cancel(self) -> None:
        """Ends join() within about a second; from any thread."""
        self._cancelled = True


class Client(_Member):
    """A client of a federation, with rows in memory: ``Client(spec, "edge1/client7", data=(X, y), broker=…, keys=…).join()``.

    ``nodes`` is the list of all clients: the text of ``hfsad nodes``, its file, or a list of paths; without it the spec names a
    file. ``broker`` is a URL such as "mqtts://host", ``keys`` the folder of ``hfsad keys``. The loss of the spec may be a
    :class:`Loss`; the cloud and the edges then have ``loss: {kind: own}``. ``all_of`` in place of the name: all clients of an edge,
    with rows whose ``clients`` are paths. ``secret`` is the file of ``--secret`` if there are no certificates, ``audit`` a file for a
    line on every question. Lines of the log go to ``logging.getLogger("hfsad")``.

    >>> import numpy as np, hfsad
    >>> client = hfsad.Client({"loss": "absolute"}, "edge1/a", data=(np.eye(2), [1.0, 2.0]), nodes=["edge1/a", "edge1/b"],
    ...                       broker="mqtts://broker.example", keys="keys")
    >>> client.name, client.data
    ('edge1/a', Data(2 rows, 2 features, 1 clients))
    >>> client.join()  # doctest: +SKIP
    'tolerance'
    """

    _role = 2


class Edge(_Member):
    """An inner node of a federation: ``Edge(spec, "edge1", nodes=…, broker=…, keys=…).join()``.

    >>> import hfsad
    >>> edge = hfsad.Edge({"loss": "absolute"}, "edge1", nodes="features 2\\nedge1/a\\nedge1/b\\n", broker="mqtts://broker.example", keys="keys")
    >>> edge.name
    'edge1'
    >>> edge.join()  # doctest: +SKIP
    'tolerance'
    """

    _role = 1


class Cloud(_Member):
    """The cloud of a federation: ``Cloud(spec, nodes=…, broker=…, keys=…, out="out").join()`` returns the result.

    >>> import hfsad
    >>> cloud = hfsad.Cloud({"loss": "absolute"}, nodes="features 2\\nedge1/a\\nedge1/b\\n", broker="mqtts://broker.example", keys="keys", out="out")
    >>> cloud.name
    'cloud'
    >>> cloud.join()  # doctest: +SKIP
    <Result: 4 nodes, 2 numbers each, converged>
    """

    _role = 0

    def __init__(self, spec: Any, **options: Any):
        super().__init__(spec, "cloud", **options)

    def _end(self, stop: str) -> Result | None:
        """None if it was cancelled before the first row."""
        folder = pathlib.Path(self._texts["out"] or "")
        return load(folder) if stop != "interrupted" or (folder / "summary.json").exists() else None


def program() -> str:
    """The program `hfsad`: that of the package, or the one in the path.

    >>> import hfsad, subprocess
    >>> subprocess.run([hfsad.program(), "--version"], capture_output=True, text=True).stdout.split()[0]
    'hfsad'
    """
    inside = pathlib.Path(__file__).with_name("hfsad")
    found = os.environ.get("HFSAD") or (str(inside) if inside.is_file() else shutil.which("hfsad"))
    if not found:
        raise FileNotFoundError("the program hfsad is neither in the package nor in the path; run make install")
    return found


class Federation:
    """A whole federation on this machine: a broker, the cloud, the edges and the clients as processes of their own.

    ``Federation(spec, data).up()`` returns the result, with the bits of ``run(spec, data)``. ``start()`` returns at once; then
    ``processes()`` lists the processes, and ``wait()`` returns the result. It needs mosquitto.

    >>> import numpy as np, hfsad
    >>> X = np.random.default_rng(1).normal(size=(60, 2))
    >>> data = hfsad.Data(X, X @ [1.0, 2.0], clients=np.repeat(["a", "b", "c"], 20))
    >>> hfsad.Federation({"loss": "absolute"}, data).up().coef.round(4)
    array([1., 2.])
    """

    def __init__(self, spec: Any, data: Any = None, *, out: Any = None, processes: bool = False):
        data = Data.of(data)
        self.spec = Spec(spec, data=data) if isinstance(data, str) else Spec(spec)
        if self.spec.loss is not None:
            raise ValueError("a loss in Python runs in hfsad.Client; hfsad.Federation starts the program, which does not have it")
        self.data = data if isinstance(data, Data) else None
        self._out, self._each = out, processes
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def start(self) -> "Federation":
        """Starts the processes."""
        self._folder = tempfile.TemporaryDirectory(prefix="hfsad-")
        folder = pathlib.Path(self._folder.name)
        words = [program(), "up", *self.spec._command(folder, self.data), "--state", str(folder / "state"), "--quiet",
                 "--out", os.fspath(self._out) if self._out is not None else str(folder / "out")]
        self._result = words[-1]
        self._errors = open(folder / "errors", "w+b")
        self._process = subprocess.Popen(words + (["--processes"] if self._each else []), stderr=self._errors, start_new_session=True,
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        return self

    def processes(self) -> dict[str, int]:
        """Process numbers by what the process does: "broker", "cloud", "edge north", "client north/a"."""
        if self._process is None:
            return {}
        found = {}
        pid = self._process.pid
        try:
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return {}
        for child in children:
            try:
                words = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            kind = words[1] if len(words) > 1 else ""
            if kind == "up":  # about to become another program
                continue
            if kind not in ("cloud", "edge", "client"):
                found["broker"] = int(child)
                continue
            name = next((word.split("=", 1)[1] for word in words if word.startswith(("--name=", "--all-of="))), "")
            found[f"{kind} {name}".strip()] = int(child)
        return found

    def wait(self, timeout: float | None = None) -> Result:
        """Waits for the end and returns the result."""
        if self._process is None:
            raise ValueError("the federation was not started")
        process = self._process
        try:
            process.wait(timeout)
        except KeyboardInterrupt:
            self.stop()
            raise
        self._errors.seek(0)
        told = self._errors.read().decode(errors="replace").strip()
        self._errors.close()
        if process.returncode:
            self._clean()
            kind = ValueError if process.returncode == 2 else RuntimeError
            raise kind(told.split("\n")[0].removeprefix("hfsad: ") or f"hfsad up ended with status {process.returncode}")
        result = load(self._result)
        result.spec, result.data = self.spec, self.data
        self._clean()
        return result

    def stop(self) -> None:
        """Ends all processes, as Ctrl-C ends the program."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
        self._clean()

    def __del__(self) -> None:
        if getattr(self, "_process", None) is not None:
            self.stop()

    def _clean(self) -> None:
        self._process = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def up(self) -> Result:
        """Starts all processes, waits for the end, and returns the result."""
        return self.start().wait()
