"""bench/robustness --odd: convex problems of families that the other draw does not have. Every third has an intercept for each client or edge."""
import numpy as np

FAMILIES = ("unequal", "one-hot", "cauchy", "counts", "twins", "far", "tiny tau", "wide", "same y", "weights")


def labels(random, s, n):
    y = np.where(s + random.logistic(size=n) * max(np.median(np.abs(s)), 0.1) * 0.5 >= 0, 1.0, -1.0)
    if abs(y.sum()) == n:
        y[0] = -y[0]
    return y


def columns(random, family, n, M):
    if family == "one-hot":  # of three factors, with all their levels: no intercept has a unique value
        levels = random.integers(2, 6, 3)
        return np.hstack([np.eye(k)[random.integers(0, k, n)] for k in levels])
    if family == "cauchy":
        return np.clip(random.standard_cauchy(size=(n, M)), -1e6, 1e6)
    if family == "counts":
        return random.poisson(random.uniform(0.1, 30, M), size=(n, M)).astype(float)
    X = random.normal(size=(n, M))
    if family == "twins":  # equal, opposite and nearly equal columns
        return np.hstack([X, X, -2 * X[:, :1], X[:, :1] + 1e-7 * random.normal(size=(n, 1))])
    if family == "far":
        return X + 10.0 ** random.uniform(0, 4, M)
    return X


def draw(seed, problem, kinds, classes):
    random = np.random.default_rng([seed, 77])
    family, kind = str(random.choice(FAMILIES)), str(random.choice(kinds))
    counts = random.integers(1, 25, int(random.integers(2, 16)))
    if family == "unequal":
        counts = np.r_[int(random.integers(150, 400)), np.ones(int(random.integers(2, 20)), int)]
    n, M = int(counts.sum()), int(random.integers(1, 10))
    if family == "wide":
        M = n + int(random.integers(0, 20))
    X = columns(random, family, n, M)
    M = X.shape[1]
    size = np.sqrt((X * X).mean(0))
    w = np.where(random.random(M) < 0.5, random.normal(size=M), 0) / np.where(size > 0, size, 1)
    s = X @ w
    if kind in classes:
        y = labels(random, s, n)
    elif kind == "poisson":
        y = random.poisson(np.exp(np.clip(s / 2, -4, 4))).astype(float)
    elif family == "counts":
        y = np.round(s + random.normal(size=n))
    elif family == "same y":
        y = np.where(random.random(n) < 0.8, 7.0, random.integers(5, 10, n))
    else:
        y = s + random.standard_t(2, size=n) * random.choice([1e-3, 0.1, 1])
    if family == "far" and kind not in classes and kind != "poisson":
        y = y + random.choice([-1, 1]) * 10.0 ** random.uniform(3, 8)
    intercept = [False, True, "client", "edge"][random.integers(4)]
    tau = float(random.choice([0.01, 0.001, 0.995]) if family == "tiny tau" else random.choice([0.25, 0.5, 0.8]))
    c = 10.0 ** random.uniform(-4, 4, n) if family == "weights" else random.uniform(0.1, 5, n) if random.random() < 0.2 else None
    delta = float(np.median(np.abs(y - np.median(y))) * random.choice([0.3, 1, 5])) or 1.0
    p = problem(family, kind, X, y, counts, tau, delta, c, intercept, h=delta)
    share = float(random.choice([0, 1e-3, 1e-2, 0.1, 0.5])) if family not in ("wide",) else float(random.choice([1e-2, 0.1, 0.5]))
    p.l1 = float(np.abs(X.T @ (p.c * p.slope(0 * y))).max()) * share
    p.lam[:M] = p.l1
    if random.random() < 0.1 and np.abs(w).max() > 0:
        p.limit = float(np.abs(w).max() * random.choice([0.5, 2.0]))
        p.box[:M] = p.limit
    return p
