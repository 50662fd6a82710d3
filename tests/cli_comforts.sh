#!/usr/bin/env bash
# What practitioners expect of a tool for regression: names of features, a table that says what was in force, settings
# without effect, a lambda from the data, constant columns, folders of other specs.
. "$(dirname "$0")/shell.sh"

cat >data.py <<'PYTHON'
import random
random.seed(5)
with open("data.csv", "w") as f, open("classes.csv", "w") as g:
    head = 'edge,client,y,age,one,"income, net",two\n'
    f.write(head), g.write(head)
    for i in range(120):
        a, b = random.gauss(0, 1), random.gauss(5, 100)
        y = 1 + 2 * a + 0.01 * b + random.gauss(0, 1)
        for file, value in ((f, repr(y)), (g, 1 if y > 0.5 else -1)):
            file.write(f"e{i % 2},c{i % 6},{value},{a!r},3,{b!r},0.1\n")
PYTHON
python3 data.py
cat >spec.yaml <<'YAML'
data: data.csv
loss: {kind: squared}
prior: {cloud: {penalty: l1}}
features: {standardize: true, intercept: global}
YAML

echo "-- names, constant columns"
expect 0 run spec.yaml --out out
[ "$(head -n 1 out/model.csv)" = 'node,age,one,"income, net",two,intercept' ] || fail "header: $(head -n 1 out/model.csv)"
grep -q '^constant columns     one, two: coefficients 0$' stdout.txt || fail "constant columns: $(cat stdout.txt)"
python3 - <<'PYTHON' || fail "model.csv or coefficients.csv"
import csv, json
model = next(csv.DictReader(open("out/model.csv")))
rows = list(csv.DictReader(open("out/coefficients.csv")))
assert [r["coefficient"] for r in rows] == ["w1", "w2", "w3", "w4", "intercept"]
assert [r["feature"] for r in rows] == ["age", "one", "income, net", "two", "intercept"]
assert all(r["estimate"] == model[r["feature"]] for r in rows)
assert model["one"] == model["two"] == "0" and float(model["age"]) != 0
x = [float(r["income, net"]) for r in csv.DictReader(open("data.csv"))]
mean = sum(x) / len(x)
deviation = (sum((v - mean) ** 2 for v in x) / len(x)) ** 0.5
assert abs(float(rows[2]["standardized"]) / float(rows[2]["estimate"]) / deviation - 1) < 1e-12
assert json.load(open("out/summary.json"))["data"]["constant_features"] == [2, 4]
PYTHON
expect 0 predict --model out --data data.csv --out pred
expect 0 run spec.yaml --out warm --warm-start out/model.csv --set algorithm=hfsad --quiet
sed 's/^node,age/node,size/' out/model.csv >other.csv
expect_line 2 run spec.yaml --out warm2 --warm-start other.csv
says 'feature 1 is "age", but "size" in other.csv'
sed -i 's/^node,age/node,size/' out/model.csv
expect_line 2 predict --model out --data data.csv --out pred2
says 'column 2 is called "size" instead of age'
expect 0 path spec.yaml --lambdas 3 --out path --no-plot --quiet --set algorithm=hfsad --set run.iterations=20
head -n 1 path/path.csv | grep -q ',aic,age,one,"income, net",two,intercept,converged,gap_bound$' || fail "path.csv: $(head -n 1 path/path.csv)"
expect 0 up spec.yaml --out up --quiet
expect 0 run spec.yaml --out same --quiet
same_output same up coefficients.csv || fail "a federation differs"

echo "-- plots in the units that the penalty acts on"
cat >points.py <<'PYTHON'
# The heights of the points of a plot are a line in the coefficients, in units of the columns' deviations.
import csv, re, sys
rows = [r for r in csv.DictReader(open("same/coefficients.csv")) if r["feature"] != "intercept"]
text = open("plot/models.svg").read()
assert ">standardized coefficient<" in text and all(f">{r['feature']}<" in text for r in rows), "labels"
at = [(float(x), float(y)) for x, y in re.findall(r"<use[^>]*translate\(([\d.]+),([\d.]+)\)", text)]
points = [y for x, y in sorted(set(p for p in at if at.count(p) > 1))]  # the point of the legend is there once
w = [float(r["standardized"]) for r in rows]
slope = (points[2] - points[0]) / (w[2] - w[0])
assert all(abs(points[0] + slope * (v - w[0]) - p) < 1 for v, p in zip(w, points)), (w, points)
PYTHON
expect 0 plot same --out plot
python3 points.py || fail "the points: $(grep -c '<use' plot/models.svg) of them"
expect 0 plot same --raw --out plot
grep -q '>coefficient<' plot/models.svg || fail "--raw"
expect 0 path spec.yaml --lambdas 3 --out path --quiet
grep -q '>standardized coefficient<' path/path.svg && grep -q '>income, net<' path/path.svg || fail "labels of path.svg"

echo "-- lambda from the data"
python3 - <<'PYTHON' || fail "lambda: auto"
import csv, json, math, os, subprocess

for loss, file in (("squared", "data.csv"), ("logistic", "classes.csv")):
    rows = list(csv.DictReader(open(file)))
    y = [float(r["y"]) for r in rows]
    subprocess.run([os.environ["HFSAD"], "run", "spec.yaml", "--set", f"loss.kind={loss}", "--set", f"data={file}",
                    "--out", "auto", "--quiet"], check=True)
    got = json.load(open("auto/summary.json"))["settings"]["prior"]["cloud"]
    mean = sum(y) / len(y)
    if loss == "squared":
        slopes = [mean - v for v in y]
    else:  # at the intercept log(p / (1 - p))
        p = (1 + mean) / 2
        slopes = [-v * (1 - p if v > 0 else p) for v in y]
    largest = 0
    for name in ("age", "income, net"):
        x = [float(r[name]) for r in rows]
        m = sum(x) / len(x)
        s = (sum((v - m) ** 2 for v in x) / len(x)) ** 0.5
        largest = max(largest, abs(sum(a * (v - m) / s for a, v in zip(slopes, x))))
    assert abs(got["lambda"] * got["weight"] / (0.05 * largest) - 1) < 1e-6, (loss, got, largest)
PYTHON

echo "-- the table"
row() { grep -qF -- "$1" stdout.txt || { fail "no row '$1':"; cat stdout.txt >&2; }; }
expect 0 run spec.yaml --out out --set loss.kind=huber --set loss.tau=0.5 --set prior.cloud.gamma=3 \
    --set prior.edge.lambda=2 --set run.seed=7 --set groups.most=3
row 'prior                cloud l1, lambda '
row '; on standardized'
row 'link                 tied: one model for all nodes'
row 'features             standardized, one intercept'
row 'other settings       run.seed 7'
tr -s ' \n' ' ' <stdout.txt >flat.txt
mv flat.txt stdout.txt
row "groups.most: personal is none; loss.tau: no client's loss has it; prior.edge.lambda: the penalty is none; prior.cloud.gamma: only mcp and scad have it"
expect 0 run spec.yaml --out out --set algorithm=hfsad --set run.iterations=5 --set link.client.gamma=3
tr -s ' \n' ' ' <stdout.txt >flat.txt
mv flat.txt stdout.txt
row "link.client.gamma: only mcp, scad, group-mcp and group-scad have it"
expect 0 run spec.yaml --out out --set algorithm=hfsad --set run.iterations=5 --set prior.cloud.lambda=3
python3 - <<'PYTHON' || fail "the polished figures are not first"
import json
polish = json.load(open("out/summary.json"))["polish"]
lines = open("stdout.txt").read().split("\n")
shown = [l.split()[1] for l in lines if l.startswith("objective ")]
assert polish["accepted"] and shown == ["%.8g" % polish["objective_after"]], (shown, polish)
assert any(l.startswith("before the polish") for l in lines)
PYTHON

echo "-- a folder of another spec"
cp spec.yaml second.yaml
cp out/model.csv before.csv
for command in run up path; do
    to=out
    [ $command = path ] && to=path
    expect_line 2 $command second.yaml --out $to
    says "another spec, spec.yaml; give another folder, or --force"
done
cmp -s out/model.csv before.csv || fail "the refused run has written"
expect 0 run second.yaml --out out --force --quiet
expect 0 run second.yaml --out out --quiet
mkdir twin && sed 's/data: /data: ..\//' second.yaml >twin/second.yaml
expect 0 compare second.yaml --out compared --quiet
expect 0 compare second.yaml --out compared --quiet
expect_line 2 compare twin/second.yaml --out compared --quiet
says "another spec, second.yaml; give another folder, or --force"
expect 0 compare twin/second.yaml --out compared --quiet --force
mkdir elsewhere && mv second.yaml elsewhere
sed -i 's/data: /data: ..\//' elsewhere/second.yaml
expect 0 run elsewhere/second.yaml --out out --quiet

echo "-- lambda of scikit-learn, as docs/settings.md translates it"
cat >translate.py <<'PYTHON'
import csv, os, subprocess
import numpy as np
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, PoissonRegressor, QuantileRegressor, Ridge
from sklearn.svm import LinearSVC

r = np.random.default_rng(2)
n = 90
X = r.normal(size=(n, 3)) * [1, 2, 0.5]
score = X @ [1, -0.5, 0] + 0.3
ys = {"number": score + r.normal(size=n), "label": np.where(score + r.logistic(size=n) > 0, 1, -1), "count": r.poisson(np.exp(score / 2))}
for name, y in ys.items():
    with open(name + ".csv", "w") as f:
        f.write("edge,client,y,x1,x2,x3\n")
        for i in range(n):
            f.write(f"e{i % 2},c{i % 6},{y[i]!r}," + ",".join(repr(float(v)) for v in X[i]) + "\n")

cases = [
    ("number", "squared", "l1", n * 0.1, "", True, Lasso(alpha=0.1, tol=1e-12)),
    ("number", "squared", "elastic-net", n * 0.2, ", ratio: 0.3", True, ElasticNet(alpha=0.2, l1_ratio=0.3, tol=1e-12)),
    ("number", "squared", "l2", 7, "", True, Ridge(alpha=7)),
    ("label", "logistic", "l2", 1 / 0.4, "", True, LogisticRegression(C=0.4, tol=1e-10, max_iter=10000)),
    ("label", "logistic", "l1", 1 / 0.2, "", False, LogisticRegression(C=0.2, penalty="l1", solver="liblinear", tol=1e-10, fit_intercept=False)),
    ("number", "quantile, tau: 0.7", "l1", n * 0.05, "", True, QuantileRegressor(quantile=0.7, alpha=0.05, solver="highs")),
    ("label", "hinge", "l2", 1 / 0.3, "", False, LinearSVC(C=0.3, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6)),
    ("label", "squared-hinge", "l2", 1 / 0.3, "", False, LinearSVC(C=0.3, loss="squared_hinge", fit_intercept=False, tol=1e-10, max_iter=10**6)),
    ("count", "poisson", "l2", n * 0.3, "", True, PoissonRegressor(alpha=0.3, tol=1e-10, max_iter=10**5)),
]
for data, loss, penalty, lam, more, intercept, other in cases:
    with open("t.yaml", "w") as f:
        f.write(f"data: {data}.csv\nloss: {{kind: {loss}}}\nprior: {{cloud: {{penalty: {penalty}, weight: 1, lambda: {lam}{more}}}}}\n"
                f"features: {{intercept: {'global' if intercept else 'none'}}}\nrun: {{stop: {{gap: 0}}}}\n")
    subprocess.run([os.environ["HFSAD"], "run", "t.yaml", "--out", "t", "--quiet"], check=True)
    got = np.array(list(csv.reader(open("t/model.csv")))[1][1:], dtype=float)
    other.fit(X, ys[data])
    want = np.append(np.ravel(other.coef_), np.ravel(other.intercept_) if intercept else [])
    assert np.abs(got - want).max() < 1e-4 * max(1, np.abs(want).max()), (loss, penalty, got, want)
PYTHON
python=$(command -v /usr/bin/python3 || command -v python3) # Debian's, which has scikit-learn
"$python" translate.py || fail "a lambda of scikit-learn"

echo "-- lambda of R's glmnet and quantreg, as docs/settings.md translates it"
# Coefficients, then the intercept, that R 4.2.2 with glmnet 4.1.6 (thresh 1e-16) and quantreg 5.94 gave for these numbers.
cat >by_r.py <<'PYTHON'
import csv, math, os, subprocess

n = 60
X = [[math.sin(1.3 * i), 2 * math.cos(0.7 * (i * i % 7)), i * 37 % 11 / 2 - 2.5] for i in range(1, n + 1)]
score = [0.5 + a - 0.5 * b + 0.3 * c for a, b, c in X]
ys = {
    "gaussian": [s + 1.5 * math.sin(5.1 * i) for i, s in enumerate(score, 1)],
    "binomial": [1 if s + 2 * math.sin(3.7 * i) > 0.5 else -1 for i, s in enumerate(score, 1)],
    "poisson": [math.floor(math.exp(0.5 * s) + 1 + math.sin(2.9 * i)) for i, s in enumerate(score, 1)],
    "multinomial": [0 if x[0] > 0.6 else i * 7 % 5 % 3 for i, x in enumerate(X, 1)],
}
for name, y in ys.items():
    with open(name + ".csv", "w") as f:
        f.write("edge,client,y,a,b,c\n")
        f.writelines(f"e{i % 2},c{i % 6},{y[i]!r},{','.join(map(repr, X[i]))}\n" for i in range(n))
mean = sum(ys["gaussian"]) / n
deviation = (sum((v - mean) ** 2 for v in ys["gaussian"]) / n) ** 0.5


def check(data, loss, prior, standardize, want):
    with open("r.yaml", "w") as f:
        f.write(f"data: {data}.csv\nloss: {{{loss}}}\nprior: {{cloud: {{weight: 1, {prior}}}}}\n"
                f"features: {{intercept: global, standardize: {standardize}}}\nrun: {{stop: {{gap: 0}}}}\n")
    subprocess.run([os.environ["HFSAD"], "run", "r.yaml", "--out", "r", "--quiet"], check=True)
    got = [float(v) for v in list(csv.reader(open("r/model.csv")))[1][1:]]
    assert len(got) == len(want) and max(abs(a - b) for a, b in zip(got, want)) < 1e-6, (data, loss, prior, got, want)


kinds = {"gaussian": "squared", "binomial": "logistic", "poisson": "poisson"}
for family, lam, alpha, standardize, *want in [
    ("gaussian", 0.1, 1, "true", 0.7057437505, -0.4610741687, 0.3184120822, 0.4603898868),
    ("gaussian", 0.2, 0.3, "true", 0.6994734833, -0.4482034824, 0.3157993167, 0.4571369476),
    ("gaussian", 0.2, 0, "false", 0.6777223257, -0.4983993255, 0.3617864443, 0.4703657134),
    ("binomial", 0.03, 1, "true", 0.5702456555, -0.4243934528, 0.1533173492, 0.1885154184),
    ("binomial", 0.05, 0.4, "false", 0.4682465286, -0.4464510392, 0.189645361, 0.1988194666),
    ("poisson", 0.05, 0.5, "true", 0.4084889236, -0.1843902093, 0.06709701737, 0.592318702),
]:
    whole = n * lam * (alpha + (1 - alpha) / (deviation if family == "gaussian" else 1))
    check(family, f"kind: {kinds[family]}", f"penalty: elastic-net, lambda: {whole!r}, ratio: {n * lam * alpha / whole!r}", standardize, want)
check("multinomial", "kind: multinomial, classes: 3", f"penalty: l1, lambda: {n * 0.02}", "false",
      [1.249095497, -1.458602589, 0, 0, 0, 0.08843022133, 0, -0.04612602089, 0, 0.5507671693, 0.229385379, -0.7801525484])
check("gaussian", "kind: quantile, tau: [0.25, 0.5, 0.9]", "penalty: none", "false",
      [0.9997942477, 0.8504803436, 0.9217492318, -0.421818318, -0.7065363122, -0.4619416615, 0.4031840285, 0.4433059673, 0.2811431306,
       -0.5571529537, 0.3949340082, 1.903879608])
check("gaussian", "kind: quantile, tau: 0.25", "penalty: l1, lambda: 1.5", "false",  # rq.fit.lasso(lambda = 3)
      [0.9546094049, -0.41422467, 0.3800817964, -0.5732055747])

# summary(rq(y ~ X, tau = 0.5), se = "ker")
subprocess.run([os.environ["HFSAD"], "run", "r.yaml", "--set", "loss.tau=0.5", "--set", "prior.cloud.penalty=none",
                "--set", "output.errors=true", "--out", "r", "--quiet"], check=True)
errors = [float(r["standard_error"]) for r in csv.DictReader(open("r/coefficients.csv"))]
assert max(abs(a - b) for a, b in zip(errors, [0.4322287593, 0.2070060485, 0.1958198175, 0.3090713049])) < 1e-6, errors
PYTHON
python3 by_r.py || fail "a lambda of R"

echo "-- cross-validation"
# Folds of single clients: each is a run without that client.
cat >cv.yaml <<'YAML'
data: number.csv
loss: {kind: squared}
prior: {cloud: {penalty: l2, weight: 1, lambda: 1}}
run: {iterations: 600}
YAML
expect 0 path cv.yaml --lambdas 30,3,0.3 --folds 6 --folds-of clients --out cv --no-plot
cat >folds.py <<'PYTHON'
import csv
import numpy as np

rows = list(csv.DictReader(open("number.csv")))
X = np.array([[float(r[f"x{m}"]) for m in (1, 2, 3)] for r in rows])
y = np.array([float(r["y"]) for r in rows])
client = np.array([r["edge"] + r["client"] for r in rows])
for point in csv.DictReader(open("cv/path.csv")):
    losses = []
    for c in sorted(set(client)):
        train = client != c
        lam = float(point["lambda"]) * train.sum() / len(y)
        w = np.linalg.solve(X[train].T @ X[train] + lam * np.eye(3), X[train].T @ y[train])
        losses.append(np.mean((y[~train] - X[~train] @ w) ** 2 / 2))
    losses = np.array(losses)
    error = losses.std(ddof=1) / len(losses) ** 0.5
    assert abs(float(point["cv_loss"]) / losses.mean() - 1) < 1e-4, (point, losses.mean())
    assert abs(float(point["cv_error"]) / error - 1) < 1e-3, (point, error)
PYTHON
"$python" folds.py || fail "cv_loss or cv_error"
# The client e0/c0 has a loss of its own, also in the fold that holds it out.
echo 'overrides: [{node: e0/c0, loss: {kind: absolute}}]' >>cv.yaml
expect 0 path cv.yaml --lambdas 1e9,1e8 --folds 6 --folds-of clients --out cv4 --no-plot
python3 - <<'PYTHON' || fail "cross-validation with an override"
import csv
losses = {}
for r in csv.DictReader(open("number.csv")):  # the model is 0
    name, y = r["edge"] + "/" + r["client"], float(r["y"])
    losses.setdefault(name, []).append(abs(y) if name == "e0/c0" else y * y / 2)
want = sum(sum(v) / len(v) for v in losses.values()) / len(losses)
got = float(next(csv.DictReader(open("cv4/path.csv")))["cv_loss"])
assert abs(got / want - 1) < 1e-6, (got, want)
PYTHON
expect 0 path spec.yaml --lambdas 6 --folds 4 --out cv2 --no-plot --set run.iterations=40
python3 - <<'PYTHON' || fail "the rule of one standard error"
import csv
rows = list(csv.DictReader(open("cv2/path.csv")))
loss, error = ([float(r[k]) for r in rows] for k in ("cv_loss", "cv_error"))
best = loss.index(min(loss))
first = next(i for i, v in enumerate(loss) if v <= loss[best] + error[best])
assert [i for i, r in enumerate(rows) if r["chosen"] == "1"] == [first]
PYTHON
expect_line 2 path cv.yaml --lambdas 3 --select one-se --out cv3 --no-plot
says "needs --folds"
expect_line 2 path cv.yaml --lambdas 3 --folds 7 --folds-of clients --out cv3 --no-plot
says "fold 7 of 7 has no client"

echo "-- pinball loss by client, edge and group"
cat >q.yaml <<'YAML'
data: number.csv
loss: {kind: smoothed-quantile, tau: 0.7}
YAML
expect 0 run q.yaml --out q --quiet
expect 0 evaluate --model q --data number.csv --with cloud --out qe
grep -q '^pinball loss ' stdout.txt || fail "no pinball loss: $(cat stdout.txt)"
python3 - <<'PYTHON' || fail "pinball"
import csv
w = [float(v) for v in list(csv.reader(open("q/model.csv")))[1][1:]]
sums = {}
for r in csv.DictReader(open("number.csv")):
    e = float(r["y"]) - sum(a * float(r[f"x{m + 1}"]) for m, a in enumerate(w))
    for node in ("cloud", r["edge"], r["edge"] + "/" + r["client"]):
        sums.setdefault(node, []).append(max(0.7 * e, -0.3 * e))
got = {r["node"]: float(r["pinball"]) for r in csv.DictReader(open("qe/evaluation.csv"))}
assert got.keys() == sums.keys() and all(abs(got[k] / (sum(v) / len(v)) - 1) < 1e-9 for k, v in sums.items())
PYTHON

echo "-- JSON as pandas and jsonlite write it"
cat >frames.py <<'PYTHON'
import json, os, subprocess
import pandas as pd

frame = pd.read_csv("data.csv")
frame["shop"] = ["a b" if i % 3 else "c d" for i in range(len(frame))]
frame.to_csv("frame.csv", index=False)
texts = {o: frame.to_json(orient=o) for o in ("columns", "records", "split", "table")}
texts["lines"] = frame.to_json(orient="records", lines=True)
texts["lists"] = json.dumps(frame.to_dict("list"))
texts["jsonlite"] = json.dumps([{**r, "_row": str(i)} for i, r in enumerate(frame.to_dict("records"), 1)], indent=1)
spec = "data: {file: %s, categorical: [shop]}\nloss: {kind: squared}\nfeatures: {intercept: global, standardize: true}\n"


def model(file):
    open("frame.yaml", "w").write(spec % file)
    subprocess.run([os.environ["HFSAD"], "run", "frame.yaml", "--out", "frame", "--quiet"], check=True)
    return open("frame/model.csv").read().splitlines()


want = model("frame.csv")
for name, text in texts.items():
    open(name + ".json", "w").write(text)
    got = model(name + ".json")
    assert got[0] == want[0] and "shop=c d" in got[0], (name, got[0])
    for a, b in zip(got[1:], want[1:]):  # pandas writes 10 digits
        assert a.split(",")[0] == b.split(",")[0]
        assert all(abs(float(u) - float(v)) < 1e-6 * (1 + abs(float(v))) for u, v in zip(a.split(",")[1:], b.split(",")[1:])), name
PYTHON
"$python" frames.py || fail "a table in JSON"
echo '[{"edge": "a", "client": "b", "y": 1, "x": null}]' >hole.json
echo '[{"edge": "a", "client": "b", "y": [1], "x": 2}]' >nested.json
printf '[{"edge": "a",\n "client": b}]' >broken.json
while read -r file words; do
    expect_line 2 run spec.yaml --set data=$file.json --out json
    says "$words"
done <<'TABLE'
hole column 4 (x): empty field (a hole); 1 row has no value
nested a value is a list or an object
broken broken.json:2: not JSON
TABLE

echo "-- keys for a list of nodes"
expect 0 nodes spec.yaml
cp stdout.txt nodes.txt
expect 0 keys init --dir keys
expect 0 keys issue --nodes nodes.txt --dir keys
[ "$(find keys/nodes -name '*.crt' | wc -l)" = 9 ] || fail "certificates: $(find keys/nodes -name '*.crt')"
echo new/client >>nodes.txt
expect 0 keys issue --nodes nodes.txt --dir keys
[ "$(cat stdout.txt)" = "keys/nodes/new.crt keys/nodes/new.key
keys/nodes/new/client.crt keys/nodes/new/client.key" ] || fail "issued again: $(cat stdout.txt)"

echo "-- log lines on a terminal do not glue to the progress line"
python3 - <<'PYTHON' || fail "the terminal"
import os, pty, re
out = []


def read(fd):
    out.append(os.read(fd, 65536))
    return out[-1]


os.environ["TERM"] = "xterm"
shown = os.dup(1)
os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
pty.spawn([os.environ["HFSAD"], "up", "spec.yaml", "--out", "tty", "--log-level", "info", "--set", "algorithm=hfsad",
           "--set", "run.iterations=400", "--set", "run.polish=false"], read)
os.dup2(shown, 1)
text = b"".join(out).decode()
lines = re.findall(r"(?:^|\n|.)hfsad: ", text)
assert len(lines) > 5 and all(l[0] in "\nKh" for l in lines), lines
PYTHON

finish
