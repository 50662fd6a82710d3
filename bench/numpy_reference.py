"""The client step (docs/algorithm.md, "Equation → function") for all clients of an edge at once in numpy: what a researcher writes first.

Phase retrieval, tv links, (5, 50, 25); prints nanoseconds per client update, the best of several stretches."""
import time

import numpy as np

L, N, M = 5, 50, 25
rng = np.random.default_rng(1)
X = rng.standard_normal((L, N, M))
truth = rng.standard_normal(M)
Y = (X @ truth) ** 2
n = (X**2).sum(-1)
omega = 5 * np.sqrt(n.max())
c, alpha = omega, np.sqrt(20)
start = np.full(M, 0.1)
z, q = np.tile(start, (L, N, 1)), np.tile(start, (L, N, 1))
lam = np.zeros((L, N, M))
w_edge = np.tile(start, (L, 1))


def step(l, k):
    sigma, mu = c * np.sqrt(k), alpha / np.sqrt(k)
    x, y = X[l], Y[l]
    v = z[l] - lam[l] / sigma
    s0, kappa = (x * v).sum(-1), n[l] / sigma
    candidates = np.stack([s0 / (1 + 2 * kappa), s0 / (1 - 2 * kappa), np.sqrt(np.maximum(y, 0)), -np.sqrt(np.maximum(y, 0))])
    values = np.abs(y - candidates**2) + (candidates - s0) ** 2 / (2 * kappa)
    s = np.take_along_axis(candidates, values.argmin(0)[None], 0)[0]
    w = v + ((s - s0) / n[l])[:, None] * x
    a, b = w + lam[l] / sigma, w_edge[l] - lam[l] / sigma
    t, pull = b - a, 2 / sigma * omega
    e = np.where(np.abs(t) <= mu + pull, t * mu / (mu + pull), t - pull * np.sign(t))
    z[l], q[l] = (a + b - e) / 2, (a + b + e) / 2
    lam[l] = sigma * (a - z[l])
    sigma_next = c * np.sqrt(k + 1)
    return (sigma_next * q[l] + lam[l]).sum(0)


best, k = np.inf, 0
for stretch in range(30):
    start_time = time.perf_counter()
    for _ in range(50):
        k += 1
        for l in range(L):
            step(l, k)
    best = min(best, (time.perf_counter() - start_time) / (50 * L * N))
print(f"{best * 1e9:.5g}")
