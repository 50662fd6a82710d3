#!/usr/bin/env bash
# Models of clients do not depend on units: columns and y times 10^±6, y and a column shifted if there is an intercept, clients with other names, a
# client cut in two. By links that let go and by personal: groups (one model for all: test_right.c). Needs HFSAD, the path of the program.
# shellcheck source=tests/shell.sh
. "$(dirname "$0")/shell.sh"

cat >units.py <<'PYTHON'
"""units.py HFSAD: trains tables in other units, and compares the models in the first ones."""
import csv, json, math, os, random, subprocess, sys

M, CLIENTS, TOLERANCE = 4, 12, 1e-3


def draw(seed, outliers):
    g = random.Random(seed)
    base = [g.gauss(0, 1) for _ in range(M)]
    other = [b + g.choice((-2, 2)) for b in base]
    rows = []
    for j in range(CLIENTS):
        for i in range(30):
            x = [g.gauss(0, 1) for _ in range(M)]
            y = sum(a * b for a, b in zip(x, other if j % 4 == 0 else base)) + 0.5 * g.gauss(0, 1) + 3
            rows.append(["e%d" % (j % 3), "c%02d" % j, 1e5 * y if outliers and j % 5 == 1 and i == 0 else y] + x)
    return rows


def train(rows, spec, out):
    os.makedirs(out, exist_ok=True)
    with open(out + "/data.csv", "w") as f:
        f.write("edge,client,y,x1,x2,x3,x4\n")
        f.writelines(",".join(r[:2] + [repr(v) for v in r[2:]]) + "\n" for r in sorted(rows, key=lambda r: r[:2]))
    with open(out + "/spec.yaml", "w") as f:
        f.write("data: data.csv\n" + spec)
    subprocess.run([sys.argv[1], "run", out + "/spec.yaml", "--out", out + "/out", "--quiet", "--threads", "1"], check=True)
    with open(out + "/out/summary.json") as f:
        groups = len(json.load(f).get("groups", [0]))
    with open(out + "/out/model.csv") as f:
        return {r[0]: [float(v) for v in r[1:]] for r in list(csv.reader(f))[1:]}, groups


def renamed(name):
    return name if "/c" not in name else name[:4] + "%02d" % ((int(name[4:]) + 3) % CLIENTS)


def changes(rows):
    """what, the changed rows, their model in the first units, and the name of a node."""
    for f in (1e6, 1e-6):
        yield "x1 * %g" % f, [r[:3] + [r[3] * f] + r[4:] for r in rows], lambda w: [w[0] * f] + w[1:], str
        yield "y * %g" % f, [r[:2] + [r[2] * f] + r[3:] for r in rows], lambda w: [v / f for v in w], str
    yield "y + 1e4", [r[:2] + [r[2] + 1e4] + r[3:] for r in rows], lambda w: w[:M] + [w[M] - 1e4], str
    yield "x1 + 10", [r[:3] + [r[3] + 10] + r[4:] for r in rows], lambda w: w[:M] + [w[M] + 10 * w[0]], str
    yield "other names", [renamed("%s/%s" % tuple(r[:2])).split("/") + r[2:] for r in rows], list, renamed
    # Links that let go know a client by its rows: of a client cut in two each half has fewer. Groups ask for its likelihood.
    yield "cut", [[r[0], r[1] + "b" * (r[1] == "c07" and i % 2)] + r[2:] for i, r in enumerate(rows)], list, str


def compare(spec, rows, cuts):
    first, found = train(rows, spec, "first")
    size = math.sqrt(sum(v * v for w in first.values() for v in w[:M]) / len(first))
    for what, changed, back, name in changes(rows):
        if what == "cut" and not cuts:
            continue
        then, groups = train(changed, spec, "then")
        far = max(abs(a - b) for n in first for a, b in zip(back(then[name(n)]), first[n])) / size
        # with other names the first members of the groups of links that let go are others
        assert far < TOLERANCE and (groups == found or what == "other names"), (spec, what, far, found, groups)


intercept = "features: {intercept: global}\n"
for kind, links in ("squared", "group-scad"), ("quantile", "mcp"):
    rows = draw(5, kind != "squared")
    compare("loss: {kind: %s}\nlink: {client: {penalty: %s}}\nrun: {iterations: 600, trace_every: 100}\n" % (kind, links) + intercept, rows, False)
    compare("loss: {kind: %s}\npersonal: groups\n" % kind + intercept, rows, True)
PYTHON
python3 units.py "$HFSAD" || fail "a model depends on units"
finish
