"""hfsad: linear models with smooth or non-smooth losses over a tree of devices whose data never leaves them.

>>> import numpy as np, hfsad
>>> X = np.random.default_rng(0).normal(size=(100, 2))
>>> y = X @ [1.0, -2.0] + 3
>>> hfsad.QuantileRegressor(quantile=0.5, alpha=0).fit(X, y).coef_.round(6)
array([ 1., -2.])
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core
from ._core import DivergedError
from ._data import Data
from ._loss import Loss
from ._run import Interrupted, Path, Progress, Result, Verdict, compare, load, path, run
from ._spec import Setting, Spec, settings

if TYPE_CHECKING:
    from ._estimators import (HuberRegressor, LADRegressor, LinearRegression, LinearSVC, LogisticRegression, PhaseRetrieval,
                              PoissonRegressor, QuantileRegressor)
    from ._federation import Client, Cloud, Edge, Federation, program

__version__ = _core.version

# Their modules are imported at the first use: scikit-learn takes a second to load.
_ESTIMATORS = ("HuberRegressor", "LADRegressor", "LinearRegression", "LinearSVC", "LogisticRegression", "PhaseRetrieval",
               "PoissonRegressor", "QuantileRegressor")
_LAZY = {**{name: "_estimators" for name in _ESTIMATORS},
         **{name: "_federation" for name in ("Client", "Cloud", "Edge", "Federation", "program")}}

__all__ = ["Data", "DivergedError", "Interrupted", "Loss", "Path", "Progress", "Result", "Setting", "Spec", "Verdict",
           "compare", "load", "path", "run", "settings", *_LAZY]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module hfsad has no attribute {name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
