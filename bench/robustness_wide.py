"""bench/robustness --wide: more than 512 columns, all defaults. Gaussian columns, 15 true coefficients, 20 clients; lambda relative to the value at
which the model is 0. Prints the table of docs/robustness.md; the proof is the run's own."""
import json, os, subprocess, sys

import numpy as np

# loss, rows, columns, lambda, intercept, seed
CASES = [("absolute", 1500, 1000, .1, False, 2), ("absolute", 2000, 1000, .05, True, 3), ("quantile", 2000, 1000, .2, True, 4),
         ("hinge", 1500, 1000, .05, True, 5), ("logistic", 1500, 1000, .05, True, 6), ("squared", 1500, 1000, .05, True, 7),
         ("squared", 1500, 1000, 0, True, 7), ("squared", 1000, 5000, .1, True, 10), ("logistic", 600, 10000, .2, True, 11),
         ("absolute", 1000, 5000, .3, True, 9), ("absolute", 600, 10000, .3, False, 12), ("absolute", 2000, 600, 0, True, 8)]


def draw(kind, n, M, seed):
    """X, y, and the largest slope at 0."""
    random = np.random.default_rng(seed)
    X, w = random.normal(size=(n, M)), np.zeros(M)
    w[:15] = random.normal(size=15) * 2
    s = X @ w
    classes = kind in ("logistic", "hinge")
    y = np.where(s + random.normal(size=n) > 0, 1., -1.) if classes else s + random.standard_t(2, size=n) * .5
    slopes = y / 2 if kind == "logistic" else y if kind in ("squared", "hinge") else np.sign(y)
    return X, y, float(np.abs(X.T @ slopes).max())


def write(folder, case):
    kind, n, M, share, intercept, seed = case
    X, y, most = draw(kind, n, M, seed)
    with open(os.path.join(folder, "data.csv"), "w") as f:
        f.write("edge,client,y," + ",".join(f"x{m}" for m in range(M)) + "\n")
        for i in range(n):
            f.write(f"e{i % 2},c{i % 20},{float(y[i])!r}," + ",".join("%.8g" % v for v in X[i]) + "\n")
    with open(os.path.join(folder, "spec.yaml"), "w") as f:
        f.write(f"data: data.csv\nloss: {{kind: {kind}}}\nfeatures: {{intercept: {'global' if intercept else 'none'}}}\n")
        if share:
            f.write(f"prior: {{cloud: {{penalty: l1, weight: 1, lambda: {share * most!r}}}}}\n")


def main(cases, program, folder):
    """The cases of this slice of the list."""
    os.makedirs(folder, exist_ok=True)
    print("| loss | rows × columns | λ | intercept | exchanges | MB per link | proven |\n|---|---|---|---|---|---|---|", flush=True)
    for case in CASES[cases]:
        kind, n, M, share, intercept, _ = case
        write(folder, case)
        out = os.path.join(folder, "out")
        subprocess.run([program, "run", os.path.join(folder, "spec.yaml"), "--out", out, "--threads", "1", "--quiet", "--force"], check=True)
        with open(os.path.join(out, "summary.json")) as f:
            summary = json.load(f)
        polish, links = summary["polish"], 22
        proven = "no bound" if polish["gap"] is None else f"{polish['gap'] / polish['objective_after']:.1e}"
        print(f"| {kind} | {n:,} × {M:,} | {share} | {'yes' if intercept else 'no'} | {polish['exchanges']:,} | "
              f"{(polish['bytes_up'] + polish['bytes_down']) / 1e6 / links:.2g} | {proven}{'' if summary['converged'] else ', not converged'} |",
              flush=True)
    return 0


if __name__ == "__main__":
    sys.exit("use bench/robustness --wide")
