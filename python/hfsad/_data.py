"""hfsad.Data: rows in memory."""
from __future__ import annotations

import csv
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _core


def _is_sparse(X: Any) -> bool:
    return hasattr(X, "tocsr") and hasattr(X, "nnz")


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "to_numpy")


def _doubles(array: Any, what: str, dims: int) -> np.ndarray:
    """A view if it can be one: float64, with strides of whole numbers."""
    array = np.asarray(array)
    if array.dtype.kind == "c":
        raise ValueError(f"{what}: complex numbers are not supported. Complex data not supported")
    if array.dtype.kind in "OUSV":
        try:
            array = array.astype(np.float64)  # numbers in objects
        except (TypeError, ValueError) as error:
            how = ("codes by numpy.unique(y, return_inverse=True), or an estimator such as LogisticRegression" if dims == 1
                   else "pandas.get_dummies(X, drop_first=True), or a CSV file, whose columns of text are categories")
            raise type(error)(f"{what}: {error}; for text use {how}") from None
    array = np.asarray(array, dtype=np.float64)
    if array.ndim != dims:
        raise ValueError(f"{what}: an array of {array.ndim} dimensions; expected {dims}")
    if not array.flags.aligned or any(stride % 8 for stride in array.strides):
        array = np.ascontiguousarray(array)
    return array


def _csr(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    index = np.int64 if X.indptr.dtype.itemsize == 8 or X.indices.dtype.itemsize == 8 else np.int32
    return (np.ascontiguousarray(X.indptr, dtype=index), np.ascontiguousarray(X.indices, dtype=index),
            np.ascontiguousarray(X.data, dtype=np.float64))


def _labels(labels: Any, rows: int, what: str) -> tuple[np.ndarray, list[str]]:
    """Codes and names of the labels."""
    labels = np.asarray(labels)
    if labels.ndim != 1 or len(labels) != rows:
        raise ValueError(f"{what}: {len(labels) if labels.ndim else 0} labels for {rows} rows; expected one for each row")
    if labels.dtype.kind == "O":
        labels = labels.astype(str)
    found, codes = np.unique(labels, return_inverse=True)
    return codes, [str(label) for label in found]


def _paths(clients: Any, edges: Any, rows: int) -> tuple[np.ndarray, list[str]]:
    """The code of every row and the paths "edge/client" that the codes stand for."""
    codes, names = _labels(clients, rows, "clients")
    if edges is None:
        return codes, names
    above, edge_names = _labels(edges, rows, "edges")
    found, both = np.unique(above.astype(np.int64) * len(names) + codes, return_inverse=True)
    return both, [f"{edge_names[code // len(names)]}/{names[code % len(names)]}" for code in found]


class Data:
    """Rows for training, prediction or evaluation. Arrays of float64 are used as they are: do not change them meanwhile.

    ``clients`` has a label for each row: the client that the row belongs to. ``edges`` has the path of the edge above
    it ("region2/edge1"). Without clients the rows are dealt over ``parts`` clients. ``X`` may be sparse (scipy).

    >>> import numpy as np, hfsad
    >>> data = hfsad.Data(np.eye(4), y=[1, 2, 3, 4], clients=["a", "a", "b", "b"], edges=["north"] * 4)
    >>> data
    Data(4 rows, 4 features, 2 clients)
    """

    def __init__(self, X: Any, y: Any = None, *, clients: Any = None, edges: Any = None, weight: Any = None,
                 feature_names: Sequence[str] | None = None, truth: Any = None, parts: int = 1):
        if feature_names is None and _is_frame(X) and all(isinstance(name, str) for name in X.columns):
            feature_names = list(X.columns)
        self._sparse = _is_sparse(X)
        dense = None if self._sparse else _doubles(X, "X", 2)
        self.rows, self.features = map(int, X.shape if dense is None else dense.shape)
        core = _core.Data(self.rows, self.features)
        if dense is None:
            core.csr(*_csr(X))
        else:
            core.dense(dense)
        for what, array in (("y", y), ("weights", weight)):
            if array is not None:
                array = _doubles(array, what, 1)
                if len(array) != self.rows:
                    raise ValueError(f"{what}: {len(array)} numbers for {self.rows} rows; expected one for each row")
                getattr(core, what)(array)
        if clients is not None:
            codes, paths = _paths(clients, edges, self.rows)
        elif edges is not None:
            raise ValueError("edges are given without clients; give both, or neither")
        else:
            parts = max(1, min(parts, self.rows))
            ends = np.arange(parts + 1) * self.rows // parts
            codes, paths = np.repeat(np.arange(parts), np.diff(ends)), [f"part{i + 1}" for i in range(parts)]
        core.codes(np.ascontiguousarray(codes, dtype=np.int64), paths)
        self.paths, self.has_y = paths, y is not None
        self._arrays = (X if dense is None else dense, y, weight, codes, feature_names)
        if feature_names is not None:
            core.feature_names(list(feature_names))
        if truth is not None:
            core.truth(np.ascontiguousarray(truth, dtype=np.float64))
        self._core = core

    @classmethod
    def from_frame(cls, frame: Any) -> "Data":
        """A data frame with the columns of a CSV file: client, edge (optional), y (optional), weight (optional), features.

        >>> import hfsad, pandas
        >>> hfsad.Data.from_frame(pandas.DataFrame({"client": ["a", "b"], "y": [1.0, 2.0], "x1": [0.5, 1.5]}))
        Data(2 rows, 1 features, 2 clients)
        """
        columns = list(frame.columns)
        special = {name for name in ("edge", "client", "y") if name in columns}
        if "y" in special and columns.index("y") + 1 < len(columns) and columns[columns.index("y") + 1] == "weight":
            special.add("weight")  # anywhere else it is a feature, as in a CSV file
        if "client" not in special:
            raise ValueError("the data frame has no column client; expected the columns client, y and the features")
        column = {name: frame[name] if name in special else None for name in ("edge", "client", "y", "weight")}
        return cls(frame[[name for name in columns if name not in special]], column["y"], clients=column["client"],
                   edges=column["edge"], weight=column["weight"])

    @classmethod
    def of(cls, data: Any) -> "Data | str | None":
        """A Data, a data frame, a mapping with the arguments of Data, a tuple (X, y), or the name of a file or folder."""
        if data is None or isinstance(data, (Data, str)):
            return data
        if isinstance(data, os.PathLike):
            return os.fspath(data)
        if _is_frame(data):
            return cls.from_frame(data)
        if isinstance(data, Mapping):
            return cls(**data)
        if isinstance(data, tuple) and len(data) == 2:
            return cls(*data)
        raise TypeError(f"data: {type(data).__name__}; expected hfsad.Data, a data frame, a mapping, (X, y) or a file name")

    def _write(self, folder: pathlib.Path) -> pathlib.Path:
        """The rows as a file that the program reads, with all digits: CSV, or LIBSVM if they are sparse."""
        X, y, weight, codes, names = self._arrays
        y = np.asarray(y, dtype=np.float64).tolist()
        paths = [self.paths[code] for code in codes]
        if self._sparse:
            if weight is not None:
                raise ValueError("sparse rows with weights have no file format; hfsad.run takes them")
            start, column, value = (part.tolist() for part in _csr(X))
            with open(folder / "data.svm", "w") as file:
                for r, path in enumerate(paths):
                    row = " ".join(f"{column[i] + 1}:{value[i]!r}" for i in range(start[r], start[r + 1]))
                    file.write(f"{y[r]!r} {row} # {path}\n")
            return folder / "data.svm"
        edged = any("/" in path for path in self.paths)
        with open(folder / "data.csv", "w", newline="") as file:
            write = csv.writer(file, lineterminator="\n").writerow
            write(["edge"] * edged + ["client", "y"] + ["weight"] * (weight is not None)
                  + list(names or (f"x{m + 1}" for m in range(self.features))))
            for r, path in enumerate(paths):
                edge, _, client = path.rpartition("/")
                write([edge] * edged + [client, repr(y[r])] + ([repr(float(np.asarray(weight)[r]))] if weight is not None else [])
                      + [repr(v) for v in X[r].tolist()])
        return folder / "data.csv"

    def __repr__(self) -> str:
        return f"Data({self.rows} rows, {self.features} features, {len(self.paths)} clients)"
