#!/usr/bin/env python3
"""floor.py PROGRAM EDGES CLIENTS FEATURES [TRIALS [SEED]]: how far the objective's own minimiser is from the truth.

Phase retrieval at +20 dB as in docs/convergence.md, on the report's seeds: the relative error of the cloud's model after 300
iterations of the tuned preset, and after the polish, which goes on to a stationary point of the objective without smoothing. Trials in
which no row has some coordinate of the truth are left out."""
import csv, json, statistics, subprocess, sys, tempfile
from pathlib import Path

SPEC = """data: data.csv
truth: truth.csv
loss: {kind: phase-retrieval, box: 5}
prior: {edge: {penalty: scad, lambda: 0.1, gamma: 2.4}, cloud: {penalty: scad, lambda: 0.1, gamma: 2.4}}
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


def trial(program, shape, seed, folder):
    """The errors before and after the polish, or None."""
    sizes = [text for pair in zip(("--edges", "--clients", "--features"), shape) for text in pair]
    run = lambda *words: subprocess.run([program, *words], stdout=subprocess.DEVNULL, check=True)
    run("generate", "phase-retrieval", *sizes, "--seed", str(seed), "--out", str(folder), "--force", "--quiet")
    if unseen(folder):
        return None
    (folder / "spec.yaml").write_text(SPEC % seed)
    run("run", str(folder / "spec.yaml"), "--out", str(folder / "out"), "--quiet")
    summary = json.loads((folder / "out" / "summary.json").read_text())
    return summary["figures"]["relative_error"], summary["polish"]["relative_error"]


def main():
    program, shape = sys.argv[1], sys.argv[2:5]
    trials, seed = int((sys.argv[5:6] or ["100"])[0]), int((sys.argv[6:7] or ["20001"])[0])
    with tempfile.TemporaryDirectory() as folder:
        errors = [e for s in range(seed, seed + trials) if (e := trial(program, shape, s, Path(folder)))]
    name = "x".join(shape)
    for i, what in enumerate(("run", "polished")):
        print(f"floor_{what}_median_{name} {statistics.median(e[i] for e in errors):.4g} of {len(errors)} trials")
        print(f"floor_{what}_mean_{name} {statistics.mean(e[i] for e in errors):.4g}")


main()
