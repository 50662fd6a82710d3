"""The personal family of bench/robustness: clients that follow 1 to 4 models, drawn by seed, and independent fits as judges.

The error of a method is the mean over clients of |w_j - u_j|^2 / |u_j|^2, u_j the true model of the client's cluster (hinge: the
minimiser for 20,000 fresh rows of the cluster). Fits that know the clusters are the oracle. k-means works on the clients' own fits and refits
each cluster; IFCA alternates between choosing the model of least loss and refitting, from 5 starts; both know the number of clusters.

corners() are settings at the ends of the ranges, with clients of unequal size, an intercept, columns of sizes 0.01 to 100, and two more losses.
"""
import csv
import json
import os
import subprocess
import tempfile
import time

import numpy as np

KINDS = ("squared", "absolute", "logistic", "hinge")
LABELS = ("logistic", "hinge")
MORE = ("huber", "quantile")
TAU, DELTA = 0.3, 1.0


def loss(kind, y, s):
    if kind == "squared":
        return (y - s) ** 2 / 2
    if kind == "absolute":
        return np.abs(y - s)
    if kind == "quantile":
        return np.where(y > s, TAU, 1 - TAU) * np.abs(y - s)
    if kind == "huber":
        return np.where(np.abs(y - s) < DELTA, (y - s) ** 2 / 2, DELTA * (np.abs(y - s) - DELTA / 2))
    return np.logaddexp(0, -y * s) if kind == "logistic" else np.maximum(0, 1 - y * s)


def fit(kind, X, y, start=None):
    """Minimises the sum of the losses; a small ridge makes it unique."""
    M = X.shape[1]
    eye = np.eye(M)
    if kind == "squared":
        return np.linalg.solve(X.T @ X + 1e-6 * eye, X.T @ y)
    if kind not in LABELS:
        w = np.linalg.solve(X.T @ X + 1e-2 * eye, X.T @ y) if start is None else start
        for width in (1e-1, 1e-2, 1e-3, 1e-4) if kind != "huber" else (DELTA,):
            for _ in range(8 if kind != "huber" else 30):
                r = y - X @ w
                side = np.where(r > 0, TAU, 1 - TAU) if kind == "quantile" else 1.0
                v = X * (side / np.maximum(np.abs(r), width))[:, None]
                w = np.linalg.solve(v.T @ X + 1e-8 * eye, v.T @ y)
        return w
    w = np.zeros(M) if start is None else start.copy()
    for h in (1.0,) if kind == "logistic" else (1.0, 0.3, 0.1, 0.03, 0.01):
        shift = kind == "hinge"
        value = lambda v: h * np.logaddexp(0, (shift - y * (X @ v)) / h).sum() + 5e-3 * v @ v
        now = value(w)
        for _ in range(25):
            q = 1 / (1 + np.exp(-np.clip((shift - y * (X @ w)) / h, -30, 30)))
            H = (X * (q * (1 - q) / h)[:, None]).T @ X + (1e-2 + 1e-3 * (h < 1)) * eye
            step, t = np.linalg.solve(H, -X.T @ (y * q) + 1e-2 * w), 1.0
            while t > 1e-3 and value(w - t * step) > now:
                t /= 2
            w, last, now = w - t * step, now, value(w - t * step)
            if abs(last - now) < 1e-9 * (1 + abs(now)):
                break
    return w


class Scene:
    def __init__(self, seed, kind=None, K=None, shares=None, distance=None, rows=None, M=None, C=None, unequal=False, intercept=False,
                 scaled=False):
        g = np.random.default_rng(seed)
        self.seed, self.kind = seed, kind or KINDS[int(g.integers(4))]
        self.K = K or int(g.integers(1, 5))
        if shares is None:
            least = {1: 1, 2: 0.1, 3: 0.1, 4: 0.1}[self.K]
            cut = g.dirichlet(np.ones(self.K)) * (1 - self.K * least) + least if self.K > 1 else np.ones(1)
            shares = -np.sort(-cut)
        self.distance = distance or round(float(g.uniform(0.5, 2)), 2)
        self.rows = rows or int(g.integers(15, 101))
        self.M = M or int(np.exp(g.uniform(np.log(3), np.log(50))))
        self.C = C or int(np.exp(g.uniform(np.log(20), np.log(200))))
        self.intercept, self.scale = intercept, np.ones(self.M)
        if scaled:
            self.scale = 10.0 ** np.linspace(-2, 2, self.M)
        if intercept:
            self.scale[-1] = 1
        base = g.standard_normal(self.M)
        U = [base]
        for _ in range(self.K - 1):
            u = g.standard_normal(self.M)
            U.append(base + self.distance * u / np.linalg.norm(u) * np.linalg.norm(base))
        lab = np.repeat(np.arange(self.K), np.maximum(np.round(np.array(shares) * self.C).astype(int), 1))
        self.label = g.permutation(np.concatenate([lab, np.zeros(self.C, int)])[: self.C])
        self.shares = np.bincount(self.label, minlength=self.K) / self.C
        sizes = np.maximum(np.round(self.rows * g.choice([0.3, 0.6, 1, 2.1], self.C)).astype(int), 3) if unequal else np.full(self.C, self.rows)
        self.data = [self.draw(g, U[k], n) for k, n in zip(self.label, sizes)]
        self.truth = np.array(U) * (2.0 if self.kind == "logistic" else 1.0)
        if self.kind == "quantile":
            self.truth[:, -1] += np.quantile(0.6 * g.standard_t(2, 1000000), TAU)  # the intercept's
        if self.kind == "hinge":
            self.truth = np.array([fit("hinge", *self.draw(g, u, 20000)) for u in U])
        self.X = np.vstack([d[0] for d in self.data])
        self.y = np.concatenate([d[1] for d in self.data])
        self.owner = np.repeat(np.arange(self.C), sizes)
        self.what = "".join([", unequal clients"] * unequal + [", intercept"] * intercept + [", columns of 0.01 to 100"] * scaled)

    def draw(self, g, u, rows):
        X = g.standard_normal((rows, self.M))
        if self.intercept:
            X[:, -1] = 1
        s = X @ u
        if self.kind in LABELS:
            return X, np.where(s + 0.5 * g.logistic(0, 1, rows) > 0, 1.0, -1.0)
        return X, s + (g.standard_normal(rows) if self.kind == "squared" else 0.6 * g.standard_t(2, rows))

    def __str__(self):
        return "seed %d: %s, %s, distance %.2f, %d clients of %d rows, M = %d%s" % (
            self.seed, self.kind, "/".join("%.2f" % s for s in self.shares), self.distance, self.C, self.rows, self.M, self.what)

    def error(self, W):
        u = self.truth[self.label]
        return float((((W - u) ** 2).sum(1) / (u**2).sum(1)).mean())

    def by_label(self, label, start=None):
        """Models of the clusters refitted, one for each client."""
        W = np.zeros((self.C, self.M))
        for k in np.unique(label):
            mine = (label == k)[self.owner]
            W[label == k] = fit(self.kind, self.X[mine], self.y[mine], None if start is None else start[k])
        return W

    def kmeans(self, local, g):
        best = (np.inf, None)
        for _ in range(10):
            c = local[g.choice(self.C, self.K, replace=False)]
            for _ in range(30):
                label = ((local[:, None] - c[None]) ** 2).sum(2).argmin(1)
                c = np.array([local[label == k].mean(0) if (label == k).any() else c[k] for k in range(self.K)])
            cost = ((local - c[label]) ** 2).sum()
            best = min(best, (cost, label), key=lambda t: t[0])
        return self.by_label(best[1])

    def ifca(self, pooled, g):
        best = (np.inf, None)
        size = np.linalg.norm(pooled) / np.sqrt(self.M)
        for _ in range(5):
            W = pooled + size * g.standard_normal((self.K, self.M))
            label = None
            for _ in range(20):
                f = np.stack([np.bincount(self.owner, loss(self.kind, self.y, self.X @ w)) for w in W], 1)
                new, old = f.argmin(1), label
                if old is not None and (new == old).all():
                    break
                label = new
                for k in np.unique(label):
                    mine = (label == k)[self.owner]
                    W[k] = fit(self.kind, self.X[mine], self.y[mine], W[k])
            best = min(best, (f.min(1).sum(), W[label].copy()), key=lambda t: t[0])
        return best[1]

    def judges(self):
        g = np.random.default_rng(self.seed + 1)
        pooled = fit(self.kind, self.X, self.y)
        local = np.array([fit(self.kind, X, y) for X, y in self.data])
        return {"oracle": self.error(self.by_label(self.label)), "pooled": self.error(np.tile(pooled, (self.C, 1))),
                "local": self.error(local), "kmeans": self.error(self.kmeans(local, g)), "ifca": self.error(self.ifca(pooled, g))}

    def write(self, folder, edges=3):
        with open(os.path.join(folder, "data.csv"), "w", encoding="ascii") as f:
            F = self.M - self.intercept
            f.write("edge,client,y,%s\n" % ",".join("x%d" % m for m in range(1, F + 1)))
            for j in sorted(range(self.C), key=lambda j: (j % edges, j)):
                for x, y in zip(*self.data[j]):
                    f.write("e%d,c%d,%r,%s\n" % (j % edges, j, float(y), ",".join(repr(float(v)) for v in (x * self.scale)[:F])))
        with open(os.path.join(folder, "spec.yaml"), "w", encoding="ascii") as f:
            numbers = {"quantile": ", tau: %r" % TAU, "huber": ", delta: %r" % DELTA}.get(self.kind, "")
            f.write("data: data.csv\nloss: {kind: %s%s}\npersonal: groups\n" % (self.kind, numbers))
            if self.intercept:
                f.write("features: {intercept: global}\n")


def solve(scene, program, folder, options=()):
    scene.write(folder)
    out, before = os.path.join(folder, "out"), time.time()
    subprocess.run([program, "run", os.path.join(folder, "spec.yaml"), "--out", out, "--quiet", "--threads", "1", *options], check=True)
    W = np.zeros((scene.C, scene.M))
    with open(os.path.join(out, "model.csv"), encoding="ascii") as f:
        for row in list(csv.reader(f))[1:]:
            if "/" in row[0]:
                W[int(row[0].split("/c")[1])] = np.array([float(v) for v in row[1 : 1 + scene.M]]) * scene.scale
    with open(os.path.join(out, "summary.json"), encoding="ascii") as f:
        summary = json.load(f)
    return W, summary, time.time() - before


def judge(scene, program, folder, options=()):
    W, summary, seconds = solve(scene, program, folder, options)
    row = scene.judges()
    personal = summary.get("personal", {})
    row.update(name=str(scene), kind=scene.kind, true=scene.K, hfsad=scene.error(W), found=len(summary.get("groups", [0])),
               rounds=personal.get("exchanges", 0), seconds=personal.get("seconds", seconds))
    row["ratio"] = row["hfsad"] / row["oracle"]
    rival = min(row["kmeans"], row["ifca"]) / row["oracle"]
    row["missed"] = row["ratio"] > 3 and rival <= 3
    row["worse"] = row["hfsad"] > 1.05 * max(row["pooled"], row["local"])
    row["rival"] = rival
    return row


def line(row):
    return ("%s: error / oracle %.2f (pooled %.1f, local %.1f, k-means %.2f, IFCA %.2f), K %d of %d, %d rounds, %.1f s%s" % (
        row["name"], row["ratio"], row["pooled"] / row["oracle"], row["local"] / row["oracle"], row["kmeans"] / row["oracle"],
        row["ifca"] / row["oracle"], row["found"], row["true"], row["rounds"], row["seconds"],
        "  MISSED" if row["missed"] else "  WORSE" if row["worse"] else ""))


def report(rows):
    print("| loss | scenes | error / oracle: median, 90%, most | k-means | IFCA | pooled | local | above 3 where a rival is not | worse than pooled and local | right K | one group where there is one | exchanges |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for kind in KINDS + MORE + ("all",):
        r = [x for x in rows if kind in (x["kind"], "all")]
        if not r:
            continue
        q, one = np.array([x["ratio"] for x in r]), [x for x in r if x["true"] == 1]
        middle = lambda key: np.median([x[key] / x["oracle"] for x in r])
        print("| %s | %d | %.2f, %.2f, %.1f | %.2f | %.2f | %.1f | %.1f | %d | %d | %d%% | %d of %d | %d |" % (
            kind, len(r), np.median(q), np.quantile(q, 0.9), q.max(), middle("kmeans"), middle("ifca"), middle("pooled"), middle("local"),
            sum(x["missed"] for x in r), sum(x["worse"] for x in r), round(100 * np.mean([x["true"] == x["found"] for x in r])),
            sum(x["found"] == 1 for x in one), len(one), np.median([x["rounds"] for x in r])))


def corners(first):
    """Every loss in every setting; the seeds go on from `first`."""
    seed = first - 1
    for kind in KINDS + MORE:
        for shares in ((1,), (0.9, 0.1), (0.5, 0.5), (0.7, 0.1, 0.1, 0.1)):
            for settings in (dict(distance=0.5, rows=15, M=5, C=100), dict(distance=2, rows=15, M=10, C=40), dict(distance=0.5, rows=100, M=20, C=40),
                             dict(distance=1, rows=40, M=6, C=40, unequal=True, intercept=True, scaled=True),
                             dict(distance=2, rows=30, M=5, C=20, unequal=True)):
                seed += 1
                settings = {**settings, **({"intercept": True} if kind == "quantile" else {})}
                yield Scene(seed, kind=kind, K=len(shares), shares=shares, **settings)


def main(scenes, program, worst, to):
    rows = []
    for scene in scenes:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(judge(scene, program, folder))
    report(rows)
    print("worst:")
    for row in sorted(rows, key=lambda r: (-r["missed"], -r["worse"], -r["ratio"]))[:worst]:
        print("  " + line(row))
    if to:
        with open(to, "w", encoding="ascii") as f:
            json.dump(rows, f, indent=1)
    return any(row["missed"] or row["worse"] for row in rows)
