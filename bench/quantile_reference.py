"""Sparse quantile regression by scipy's HiGHS and by scikit-learn, for bench/run.

    quantile_reference.py FOLDER highs|sklearn

FOLDER is what `bench/quantile --write` leaves. Writes FOLDER/NAME.solution: the seconds of solving, less loading and less
forming the program's own input, then the coefficients, one per line.
"""

import sys
import time

import numpy as np


def load(folder):
    rows, features, tau, penalty = np.fromfile(folder + "/shape")
    x = np.fromfile(folder + "/x").reshape(int(rows), int(features))
    return x, np.fromfile(folder + "/y"), tau, penalty


def highs(x, y, tau, penalty):
    """x (a - b) + u - v = y with everything at least 0: the costs are those of the check loss and of |w|."""
    from scipy import sparse
    from scipy.optimize import linprog

    n, features = x.shape
    ones = sparse.identity(n, format="csc")
    dense = sparse.csc_matrix(x)
    matrix = sparse.hstack([dense, -dense, ones, -ones], format="csc")
    cost = np.concatenate([np.full(2 * features, penalty), np.full(n, tau), np.full(n, 1 - tau)])
    start = time.perf_counter()
    found = linprog(cost, A_eq=matrix, b_eq=y, method="highs")
    seconds = time.perf_counter() - start
    if found.status != 0:
        sys.exit("HiGHS: " + found.message)
    return seconds, found.x[:features] - found.x[features : 2 * features]


def sklearn(x, y, tau, penalty):
    """Its loss is the mean over the rows."""
    from sklearn.linear_model import QuantileRegressor

    model = QuantileRegressor(quantile=tau, alpha=penalty / len(y), fit_intercept=False, solver="highs")
    start = time.perf_counter()
    model.fit(x, y)
    return time.perf_counter() - start, model.coef_


def main():
    folder, name = sys.argv[1:]
    seconds, w = {"highs": highs, "sklearn": sklearn}[name](*load(folder))
    np.savetxt(f"{folder}/{name}.solution", np.concatenate([[seconds], w]), fmt="%.17g")


main()
