"""HFSAD's own rounds, for bench/robustness --rounds: problems that the star does not train.

The convex problems of bench/robustness with absent clients and without the polish (SETTINGS below), so that a figure is what the rounds
alone reach. --fix KEY=VALUE changes a setting of these runs: run.polish=auto shows what a user gets, federation.mode=async runs `hfsad up`.
A cloud's model outside a box is clipped to it. Problems without a minimum are left out of the table; those without prior and box have lines of
their own (no prior).
"""
import csv
import json
import subprocess

import numpy as np

SETTINGS = {"run.participation.client": "0.3", "run.iterations": "300", "run.polish": "false"}


def run(p, program, folder, fixed):
    """The cloud's model, with its intercept, and the summary; or None and what was said."""
    p.write(folder)
    settings = {**SETTINGS, **fixed}
    command, threads = "run", ["--threads", "1"]
    if settings.get("federation.mode") == "async":  # nodes take part when they are ready, not by draws
        command, threads = "up", []
        del settings["run.participation.client"]
    done = subprocess.run([program, command, folder + "/spec.yaml", "--out", folder + "/out", "--quiet"] + threads +
                          [word for pair in settings.items() for word in ("--set", "%s=%s" % pair)],
                          capture_output=True, text=True, timeout=600)
    if done.returncode:
        return None, done.stderr.strip()
    with open(folder + "/out/model.csv") as f:
        w = np.array(next(row for row in csv.reader(f) if row[0] == "cloud")[1:], float)
    with open(folder + "/out/summary.json") as f:
        return w, json.load(f)


def solve(p, program, folder, fixed, tiny):
    """A row of the report, or None and what was said. tiny: a part of the objective at 0 that counts as 0."""
    w, said = run(p, program, folder, fixed)
    if w is None:
        return None, said
    w = np.clip(w, -p.box, p.box)  # the clients' models are within; the cloud's is only tied to them
    f, zero, best = p.value(w), p.value(0 * w), p.best(w)
    size = max(best, tiny * zero, 1e-300)
    above, gap, sure = (f - best) / size, (said.get("polish") or {}).get("gap"), said["converged"] is True
    return dict(family="%s, %s" % (p.kind, p.name), design=p.name, prior=p.l1 > 0, box=bool(np.isfinite(p.limit)), endless=p.is_endless(), above=above,
                gap=None if gap is None else gap / size, verdict=said["converged"], text=said["verdict"], false=sure and above > 1.01e-4), None


def report(rows, failed):
    def line(name, part):
        if not part:
            return
        above = [r["above"] for r in part]
        shares = tuple(100 * np.mean([a <= limit for a in above]) for limit in (1e-2, 1e-3, 1e-4))
        print("%-22s %5d   %3.0f%%   %3.0f%%   %3.0f%%   %.1e   %.1e" % ((name, len(part)) + shares + tuple(np.quantile(above, [0.5, 0.9]))))

    print("problems                    %d, refused or failed %d, without a minimum %d" % (len(rows) + failed, failed, sum(r["endless"] for r in rows)))
    for name, verdict in ("converged", True), ("not converged", False), ("not known", None):
        print("%-27s %d" % (name, sum(r["verdict"] is verdict for r in rows)))
    print("false verdicts              %d" % sum(r["false"] for r in rows))
    rows = [r for r in rows if not r["endless"]]
    free = [r for r in rows if not r["prior"] and not r["box"]]
    print("\nwithin              problems   1e-2   1e-3   1e-4   median    90%")
    for design in sorted({r["design"] for r in rows}):
        line(design, [r for r in rows if r["design"] == design])
    line("all", rows)
    for design in sorted({r["design"] for r in free}):
        line("no prior, " + design, [r for r in free if r["design"] == design])
    line("no prior", free)
