#!/usr/bin/env bash
# Several levels of a quantile in one run, and classes one against the rest: run, up, predict and evaluate, against runs
# of one level, scikit-learn's LinearSVC and the definitions. Needs HFSAD.
. "$(dirname "$0")/shell.sh"

cat >levels.py <<'PYTHON'
import csv, json, math, random, sys

TAUS = [0.1, 0.5, 0.9]

def draw():
    random.seed(4)
    with open("data.csv", "w") as f, open("classes.csv", "w") as g:
        for file in (f, g):
            file.write('edge,client,y,"age, years",b\n')
        for i in range(150):
            a, b = random.gauss(0, 1), random.gauss(5, 3)
            y = 1e3 + a + 0.5 * b + (0.2 + abs(a)) * random.gauss(0, 1)
            score = [a, 0.5 * b - 2.5, -a]
            k = max(range(3), key=lambda j: score[j] - math.log(-math.log(random.random())))
            f.write("e%d,c%d,%r,%r,%r\n" % (i % 2, i % 5, y, a, b))
            g.write("e%d,c%d,%d,%r,%r\n" % (i % 2, i % 5, k, a, b))

def table(name):
    return [(float(r["y"]), float(r["age, years"]), float(r["b"])) for r in csv.DictReader(open(name))]

def model(folder):
    return list(csv.reader(open(folder + "/model.csv")))[1][1:]

def pinball(tau, left):
    return max(tau * left, (tau - 1) * left)

# The objective of each level is the minimum of a run of that level alone, to the bound of the run of all.
def levels():
    header = list(csv.reader(open("all/model.csv")))[0]
    assert header[1:4] == ["age, years:0.1", "age, years:0.5", "age, years:0.9"] and header[-1] == "intercept:0.9", header
    assert next(csv.reader(open("all/coefficients.csv"))) and "age, years:0.5" in open("all/coefficients.csv").read()
    w, s = [float(v) for v in model("all")], json.load(open("all/summary.json"))
    bound, total = s["polish"]["gap"], 0
    assert s["converged"] is True and bound <= 1e-4 * s["figures"]["objective"]
    for k, tau in enumerate(TAUS):
        value = sum(pinball(tau, y - a * w[k] - b * w[3 + k] - w[6 + k]) for y, a, b in table("data.csv"))
        one = json.load(open(f"one{tau}/summary.json"))
        least = one["figures"]["objective"]
        assert least - one["polish"]["gap"] <= value * (1 + 1e-12) <= least + bound + 1e-9 * value, (tau, value, least)
        total += value
    assert abs(total / s["figures"]["objective"] - 1) < 1e-12

def predicted():
    TAUS = [0.45, 0.5, 0.55]
    w, crossed = [float(v) for v in model("all")], 0
    sums = {}
    rows = list(csv.DictReader(open("data.csv")))
    for r, line in zip(rows, csv.DictReader(open("predictions.csv"))):
        y, a, b = float(r["y"]), float(r["age, years"]), float(r["b"])
        raw = [a * w[k] + b * w[3 + k] + w[6 + k] for k in range(3)]
        got = [float(line[f"q{tau}"]) for tau in TAUS]
        assert got == sorted(got) and all(abs(p - q) < 1e-9 for p, q in zip(got, sorted(raw))), (got, raw)
        assert line["prediction"] == line["q0.5"]
        crossed += raw != sorted(raw)
        for node in ("cloud", r["edge"], r["edge"] + "/" + r["client"]):
            for tau, p in zip(TAUS, got):
                sums.setdefault((node, tau), []).append((pinball(tau, y - p), y <= p))
    assert crossed > 0, "no row whose levels cross: the test shows nothing"
    for line in csv.DictReader(open("evaluation/evaluation.csv")):
        for tau in TAUS:
            of = sums[line["node"], tau]
            assert abs(float(line[f"pinball_{tau}"]) - sum(v for v, _ in of) / len(of)) < 1e-9, line
            assert abs(float(line[f"coverage_{tau}"]) - sum(c for _, c in of) / len(of)) < 1e-9, line
    e = json.load(open("evaluation/evaluation.json"))
    assert [l["tau"] for l in e["levels"]] == TAUS and "levels" in e["groups"][0]

def rest(kind):
    import numpy as np
    from sklearn.svm import LinearSVC

    rows = np.array(table("classes.csv"))
    X, y = rows[:, 1:], rows[:, 0]
    other = LinearSVC(C=0.5, loss=kind.replace("-", "_"), fit_intercept=False, tol=1e-8, max_iter=10**5).fit(X, y)
    got = np.array([float(v) for v in model(kind)]).reshape(2, 3).T
    assert np.abs(got - other.coef_).max() < 1e-4, (got, other.coef_)
    label = [int(r["prediction"]) for r in csv.DictReader(open(kind + ".csv"))]
    assert label == list(other.predict(X)), "another class"
    e = json.load(open(kind + "-e/evaluation.json"))
    want = [[sum(1 for t, p in zip(y, label) if t == i and p == j) for j in range(3)] for i in range(3)]
    assert e["confusion"] == want and abs(e["accuracy"] - other.score(X, y)) < 1e-12

globals()[sys.argv[1]](*sys.argv[2:])
PYTHON
python=$(command -v /usr/bin/python3 || command -v python3) # Debian's, which has scikit-learn
judge() { "$python" levels.py "$@" 2>python.txt || fail "levels.py $*: $(tail -1 python.txt)"; }
judge draw

cat >spec.yaml <<'YAML'
data: data.csv
loss: {kind: quantile, tau: [0.1, 0.5, 0.9]}
features: {intercept: global, standardize: true}
YAML
expect 0 run spec.yaml --out all --threads 1
grep -q '^loss  *quantile, tau 0.1,0.5,0.9$' stdout.txt || fail "the table: $(cat stdout.txt)"
for tau in 0.1 0.5 0.9; do
    expect 0 run spec.yaml --set loss.tau=$tau --out one$tau --quiet
done
judge levels
expect 0 run spec.yaml --out again --threads 2 --quiet
same_output all again || fail "another number of threads, another result"
expect 0 up spec.yaml --out federation --quiet
same_output all federation || fail "a federation comes to another result"
# near enough that levels cross
expect 0 run spec.yaml --out all --quiet --set 'loss.tau=[0.45, 0.5, 0.55]'
echo 'client,group' >groups.csv
for i in 0 1 2 3 4; do echo "e0/c$i,near"; echo "e1/c$i,far"; done >>groups.csv
expect 0 predict --model all --data data.csv --out predictions.csv
expect 0 evaluate --model all --data data.csv --groups groups.csv --out evaluation
grep -q '^tau 0.55  *pinball loss ' stdout.txt || fail "evaluate: $(cat stdout.txt)"
judge predicted

while IFS='|' read -r set words; do
    expect_line 2 run spec.yaml --out none --set "$set"
    says "$words"
    [ ! -e none ] || fail "$set: something was written"
done <<'TABLE'
loss.tau=[0.9, 0.1]|a list has 2 to 99 levels between 0 and 1, each above the one before
loss.tau=[0.1, 1.5]|'1.5' is out of range
loss.kind=squared|a list of levels is for quantile, smoothed-quantile and expectile
algorithm=hfsad|loss.tau: a list: only algorithm: star can train this
output.errors=true|several scores
TABLE
expect_line 2 run spec.yaml --out none --set "loss.levels=$(seq -s, 0.001 0.001 0.1)"
says 'a list has 2 to 99 levels'
{ cat spec.yaml; printf 'overrides:\n  - {node: e0, loss: {tau: [0.2, 0.8]}}\n'; } >override.yaml
expect_line 2 run override.yaml --out none --set loss.tau=0.5
says 'loss.tau: all nodes have the same list or classes; remove it from overrides'

cat >rest.yaml <<'YAML'
data: classes.csv
loss: {kind: hinge, classes: 3}
prior: {cloud: {penalty: l2, weight: 1, lambda: 2}}
run: {stop: {gap: 0}}
YAML
for kind in hinge squared-hinge; do
    expect 0 run rest.yaml --set loss.kind=$kind --out $kind --quiet
    expect 0 predict --model $kind --data classes.csv --out $kind.csv
    expect 0 evaluate --model $kind --data classes.csv --out $kind-e
    judge rest $kind
done
expect 0 up rest.yaml --out rest --quiet --set prior.cloud='{penalty: l1}' --set features.intercept=global
expect 0 run rest.yaml --out rest2 --quiet --set prior.cloud='{penalty: l1}' --set features.intercept=global
same_output rest rest2 || fail "a federation comes to another result"
expect_line 2 run rest.yaml --out none --set loss.classes=2
says "several classes: see loss.classes"
expect_line 2 run rest.yaml --out none --set loss.kind=logistic
says "loss.kind multinomial"
finish
