"""Sparse quantile regression by scipy's HiGHS and by scikit-learn, for bench/run.

    quantile_reference.py FOLDER highs|sklearn [REPEAT]

FOLDER is what `bench/quantile --write` leaves. Writes FOLDER/NAME.solution: the processor's seconds of solving, the best
of REPEAT, less loading, then the coefficients, one per line. BLAS is to be pinned to one thread by whoever calls.
"""

import sys
import time

import numpy as np


def load(folder):
    rows, features, tau, penalty = np.fromfile(folder + "/shape")
    x = np.fromfile(folder + "/x").reshape(int(rows), int(features))
    return x, np.fromfile(folder + "/y"), tau, penalty


def highs(x, y, tau, penalty):
    """The dual, which has one row per feature and so is the faster of the two: maximise <y, u> over |x^T u| <= penalty and
    tau - 1 <= u <= tau. The multipliers of its rows are w."""
    from scipy.optimize import linprog

    features = x.shape[1]
    matrix = np.vstack([x.T, -x.T])
    start = time.process_time()
    found = linprog(-y, A_ub=matrix, b_ub=np.full(2 * features, penalty), bounds=(tau - 1, tau), method="highs")
    seconds = time.process_time() - start
    if found.status != 0:
        sys.exit("HiGHS: " + found.message)
    multipliers = -found.ineqlin.marginals
    return seconds, multipliers[:features] - multipliers[features:]


def sklearn(x, y, tau, penalty):
    """Its loss is the mean over the rows."""
    from sklearn.linear_model import QuantileRegressor

    model = QuantileRegressor(quantile=tau, alpha=penalty / len(y), fit_intercept=False, solver="highs")
    start = time.process_time()
    model.fit(x, y)
    return time.process_time() - start, model.coef_


def main():
    folder, name = sys.argv[1:3]
    problem = load(folder)
    times = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    runs = [{"highs": highs, "sklearn": sklearn}[name](*problem) for _ in range(times)]
    seconds, w = min(runs, key=lambda run: run[0])
    np.savetxt(f"{folder}/{name}.solution", np.concatenate([[seconds], w]), fmt="%.17g")


main()
