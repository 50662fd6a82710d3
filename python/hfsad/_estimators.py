"""Estimators that follow scikit-learn's conventions and minimise the objectives of its estimators of the same name."""
from __future__ import annotations

import os
import warnings
from typing import Any, Self

import numpy as np

from ._base import (BaseEstimator, ClassifierMixin, ConvergenceWarning, RegressorMixin, check_fitted, check_weight, check_X, check_y,
                    dot, with_column)
from ._data import Data, _paths
from ._run import Result, Verdict, run, table

_SHARED = """
    threads : int, default=None
        Threads, and clients that rows without ``clients`` are dealt over; None: one per core.
    link : {"tv", "mcp", "scad"}, default="tv"
        "tv" fits one model for all clients. "mcp" and "scad" let a client that differs keep its own model: see ``groups_``.

    Attributes
    ----------
    coef_, intercept_ : the model, the cloud's.
    client_coef_ : dict from client to its coefficients, the intercept last if there is one; None if ``fit`` was given no clients.
    groups_ : dict from client to its group; None if there are no groups.
    certificate_ : (kind, gap, text): whether the model is at the optimum, and a bound on the objective's distance to it.
    n_iter_ : iterations, including exchanges of the last stage.
    trace_ : figures of the iterations; a data frame if pandas is there.
    n_features_in_, feature_names_in_ : features seen by ``fit``, and their names if X was a data frame.
"""


def _documented(cls: type) -> type:
    """Attributes and parameters that all estimators share go into every docstring."""
    cls.__doc__ = (cls.__doc__ or "").replace("    (shared)\n", _SHARED.lstrip("\n"))
    return cls


def _cores(threads: int | None) -> int:
    return threads or len(os.sched_getaffinity(0))


class _Problem:
    """Rows that are ready to train on; a penalty of the coefficients is added up over all of them."""

    def __init__(self, estimator: Any, X: Any, y: np.ndarray, weight: np.ndarray | None, clients: Any, edges: Any, column: float = 0.0):
        self.estimator, self.names = estimator, getattr(estimator, "feature_names_in_", None)
        rows = X.shape[0]
        if clients is not None:
            codes, paths = _paths(clients, edges, rows)
            self.clients: Any = np.asarray(paths, dtype=object)[codes]
        elif edges is not None:
            raise ValueError("edges are given without clients; give both, or neither")
        else:
            self.clients = None
        if weight is not None and not weight.all():
            there = weight > 0
            X, y, weight = X[there], y[there], weight[there]
            self.clients = None if self.clients is None else self.clients[there]
        self.X, self.y, self.weight = with_column(X, column) if column else X, y, weight
        self.column = column
        self.total = float(len(y) if weight is None else weight.sum())

    def _spec(self, loss: dict[str, Any], penalty: str | None, lam: float, ratio: float) -> dict[str, Any]:
        e = self.estimator
        spec: dict[str, Any] = {"algorithm": "hfsad", "loss": loss, "link.client.penalty": e.link, "link.edge.penalty": "tv",
                                "prior.edge.penalty": "none", "prior.cloud.penalty": "none", "run.iterations": e.max_iter,
                                "run.seed": getattr(e, "random_state", None),
                                "features.intercept": "global" if e.fit_intercept and not self.column else "none",
                                "features.positive": bool(getattr(e, "positive", False))}
        if penalty and lam > 0:
            spec.update({"prior.cloud.penalty": penalty, "prior.cloud.weight": 1.0, "prior.cloud.lambda": lam})
            if penalty == "elastic-net":
                spec["prior.cloud.ratio"] = ratio
        return spec

    def solve(self, y: np.ndarray, loss: dict[str, Any], penalty: str | None = None, lam: float = 0.0, ratio: float = 0.5,
              factor: np.ndarray | None = None, start: Result | None = None) -> "_Solution":
        """Minimises the sum of weighted losses + penalty."""
        threads = self.estimator.threads
        spec = self._spec(loss, penalty, lam, ratio)
        weight = self.weight if factor is None else factor if self.weight is None else factor * self.weight
        data = Data(self.X, y, weight=weight, clients=self.clients, parts=_cores(threads))
        done = [0, 0]  # iterations before this stage, and now

        def count(p: Any) -> None:
            done[1] = done[0] + p.iteration + (p.polish[0] if p.polish else 0)

        def train(more: dict[str, Any]) -> Result:
            done[0] = done[1]
            return run({**spec, **more}, data, callback=count, threads=threads or 0, progress=False, warm_start=start)

        try:
            if not self.estimator._has_optimum():
                found = train({})
            else:
                # The last stage of a run alone nearly always reaches the optimum. Otherwise a whole run goes further.
                found = train({"run.iterations": 0, "run.polish": True})
                if found.verdict.kind != "converged":
                    only_star = spec["features.positive"] or loss["kind"] == "multinomial"
                    found = train({"algorithm": "star", "run.stop.gap": 1e-9} if only_star else {})
        except ValueError as error:
            if " is nan;" in str(error):
                raise ValueError(f"{error}. Input contains NaN") from None  # scikit-learn's word for it
            raise
        return _Solution(self, found, max(1, done[1]), loss.get("classes", 0))


class _Solution:
    coef: np.ndarray
    intercept: Any  # a number, or one for each class

    def __init__(self, problem: _Problem, result: Result, iterations: int, classes: int = 0):
        self.result, self.iterations, self.verdict = result, iterations, result.verdict
        model = result.models["cloud"]
        if classes:
            both = model.reshape(-1, classes).T  # a row for each class
            self.coef, self.intercept = (both[:, :-1].copy(), both[:, -1].copy()) if problem.estimator.fit_intercept else (
                both.copy(), np.zeros(classes))
        elif problem.column:
            self.coef, self.intercept = model[:-1].copy(), float(model[-1] * problem.column)
        else:
            self.coef, self.intercept = result.coef.copy(), result.intercept
        self.client_coef = {name: result.models[name].copy() for name in result.clients} if problem.clients is not None else None
        self.groups = result.groups if problem.clients is not None else None

    @property
    def trace(self) -> dict[str, np.ndarray]:
        return {name: np.frombuffer(column).copy() for name, column in self.result._core.trace().items()}


class _Estimator(BaseEstimator):
    fit_intercept = True

    def _begin(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        X = check_X(self, X, reset=True)
        y = check_y(y, X.shape[0])
        if self.link not in ("tv", "mcp", "scad"):
            raise ValueError(f'link: "{self.link}"; expected one of tv, mcp, scad')
        return X, y, check_weight(sample_weight, X.shape[0])

    def _has_optimum(self) -> bool:
        """Convex, with one model for all clients: the optimum can be proven."""
        return self.link == "tv"

    def _keep(self, found: list[_Solution]) -> None:
        """The attributes that a solution leaves; one solution for each class if there are more than two."""
        first = found[0]
        self.client_coef_ = first.client_coef if len(found) == 1 else None
        self.groups_ = first.groups if len(found) == 1 else None
        self.certificate_: Any = first.verdict if len(found) == 1 else [solution.verdict for solution in found]
        self._trace = first.trace
        for solution in found:
            if self._has_optimum() and solution.verdict.kind != "converged":
                warnings.warn(solution.verdict.text, ConvergenceWarning, stacklevel=4)

    @property
    def trace_(self) -> Any:
        """Figures of the iterations; a data frame if pandas is there."""
        check_fitted(self)
        return table(self._trace)

    def _linear(self, X: Any, clients: Any = None, edges: Any = None) -> np.ndarray:
        check_fitted(self)
        X = check_X(self, X, reset=False)
        if clients is None or self.client_coef_ is None:
            return dot(X, self.coef_.T) + self.intercept_
        codes, paths = _paths(clients, edges, X.shape[0])
        out = np.empty(X.shape[0])
        for code, path in enumerate(paths):
            rows, model = codes == code, self.client_coef_.get(path)
            w, b = (self.coef_, self.intercept_) if model is None else (model[:X.shape[1]], model[X.shape[1]:].sum())
            out[rows] = dot(X[rows], w) + b
        return out


class _Regressor(RegressorMixin, _Estimator):
    def _numbers(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        X, y, weight = self._begin(X, y, sample_weight)
        return X, y.astype(np.float64), weight

    def _fit_penalised(self, X: Any, y: Any, sample_weight: Any, clients: Any, edges: Any, loss: dict[str, Any],
                       penalty: str | None, alpha: float) -> Any:
        if not alpha >= 0:
            raise ValueError(f"alpha: {alpha}; expected a number of at least 0")
        X, y, weight = self._numbers(X, y, sample_weight)
        problem = _Problem(self, X, y, weight, clients, edges)
        return self._keep_one(problem.solve(problem.y, loss, penalty, alpha * problem.total))

    def _keep_one(self, solution: _Solution) -> Any:
        self._keep([solution])
        self.coef_, self.intercept_, self.n_iter_ = solution.coef, solution.intercept, solution.iterations
        return self

    def predict(self, X: Any, clients: Any = None, edges: Any = None) -> np.ndarray:
        """A prediction for each row; with ``clients``, by the models of the clients."""
        return self._linear(X, clients, edges)


@_documented
class QuantileRegressor(_Regressor):
    """Quantile regression: minimises ``mean(pinball loss) + alpha |coef|_1``, as scikit-learn's.

    >>> import numpy as np, hfsad
    >>> X = np.repeat(np.arange(10.0), 11)[:, None]
    >>> model = hfsad.QuantileRegressor(quantile=0.9, alpha=0).fit(X, 2 * X[:, 0] + np.tile(np.arange(11.0), 10))
    >>> model.coef_.round(6), round(model.intercept_, 6)
    (array([2.]), 9.0)

    Parameters
    ----------
    quantile, alpha, fit_intercept : as in scikit-learn; ``solver`` and ``solver_options`` are accepted and have no effect.
        ``quantile`` may be a rising list: ``coef_`` then has a row and ``predict`` a column for each. Predictions of a row never
        cross: each row is sorted, which brings estimated quantiles closer to the true ones (Chernozhukov, Fernandez-Val and
        Galichon, 2010).
    max_iter : iterations if ``link`` is "mcp" or "scad".
    (shared)
    """

    def __init__(self, *, quantile: float | list[float] = 0.5, alpha: float = 1.0, fit_intercept: bool = True, solver: str = "interior-point",
                 solver_options: dict | None = None, max_iter: int = 300, threads: int | None = None, link: str = "tv") -> None:
        self.quantile, self.alpha, self.fit_intercept, self.solver = quantile, alpha, fit_intercept, solver
        self.solver_options, self.max_iter, self.threads, self.link = solver_options, max_iter, threads, link

    def fit(self, X: Any, y: Any, sample_weight: Any = None, clients: Any = None, edges: Any = None) -> Self:
        """``clients`` has a label for each row, ``edges`` the edge above it."""
        if isinstance(self.quantile, (list, tuple, np.ndarray)):
            return self._fit_several(X, y, sample_weight, clients, edges)
        loss = {"kind": "quantile", "tau": float(self.quantile)}
        return self._fit_penalised(X, y, sample_weight, clients, edges, loss, "l1", self.alpha)

    def _fit_several(self, X: Any, y: Any, sample_weight: Any, clients: Any, edges: Any) -> Self:
        levels = [float(q) for q in self.quantile]  # type: ignore[union-attr]
        if not levels or any(b <= a for a, b in zip(levels, levels[1:])):
            raise ValueError(f"quantile: {levels}; expected a level, or a list of levels that rise")
        if not self.alpha >= 0:
            raise ValueError(f"alpha: {self.alpha}; expected a number of at least 0")
        X, y, weight = self._numbers(X, y, sample_weight)
        problem = _Problem(self, X, y, weight, clients, edges)
        found: list[_Solution] = []
        for level in levels:
            found.append(problem.solve(problem.y, {"kind": "quantile", "tau": level}, "l1", self.alpha * problem.total))
        self._keep(found)
        self.coef_, self.intercept_ = np.array([s.coef for s in found]), np.array([s.intercept for s in found])
        self.n_iter_ = max(s.iterations for s in found)
        return self

    def predict(self, X: Any, clients: Any = None, edges: Any = None) -> np.ndarray:
        """A prediction for each row; with ``clients``, by the models of the clients. Of several quantiles a column each, rising."""
        found = self._linear(X, clients, edges)
        return np.sort(found, axis=1) if found.ndim == 2 else found


@_documented
class LADRegressor(_Regressor):
    """Least absolute deviations: minimises ``mean(|residual|) + alpha |coef|_1``.

    >>> import numpy as np, hfsad
    >>> X = np.arange(20.0)[:, None]
    >>> y = 3 * X[:, 0] + 1
    >>> y[5] = 1000
    >>> hfsad.LADRegressor().fit(X, y).predict([[10.0]]).round(6)
    array([31.])

    Parameters
    ----------
    alpha, fit_intercept : penalty and intercept.
    max_iter : iterations if ``link`` is "mcp" or "scad".
    (shared)
    """

    def __init__(self, *, alpha: float = 0.0, fit_intercept: bool = True, max_iter: int = 300, threads: int | None = None,
                 link: str = "tv") -> None:
        self.alpha, self.fit_intercept, self.max_iter, self.threads, self.link = alpha, fit_intercept, max_iter, threads, link

    def fit(self, X: Any, y: Any, sample_weight: Any = None, clients: Any = None, edges: Any = None) -> Self:
        """``clients`` has a label for each row, ``edges`` the edge above it."""
        return self._fit_penalised(X, y, sample_weight, clients, edges, {"kind": "absolute"}, "l1", self.alpha)


@_documented
class LinearRegression(_Regressor):
    """Least squares: minimises ``sum(residual^2)``, as scikit-learn's. If several models are best, it may be another of them.

    >>> import hfsad
    >>> hfsad.LinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).coef_.round(6)
    array([2.])

    Parameters
    ----------
    fit_intercept : as in scikit-learn; ``copy_X`` and ``n_jobs`` are accepted and have no effect.
    positive : no coefficient below 0, as in scikit-learn; only with ``link="tv"``.
    max_iter : iterations if ``link`` is "mcp" or "scad".
    (shared)
    """

    def __init__(self, *, fit_intercept: bool = True, copy_X: bool = True, n_jobs: int | None = None, positive: bool = False,
                 max_iter: int = 300, threads: int | None = None, link: str = "tv") -> None:
        self.fit_intercept, self.copy_X, self.n_jobs, self.positive = fit_intercept, copy_X, n_jobs, positive
        self.max_iter, self.threads, self.link = max_iter, threads, link

    def fit(self, X: Any, y: Any, sample_weight: Any = None, clients: Any = None, edges: Any = None) -> Self:
        """``clients`` has a label for each row, ``edges`` the edge above it."""
        if self.positive and self.link != "tv":
            raise ValueError(f'positive: link: "{self.link}" lets clients keep their own models; expected link="tv"')
        return self._fit_penalised(X, y, sample_weight, clients, edges, {"kind": "squared"}, None, 0.0)


@_documented
class PoissonRegressor(_Regressor):
    """Poisson regression with a log link: minimises ``mean(deviance) / 2 + alpha / 2 |coef|^2``, as scikit-learn's.

    >>> import numpy as np, hfsad
    >>> X = np.array([[0.0], [1.0], [2.0]])
    >>> hfsad.PoissonRegressor(alpha=0).fit(X, np.exp(X[:, 0])).coef_.round(6)
    array([1.])

    Parameters
    ----------
    alpha, fit_intercept : as in scikit-learn; ``solver``, ``tol``, ``warm_start`` and ``verbose`` are accepted and have no effect.
    max_iter : iterations if ``link`` is "mcp" or "scad".
    (shared)
    """

    def __init__(self, *, alpha: float = 1.0, fit_intercept: bool = True, solver: str = "lbfgs", max_iter: int = 300,
                 tol: float = 1e-4, warm_start: bool = False, verbose: int = 0, threads: int | None = None,
                 link: str = "tv") -> None:
        self.alpha, self.fit_intercept, self.solver, self.max_iter, self.tol = alpha, fit_intercept, solver, max_iter, tol
        self.warm_start, self.verbose, self.threads, self.link = warm_start, verbose, threads, link

    def fit(self, X: Any, y: Any, sample_weight: Any = None, clients: Any = None, edges: Any = None) -> Self:
        """``clients`` has a label for each row, ``edges`` the edge above it."""
        return self._fit_penalised(X, y, sample_weight, clients, edges, {"kind": "poisson"}, "l2", self.alpha)

    def predict(self, X: Any, clients: Any = None, edges: Any = None) -> np.ndarray:
        """The expected count of each row."""
        return np.exp(self._linear(X, clients, edges))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the deviance that is explained, as scikit-learn's."""
        y = np.asarray(y, dtype=np.float64)

        def deviance(mean: Any) -> float:
            return float(np.average(np.where(y > 0, y * np.log(np.where(y > 0, y, 1) / mean), 0) - y + mean, weights=sample_weight))

        return 1 - deviance(self.predict(X)) / deviance(np.average(y, weights=sample_weight))

    def _more_tags(self) -> dict[str, Any]:
        return {"requires_positive_y": True}


@_documented
class HuberRegressor(_Regressor):
    """Huber regression with a scale, as scikit-learn's.

    Minimises ``sum(scale + H(residual / scale) scale) + alpha |coef|^2`` over the model and the scale; ``H(z)`` is ``z^2`` for
    ``|z| < epsilon`` and ``2 epsilon |z| - epsilon^2`` beyond. For a given scale this is a Huber loss; the scale is found around it.

    >>> import numpy as np, hfsad
    >>> X = np.arange(30.0)[:, None]
    >>> y = X[:, 0] + np.where(np.arange(30) % 2, 0.1, -0.1)
    >>> y[3] = 500
    >>> model = hfsad.HuberRegressor().fit(X, y)
    >>> np.flatnonzero(model.outliers_)
    array([3])

    Parameters
    ----------
    epsilon, alpha, fit_intercept, max_iter, tol : as in scikit-learn; ``max_iter`` and ``tol`` end the search for the scale.
    warm_start : accepted, has no effect.
    (shared)
    scale_, outliers_ : the scale, and the rows beyond ``epsilon`` scales.
    """

    def __init__(self, *, epsilon: float = 1.35, max_iter: int = 100, alpha: float = 0.0001, warm_start: bool = False,
                 fit_intercept: bool = True, tol: float = 1e-5, threads: int | None = None, link: str = "tv") -> None:
        self.epsilon, self.max_iter, self.alpha, self.warm_start = epsilon, max_iter, alpha, warm_start
        self.fit_intercept, self.tol, self.threads, self.link = fit_intercept, tol, threads, link

    def fit(self, X: Any, y: Any, sample_weight: Any = None, clients: Any = None, edges: Any = None) -> Self:
        """``clients`` has a label for each row, ``edges`` the edge above it."""
        if not self.epsilon >= 1 or not self.alpha >= 0:
            raise ValueError(f"epsilon {self.epsilon}, alpha {self.alpha}; expected epsilon of at least 1 and alpha of at least 0")
        X, y, weight = self._numbers(X, y, sample_weight)
        problem = _Problem(self, X, y, weight, clients, edges)
        weights = np.ones(len(problem.y)) if problem.weight is None else problem.weight

        def at(scale: float, before: _Solution | None) -> tuple[_Solution, float]:
            loss = {"kind": "huber", "delta": self.epsilon * scale}
            start = before.result if before is not None and self.link == "tv" else None
            solution = problem.solve(problem.y, loss, "l2", self.alpha * scale, start=start)
            rest = np.abs(problem.y - dot(problem.X, solution.coef) - solution.intercept)
            return solution, self._best_scale(rest, weights)

        solution, self.scale_ = self._search(at, self._best_scale(np.abs(problem.y - np.median(problem.y)), weights))
        self._keep_one(solution)
        self.outliers_ = np.abs(y - dot(X, self.coef_) - self.intercept_) > self.scale_ * self.epsilon
        return self

    def _best_scale(self, rest: np.ndarray, weight: np.ndarray) -> float:
        """The scale that is best for given residuals: a root of a monotone function, exact after sorting."""
        order = np.argsort(rest)
        rest, weight = rest[order], weight[order]
        inside, squares = np.cumsum(weight), np.cumsum(weight * rest**2)
        total = inside[-1]
        left = total - self.epsilon**2 * (total - inside)  # what the rows inside must make up for
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.sqrt(squares / left)
        upper = np.append(rest[1:], np.inf)
        fits = (left > 0) & (self.epsilon * scale >= rest) & (self.epsilon * scale <= upper)
        floor = 1e-10 * max(1.0, rest[-1])
        return float(max(scale[fits][0] if fits.any() else 0.0, floor))

    def _search(self, at: Any, scale: float) -> tuple[_Solution, float]:
        """The scale that its own model calls for: secant steps on the difference."""
        before: tuple[float, float] | None = None
        solution: _Solution | None = None
        exact = min(self.tol, 1e-7)
        for _ in range(max(1, self.max_iter)):
            solution, wanted = at(scale, solution)
            if abs(wanted - scale) <= exact * scale:
                break
            slope = (wanted - before[1]) / (scale - before[0]) if before and scale != before[0] else 0.0
            before = (scale, wanted)
            step = (wanted - scale) / (1 - slope) if slope < 0.95 else wanted - scale
            scale = scale + step if scale + step > 0.1 * scale else wanted
        assert solution is not None
        return solution, scale


@_documented
class PhaseRetrieval(_Regressor):
    """Phase retrieval: ``y = (X coef)^2`` up to the sign of ``coef``; minimises ``sum |y - (X coef)^2|``, which is not convex.

    >>> import numpy as np, hfsad
    >>> X = np.random.default_rng(1).normal(size=(200, 5))
    >>> truth = np.array([1.0, -2, 0.5, 3, 1])
    >>> w = hfsad.PhaseRetrieval().fit(X, (X @ truth) ** 2).coef_
    >>> bool(np.allclose(w * np.sign(w[0]), truth, atol=1e-3))
    True

    Parameters
    ----------
    max_iter : iterations.
    random_state : int, default=1
        Seed of the start.
    (shared)
    """

    fit_intercept = False

    def _has_optimum(self) -> bool:
        return False

    def __init__(self, *, max_iter: int = 300, random_state: int | None = 1, threads: int | None = None, link: str = "tv") -> None:
        self.max_iter, self.random_state, self.threads, self.link = max_iter, random_state, threads, link

    def fit(self, X: Any, y: Any, sample_weight: Any = None, clients: Any = None, edges: Any = None) -> Self:
        """``clients`` has a label for each row, ``edges`` the edge above it."""
        X, y, weight = self._numbers(X, y, sample_weight)
        problem = _Problem(self, X, y, weight, clients, edges)
        return self._keep_one(problem.solve(problem.y, {"kind": "phase-retrieval"}))

    def predict(self, X: Any, clients: Any = None, edges: Any = None) -> np.ndarray:
        """The square of the inner product."""
        return self._linear(X, clients, edges) ** 2

    def _more_tags(self) -> dict[str, Any]:
        order = "not convex: rows in another order may lead to another minimum"
        return {"poor_score": True, "requires_positive_y": True, "_xfail_checks": {"check_sample_weights_invariance": order}}


class _Classifier(ClassifierMixin, _Estimator):
    """One problem for two classes, one for each class against the others if there are more."""

    def _labels(self, y: np.ndarray) -> np.ndarray:
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or inf; expected labels")
        if y.dtype.kind == "f" and (y != np.round(y)).any():
            raise ValueError("Unknown label type: continuous. y has numbers with a fraction; expected labels of classes")
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has one class, {self.classes_[0]!r}; a classifier needs at least 2 classes")
        return codes

    def _class_weights(self, codes: np.ndarray, k: int, like_liblinear: bool, together: bool = False) -> np.ndarray | None:
        """Factors of the rows in the problem of class k; scikit-learn's rules for several classes differ by solver."""
        if self.class_weight is None:
            return None
        count = len(self.classes_)
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(f'class_weight: "{self.class_weight}"; expected "balanced", a dict or None')
            if count > 2 and not like_liblinear and not together:  # the two sides of this problem
                codes, count = (codes == k).astype(int), 2
            factor = len(codes) / (count * np.maximum(1, np.bincount(codes, minlength=count)))
        else:
            factor = np.array([float(self.class_weight.get(label, 1.0)) for label in self.classes_.tolist()])
        if count > 2 and like_liblinear:  # the others count as they are
            factor = np.where(np.arange(count) == k, factor, 1.0)
        return factor[codes]

    def _is_ovr(self, classes: int) -> bool:
        return True

    def _fit_together(self, problem: _Problem, penalty: str | None, ratio: float) -> Any:
        """All classes in one problem: the multinomial loss."""
        count = len(self.classes_)
        factor = self._class_weights(problem.y, 0, False, together=True)
        loss = {"kind": "multinomial", "classes": count}
        solution = problem.solve(problem.y.astype(np.float64), loss, penalty, 1 / self.C, ratio, factor)
        # The same number for all classes changes nothing where nothing is penalised: as scikit-learn's, they add up to 0.
        solution.intercept -= solution.intercept.mean()
        if penalty is None:
            solution.coef -= solution.coef.mean(axis=0)
        if solution.client_coef is not None:
            solution.client_coef = {name: w.reshape(-1, count).T for name, w in solution.client_coef.items()}
        self._keep([solution])
        kept = slice(1, 2) if count == 2 else slice(None)  # of two classes that of the second, as scikit-learn
        self.coef_, self.intercept_, self.n_iter_ = solution.coef[kept], solution.intercept[kept], np.array([solution.iterations])
        return self

    def _fit_classes(self, X: Any, y: Any, sample_weight: Any, clients: Any, edges: Any, loss: dict[str, Any], penalty: str | None,
                     ratio: float, column: float) -> Any:
        if not self.C > 0:
            raise ValueError(f"C: {self.C}; expected a number above 0")
        X, y, weight = self._begin(X, y, sample_weight)
        codes = self._labels(y)
        problem = _Problem(self, X, codes, weight, clients, edges, column if self.fit_intercept else 0.0)
        if not self._is_ovr(len(self.classes_)):
            return self._fit_together(problem, penalty, ratio)
        targets = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        found = []
        for k in targets:
            factor = self._class_weights(problem.y, k, column != 0)
            found.append(problem.solve(np.where(problem.y == k, 1.0, -1.0), loss, penalty, 1 / self.C, ratio, factor))
        self._keep(found)
        self.coef_ = np.array([solution.coef for solution in found])
        self.intercept_ = np.array([solution.intercept for solution in found])
        self.n_iter_ = np.array([solution.iterations for solution in found])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Distance to the boundary: of the second class, or of each class if there are more than two."""
        scores = self._linear(X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]


@_documented
class LogisticRegression(_Classifier):
    """Logistic regression: minimises ``C sum(log loss) + penalty``, as scikit-learn's.

    >>> import hfsad
    >>> model = hfsad.LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    >>> model.predict([[2.5]])
    array(['yes'], dtype='<U3')

    Parameters
    ----------
    penalty : {"l2", "l1", "elasticnet", None}
    C, fit_intercept, intercept_scaling, class_weight, l1_ratio : as in scikit-learn.
    solver : "liblinear" penalises the intercept, as scikit-learn's does; all others give the same result.
    multi_class : "ovr": one problem for each class against the rest; "multinomial": one problem for all classes; "auto": "ovr" for
        two classes, with solver="liblinear" and if ``link`` is "mcp" or "scad", otherwise "multinomial".
    max_iter : iterations if ``link`` is "mcp" or "scad".
    dual, tol, random_state, verbose, warm_start, n_jobs : accepted, have no effect.
    (shared)
    """

    def __init__(self, penalty: str | None = "l2", *, dual: bool = False, tol: float = 1e-4, C: float = 1.0,
                 fit_intercept: bool = True, intercept_scaling: float = 1, class_weight: dict | str | None = None,
                 random_state: int | None = None, solver: str = "lbfgs", max_iter: int = 300, multi_class: str = "auto",
                 verbose: int = 0, warm_start: bool = False, n_jobs: int | None = None, l1_ratio: float | None = None,
                 threads: int | None = None, link: str = "tv") -> None:
        self.penalty, self.dual, self.tol, self.C, self.fit_intercept = penalty, dual, tol, C, fit_intercept
        self.intercept_scaling, self.class_weight, self.random_state, self.solver = intercept_scaling, class_weight, random_state, solver
        self.max_iter, self.multi_class, self.verbose, self.warm_start, self.n_jobs = max_iter, multi_class, verbose, warm_start, n_jobs
        self.l1_ratio, self.threads, self.link = l1_ratio, threads, link

    def fit(self, X: Any, y: Any, sample_weight: Any = None, clients: Any = None, edges: Any = None) -> Self:
        """``clients`` has a label for each row, ``edges`` the edge above it."""
        kinds = {"l2": "l2", "l1": "l1", "elasticnet": "elastic-net", None: None, "none": None}
        if self.penalty not in kinds:
            raise ValueError(f'penalty: "{self.penalty}"; expected one of l2, l1, elasticnet, None')
        if self.multi_class not in ("auto", "ovr", "multinomial"):
            raise ValueError(f'multi_class: "{self.multi_class}"; expected one of auto, ovr, multinomial')
        if self.multi_class == "multinomial" and (self.solver == "liblinear" or self.link != "tv"):
            raise ValueError('multi_class: "multinomial" does not go with solver="liblinear", nor with a link but "tv"')
        if self.penalty == "elasticnet" and not 0 <= (self.l1_ratio if self.l1_ratio is not None else -1) <= 1:
            raise ValueError(f"l1_ratio: {self.l1_ratio}; expected a number from 0 to 1")
        column = float(self.intercept_scaling) if self.solver == "liblinear" else 0.0
        return self._fit_classes(X, y, sample_weight, clients, edges, {"kind": "logistic"}, kinds[self.penalty],
                                 0.5 if self.l1_ratio is None else self.l1_ratio, column)

    def _is_ovr(self, classes: int) -> bool:
        apart = classes <= 2 or self.solver == "liblinear" or self.link != "tv"
        return self.multi_class == "ovr" or (self.multi_class == "auto" and apart)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes."""
        scores = self._linear(X)
        if not self._is_ovr(len(self.classes_)):
            scores = np.column_stack([-scores, scores]) if scores.shape[1] == 1 else scores
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            return scores / scores.sum(axis=1, keepdims=True)
        share = 0.5 * (1 + np.tanh(0.5 * scores))
        if scores.shape[1] == 1:
            return np.column_stack([1 - share[:, 0], share[:, 0]])
        return share / share.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities."""
        return np.log(self.predict_proba(X))


@_documented
class LinearSVC(_Classifier):
    """Linear support vector machine: minimises ``penalty + C sum(loss)``, as scikit-learn's; the intercept is penalised, as there.

    >>> import hfsad
    >>> hfsad.LinearSVC(loss="hinge").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[2.6]])
    array([1])

    Parameters
    ----------
    penalty : {"l2", "l1"}
    loss : {"squared_hinge", "hinge"}
    C, fit_intercept, intercept_scaling, class_weight : as in scikit-learn.
    max_iter : iterations if ``link`` is "mcp" or "scad".
    dual, tol, multi_class, verbose, random_state : accepted, have no effect; more than two classes: one against the rest.
    (shared)
    """

    def __init__(self, penalty: str | None = "l2", loss: str = "squared_hinge", *, dual: bool = True, tol: float = 1e-4,
                 C: float = 1.0, multi_class: str = "ovr", fit_intercept: bool = True, intercept_scaling: float = 1,
                 class_weight: dict | str | None = None, verbose: int = 0, random_state: int | None = None, max_iter: int = 300,
                 threads: int | None = None, link: str = "tv") -> None:
        self.penalty, self.loss, self.dual, self.tol, self.C, self.multi_class = penalty, loss, dual, tol, C, multi_class
        self.fit_intercept, self.intercept_scaling, self.class_weight = fit_intercept, intercept_scaling, class_weight
        self.verbose, self.random_state, self.max_iter, self.threads, self.link = verbose, random_state, max_iter, threads, link

    def fit(self, X: Any, y: Any, sample_weight: Any = None, clients: Any = None, edges: Any = None) -> Self:
        """``clients`` has a label for each row, ``edges`` the edge above it."""
        kinds = {"hinge": "hinge", "squared_hinge": "squared-hinge"}
        if self.penalty not in ("l2", "l1"):
            raise ValueError(f'penalty: "{self.penalty}"; expected l2 or l1')
        if self.loss not in kinds:
            raise ValueError(f'loss: "{self.loss}"; expected squared_hinge or hinge')
        return self._fit_classes(X, y, sample_weight, clients, edges, {"kind": kinds[self.loss]}, self.penalty, 0.5,
                                 float(self.intercept_scaling))
