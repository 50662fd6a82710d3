#!/usr/bin/env bash
# Every run ends with a verdict, in the table and in summary.json: converged by a bound that holds, not converged with the
# way out, or not known with the reason. All defaults, raw units. Needs HFSAD.
. "$(dirname "$0")/shell.sh"

# verdict DIR: the value of converged, then the line.
verdict() {
    python3 -c 'import json, sys
s = json.load(open(sys.argv[1] + "/summary.json"))
print(s["converged"], s["verdict"])' "$1"
}

# Columns of sizes 1e-3 to 1e5 with an offset, heavy tails, one outlier.
python3 - <<'PYTHON'
import random
random.seed(4)
with open("data.csv", "w") as f, open("classes.csv", "w") as g, open("apart.csv", "w") as h:
    for out in f, g, h:
        out.write("edge,client,y,x1,x2,x3,x4\n")
    for i in range(60):
        x = [random.gauss(0, 1) for _ in range(4)]
        x[1] = x[0] + 0.1 * x[1]
        noise = random.gauss(0, 1) / max(random.random(), 1e-3)
        y = 40 + 3 * x[0] - x[2] + 0.3 * noise + (1e4 if i == 7 else 0)
        units = (x[0] * 1e5, x[1] * 1e5 + 2e5, x[2] * 1e-3, x[3])
        side = x[0] - x[2]
        for out, label in (f, y), (g, 1 if side + noise > 0 else -1), (h, 1 if side > 0 else -1):
            out.write("e%d,c%d,%r,%s\n" % (i % 2, i % 6, label, ",".join(map(repr, units))))
PYTHON

for loss in absolute "quantile, tau: 0.9" squared "huber, delta: 1"; do
    printf 'data: data.csv\nloss: {kind: %s}\nfeatures: {intercept: global}\n' "$loss" >spec.yaml
    expect 0 run spec.yaml --out out
    tr -s ' \n' '  ' <stdout.txt | grep -q 'verdict converged: the objective is at most' || fail "$loss: no verdict in the table"
    [[ $(verdict out) == "True converged: "* ]] || fail "$loss: $(verdict out)"
done
for loss in logistic hinge; do
    printf 'data: classes.csv\nloss: {kind: %s}\nfeatures: {intercept: global}\n' $loss >spec.yaml
    expect 0 run spec.yaml --out out
    [[ $(verdict out) == "True converged: "* ]] || fail "$loss: $(verdict out)"
done

# A federation says the same, and its models are the same bytes.
PATH=$PATH:/usr/sbin
expect 0 up spec.yaml --out up --quiet
cmp out/model.csv up/model.csv || fail "up: another model"
[ "$(verdict out)" = "$(verdict up)" ] || fail "up: $(verdict up)"

# No minimum: the classes can be separated. The run keeps its own model.
printf 'data: apart.csv\nloss: {kind: logistic}\n' >apart.yaml
expect 0 run apart.yaml --out apart
[[ $(verdict apart) == "False not converged: a plane separates the classes"*"add a prior"* ]] || fail "apart: $(verdict apart)"
expect 0 run apart.yaml --out own --set run.polish=false
cmp apart/model.csv own/model.csv || fail "apart: not the run's own model"
[[ $(verdict own) == "None not known: "*"run.polish=true"* ]] || fail "own: $(verdict own)"
expect 0 run apart.yaml --out tied --set prior.cloud.penalty=l1 --set prior.cloud.weight=1 --set prior.cloud.lambda=0.1
[[ $(verdict tied) == "True converged: "* ]] || fail "with a prior: $(verdict tied)"

# Nothing is known: links that let go, a problem that is not convex, a baseline, the paper's preset, a start.
printf 'data: data.csv\nloss: {kind: squared}\n' >spec.yaml
unknown() {
    local reason=$1
    shift
    expect 0 run spec.yaml --out other "$@"
    [[ $(verdict other) == "None not known: "*"$reason"* ]] || fail "$*: $(verdict other)"
}
unknown "mcp and scad" --set link.client.penalty=mcp
unknown "not convex" --set prior.cloud.penalty=scad --set prior.cloud.lambda=1
unknown "baseline" --set algorithm=fedavg
unknown "only the polish" --set preset=paper --set prior.cloud.penalty=none --set prior.edge.penalty=none
unknown "only the polish" --set run.iterations=0
finish
