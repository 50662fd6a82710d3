#!/usr/bin/env bash
# Several classes from end to end: the multinomial loss by run, up, predict and evaluate, against its definition and the
# conditions of its minimum. Needs HFSAD.
. "$(dirname "$0")/shell.sh"

cat >classes.py <<'PYTHON'
import csv, json, math, random, sys

def draw():
    random.seed(5)
    with open("data.csv", "w") as f:
        f.write("edge,client,y,a,b\n")
        for i in range(120):
            x = [random.gauss(0, 1), random.gauss(5, 3)]
            score = [0, x[0] + 1, 0.5 * x[1] - 2]
            y = max(range(3), key=lambda k: score[k] - math.log(-math.log(random.random())))
            f.write("e%d,c%d,%d,%r,%r\n" % (i % 2, i % 5, y, *x))

def read(folder):
    rows = [(int(r["y"]), float(r["a"]), float(r["b"])) for r in csv.DictReader(open("data.csv"))]
    w = [float(v) for v in open(folder + "/model.csv").read().split("\n")[1].split(",")[1:]]
    assert len(w) == 9, "2 features and an intercept for 3 classes"
    return rows, w

def probabilities(w, a, b):
    s = [a * w[k] + b * w[3 + k] + w[6 + k] for k in range(3)]
    total = sum(math.exp(v) for v in s)
    return [math.exp(v) / total for v in s]

# Every derivative of the sum of log losses + 2 |w|_1, intercepts left out, is 0, or within 2 of it at 0.
def minimum(folder):
    rows, w = read(folder)
    value, g = 2 * sum(map(abs, w[:6])), [0.0] * 9
    for y, a, b in rows:
        p = probabilities(w, a, b)
        value -= math.log(p[y])
        for k in range(3):
            for m, x in enumerate((a, b, 1)):
                g[3 * m + k] += (p[k] - (k == y)) * x
    for i in range(9):
        away = abs(g[i]) if i >= 6 else max(abs(g[i]) - 2, 0) if w[i] == 0 else abs(g[i] + math.copysign(2, w[i]))
        assert away < 1e-5, f"derivative {i} is {away}"
    s = json.load(open(folder + "/summary.json"))
    assert s["converged"] is True and abs(s["figures"]["objective"] - value) < 1e-8 * value, (s["converged"], value)
    assert any(v == 0 for v in w[:6]), "the penalty leaves no coefficient out"

def predicted(folder):
    rows, w = read(folder)
    for (y, a, b), line in zip(rows, csv.DictReader(open("predictions.csv"))):
        p = probabilities(w, a, b)
        assert all(abs(float(line[f"p{k}"]) - p[k]) < 1e-12 for k in range(3)) and p[int(line["prediction"])] == max(p)
        assert int(line["y"]) == y, "another order"

def evaluated(folder):
    rows, w = read(folder)
    matrix, loss = [[0] * 3 for _ in range(3)], 0
    for y, a, b in rows:
        p = probabilities(w, a, b)
        loss -= math.log(p[y]) / len(rows)
        matrix[y][p.index(max(p))] += 1
    e = json.load(open("evaluation/evaluation.json"))
    assert e["confusion"] == matrix and abs(e["mean_loss"] - loss) < 1e-12, (e["confusion"], matrix)
    assert abs(e["accuracy"] - sum(matrix[k][k] for k in range(3)) / len(rows)) < 1e-12

globals()[sys.argv[1]](*sys.argv[2:])
PYTHON
judge() { python3 classes.py "$@" 2>python.txt || fail "classes.py $*: $(tail -1 python.txt)"; }
judge draw

cat >spec.yaml <<'YAML'
data: data.csv
loss: {kind: multinomial, classes: 3}
features: {intercept: global}
prior: {cloud: {penalty: l1, weight: 1, lambda: 2}, edge: {penalty: none}}
run: {stop: {gap: 0}}
YAML
expect 0 run spec.yaml --out out --threads 1
judge minimum out
expect 0 run spec.yaml --out again --threads 2
same_output out again || fail "another number of threads, another result"
expect 0 up spec.yaml --out federation
same_output out federation || fail "a federation comes to another result"
expect 0 run spec.yaml --out standard --set features.standardize=true --set prior.cloud.penalty=none
expect 0 run spec.yaml --out raw --set prior.cloud.penalty=none
python3 - <<'PYTHON' || fail "without a penalty standardised columns give another model"
a, b = ([float(v) for v in open(f + "/model.csv").read().split("\n")[1].split(",")[1:]] for f in ("standard", "raw"))
centred = lambda w: [v - sum(w[i // 3 * 3:i // 3 * 3 + 3]) / 3 for i, v in enumerate(w)]
raise SystemExit(max(abs(p - q) for p, q in zip(centred(a), centred(b))) > 1e-5)
PYTHON

expect 0 predict --model out --data data.csv --out predictions.csv
judge predicted out
expect 0 evaluate --model out --data data.csv --out evaluation
judge evaluated out

expect_line 2 run spec.yaml --set loss.classes=2
says 'has y = 2: the multinomial loss takes the classes 0, 1, ... below loss.classes'
expect_line 2 run spec.yaml --set algorithm=hfsad
says 'loss.kind: multinomial: only algorithm: star can train this; set algorithm: star'
expect_line 2 run spec.yaml --set features.intercept=client
says 'only algorithm: star can train this, and it cannot: features.intercept'
expect_line 2 run spec.yaml --set loss.scale=mean
says 'loss.scale: mean cannot be combined with it'
finish
