"""The phase-retrieval family of bench/robustness (bench/robustness --phase).

A seed draws M from 10 to 400, M times 2 to 20 rows, a tree, noise or outliers, a start, K_m and p_c; --fix KEY=VALUE (M, ratio, noise, start, K, p,
rows) pins one of them. Each problem is given to `hfsad run` with data, loss, priors and these, and nothing else. The judge is the best of 18
sub-gradient rules after 300 iterations from the same start, chosen for each problem by the truth. A problem is lost if the relative error is
above 0.05. ("Rules chosen by F" takes the rule of least objective instead, because nobody has the truth.) A verdict is false if the run says "converged" and tiny sub-gradient steps from its model lower the objective by more than 1e-4 of it.

If the error is above twice the judge's, the objective of both points says why: if ours is the lower one, the least objective is away from the truth,
and no method that minimises it does better; if not, a better point was missed.
"""
import concurrent.futures
import csv
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

LAMBDA, GAMMA, BOX, LOST, TIMEOUT = 0.1, 2.4, 5.0, 0.05, 1200
NOISES = ("+20 dB", "0 dB", "-20 dB", "none", "gauss 1%", "gross 20%", "gross 40%", "permuted 20%", "permuted 40%")
SIZES = ((10, 0.33), (25, 0.34), (100, 0.25), (400, 0.08))


class Problem:
    """minimise sum |y - <x,w>^2| + n sum SCAD(w), |w| <= 5"""

    def __init__(self, seed, fixed={}):
        r = np.random.default_rng(seed)
        sizes, odds = zip(*SIZES)
        draw = lambda key, drawn: type(drawn)(fixed.get(key, drawn))
        self.M = M = draw("M", int(r.choice(sizes, p=odds)))
        self.ratio = draw("ratio", int(r.choice([2, 3, 5, 20] if M <= 100 else [2, 3, 5])))
        self.edges = int(r.choice([3, 5, 10]))
        self.rows = draw("rows", int(r.choice([1, 1, 1, 5])))
        clients = math.ceil(self.ratio * M / self.edges / self.rows)
        n = self.edges * clients * self.rows
        self.noise, self.start = draw("noise", str(r.choice(NOISES))), draw("start", str(r.choice(["default", "spectral", "normal", "file"])))
        self.K, self.p = draw("K", int(r.choice([1, 10]))), draw("p", float(r.choice([0.3, 1])))
        self.edge = np.repeat(np.arange(self.edges), clients * self.rows)
        self.client = np.repeat(np.arange(self.edges * clients), self.rows)
        self.truth = self.sparse(r, 0.3)
        while True:
            kept = np.stack([self.mask(r, 0.8) for _ in range(self.edges)])
            if (kept.sum(0) > 0)[self.truth != 0].all():
                break
        self.X = r.standard_normal((n, M)) * kept[self.edge]
        self.y = self.observe(r, (self.X @ self.truth) ** 2)
        self.first = dict(spectral=self.spectral, normal=lambda: r.standard_normal(M), default=self.robust, file=self.spectral)[self.start]()

    def mask(self, r, share):
        m = np.zeros(self.M)
        m[r.permutation(self.M)[: math.ceil(share * self.M)]] = 1
        return m

    def sparse(self, r, share):
        return r.standard_normal(self.M) * self.mask(r, share)

    def observe(self, r, y):
        mean, kind, level = y.mean(), self.noise.split()[0], self.noise.split()[-1]
        if level == "dB":
            rate = math.sqrt(len(y) * 21.8 * 10 ** (float(kind) / 10) / y.sum())  # as hfsad generate
            return y + r.exponential(1, len(y)) / np.where(r.random(len(y)) < 0.9, rate, rate / 10)
        if kind == "gauss":
            return y + 0.01 * mean * r.standard_normal(len(y))
        if kind == "gross":
            bad = r.random(len(y)) < int(level[:-1]) / 100
            return y + np.where(bad, r.uniform(0, 10, len(y)) * mean, 0.01 * mean * r.standard_normal(len(y)))
        if kind == "permuted":
            bad = r.random(len(y)) < int(level[:-1]) / 100
            y[bad] = r.permutation(y[bad])
        return y

    def spectral(self):
        v = np.minimum(self.y, 3 * np.median(self.y))
        u = np.linalg.eigh((self.X * v[:, None]).T @ self.X)[1][:, -1]
        return u * self.length(u)

    def robust(self):
        rms = np.sqrt((self.X**2).mean(0))
        rms[rms == 0] = np.inf
        B = self.X / rms
        n = np.maximum((B**2).sum(1), 1e-300)
        t = self.y / n / (np.median(self.y / n) / 0.4549)
        T = np.maximum(1 - 1 / np.maximum(t, 1e-9), -10)
        u = np.linalg.eigh((B * (T / n)[:, None]).T @ B)[1][:, -1] / rms
        return u * self.length(u)

    def length(self, u):
        """The t with the least sum |y - t^2 <x,u>^2|: a weighted median."""
        p = (self.X @ u) ** 2
        ratio = self.y / np.maximum(p, 1e-300)
        order = np.argsort(ratio)
        total = np.cumsum(p[order])
        return math.sqrt(max(ratio[order][np.searchsorted(total, total[-1] / 2)], 0))

    def scad(self, w):
        a = np.abs(w)
        middle = (2 * GAMMA * LAMBDA * a - a * a - LAMBDA**2) / (2 * (GAMMA - 1))
        return np.where(a <= LAMBDA, LAMBDA * a, np.where(a <= GAMMA * LAMBDA, middle, LAMBDA**2 * (GAMMA + 1) / 2)).sum(-1)

    def clients(self):
        return self.client[-1] + 1

    def value(self, w):
        return float(np.abs(self.y - (self.X @ w) ** 2).sum() + self.clients() * self.scad(w))

    def slope(self, w):
        """Of one point, or of the columns of a matrix."""
        s, a = self.X @ w, np.abs(w)
        slope = np.where(a <= LAMBDA, LAMBDA, np.clip((GAMMA * LAMBDA - a) / (GAMMA - 1), 0, LAMBDA))
        y = self.y if w.ndim == 1 else self.y[:, None]
        return self.X.T @ (2 * s * np.sign(s * s - y)) + self.clients() * slope * np.sign(w)

    def error(self, w):
        return float(min(((w - s * self.truth) ** 2).sum() for s in (1, -1)) / (self.truth**2).sum())

    def descend(self, w, step, iterations=300):
        """The last and the best point of w - step(k) g/|g|, k = 1, 2, ..."""
        best, least = w, self.value(w)
        for k in range(1, iterations + 1):
            g = self.slope(w)
            w = np.clip(w - step(k) * g / max(np.linalg.norm(g), 1e-300), -BOX, BOX)
            if k % 10 == 0 and self.value(w) < least:
                best, least = w, self.value(w)
        return w, least

    def judged(self):
        """Of the last points of 18 rules, side by side: that of least error, and that of least objective."""
        k = np.arange(1, 301)
        steps = [t * q**k for t in (0.1, 0.3, 1, 3) for q in (0.96, 0.98, 0.99)]
        steps += [t / k**p for t, p in ((1, 1), (3, 1), (10, 1.5), (30, 1.5), (100, 2), (300, 2))]
        w = np.repeat(self.first[:, None], len(steps), 1)
        for step in np.array(steps).T:
            g = self.slope(w)
            w = np.clip(w - step * g / np.maximum(np.linalg.norm(g, axis=0), 1e-300), -BOX, BOX)
        return min(w.T, key=self.error), min(w.T, key=self.value)

    def lower_nearby(self, w):
        """By what part of it tiny steps lower the objective."""
        size, here = np.linalg.norm(w), self.value(w)
        least = min(self.descend(w, lambda k, t=t: t * size * 0.97**k)[1] for t in (1e-2, 1e-3, 1e-5))
        return (here - least) / max(here, 1e-9 * np.abs(self.y).sum())

    def write(self, folder):
        with open(folder + "/data.csv", "w") as f:
            f.write("edge,client,y," + ",".join("x%d" % m for m in range(self.M)) + "\n")
            for e, c, y, x in zip(self.edge, self.client, self.y, self.X):
                f.write("e%d,c%d,%r,%s\n" % (e, c, float(y), ",".join(map(repr, map(float, x)))))
        np.savetxt(folder + "/start.csv", self.first, fmt="%.17g")
        start = {"default": "", "file": ", start: start.csv"}.get(self.start, ", start: " + self.start)
        prior = "{penalty: scad, lambda: %g, gamma: %g}" % (LAMBDA, GAMMA)
        with open(folder + "/spec.yaml", "w") as f:
            f.write("data: data.csv\nloss: {kind: phase-retrieval, box: %g}\nprior: {edge: %s, cloud: %s}\n" % (BOX, prior, prior))
            f.write("run: {edge_rounds: %d, participation: {client: %g}%s}\n" % (self.K, self.p, start))


def run(program, folder, *settings):
    shutil.rmtree(folder + "/out", ignore_errors=True)
    before = time.time()
    subprocess.run([program, "run", folder + "/spec.yaml", "--out", folder + "/out", "--threads", "1", "--quiet", *settings],
                   check=True, capture_output=True, text=True, timeout=TIMEOUT)
    seconds = time.time() - before
    with open(folder + "/out/model.csv") as f:
        w = next(np.array(row[1:], float) for row in csv.reader(f) if row[0] == "cloud")
    with open(folder + "/out/trace.csv") as f:
        rows = list(csv.DictReader(f))
    with open(folder + "/out/summary.json") as f:
        return w, rows, json.load(f), seconds


def judge(p, program, folder, baselines):
    p.write(folder)
    w, trace, summary, seconds = run(program, folder)
    f, (best, least) = p.value(w), p.judged()
    bare, _, told, _ = run(program, folder, "--set", "run.polish=false")
    row = dict(M=p.M, ratio=p.ratio, rows=p.rows, noise=p.noise, start=p.start, K=p.K, p=p.p, seconds=seconds, verdict=summary["converged"],
               error=p.error(w), bare=p.error(bare), judge=p.error(best), blind=p.error(least), exchanges=(summary.get("polish") or {}).get("exchanges", 0),
               nearby=p.lower_nearby(w), above=f / min(float(t["consensus_objective"]) for t in trace) - 1, value=f, value_bare=p.value(bare),
               value_judge=p.value(best), value_truth=p.value(p.truth), bare_verdict=told["converged"], bare_nearby=p.lower_nearby(bare))
    row["false"] = bool((row["verdict"] is True and row["nearby"] > 1e-4) or (row["bare_verdict"] is True and row["bare_nearby"] > 1e-4))
    if baselines:
        row["fedavg"] = p.error(run(program, folder, "--set", "algorithm=fedavg")[0])
    return row


def lost(rows, key):
    return sum(r[key] > LOST for r in rows)


FLOOR = 1e-12  # an error below this is exact


def each(rows, key):
    """The errors divided by the judge's."""
    return np.array([max(r[key], FLOOR) / max(r["judge"], FLOOR) for r in rows])


def missed(rows, key, value):
    """Problems with more than twice the judge's error: (our objective is lower, it is not)."""
    lower = np.array([r[value] <= r["value_judge"] for r in rows])
    twice = each(rows, key) > 2
    return (twice & lower).sum(), (twice & ~lower).sum()


def table(rows, title, group):
    print("\n%-14s problems    error  judge's  ratio | each: median   90%%  above 2: F lower, higher | lost  judge's | rules chosen by F: ratio  lost | without the polish: ratio  above 2  lost" % title)
    for name in sorted({r[group] for r in rows}, key=lambda v: (isinstance(v, str), v)):
        g = [r for r in rows if r[group] == name]
        e, b, j, f = (np.median([max(r[k], FLOOR) for r in g]) for k in ("error", "bare", "judge", "blind"))
        quantiles = tuple(np.quantile(each(g, "error"), [0.5, 0.9]))
        print("%-14s %8d %8.1e %8.1e %6.2f | %12.2f %5.3g %16d %7d | %4d %8d | %23.3g %5d | %25.3g %4d+%-3d %5d" % ((name, len(g), e, j, e / j) + quantiles + missed(g, "error", "value")
              + (lost(g, "error"), lost(g, "judge"), f / j, lost(g, "blind"), b / j) + missed(g, "bare", "value_bare") + (lost(g, "bare"),)))


def report(rows, worst):
    print("problems                        %d" % len(rows))
    print("error / judge's, each           median %.2f, 75%% %.2f, 90%% %.2f" % tuple(np.quantile(each(rows, "error"), [0.5, 0.75, 0.9])))
    print("more than twice the judge's     %d with the lower objective, %d without" % missed(rows, "error", "value"))
    print("the judge has more than twice   %d" % (each(rows, "error") < 0.5).sum())
    print("lost                            %d, by the judge %d, without the polish %d" % (lost(rows, "error"), lost(rows, "judge"), lost(rows, "bare")))
    print("lost if the rule is chosen by F %d" % lost(rows, "blind"))
    if "fedavg" in rows[0]:
        print("lost by FedAvg                  %d" % lost(rows, "fedavg"))
    print("converged (stationary)          %d, not converged %d, not known %d" % tuple(sum(r["verdict"] is v for r in rows) for v in (True, False, None)))
    print("without the polish              %d, not converged %d, not known %d" % tuple(sum(r["bare_verdict"] is v for r in rows) for v in (True, False, None)))
    print("false verdicts                  %d" % sum(r["false"] for r in rows))
    print("above a row of its own trace    %d" % sum(r["above"] > 1e-9 for r in rows))
    for key in "exchanges", "seconds":
        print("%-31s median %.3g, 99%% %.3g" % ((key,) + tuple(np.quantile([r[key] for r in rows], [0.5, 0.99]))))
    for title, group in ("noise", "noise"), ("start", "start"), ("rows per M", "ratio"), ("M", "M"), ("K_m", "K"), ("p_c", "p"), ("rows, client", "rows"):
        table(rows, title, group)
    print("\nworst:")
    for i in np.argsort(-each(rows, "error"))[:worst]:
        r = rows[i]
        print("  seed %d: M %d, %d rows per M, %s, %s start, K_m %d, p_c %g: error %.1e, judge %.1e; F %.6g, judge %.6g, truth %.6g"
              % (r["seed"], r["M"], r["ratio"], r["noise"], r["start"], r["K"], r["p"], r["error"], r["judge"], r["value"], r["value_judge"], r["value_truth"]))


def solve(seed, fixed, program, keep, baselines):
    """One problem in a folder of its own. A run that fails or takes too long is a row with the reason."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = "%s/%d" % (keep, seed) if keep else scratch
        os.makedirs(folder, exist_ok=True)
        try:
            return dict(seed=seed, **judge(Problem(seed, fixed), program, folder, baselines))
        except subprocess.TimeoutExpired:
            return dict(seed=seed, failed="no end within %d s" % TIMEOUT)
        except subprocess.CalledProcessError as e:
            return dict(seed=seed, failed=e.stderr.strip())


def solve_all(seeds, jobs, *rest):
    """The rows in the order of the seeds, whatever the number of jobs; the finished ones if interrupted."""
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        tasks = [pool.submit(solve, seed, *rest) for seed in seeds]
        try:
            for done, _ in enumerate(concurrent.futures.as_completed(tasks), 1):
                if os.isatty(2):
                    print("\r%d of %d" % (done, len(seeds)), end="\r", file=sys.stderr)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            print("interrupted")
    return [t.result() for t in tasks if t.done() and not t.cancelled() and not t.exception()]


def main(seeds, jobs, program, keep, worst, json_file, baselines, fixed):
    rows = solve_all(seeds, jobs, fixed, program, keep, baselines)
    failed = [r for r in rows if "failed" in r]
    rows = [r for r in rows if "failed" not in r]
    for r in failed:
        print("seed %d failed: %s" % (r["seed"], r["failed"]))
    if rows:
        report(rows, worst)
    if json_file:
        with open(json_file, "w") as f:
            json.dump(rows + failed, f, indent=1)
    return bool(failed) or any(r["false"] for r in rows)
