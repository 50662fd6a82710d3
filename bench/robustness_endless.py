"""bench/robustness --endless: does the verdict say that there is no minimum exactly if there is none? A linear program decides.

Logistic, multinomial, poisson and squared-hinge, with small integers as columns so that many rows lie on one plane, and with a known answer if it is close:
`held` rows have slopes above 0 that add up to 0, by Stiemke's theorem the proof of a minimum, with some slopes up to 10^6 times smaller than the others.
"""
import json
import subprocess

import numpy as np
from scipy.optimize import linprog

FAMILIES = ("small", "plane", "few", "held", "scaled", "owners", "prior", "twins", "binary", "normal")
KINDS = ("logistic", "logistic", "poisson", "multinomial", "squared-hinge")


def labels(random, kind, s, K):
    if kind == "poisson":
        return random.poisson(np.exp(np.clip(s / 2 - 1, -4, 3))).astype(float)
    if kind == "multinomial":
        return np.argmax(s[:, None] * np.linspace(-1, 1, K) + random.gumbel(size=(len(s), K)), 1).astype(float)
    return np.where(s + random.logistic(size=len(s)) * random.choice([0.0, 0.3, 1.0]) >= 0, 1.0, -1.0)


class Problem:
    """Rows x with y; Z: the columns that only the loss holds back, intercepts included."""

    def __init__(self, seed):
        self.random = random = np.random.default_rng([seed, 13])
        self.family, self.kind = str(random.choice(FAMILIES)), str(random.choice(KINDS))
        self.counts = random.integers(1, random.choice([4, 12, 40]) + 1, int(random.integers(2, 8)))
        n, M = int(self.counts.sum()), int(random.integers(1, 7))
        self.K = int(random.integers(2, 5)) if self.kind == "multinomial" else 0
        X = random.integers(-2, 3, size=(n, M)).astype(float)
        if self.family == "few":
            X = random.integers(-9, 10, size=(n, max(1, n // 3))).astype(float)
        elif self.family == "binary":
            X = (random.random((n, M)) < random.uniform(0.03, 0.5, M)).astype(float)
        elif self.family == "normal":
            X = random.normal(size=(n, M))
        M = X.shape[1]
        y = labels(random, self.kind, X @ random.normal(size=M), self.K)
        if self.family == "plane":  # a plane parts the rows that do not lie on it; the first column is not 0 on one side only
            side = {"poisson": y == 0, "multinomial": y == y.max()}.get(self.kind, y > 0)
            X[:, 0] = np.where(side & (random.random(n) < 0.4), random.integers(0, 3, n), 0)
        if self.family == "held":
            X, y = self.hold(X, y)
        self.intercept = "none" if self.family == "held" else str(random.choice(["none", "global", "client", "edge"] if self.family == "owners" else ["none", "global"]))
        if self.kind == "multinomial" and self.intercept in ("client", "edge"):
            self.intercept = "global"
        if self.family == "twins":
            X = np.hstack([X, X[:, :1], -3 * X[:, -1:], np.ones((n, 1))])
        self.prior, self.ratio = 0.0, 1.0
        if self.family == "prior" or (self.family == "owners" and random.random() < 0.5):
            self.prior, self.ratio = float(10.0 ** random.uniform(-6, 0)), float(random.choice([0.0, 0.5, 1.0]))
        self.scale = 2.0 ** random.integers(-20, 21, X.shape[1]) if self.family == "scaled" else np.ones(X.shape[1])
        self.X, self.y = X, y
        client = np.repeat(np.arange(len(self.counts)), self.counts)
        self.paths = ["e%d,c%d" % (j % 3, j) for j in client]
        owner = {"client": client, "edge": client % 3}.get(self.intercept, np.zeros(n, int))
        self.Z = np.hstack([X[:, : 0 if self.prior else None], np.eye(int(owner.max()) + 1)[owner][:, : None if self.intercept != "none" else 0]])

    def hold(self, X, y):
        """The last row's column is minus the others' sum, each with a slope from 1 to 10^6."""
        a = np.where(self.random.random(len(X)) < 0.3, 1.0, np.round(10.0 ** self.random.uniform(0, 6)))
        if self.kind in ("logistic", "squared-hinge"):
            X[-1] = -y[-1] * (a[:-1] * y[:-1]) @ X[:-1]
        return X, y

    def is_endless(self):
        """Whether a direction exists along which no row's loss ever grows and some row's loss falls for ever. None: too close to say."""
        Z, y = self.Z, self.y
        if self.kind == "squared-hinge" or not Z.shape[1]:  # piecewise quadratic and bounded: the minimum is attained
            return False
        if self.family == "held" and self.kind == "logistic":
            return False
        held = np.zeros((0, Z.shape[1]))
        if self.kind == "logistic":
            falls = y[:, None] * Z
        elif self.kind == "poisson":
            falls, held = -Z[y == 0], Z[y > 0]
        else:
            unit = np.eye(self.K)
            falls = np.array([np.kron(unit[int(k)] - unit[other], z) for z, k in zip(Z, y) for other in range(self.K) if other != int(k)])
        if not len(falls):
            return False
        held = held if len(held) else np.zeros((1, falls.shape[1]))
        s = linprog(-falls.sum(0), A_ub=np.vstack([-falls, falls]), b_ub=np.r_[np.zeros(len(falls)), np.ones(len(falls))], A_eq=held, b_eq=np.zeros(len(held)), bounds=(None, None), method="highs-ds")
        return None if s.status or 1e-6 < -s.fun < 0.9 else -s.fun > 0.5

    def write(self, folder):
        with open(folder + "/spec.yaml", "w") as f:
            f.write("data: data.csv\nloss: {kind: %s%s}\nfeatures: {intercept: %s}\n" % (self.kind, ", classes: %d" % self.K if self.K else "", self.intercept))
            if self.prior:
                f.write("prior: {cloud: {penalty: elastic-net, ratio: %r, weight: 1, lambda: %r}}\n" % (self.ratio, self.prior))
        with open(folder + "/data.csv", "w") as f:
            f.write("edge,client,y" + "".join(",x%d" % (m + 1) for m in range(self.X.shape[1])) + "\n")
            for path, y, x in zip(self.paths, self.y, self.X * self.scale):
                f.write(",".join([path, repr(float(y))] + [repr(float(v)) for v in x]) + "\n")


def main(seeds, program, folder, worst):
    wrong, rows = [], []
    for seed in seeds:
        p = Problem(seed)
        truth = p.is_endless()
        p.write(folder)
        done = subprocess.run([program, "run", folder + "/spec.yaml", "--out", folder + "/out", "--threads", "1", "--quiet"], capture_output=True, text=True, timeout=600)
        if done.returncode or truth is None:
            rows.append((p.family, p.kind, "not judged" if truth is None else "refused"))
            if done.returncode:
                print("seed %d, %s: %s" % (seed, p.kind, done.stderr.strip()))
            continue
        with open(folder + "/out/summary.json") as f:
            said = json.load(f)
        endless = "no minimum" in said["verdict"]
        kind = ("right, none" if truth else "right, one") if endless == truth else "missed" if truth else "false alarm"
        if endless == truth and not truth and said["converged"] is not True:
            kind = "one, not proven"
        rows.append((p.family, p.kind, kind))
        if endless != truth or kind == "one, not proven":
            wrong.append("seed %d, %s, %s, intercept %s: %s: %s" % (seed, p.family, p.kind, p.intercept, kind, said["verdict"]))
    for column in 1, 0:
        for name in sorted({r[column] for r in rows}):
            said = [r[2] for r in rows if r[column] == name]
            print("%-15s" % name + "  ".join("%s %d" % (k, said.count(k)) for k in sorted(set(said))))
    print("\n".join(wrong[:worst]))
    counts = {k: sum(r[2] == k for r in rows) for k in ("right, none", "right, one", "one, not proven", "missed", "false alarm", "refused", "not judged")}
    print(", ".join("%s %d" % c for c in counts.items()))
    return counts["missed"] + counts["false alarm"] > 0
