"""hfsad.Loss: a loss in Python."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core

Array = np.ndarray


def _finite(value: Any) -> float:
    value = float(value)
    if not np.isfinite(value):
        raise ValueError(f"own loss: the value is {value}; expected a finite number for every finite w")
    return value


def _vector(answer: Any, like: Array) -> Array:
    vector = np.ascontiguousarray(answer, dtype=np.float64)
    if vector.shape != like.shape:
        raise ValueError(f"own loss: an array of shape {vector.shape} came back; expected {like.shape}")
    if not np.isfinite(vector).all():
        raise ValueError("own loss: a number that came back is not finite")
    return vector


class Loss:
    """A loss of your own, for all rows of a client at once.

    Give ``gradient``, a function of ``(w, X, y, weight)`` that returns the value and the gradient, or ``value`` and
    ``prox``. ``prox(v, sigma, X, y, weight)`` returns the minimiser of ``f(w) + sigma/2 |w - v|^2``. The last column of
    ``X`` is 1 if the spec has an intercept; ``weight`` is 1 for rows without weights. The arrays are read-only. The
    functions are called from several threads, one at a time.

    >>> import numpy as np, hfsad
    >>> def cauchy(w, X, y, weight):
    ...     r = X @ w - y
    ...     return weight @ np.log1p(r**2 / 2), X.T @ (weight * r / (1 + r**2 / 2))
    >>> loss = hfsad.Loss(gradient=cauchy)
    >>> loss.check(np.ones(2), X=np.eye(2), y=np.array([3.0, -1.0])) < 1e-6
    True
    """

    def __init__(self, gradient: Callable[..., tuple[float, Array]] | None = None, *,
                 value: Callable[..., float] | None = None, prox: Callable[..., Array] | None = None):
        if gradient is None and (value is None or prox is None):
            raise ValueError("own loss: give gradient, or value and prox")
        self.gradient, self.value, self.prox = gradient, value, prox

    def check(self, w: Array, X: Array, y: Array, weight: Array | None = None) -> float:
        """Largest difference between the gradient and central differences, relative to the gradient."""
        if self.gradient is None:
            raise ValueError("own loss: there is no gradient to check")
        w = np.asarray(w, dtype=np.float64)
        weight = np.ones(len(y)) if weight is None else weight
        told = _vector(self.gradient(w, X, y, weight)[1], w)
        steps = 6e-6 * (1 + np.abs(w))
        found = np.array([(self._value(w + h * e, X, y, weight) - self._value(w - h * e, X, y, weight)) / (2 * h)
                          for h, e in zip(steps, np.eye(len(w)))])
        return float(np.abs(found - told).max() / max(1.0, np.abs(told).max()))

    def _value(self, w: Array, X: Array, y: Array, weight: Array) -> float:
        return _finite(self.value(w, X, y, weight) if self.value else self.gradient(w, X, y, weight)[0])  # type: ignore[misc]

    def _core(self) -> _core.Loss:
        """For one run: its clients' rows are kept there."""

        def open_(rows: int, width: int, x: bytes, y: bytes, weight: bytes | None) -> tuple[Array, Array, Array]:
            return (np.frombuffer(x).reshape(rows, width), np.frombuffer(y),
                    np.ones(rows) if weight is None else np.frombuffer(weight))

        def value(client: Any, w: bytes) -> float:
            return self._value(np.frombuffer(w), *client)

        def gradient(client: Any, w: bytes) -> tuple[float, Array]:
            at = np.frombuffer(w)
            found, slope = self.gradient(at, *client)  # type: ignore[misc]
            return _finite(found), _vector(slope, at)

        def prox(client: Any, v: bytes, sigma: float, w: bytes) -> Array:
            at = np.frombuffer(v)
            return _vector(self.prox(at, sigma, *client), at)  # type: ignore[misc]

        return _core.Loss(open_, value, gradient if self.gradient else None, prox if self.prox else None)
