#!/usr/bin/env bash
# Standard errors: the sandwich by run and up, with the same bytes, against its definition in exact fractions of sums; the
# program refuses what has none. Needs HFSAD.
. "$(dirname "$0")/shell.sh"

cat >errors.py <<'PYTHON'
import csv, json, math, random, sys

def draw():
    random.seed(3)
    with open("data.csv", "w") as f:
        f.write("edge,client,y,weight,a,b\n")
        for i in range(90):
            a, b = random.gauss(1, 1), random.gauss(-3, 5)
            y = 2 * a - b + 4 + (1 + abs(a)) * random.gauss(0, 1)
            f.write("e%d,c%d,%r,%r,%r,%r\n" % (i % 2, i % 5, y, random.uniform(0.5, 2), a, b))

def solve(H, v):  # Gauss-Jordan
    n = len(v)
    A = [H[i][:] + [v[i]] for i in range(n)]
    for i in range(n):
        p = max(range(i, n), key=lambda r: abs(A[r][i]))
        A[i], A[p] = A[p], A[i]
        for r in range(n):
            if r != i:
                t = A[r][i] / A[i][i]
                A[r] = [x - t * z for x, z in zip(A[r], A[i])]
    return [A[i][n] / A[i][i] for i in range(n)]

# The squared loss: bend 1, slope -residual. Huber: bend and slope within delta, delta beyond.
def errors(folder, delta):
    delta = float(delta)
    lines = list(csv.DictReader(open(folder + "/coefficients.csv")))
    w = [float(l["estimate"]) for l in lines]
    H, S = ([[0.0] * 3 for _ in range(3)] for _ in range(2))
    for r in csv.DictReader(open("data.csv")):
        x, c = (float(r["a"]), float(r["b"]), 1), float(r["weight"])
        e = float(r["y"]) - sum(map(lambda p, q: p * q, x, w))
        for i in range(3):
            for j in range(3):
                H[i][j] += c * (abs(e) <= delta) * x[i] * x[j]
                S[i][j] += (c * max(-delta, min(delta, e))) ** 2 * x[i] * x[j]
    for i, line in enumerate(lines):
        z = solve(H, [float(k == i) for k in range(3)])
        want = math.sqrt(sum(z[p] * S[p][q] * z[q] for p in range(3) for q in range(3)))
        have, low, high = (float(line[k]) for k in ("standard_error", "lower", "upper"))
        assert abs(have - want) < 1e-6 * want, (folder, line["coefficient"], have, want)
        assert abs(high - w[i] - 1.6448536269514722 * have) < 1e-9 and abs(w[i] - low - (high - w[i])) < 1e-9
        assert json.load(open(folder + "/summary.json"))["standard_errors"][i] == have

globals()[sys.argv[1]](*sys.argv[2:])
PYTHON
judge() { python3 errors.py "$@" 2>python.txt || fail "errors.py $*: $(tail -1 python.txt)"; }
judge draw

printf 'data: data.csv\nloss: {kind: squared}\nfeatures: {intercept: global}\nrun: {stop: {gap: 0}}\noutput: {errors: true, confidence: 0.9}\n' >spec.yaml
expect 0 run spec.yaml --out out
judge errors out inf
grep -q 'standard error' stdout.txt || fail "the table shows no standard errors"
expect 0 run spec.yaml --out standard --set features.standardize=true
judge errors standard inf
expect 0 run spec.yaml --out huber --set loss.kind=huber --set loss.delta=1.5
judge errors huber 1.5
for loss in squared quantile; do
    expect 0 run spec.yaml --out run --force --set loss.kind=$loss
    expect 0 up spec.yaml --out up --force --set loss.kind=$loss
    same_output run up coefficients.csv || fail "$loss: a federation has other standard errors"
done
expect 0 run spec.yaml --out iterated --set algorithm=hfsad --set run.iterations=5
judge errors iterated inf

expect_line 2 run spec.yaml --set prior.cloud.penalty=l1 --set prior.cloud.lambda=1
says 'output.errors: prior: a penalty with a kink at 0 selects features; use none or l2'
expect_line 2 run spec.yaml --set features.positive=true
says 'output.errors: features.positive'
expect_line 2 run spec.yaml --set link.client.penalty=mcp
says 'output.errors: link'
expect_line 2 run spec.yaml --set run.polish=false
says 'output.errors: run.polish: the run must go to the minimum'
finish
