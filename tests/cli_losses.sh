#!/usr/bin/env bash
# Every loss and every prior from end to end, by definitions that are written down here once more: run, polish, box,
# means, the linearised step, predict, evaluate, path, baselines. A loss or a prior that `hfsad settings` lists and
# losses.py does not know fails. Needs HFSAD, the path of the program.
# shellcheck source=tests/shell.sh
. "$(dirname "$0")/shell.sh"

cat >losses.py <<'PYTHON'
"""losses.py data LOSS FILE SEED | minimum FOLDER DATA | evaluated FOLDER DATA | predicted FOLDER DATA FILE"""
import csv, json, math, random, sys

TAU, DELTA, H, RATIO = 0.3, 0.7, 0.4, 0.4

def mean_quantile(r):  # the integral of the quantile loss over r - H to r + H
    part = lambda t: (TAU if t >= 0 else TAU - 1) * t * t / 2
    return (part(r + H) - part(r - H)) / (2 * H)

LOSSES = {  # value, prediction, how y is drawn
    "phase-retrieval": (lambda y, s: abs(y - s * s), lambda s: s * s, "square"),
    "quantile": (lambda y, s: max(TAU * (y - s), (TAU - 1) * (y - s)), lambda s: s, "line"),
    "absolute": (lambda y, s: abs(y - s), lambda s: s, "line"),
    "squared": (lambda y, s: (y - s) ** 2 / 2, lambda s: s, "line"),
    "huber": (lambda y, s: (y - s) ** 2 / 2 if abs(y - s) < DELTA else DELTA * abs(y - s) - DELTA ** 2 / 2, lambda s: s, "line"),
    "logistic": (lambda y, s: math.log1p(math.exp(-y * s)), lambda s: 1 / (1 + math.exp(-s)), "label"),
    "hinge": (lambda y, s: max(0, 1 - y * s), lambda s: s, "label"),
    "squared-hinge": (lambda y, s: max(0, 1 - y * s) ** 2, lambda s: s, "label"),
    "expectile": (lambda y, s: (TAU if y > s else 1 - TAU) * (y - s) ** 2, lambda s: s, "line"),
    "smoothed-quantile": (lambda y, s: mean_quantile(y - s), lambda s: s, "line"),
    "poisson": (lambda y, s: math.exp(s) - y * s - y + (y * math.log(y) if y else 0), math.exp, "count"),
}
PRIORS = {
    "none": lambda t: 0,
    "l1": abs,
    "l2": lambda t: t * t / 2,
    "elastic-net": lambda t: RATIO * abs(t) + (1 - RATIO) * t * t / 2,
    "mcp": None,  # not convex: tests/test_penalty.c
    "scad": None,
}

def draw_data(loss, file, seed):
    random.seed(int(seed))
    truth = [0.8, 0, -0.5, 0, 0.3]
    with open(file, "w") as f:
        f.write("edge,client,y,x1,x2,x3,x4,x5\n")
        for i in range(240):
            x = [random.gauss(0, 1) for _ in truth]
            s = sum(a * b for a, b in zip(x, truth)) + 0.4 * random.gauss(0, 1)
            y = {"square": s * s, "line": s, "label": 1 if s > 0 else -1, "count": int(math.exp(s + 0.5))}[LOSSES[loss][2]]
            f.write(",".join(map(str, ["ab"[i % 2], f"c{i % 8}", y, *x])) + "\n")

def read(folder, data):
    settings = json.load(open(folder + "/summary.json"))["settings"]
    head, *models = csv.reader(open(folder + "/model.csv"))
    assert models[0][0] == "cloud"
    rows = [[float(v) for v in row[2:]] for row in list(csv.reader(open(data)))[1:]]
    return settings, [float(v) for v in models[0][1:]], rows

def score(w, x):
    return sum(a * b for a, b in zip(w, x))

def objective(settings, w, rows):
    prior = settings["prior"]["cloud"]
    value = LOSSES[settings["loss"]["kind"]][0]
    total = sum(value(row[0], score(w, row[1:])) for row in rows)
    if prior["penalty"] != "none":
        total += prior["weight"] * prior["lambda"] * sum(PRIORS[prior["penalty"]](t) for t in w)
    return total

def minimum(folder, data):
    """No step along an axis or a random direction, in the box, finds anything lower."""
    settings, w, rows = read(folder, data)
    best, box = objective(settings, w, rows), settings["loss"].get("box") or math.inf
    assert max(map(abs, w)) <= box, "outside of the box"
    random.seed(1)
    for step in (1e-1, 1e-2, 1e-3, 1e-4):
        for i in range(30):
            d = [step * (i // 2 == m) * (-1) ** i if i < 10 else step * random.gauss(0, 1) for m in range(len(w))]
            there = objective(settings, [max(-box, min(box, a + b)) for a, b in zip(w, d)], rows)
            assert there >= best - 1e-7 * (1 + abs(best)), f"{there} below {best} at a step of {step}"

def evaluated(folder, data, file):
    settings, w, rows = read(folder, data)
    value = LOSSES[settings["loss"]["kind"]][0]
    want, have = sum(value(r[0], score(w, r[1:])) for r in rows) / len(rows), json.load(open(file))["mean_loss"]
    assert abs(want - have) <= 1e-9 * (1 + abs(want)), f"mean loss {have}, by definition {want}"

def predicted(folder, data, file):
    settings, w, rows = read(folder, data)
    head, *lines = csv.reader(open(file))
    at, predict = head.index("prediction"), LOSSES[settings["loss"]["kind"]][1]
    assert len(lines) == len(rows)
    have, want = sorted(float(l[at]) for l in lines), sorted(predict(score(w, r[1:])) for r in rows)
    assert all(abs(a - b) <= 1e-9 * (1 + abs(b)) for a, b in zip(have, want)), "predictions differ"

def known(losses, priors):
    assert set(losses.split(", ")) == {*LOSSES, "own", "multinomial"}, "a loss without a definition here, or the other way round"
    assert set(priors.split(", ")) == set(PRIORS), "a prior without a definition here, or the other way round"

{"data": draw_data, "minimum": minimum, "evaluated": evaluated, "predicted": predicted, "known": known}[sys.argv[1]](*sys.argv[2:])
PYTHON
python() { python3 losses.py "$@" 2>python.txt || fail "losses.py $*: $(tail -1 python.txt)"; }
listed() { "$HFSAD" settings --markdown | sed -n "s/^| .$1. | [a-z]* | one of \([a-z0-9, -]*\) |.*/\1/p" | head -1; }

python known "$(listed loss.kind)" "$(listed prior.cloud.penalty)"

spec() { # KIND [LINE…] into spec.yaml
    printf 'data: data.csv\nloss: {kind: %s, tau: 0.3, delta: 0.7, h: 0.4}\nrun: {iterations: 30, edge_rounds: 2, polish: true}\n' "$1" >spec.yaml
    printf '%s\n' "${@:2}" >>spec.yaml
}
convex=$(listed loss.kind | tr "," "\n" | grep -vx " *\(own\|multinomial\|phase-retrieval\)")

for loss in $convex; do
    python data "$loss" data.csv 1
    for how in plain box mean linearized override; do
        spec "$loss"
        case $how in
        box) set -- --set loss.box=0.25 ;;
        linearized) set -- --set loss.solver=linearized ;;
        override) set -- --set 'overrides=[{node: "a/*", loss: {tolerance: 0.01}}]' ;;
        *) set -- ;;
        esac
        [ "$how" != mean ] || set -- --set loss.scale=mean
        expect 0 run spec.yaml --out "$loss-$how" --quiet "$@"
        grep -q '"accepted":[[:space:]]*true' "$loss-$how/summary.json" || fail "$loss, $how: the polish is not accepted"
    done
    python minimum "$loss-plain" data.csv # of the sum; a mean weighs clients otherwise
    python minimum "$loss-box" data.csv
    python minimum "$loss-linearized" data.csv
    expect 0 predict --model "$loss-plain" --data data.csv --with cloud --out predictions.csv
    python predicted "$loss-plain" data.csv predictions.csv
    expect 0 evaluate --model "$loss-plain" --data data.csv --with cloud --out evaluation
    python evaluated "$loss-plain" data.csv evaluation/evaluation.json
    for algorithm in fedavg fedprox; do
        spec "$loss"
        expect 0 run spec.yaml --out baseline --quiet --set run.polish=false --set algorithm=$algorithm
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at = $i == "consensus_objective" ? i : at }
            NR == 2 { first = $at } END { exit !($at < 0.99 * first) }' baseline/trace.csv || fail "$loss: $algorithm does not train"
        rm -rf baseline
    done
    rm -rf predictions.csv evaluation
done

# y that a loss does not take
python data squared data.csv 2
spec poisson
expect_line 2 run spec.yaml --out never
says 'the poisson loss takes counts, which are 0 or more'

for prior in l1 l2 elastic-net; do
    for loss in squared quantile poisson smoothed-quantile; do
        python data "$loss" data.csv 3
        spec "$loss" "prior: {cloud: {penalty: $prior, weight: 1, lambda: 12$([ $prior = elastic-net ] && echo ', ratio: 0.4')}}"
        expect 0 run spec.yaml --out "$prior-$loss" --quiet
        grep -q '"accepted":[[:space:]]*true' "$prior-$loss/summary.json" || fail "$prior, $loss: the polish is not accepted"
        python minimum "$prior-$loss" data.csv
        expect 0 path spec.yaml --out path --quiet --lambdas 3 --no-plot --set run.polish=false
        [ "$(wc -l <path/path.csv)" = 4 ] || fail "$prior, $loss: the path has not 3 points"
        rm -rf path
    done
done

finish
