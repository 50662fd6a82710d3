"""hfsad.run and what comes of it."""
from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._data import Data
from ._spec import Spec

WITH = ("auto", "client", "edge", "cloud")
SELECT = ("heldout", "bic", "aic")


class Progress(NamedTuple):
    """What a callback is told: the figures of a row of the trace, or the polish so far.

    >>> import numpy as np, hfsad
    >>> told = []
    >>> _ = hfsad.run({"loss": "squared", "algorithm": "hfsad", "run.iterations": 2}, (np.eye(2), [1.0, 2.0]), callback=told.append)
    >>> [p.iteration for p in told if p.polish is None]
    [0, 1, 2]
    """

    iteration: int
    objective: float
    consensus_objective: float
    primal_residual: float
    dual_residual: float
    consensus_gap: float
    smoothing_gap: float
    relative_error: float
    seconds: float
    bytes_up: int
    bytes_down: int
    polish: tuple[int, float] | None  # (exchanges, bound on the gap); None: this is a row of the trace


class Verdict(NamedTuple):
    """Whether the models are at the optimum: "converged", "not converged" or "unknown", with a bound on the gap.

    >>> import numpy as np, hfsad
    >>> kind, gap, text = hfsad.run({"loss": "absolute"}, (np.eye(2), [1.0, 2.0])).verdict
    >>> kind, gap < 1e-4
    ('converged', True)
    """

    kind: str
    gap: float
    text: str


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during :func:`run`. ``result`` is the result so far, or None.

    >>> import numpy as np, hfsad
    >>> def impatient(p):
    ...     if p.iteration == 3:
    ...         raise KeyboardInterrupt
    >>> try:
    ...     hfsad.run({"loss": "absolute", "algorithm": "hfsad"}, (np.eye(2), [1.0, 2.0]), callback=impatient)
    ... except hfsad.Interrupted as interrupted:
    ...     print(interrupted.result.stop)
    interrupted
    """

    result: "Result | None" = None


def table(columns: Mapping[str, Any]) -> Any:
    """A data frame if pandas is there, otherwise a dict of arrays."""
    try:
        import pandas
    except ImportError:
        return dict(columns)
    return pandas.DataFrame(columns)


class _Bar:
    """Progress on stderr: tqdm's bar if it is there, otherwise one line."""

    def __init__(self, total: int):
        try:
            from tqdm import tqdm
        except ImportError:
            tqdm = None
        self.total = total
        self.bar = tqdm(total=total, desc="hfsad", leave=False) if tqdm else None

    def __call__(self, p: Progress) -> None:
        text = f"objective {p.objective:.6g}" if p.polish is None else f"polish, {p.polish[0]} exchanges, gap {p.polish[1]:.1e}"
        if self.bar is not None:
            self.bar.update(p.iteration - self.bar.n)
            self.bar.set_postfix_str(text, refresh=False)
        elif p.iteration % 10 == 0:
            print(f"\rhfsad: iteration {p.iteration} of {self.total}, {text}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
        else:
            print(file=sys.stderr)


def _is_watched() -> bool:
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


class _Models(Mapping[str, np.ndarray]):
    """Models by node name, the intercept last."""

    def __init__(self, names: list[str], rows: np.ndarray):
        self._index = {name: i for i, name in enumerate(names)}
        self.array = rows

    def __getitem__(self, name: str) -> np.ndarray:
        return self.array[self._index[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        return f"<models of {len(self)} nodes, {self.array.shape[1]} numbers each>"


class Result:
    """What came of a run. ``models["edge1/client7"]`` is the model of a node, the intercept last if there is one.

    >>> import numpy as np, hfsad
    >>> X = np.random.default_rng(1).normal(size=(60, 2))
    >>> data = hfsad.Data(X, X @ [1.0, 2.0], clients=np.repeat(["a", "b", "c"], 20))
    >>> result = hfsad.run({"loss": "absolute"}, data)
    >>> list(result.models), result.models["b"].round(4)
    (['cloud', 'a', 'b', 'c'], array([1., 2.]))
    >>> result.predict([[1.0, 1.0]]).round(4), result.settings["loss.kind"]
    (array([3.]), 'absolute')
    """

    def __init__(self, core: _core.Result, run: _core.Run | None = None, spec: Spec | None = None, data: Any = None):
        self._core, self._run, self.spec, self.data = core, run, spec, data
        numbers, nodes, self._inner, width, self.has_intercept = core.models()
        self.models = _Models(core.names(), np.frombuffer(numbers).reshape(nodes, width))

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Result":
        """From the output folder of a run: of :meth:`save`, ``hfsad run`` or ``hfsad up``."""
        return cls(_core.Result(folder))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the output folder that ``hfsad run`` writes: models, trace, state, summary and checkpoint."""
        if self._run is None:
            raise ValueError("this result was loaded from a folder; only the result of a run can be saved")
        self._run.write(folder)

    @property
    def coef(self) -> np.ndarray:
        """Coefficients of the cloud's model; a row for each class if there are several."""
        model, classes = self.models["cloud"], self._classes
        if classes:
            return model.reshape(-1, classes).T[:, :-1 if self.settings["features.intercept"] != "none" else None]
        return model[:-1] if self.has_intercept else model

    @property
    def _classes(self) -> int:
        return int(self.settings["loss.classes"]) if self.settings["loss.kind"] == "multinomial" else 0

    @property
    def intercept(self) -> Any:
        """Intercept of the cloud's model, or one for each class; 0 if there is none."""
        if self._classes and self.settings["features.intercept"] != "none":
            return self.models["cloud"].reshape(-1, self._classes)[-1]
        return float(self.models["cloud"][-1]) if self.has_intercept else 0.0

    @property
    def standard_errors(self) -> np.ndarray | None:
        """Standard errors of ``models["cloud"]`` if the spec has ``output.errors: true``, otherwise None.

        >>> import numpy as np, hfsad
        >>> X = np.random.default_rng(1).normal(size=(500, 2))
        >>> y = X @ [1, 2] + np.random.default_rng(2).normal(size=500)
        >>> result = hfsad.run({"loss": "squared", "output.errors": True}, (X, y), progress=False)
        >>> result.standard_errors.round(2)
        array([0.05, 0.05])
        >>> (result.conf_int()[:, 0] < [1, 2]).all() and ([1, 2] < result.conf_int()[:, 1]).all()
        True
        """
        errors = self._core.errors()
        return None if errors is None else np.frombuffer(errors)

    def conf_int(self, level: float = 0.95) -> np.ndarray:
        """Confidence intervals of ``models["cloud"]``: a row (lower, upper) for each number."""
        errors = self.standard_errors
        if errors is None:
            raise ValueError("the run has no standard errors; set output.errors: true")
        away = statistics.NormalDist().inv_cdf(0.5 + level / 2) * errors
        return np.column_stack([self.models["cloud"] - away, self.models["cloud"] + away])

    @property
    def clients(self) -> list[str]:
        """Names of the clients."""
        return list(self.models)[self._inner:]

    @property
    def groups(self) -> dict[str, int] | None:
        """The group of every client, if links are mcp or scad; group 0 follows the cloud."""
        groups = self._core.groups()
        return None if groups is None else dict(zip(self.clients, groups))

    @property
    def trace(self) -> Any:
        """The trace: a data frame if pandas is there, otherwise a dict of arrays."""
        return table({name: np.frombuffer(column) for name, column in self._core.trace().items()})

    @property
    def settings(self) -> dict[str, Any]:
        """All settings in force, by dotted key."""
        return self._core.settings()

    @property
    def verdict(self) -> Verdict:
        """Whether the models are at the optimum."""
        return Verdict(*self._core.verdict())

    @property
    def stop(self) -> str:
        """Why the run stopped: "iterations", "tolerance", "interrupted" or "diverged"."""
        return self._core.stop()

    def predict(self, X: Any, *, clients: Any = None, edges: Any = None, model: str = "auto") -> np.ndarray:
        """A prediction for every row. Rows without a known client get the model of the nearest node above.

        ``model`` chooses: "auto", "client", "edge" or "cloud".
        """
        data = X if isinstance(X, Data) else Data(X, clients=clients, edges=edges)
        out = np.empty(data.rows)
        self._core.predict(data._core, _choice(WITH, model, "model"), out)
        return out

    def evaluate(self, data: Any, *, model: str = "auto") -> Any:
        """Loss, accuracy and coverage of every node of the data, as a table."""
        data = Data.of(data)
        if not isinstance(data, Data):
            raise TypeError("evaluate: expected rows in memory")
        names = ("node", "rows", "weight", "loss", "total", "accuracy", "coverage")
        rows = self._core.evaluate(data._core, _choice(WITH, model, "model"))
        return table(dict(zip(names, zip(*rows))))

    def path(self, **options: Any) -> "Path":
        """The same spec and data over a grid of lambdas: see :func:`path`."""
        return path(self._again(), self.data, **options)

    def compare(self, *others: Any, algorithms: tuple[str, ...] = ("fedavg", "fedprox"), **options: Any) -> Any:
        """Runs other specs, or other algorithms, on the same data: one row of figures each."""
        spec = self._again()
        specs = {f"spec {i + 2}": Spec(other) for i, other in enumerate(others)}
        specs = specs or {name: Spec(spec, algorithm=name) for name in algorithms}
        results = {"this": self, **{name: run(other, self.data, progress=False, **options) for name, other in specs.items()}}
        return compare(results)

    def plot(self, what: str = "trace", ax: Any = None) -> Any:
        """Draws the objective over the iterations ("trace"), or the coefficients of all clients by group ("models")."""
        from matplotlib import pyplot

        ax = ax if ax is not None else pyplot.gca()
        if what == "trace":
            trace = self._core.trace()
            ax.plot(np.frombuffer(trace["iteration"]), np.frombuffer(trace["consensus_objective"]))
            ax.set(xlabel="iteration", ylabel="consensus objective")
        elif what == "models":
            groups = self._core.groups() or [0] * len(self.clients)
            for row, group in zip(self.models.array[self._inner:], groups):
                ax.plot(np.arange(1, len(row) + 1), row, "o-", color=f"C{group}", alpha=0.5, markersize=3)
            ax.plot(np.arange(1, len(self.models["cloud"]) + 1), self.models["cloud"], "k--", label="cloud")
            ax.set(xlabel="coefficient", ylabel="value")
            ax.legend()
        else:
            raise ValueError(f'plot: "{what}"; expected "trace" or "models"')
        return ax

    def _again(self) -> Spec:
        if self.spec is None:
            raise ValueError("this result was loaded from a folder; run the spec again with hfsad.run")
        return self.spec

    def __repr__(self) -> str:
        return f"<Result: {len(self.models)} nodes, {self.models.array.shape[1]} numbers each, {self.verdict.kind}>"


def _choice(words: tuple[str, ...], word: str, what: str) -> int:
    if word not in words:
        raise ValueError(f'{what}: "{word}"; expected one of {", ".join(words)}')
    return words.index(word)


def _prepare(spec: Any, data: Any) -> tuple[Spec, Any]:
    data = Data.of(data)
    spec = Spec(spec, data=data) if isinstance(data, str) else Spec(spec)
    if isinstance(data, Data) and not data.has_y:
        raise ValueError("the data has no y; give one number for each row")
    return spec, data if isinstance(data, Data) else None


def run(spec: Any, data: Any = None, *, callback: Callable[[Progress], Any] | None = None, threads: int = 0,
        progress: bool | None = None, out: str | os.PathLike[str] | None = None, warm_start: Result | None = None) -> Result:
    """Trains, and returns the result.

    ``spec`` is anything that :class:`Spec` takes, ``data`` anything that :class:`Data` takes; without data the spec
    names a file. ``callback`` sees every row of the trace and ends the training by returning False. ``threads=0``: one
    per core; the result does not depend on it. ``progress=None`` shows a bar in a terminal and in a notebook. ``out`` is
    the output folder. Ctrl-C ends the training, writes ``out`` and raises :class:`Interrupted`.

    >>> import numpy as np, hfsad
    >>> X = np.random.default_rng(1).normal(size=(200, 3))
    >>> result = hfsad.run({"loss": "absolute"}, (X, X @ [1.0, 2.0, 3.0]))
    >>> result.coef.round(6)
    array([1., 2., 3.])
    >>> result.verdict.kind
    'converged'
    """
    spec, data = _prepare(spec, data)
    core = spec._make()
    handle = _core.Run(core, data._core if data is not None else None, threads, spec.loss._core() if spec.loss else None)
    if warm_start is not None:
        handle.warm_start(warm_start._core)
    bar = _Bar(spec["run.iterations"]) if progress or (progress is None and _is_watched()) else None

    def told(row: tuple[Any, ...]) -> Any:
        p = Progress(*row)
        if bar is not None:
            bar(p)
        return callback(p) if callback is not None else None

    try:
        result = Result(handle.train(told if callback is not None or bar is not None else None), handle, spec, data)
    except KeyboardInterrupt as interrupt:
        so_far = Interrupted(*interrupt.args)
        so_far.result = Result(handle.take(), handle, spec, data)
        if out is not None:
            handle.write(out)
        raise so_far from None
    finally:
        if bar is not None:
            bar.close()
    if out is not None:
        handle.write(out)
    return result


def load(folder: str | os.PathLike[str]) -> Result:
    """The result in an output folder of ``hfsad run``, ``hfsad up`` or :meth:`Result.save`.

    >>> import numpy as np, hfsad, tempfile
    >>> result = hfsad.run({"loss": "absolute"}, (np.eye(2), [1.0, 2.0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result.save(folder)
    ...     same = hfsad.load(folder)
    >>> bool((same.coef == result.coef).all())
    True
    """
    return Result.load(folder)


def compare(results: Mapping[str, Result]) -> Any:
    """One row of figures for each result.

    >>> import numpy as np, hfsad
    >>> runs = {tau: hfsad.run({"loss": {"kind": "quantile", "tau": tau}}, (np.eye(2), [1.0, 2.0])) for tau in (0.1, 0.9)}
    >>> list(hfsad.compare(runs)["verdict"])
    ['converged', 'converged']
    """
    rows: dict[str, list[Any]] = {}
    for name, result in results.items():
        trace = {key: np.frombuffer(column) for key, column in result._core.trace().items()}
        verdict = result.verdict
        figures = {"run": name, "algorithm": result.settings["algorithm"] or "auto", "verdict": verdict.kind, "gap": verdict.gap}
        for key in ("iteration", "objective", "consensus_objective", "seconds", "bytes_up", "bytes_down"):
            figures[key] = trace[key][-1]
        for key, value in figures.items():
            rows.setdefault(key, []).append(value)
    return table(rows)


class Path:
    """A path over lambda: ``points`` is a table, ``models`` has a row for each lambda, ``chosen`` is an index.

    >>> import numpy as np, hfsad
    >>> X = np.random.default_rng(1).normal(size=(120, 6))
    >>> y = X[:, 0] + np.random.default_rng(2).normal(size=120)
    >>> found = hfsad.path({"loss": "squared", "prior.cloud.penalty": "l1", "run.iterations": 60}, (X, y), lambdas=[100.0, 10.0])
    >>> list(found.points["nonzero"])[0] <= list(found.points["nonzero"])[1], found.result().coef.shape
    (True, (6,))
    """

    def __init__(self, core: _core.Path, spec: Spec, data: Any):
        self._core, self._spec, self._data = core, spec, data
        names = ("lambda", "objective", "consensus_objective", "nonzero", "heldout", "bic", "aic", "relative_error", "converged",
                 "gap_bound")
        self.points = table(dict(zip(names, zip(*core.points()))))
        numbers, points, width = core.models()
        self.models = np.frombuffer(numbers).reshape(points, width)
        self.chosen: int = core.chosen()

    def result(self) -> Result:
        """The result of the chosen lambda; its run is made once more."""
        return Result(self._core.result(), None, self._spec, self._data)


def path(spec: Any, data: Any = None, *, lambdas: Any = None, n_lambdas: int = 30, ratio: float = 1e-3, edges: bool = False,
         heldout_share: float = 0.0, select: str | None = None, threads: int = 0,
         callback: Callable[[tuple[Any, ...]], Any] | None = None) -> Path:
    """Trains over a falling grid of lambdas of the cloud's prior and chooses one by held-out rows, BIC or AIC.

    >>> import numpy as np, hfsad
    >>> X = np.random.default_rng(1).normal(size=(120, 6))
    >>> y = X[:, 0] + np.random.default_rng(2).normal(size=120)
    >>> spec = {"loss": "squared", "prior.cloud.penalty": "l1", "run.iterations": 60}
    >>> found = hfsad.path(spec, (X, y), n_lambdas=5, select="bic")
    >>> found.models.shape
    (5, 6)
    """
    spec, data = _prepare(spec, data)
    core = spec._make()
    select = select or ("heldout" if heldout_share else "bic")
    grid = None if lambdas is None else np.ascontiguousarray(lambdas, dtype=np.float64)
    handle = _core.Path(core, data._core if data is not None else None, threads, spec.loss._core() if spec.loss else None,
                        grid, n_lambdas, ratio, edges, heldout_share, _choice(SELECT, select, "select"))
    handle.train(callback)
    return Path(handle, spec, data)
