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
head -n 1 path/path.csv | grep -q ',aic,age,one,"income, net",two,intercept$' || fail "path.csv: $(head -n 1 path/path.csv)"
expect 0 up spec.yaml --out up --quiet
expect 0 run spec.yaml --out same --quiet
same_output same up coefficients.csv || fail "a federation differs"

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
mkdir elsewhere && mv second.yaml elsewhere
sed -i 's/data: /data: ..\//' elsewhere/second.yaml
expect 0 run elsewhere/second.yaml --out out --quiet

finish
