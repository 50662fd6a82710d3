"""What all estimators share: scikit-learn's conventions, with or without scikit-learn."""
from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np

from ._data import Data, _is_frame, _is_sparse

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError
    from sklearn.utils import validation

    _HAS_SKLEARN = True
except ImportError:  # numpy is enough
    _HAS_SKLEARN = False

    class ConvergenceWarning(UserWarning):  # type: ignore[no-redef]
        """The models are not shown to be at the optimum."""

    class DataConversionWarning(UserWarning):  # type: ignore[no-redef]
        """An array was reshaped."""

    class NotFittedError(ValueError, AttributeError):  # type: ignore[no-redef]
        """An estimator is used before fit."""

    class BaseEstimator:  # type: ignore[no-redef]
        """Parameters by name, as scikit-learn has them."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            names = list(inspect.signature(type(self).__init__).parameters)[1:]
            return {name: getattr(self, name) for name in sorted(names)}

        def set_params(self, **params: Any) -> Any:
            known = self.get_params()
            for name, value in params.items():
                if name not in known:
                    raise ValueError(f"Invalid parameter {name!r} for estimator {self!r}. Valid parameters are: {list(known)!r}.")
                setattr(self, name, value)
            return self

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.get_params().items())})"

    class RegressorMixin:  # type: ignore[no-redef]
        _estimator_type = "regressor"

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            y = np.asarray(y, dtype=float)
            weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
            rest = weight @ (y - self.predict(X)) ** 2  # type: ignore[attr-defined]
            return 1 - rest / (weight @ (y - np.average(y, weights=weight)) ** 2)

    class ClassifierMixin:  # type: ignore[no-redef]
        _estimator_type = "classifier"

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))  # type: ignore[attr-defined]


def _check_names(estimator: Any, X: Any, reset: bool) -> None:
    if _HAS_SKLEARN:
        method = getattr(estimator, "_check_feature_names", None)  # a function of `validation` in later versions
        method(X, reset=reset) if method else validation._check_feature_names(estimator, X, reset=reset)
        return
    names = np.asarray(X.columns, dtype=object) if _is_frame(X) and all(isinstance(n, str) for n in X.columns) else None
    fitted = getattr(estimator, "feature_names_in_", None)
    if reset and names is not None:
        estimator.feature_names_in_ = names
    elif reset and fitted is not None:
        del estimator.feature_names_in_
    elif not reset and names is not None and fitted is not None and list(names) != list(fitted):
        raise ValueError("The feature names should match those that were passed during fit.")


def check_X(estimator: Any, X: Any, reset: bool) -> Any:
    """X as an array of two dimensions, or sparse rows; its features are those of fit."""
    _check_names(estimator, X, reset)
    if _is_sparse(X):
        X = X.tocsr()
        if X.dtype.kind == "c":
            raise ValueError("Complex data not supported")
    else:
        X = np.asarray(X)
        if X.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        if X.dtype.kind != "f" or X.dtype.itemsize != 8:
            X = X.astype(np.float64)
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead. Reshape your data either using array.reshape(-1, 1)"
                             " if your data has a single feature or array.reshape(1, -1) if it contains a single sample.")
    for count, what in zip(X.shape, ("sample", "feature")):
        if count == 0:
            raise ValueError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required.")
    if reset:
        estimator.n_features_in_ = X.shape[1]
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
                         f"{estimator.n_features_in_} features as input")
    if not reset:
        values = X.data if _is_sparse(X) else X
        if not np.isfinite(values).all():
            raise ValueError("X contains NaN or inf; expected finite numbers")
    return X


def check_y(y: Any, rows: int) -> np.ndarray:
    """One target for each row."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if _is_sparse(y):
        raise ValueError("y is sparse; expected an array")
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning, stacklevel=4)
        y = y.ravel()
    if y.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {y.shape} instead.")
    if len(y) != rows:
        raise ValueError(f"y: {len(y)} numbers for {rows} rows; expected one for each row")
    return y


def check_weight(weight: Any, rows: int) -> np.ndarray | None:
    """One weight for each row; 0 leaves a row out."""
    if weight is None:
        return None
    weight = np.asarray(weight, dtype=np.float64)
    weight = np.full(rows, float(weight)) if weight.ndim == 0 else weight
    if weight.shape != (rows,):
        raise ValueError(f"sample_weight: shape {weight.shape}; expected ({rows},)")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        raise ValueError(f"row {bad[0] + 1}: the weight of a row is {weight[bad[0]]:g}; expected a finite number above 0, or 0 to"
                         " leave the row out")
    if not weight.any():
        raise ValueError("all weights are 0; expected a row to train on")
    return weight


def check_fitted(estimator: Any) -> None:
    if not hasattr(estimator, "coef_"):
        raise NotFittedError(f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' first.")


def with_column(X: Any, value: float) -> Any:
    """X with one more column of equal numbers: liblinear's intercept."""
    if not _is_sparse(X):
        return np.column_stack([X, np.full(X.shape[0], value)])
    rows, features = X.shape
    ends = X.indptr[1:]
    make = type(X)
    return make((np.insert(X.data, ends, value), np.insert(X.indices, ends, features), X.indptr + np.arange(rows + 1)),
                shape=(rows, features + 1))


def dot(X: Any, w: np.ndarray) -> np.ndarray:
    return np.asarray(X @ w)
