#!/usr/bin/env python3
"""floor.py PROGRAM EDGES CLIENTS FEATURES [--trials N] [--seed S] [--snr-db DB] [--preset tuned|paper]: what the polish changes.

Phase retrieval as in docs/convergence.md, on the report's seeds: the relative error of the cloud's model and the objective there, after
300 iterations and after the polish, which goes on to a stationary point of the objective without smoothing: how far the objective's own
minimiser is from the truth. Trials in which no row has some coordinate of the truth are left out."""
import argparse, csv, json, statistics, subprocess, tempfile
from pathlib import Path

SPEC = """data: data.csv
truth: truth.csv
loss: {kind: phase-retrieval, box: 5}
prior: {edge: {penalty: scad, lambda: 0.1, gamma: 2.4}, cloud: {penalty: scad, lambda: 0.1, gamma: 2.4}}
preset: %s
run: {iterations: 300, polish: true, seed: %d}
output: {state: false, checkpoint: false}
"""


def unseen(folder):
    """Whether a coordinate of the truth is in no row."""
    truth = [float(line) for line in (folder / "truth.csv").open()]
    rows = csv.reader((folder / "data.csv").open())
    next(rows)
    seen = [False] * len(truth)
    for row in rows:
        seen = [s or float(x) != 0 for s, x in zip(seen, row[3:])]
    return any(t != 0 and not s for t, s in zip(truth, seen))


def trial(program, a, seed, folder):
    """What the run and the polish came to, or None."""
    sizes = ["--edges", a.edges, "--clients", a.clients, "--features", a.features, "--snr-db", a.snr_db]
    run = lambda *words: subprocess.run([program, *words], stdout=subprocess.DEVNULL, check=True)
    run("generate", "phase-retrieval", *sizes, "--seed", str(seed), "--out", str(folder), "--force", "--quiet")
    if unseen(folder):
        return None
    (folder / "spec.yaml").write_text(SPEC % (a.preset, seed))
    run("run", str(folder / "spec.yaml"), "--out", str(folder / "out"), "--quiet")
    summary = json.loads((folder / "out" / "summary.json").read_text())
    polish = summary["polish"]
    return {
        "run_error": summary["figures"]["relative_error"],
        "polished_error": polish["relative_error"],
        "run_objective": polish["objective_before"],
        "polished_objective": polish["objective_after"],
        "exchanges": polish["exchanges"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("program", "edges", "clients", "features"):
        parser.add_argument(name)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=20001)
    parser.add_argument("--snr-db", default="20")
    parser.add_argument("--preset", default="tuned")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seeds = range(a.seed, a.seed + a.trials)
        found = [f for s in seeds if (f := trial(a.program, a, s, Path(folder)))]
    name = f"{a.preset}_{a.snr_db}dB_{a.edges}x{a.clients}x{a.features}"
    for what in found[0]:
        values = [f[what] for f in found]
        print(f"floor_{what}_median_{name} {statistics.median(values):.4g} of {len(values)} trials")
        print(f"floor_{what}_mean_{name} {statistics.mean(values):.4g}")


main()
