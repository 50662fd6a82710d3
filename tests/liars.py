#!/usr/bin/env python3
"""liars.py PROGRAM [--table]: the error of `aggregate: mean, trimmed, median` with clients that lie.

A star of 20 clients and a linear model with known coefficients. A liar's messages stay within the bounds of the mathematics, because they come
from rows that it has made up: so it can say whatever a client with such rows can.

  flip     its y has the other sign            large    its y is 1000 times as large
  stale    it takes part once, and then never  collude  all liars have the rows of one other model

Prints the relative error of the cloud's model. Without --table: exit status 1 unless trimmed and median stay below a limit for 10% and 20% of liars.
"""
import argparse, json, os, random, subprocess, sys, tempfile

CLIENTS, ROWS, FEATURES = 20, 12, 4
KINDS = ["none", "flip", "large", "stale", "collude"]
RULES = ["mean", "trimmed", "median"]


def write(folder, kind, liars, seed=1):
    draw = random.Random(seed)
    truth = [draw.gauss(0, 1) for _ in range(FEATURES)]
    other = [draw.gauss(0, 5) for _ in range(FEATURES)]
    with open(os.path.join(folder, "data.csv"), "w") as file:
        file.write("client,y," + ",".join(f"x{m}" for m in range(FEATURES)) + "\n")
        for client in range(CLIENTS):
            lies = client < liars
            for _ in range(ROWS):
                x = [draw.gauss(0, 1) for _ in range(FEATURES)]
                y = sum(a * b for a, b in zip(x, truth)) + draw.gauss(0, 0.05)
                if lies and kind == "flip":
                    y = -y
                elif lies and kind == "large":
                    y *= 1000
                elif lies and kind == "collude":
                    y = sum(a * b for a, b in zip(x, other))
                file.write(f"c{client:02},{y!r}," + ",".join(map(repr, x)) + "\n")
    with open(os.path.join(folder, "truth.csv"), "w") as file:
        file.writelines(f"{v!r}\n" for v in truth)
    spec = {"data": "data.csv", "truth": "truth.csv", "algorithm": "hfsad", "loss": {"kind": "squared"},
            "run": {"iterations": 300, "trace_every": 300, "polish": False}}
    if kind == "stale":
        spec["overrides"] = [{"node": f"c{client:02}", "participation": 0} for client in range(liars)]
        spec["run"]["participation"] = {"at_least_every": 1000000}
    return spec


def error(program, spec, rule, folder):
    with open(os.path.join(folder, "spec.yaml"), "w") as file:
        json.dump({**spec, "aggregate": rule}, file)
    out = os.path.join(folder, "out")
    subprocess.run([program, "run", "spec.yaml", "--out", out, "--quiet", "--force"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(out, "summary.json")) as file:
        return json.load(file)["figures"]["relative_error"] ** 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    program, bad = os.path.realpath(options.program), []
    os.environ["HFSAD_HISTORY"] = "off"
    print("| lie | liars | " + " | ".join(RULES) + " |\n|---|---|" + "---|" * len(RULES))
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            for share in (0.1, 0.2) if kind != "none" else (0,):
                spec = write(folder, kind, round(share * CLIENTS))
                errors = {rule: error(program, spec, rule, folder) for rule in RULES}
                print(f"| {kind} | {share:.0%} | " + " | ".join(f"{errors[rule]:.2g}" for rule in RULES) + " |", flush=True)
                bad += [f"{kind}, {share:.0%}: {rule} has an error of {errors[rule]:.2g}" for rule in RULES[1:] if not errors[rule] < 0.1]
                if kind in ("large", "collude") and not errors["mean"] > 2 * errors["median"]:
                    bad.append(f"{kind}, {share:.0%}: the mean is not worse: this tests too little")
    for line in bad:
        print("FAIL:", line)
    return 1 if bad and not options.table else 0


if __name__ == "__main__":
    sys.exit(main())
