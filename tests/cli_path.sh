#!/usr/bin/env bash
# hfsad path from end to end: the first lambda, every criterion and the choice recomputed from the files, a point against
# a run of its own, the chosen folder, bad input, Ctrl-C. Needs HFSAD, the path of the program.
. "$(dirname "$0")/shell.sh"

cat >make_data.py <<'PYTHON'
"""make_data.py FILE SEED KIND ROWS: 3 edges with 5 clients each, ROWS rows in all, 6 features."""
import random, sys

path, seed, kind, rows = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
truth = [1.5, 0, -2, 0, 0.7, 0]
random.seed(seed)
with open(path, "w") as f:
    f.write("edge,client,y,x1,x2,x3,x4,x5,x6\n")
    for i in range(rows):
        x = [random.gauss(0, 1) for _ in truth]
        s = sum(a * b for a, b in zip(x, truth)) + random.gauss(0, 1)
        y = {"line": s, "label": 1 if s > 0 else -1, "square": s * s}[kind]
        f.write(",".join([f"e{i % 3}", f"c{i % 15}", repr(y)] + [repr(v) for v in x]) + "\n")
PYTHON
python3 make_data.py line.csv 1 line 150
python3 make_data.py held.csv 2 line 90
python3 make_data.py label.csv 3 label 150
python3 make_data.py one.csv 4 square 60
printf '1.5\n0\n-2\n0\n0.7\n0\n' >truth.csv
for kind in quantile absolute squared huber; do
    cat >$kind.yaml <<YAML
data: line.csv
truth: truth.csv
loss: {kind: $kind$([ $kind = quantile ] && echo ', tau: 0.3')}
prior: {cloud: {penalty: l1, weight: 2}}
run: {iterations: 60, edge_rounds: 5}
YAML
done
sed 's/line.csv/label.csv/; s/kind: squared/kind: logistic/; /truth/d' squared.yaml >logistic.yaml

cat >check.py <<'PYTHON'
"""check.py KIND DIR DATA RULE[/star] [HELD]: recomputes what path.csv says; star: and each point is proven."""
import csv, math, random, sys

kind, out, data, rule = sys.argv[1:5]
held = sys.argv[5] if len(sys.argv) > 5 else None
tau = 0.3
value = {
    "quantile": lambda y, s: max(tau * (y - s), (tau - 1) * (y - s)),
    "absolute": lambda y, s: abs(y - s),
    "squared": lambda y, s: (y - s) ** 2 / 2,
    "huber": lambda y, s: (y - s) ** 2 / 2 if abs(y - s) <= 1 else abs(y - s) - 0.5,
    "logistic": lambda y, s: math.log1p(math.exp(-y * s)),
}[kind]
slope = {
    "quantile": lambda y: -tau if y > 0 else 1 - tau,
    "absolute": lambda y: -1 if y > 0 else 1,
    "squared": lambda y: -y,
    "huber": lambda y: -max(-1, min(1, y)),
    "logistic": lambda y: -y / 2,
}[kind]
read = lambda path: [(float(r[2]), list(map(float, r[3:]))) for r in list(csv.reader(open(path)))[1:]]
dot = lambda a, b: sum(p * q for p, q in zip(a, b))
close = lambda a, b, name: None if abs(a - b) <= 1e-9 * (1 + abs(b)) else sys.exit(f"{kind}: {name} is {a}, not {b}")
rows = read(data)
table = [{k: float(v) for k, v in r.items()} for r in csv.DictReader(open(out + "/path.csv"))]
M = len(rows[0][1])
gradient = [sum(slope(y) * x[m] for y, x in rows) for m in range(M)]
# a run at the border may need a little more to be seen at zero
least = max(map(abs, gradient)) / 2
assert least <= table[0]["lambda"] <= 1.15 * least, f"the first lambda is {table[0]['lambda']}, not {least}"
assert table[0]["nonzero"] == 0 and all(table[0][f"w{m + 1}"] == 0 for m in range(M)), "not zero at the first lambda"
assert table[-1]["nonzero"] > 0
star = rule.endswith("/star")
rule = rule.removesuffix("/star")
n = len(rows)
for i, p in enumerate(table):
    w = [p[f"w{m + 1}"] for m in range(M)]
    close(p["lambda"], table[0]["lambda"] * 1e-3 ** (i / (len(table) - 1)), "a lambda")
    L = sum(value(y, dot(x, w)) for y, x in rows)
    d = sum(v != 0 for v in w)
    D = n * math.log(2 * L / n) if kind == "squared" else 2 * n * math.log(L / n) if kind in ("quantile", "absolute") else 2 * L
    close(p["nonzero"], d, "nonzero")
    close(p["bic"], D + d * math.log(n), "bic")
    close(p["aic"], D + 2 * d, "aic")
    close(p["consensus_objective"], L + 2 * p["lambda"] * sum(map(abs, w)), "consensus_objective")
    if held:
        close(p["heldout_loss"], sum(value(y, dot(x, w)) for y, x in read(held)) / len(read(held)), "heldout_loss")
    assert p["converged"] == 1 if star else math.isnan(p["converged"]) and math.isnan(p["gap_bound"])
    if star:  # by slopes of the rows near their kinks the minimum is as the bound says: a search finds nothing below
        assert 0 <= p["gap_bound"] <= 1e-4 * p["objective"]
        F = lambda v: sum(value(y, dot(x, v)) for y, x in rows) + 2 * p["lambda"] * sum(map(abs, v))
        random.seed(i)
        for step in (1e-1, 1e-2, 1e-3):
            for _ in range(15):
                v = [a + step * random.gauss(0, 1) * (a != 0 or random.random() < 0.3) for a in w]
                assert F(v) >= p["objective"] - p["gap_bound"], "a point below the bound"
    if "relative_error" in p:
        truth = [float(t) for t in open("truth.csv")]
        close(p["relative_error"], sum((a - b) ** 2 for a, b in zip(w, truth)) / dot(truth, truth), "relative_error")
key = {"heldout": "heldout_loss"}.get(rule, rule)
best = min(range(len(table)), key=lambda i: (table[i][key], i))
assert [i for i, p in enumerate(table) if p["chosen"]] == [best], "the choice"
# DIR/best is that point, to the bit
text = [r for r in csv.reader(open(out + "/path.csv"))][best + 1]
cloud = [r for r in csv.reader(open(out + "/best/model.csv")) if r[0] == "cloud"][0][1:]
assert cloud == text[-M - 2:-2], "best/model.csv is another model"
last = list(csv.DictReader(open(out + "/best/trace.csv")))[-1]
assert float(last["objective"]) == table[best]["objective"], "best/trace.csv ends elsewhere"
PYTHON

echo "-- figures and choice"
for kind in quantile absolute squared huber logistic; do
    data=$([ $kind = logistic ] && echo label.csv || echo line.csv)
    expect 0 path $kind.yaml --lambdas 8 --no-plot --out $kind --select aic
    python3 check.py $kind $kind $data aic || fail "$kind"
done
echo "-- by star: proven, from one lambda to the next, and the chosen one once more"
for kind in quantile absolute squared huber logistic; do
    data=$([ $kind = logistic ] && echo label.csv || echo line.csv)
    expect 0 path $kind.yaml --set run.edge_rounds=10 --set run.iterations=300 --lambdas 8 --no-plot --out $kind-star --select aic
    grep -q 'converged: all 8 points are proven' stdout.txt || fail "$kind by star: $(tail -n 2 stdout.txt)"
    python3 check.py $kind $kind-star $data aic/star || fail "$kind by star"
done
python3 - <<'PYTHON' || fail "no classes"
import random
random.seed(3)
with open("classes.csv", "w") as f:
    f.write("client,y,x1,x2,x3\n")
    for i in range(90):
        x = [random.gauss(0, 1) for _ in range(3)]
        s = [x[0] + random.gauss(0, 1), -x[1], 0.5 + random.gauss(0, 1)]
        f.write(f"c{i % 3},{s.index(max(s))},{x[0]!r},{x[1]!r},{x[2]!r}\n")
PYTHON
printf 'data: classes.csv\nloss: {kind: multinomial, classes: 3}\nfeatures: {intercept: global}\nprior: {cloud: {penalty: l1, weight: 1}}\n' \
    >classes.yaml
expect 0 path classes.yaml --lambdas 5 --folds 3 --out classes
grep -q '>x1:0<' classes/path.svg || fail "the legend of several classes has no names"
grep -q 'converged: all 5 points are proven' stdout.txt || fail "several classes: $(tail -n 2 stdout.txt)"
python3 - <<'PYTHON' || fail "a path of several classes"
import csv, math
rows = [(int(r[1]), list(map(float, r[2:])) + [1]) for r in list(csv.reader(open("classes.csv")))[1:]]
def parts(w):
    for y, x in rows:
        s = [sum(x[m] * w[3 * m + k] for m in range(4)) for k in range(3)]
        total = sum(map(math.exp, s))
        yield math.log(total) - s[y], [math.exp(v) / total - (k == y) for k, v in enumerate(s)], x
table = [{k: float(v) for k, v in r.items()} for r in csv.DictReader(open("classes/path.csv"))]
for i, p in enumerate(table):
    w = [p[f"w{m + 1}"] for m in range(12)]
    F = sum(l for l, _, _ in parts(w)) + p["lambda"] * sum(map(abs, w[:9]))
    assert abs(F - p["consensus_objective"]) < 1e-9 * F, (F, p)
    if i == 0:  # the least lambda that keeps the model at zero is the largest slope there
        slopes = [sum(g[k] * x[m] for _, g, x in parts(w)) for m in range(3) for k in range(3)]
        assert not any(w[:9]) and 0.98 * max(map(abs, slopes)) <= p["lambda"] <= 1.05 * max(map(abs, slopes)), slopes
PYTHON
for threads in 1 2; do
    expect 0 path absolute.yaml --set run.edge_rounds=10 --lambdas 5 --folds 3 --no-plot --out star$threads --threads $threads
done
cmp star1/path.csv star2/path.csv || fail "path.csv of a star depends on the number of threads"
cmp star1/best/model.csv star2/best/model.csv || fail "the chosen model of a star depends on the number of threads"

expect 0 path quantile.yaml --lambdas 8 --no-plot --out bic --quiet
[ -s stdout.txt ] || [ -s stderr.txt ] && fail "--quiet prints"
python3 check.py quantile bic line.csv bic || fail "the default without --heldout"
expect 0 path quantile.yaml --lambdas 8 --no-plot --out held --heldout held.csv
python3 check.py quantile held line.csv heldout held.csv || fail "--heldout FILE"
[ "$(grep -c 'chosen$' stdout.txt)" = 1 ] || fail "the table marks no choice"
awk 'length > 80 { exit 1 }' stdout.txt || fail "the table is wider than 80 columns"
for threads in 1 2; do
    expect 0 path quantile.yaml --lambdas 5 --no-plot --out threads$threads --threads $threads --heldout 0.3
done
cmp threads1/path.csv threads2/path.csv || fail "path.csv depends on the number of threads"
expect 0 path quantile.yaml --lambdas 5 --no-plot --out seeds --set run.seed=2 --heldout 0.3
cmp -s threads1/path.csv seeds/path.csv && fail "the held-out rows do not depend on the seed"

echo "-- around the first lambda"
first=$(sed -n 2p quantile/path.csv | cut -d, -f1)
nonzero() { sed -n 2p "$1/path.csv" | cut -d, -f5; }
for share in 1.001:0 0.85:1; do
    lambda=$(python3 -c "print($first * ${share%:*})")
    expect 0 path quantile.yaml --lambdas "$lambda,1e-3" --no-plot --out near --set run.iterations=3000 \
        --set run.trace_every=3000
    [ $(($(nonzero near) > 0)) = "${share#*:}" ] || fail "$(nonzero near) coefficients at ${share%:*} of the first lambda"
done

echo "-- a point and a run of its own"
# Both near the optimum, so near each other: within 2e-3 of the objective for every lambda of the path. (The distance
# to the optimum falls with the root of the steps; with 400 iterations a lambda is still 6e-3 away.)
expect 0 path squared.yaml --lambdas 6 --no-plot --out points --set run.iterations=1600 --set run.trace_every=1600
python3 - <<'PYTHON' || fail "points of a path against runs"
import csv, os, subprocess
for p in csv.DictReader(open("points/path.csv")):
    subprocess.run([os.environ["HFSAD"], "run", "squared.yaml", "--out", "alone", "--quiet", "--set",
                    f"prior.cloud.lambda={p['lambda']}", "--set", "run.iterations=3000", "--set",
                    "run.trace_every=3000"], check=True)
    alone = float(list(csv.DictReader(open("alone/trace.csv")))[-1]["consensus_objective"])
    here = float(p["consensus_objective"])
    assert abs(here / alone - 1) < 2e-3, (p["lambda"], here, alone)
PYTHON

echo "-- the chosen folder goes on"
expect 0 path quantile.yaml --lambdas 4 --no-plot --out again
expect 0 run --resume again/best --set run.iterations=80 --quiet
[ "$(tail -n 1 again/best/trace.csv | cut -d, -f1)" = 80 ] || fail "the chosen run cannot be resumed"
expect 0 path quantile.yaml --lambdas 4 --no-plot --out share --heldout 0.2
[ -e share/best/checkpoint.bin ] && fail "a run on a part of the rows has a checkpoint that fits no data"

echo "-- other priors and losses"
expect 0 path quantile.yaml --lambdas 4 --no-plot --out edge --on edge --set prior.edge.penalty=scad \
    --set prior.cloud.penalty=none
[ "$(nonzero edge)" = 0 ] || fail "--on edge: not zero at the first lambda"
cat >phase.yaml <<'YAML'
data: one.csv
loss: {kind: phase-retrieval}
prior: {cloud: {penalty: l1}}
run: {iterations: 40, edge_rounds: 2}
YAML
expect 0 path phase.yaml --lambdas 4 --no-plot --out phase
[ "$(nonzero phase)" = 0 ] || fail "phase retrieval: not zero at the first lambda"

if command -v gnuplot >/dev/null; then
    echo "-- plot"
    expect 0 path quantile.yaml --lambdas 5 --out plot
    [ "$(find plot -maxdepth 1 -type f -printf '%f\n' | sort | tr '\n' ' ')" = "path.csv path.png path.svg " ] ||
        fail "files: $(names plot)"
    grep -q 'chosen' plot/path.svg || fail "the plot does not mark the choice"
fi

echo "-- sparse rows held out"
# The second file ends at an earlier column; its other columns are zero.
awk -F, 'NR > 1 { print $3, "1:" $4, "2:" $5, "6:" $9, "#", $1 "/" $2 }' line.csv >line.svm
awk -F, 'NR > 1 { print $3, "1:" $4, "2:" $5, "#", $1 "/" $2 }' held.csv >held.svm
awk -F, 'NR == 1 { print } NR > 1 { print $1 "," $2 "," $3 "," $4 "," $5 ",0,0,0,0" }' held.csv >padded.csv
awk -F, 'NR == 1 { print } NR > 1 { print $1 "," $2 "," $3 "," $4 "," $5 ",0,0,0," $9 }' line.csv >filled.csv
for form in none global; do
    expect 0 path quantile.yaml --set data=line.svm --set features.intercept=$form --heldout held.svm --lambdas 4 --no-plot --quiet --out sparse
    expect 0 path quantile.yaml --set data=filled.csv --set features.intercept=$form --heldout padded.csv --lambdas 4 --no-plot --quiet --out dense
    python3 - <<'PYTHON' || fail "sparse held-out rows, intercept $form"
import csv
a, b = (list(csv.DictReader(open(f"{d}/path.csv"))) for d in ("sparse", "dense"))
assert len(a) == len(b) == 4
for p, q in zip(a, b):
    x, y = float(p["heldout_loss"]), float(q["heldout_loss"])
    assert abs(x - y) <= 1e-4 * y, (x, y)
PYTHON
done

echo "-- bad input"
# refuse WORD ARGUMENTS…: exit status 2, one line with WORD in it, nothing written.
refuse() {
    local word=$1
    shift
    rm -rf refused
    expect_line 2 path "$@" --out refused --no-plot
    says "$word"
    [ -e refused ] && fail "a refused path made its folder: $*"
}
refuse 'prior.cloud.penalty to l1' quantile.yaml --set prior.cloud.penalty=none
refuse 'prior.edge.penalty to l1' quantile.yaml --on edge
refuse '--lambdas must be' quantile.yaml --lambdas 1
refuse '--lambdas must be' quantile.yaml --lambdas 1,x
refuse '--lambdas must be' quantile.yaml --lambdas 1,0
refuse '--lambdas must be' quantile.yaml --lambdas 1,1
refuse '--lambdas must be' quantile.yaml --lambdas 1,
refuse '--lambdas must be' quantile.yaml --lambdas 0.5
refuse '--ratio' quantile.yaml --ratio 1
refuse '--on' quantile.yaml --on client
refuse 'needs --heldout' quantile.yaml --select heldout
refuse 'missing.csv' quantile.yaml --heldout missing.csv
printf 'edge,client,y,x1\ne,a,1,1\n' >two.csv
refuse 'has 1 features; the data have 6' quantile.yaml --heldout two.csv
refuse 'less than one row' quantile.yaml --heldout 0.05
for share in 0 1 1.5 -0.5; do refuse "a share above 0 and below 1.*'$share'" quantile.yaml --heldout=$share; done
refuse 'from 1e-90 to 1e90' quantile.yaml --lambdas 1e95,1
sed '1s/x1,x2/x2,x1/' held.csv >swapped.csv
refuse 'swapped.csv: feature 1 is "x2", but "x1" in line.csv' quantile.yaml --heldout swapped.csv
refuse 'held.csv: row 1 of e0/c0 has y = .* takes the labels' logistic.yaml --heldout held.csv
sed '5s/,[0-9]*,/,7,/' classes.csv >eighth.csv
refuse 'eighth.csv: row 2 of c0 has y = 7: the loss takes the classes' classes.yaml --heldout eighth.csv
for seed in 1 2 3; do refuse 'has y = 7: the .*loss takes the classes' classes.yaml --set data=eighth.csv --heldout 0.5 --set run.seed=$seed; done
refuse 'fewer lambdas' quantile.yaml --lambdas 9000 --set run.iterations=100000
refuse 'missing.yaml' missing.yaml
refuse 'did you mean' quantile.yaml --set run.iteration=3
refuse 'a spec file'
mkdir -p input && cp line.csv input/path.csv
expect_line 2 path quantile.yaml --set data=input/path.csv --out input --no-plot
says 'is data'
cmp -s line.csv input/path.csv || fail "the data were replaced"

echo "-- intercepts of edges and clients"
"$HFSAD" generate quantile --edges 3 --clients 4 --features 5 --rows 40 --test-rows 20 --nonzero 2 --intercepts 5 --tau 0.8 \
    --seed 8 --out levels >/dev/null || fail "no data"
for whose in edge client; do
    expect 0 path levels/spec.yaml --set features.intercept=$whose --heldout levels/test.csv --lambdas 6 --ratio 0.05 \
        --set run.iterations=150 --no-plot --out $whose-levels
    python3 - $whose <<'PYTHON' || fail "held-out loss or bic with an intercept per $whose"
import csv, math, sys

whose = sys.argv[1]
best = {r[0]: list(map(float, r[1:])) for r in list(csv.reader(open(f"{whose}-levels/best/model.csv")))[1:]}
chosen = min(csv.DictReader(open(f"{whose}-levels/path.csv")), key=lambda r: float(r["heldout_loss"]))

def mean(path):
    sum, rows = 0, list(csv.reader(open(path)))[1:]
    for edge, client, y, *x in rows:
        own = best[edge if whose == "edge" else f"{edge}/{client}"]
        r = float(y) - own[-1] - math.fsum(float(a) * b for a, b in zip(x, best["cloud"]))
        sum += max(0.8 * r, -0.2 * r)
    return sum / len(rows), len(rows)

held, _ = mean("levels/test.csv")
assert abs(held - float(chosen["heldout_loss"])) < 1e-9, (held, chosen)
loss, n = mean("levels/data.csv")
bic = 2 * n * math.log(loss) + int(chosen["nonzero"]) * math.log(n)
assert abs(bic - float(chosen["bic"])) < 1e-6, (bic, chosen)
assert int(chosen["nonzero"]) >= 2, chosen
assert list(chosen)[-4:] == ["w5", "intercept", "converged", "gap_bound"] and chosen["converged"] == "1"
assert abs(float(chosen["intercept"]) - best["cloud"][-1]) < 1e-12
PYTHON
done

echo "-- Ctrl-C"
python3 - <<'PYTHON' || fail "Ctrl-C"
import os, signal, subprocess
p = subprocess.Popen([os.environ["HFSAD"], "path", "quantile.yaml", "--out", "interrupted", "--no-plot", "--lambdas", "50",
                      "--set", "run.iterations=100000", "--set", "run.trace_every=100000"], stderr=subprocess.PIPE,
                     stdout=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
try:
    p.wait(0.3)
    assert False, "the path was too short for this test"
except subprocess.TimeoutExpired:
    p.send_signal(signal.SIGINT)
stdout, stderr = p.communicate()
assert p.returncode in (130, -signal.SIGINT) and not stdout, (p.returncode, stderr)
assert not os.path.exists("interrupted")
PYTHON

finish
