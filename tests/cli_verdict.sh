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

# No minimum: the classes can be separated. The run says so; hfsad keeps its own model.
printf 'data: apart.csv\nloss: {kind: logistic}\n' >apart.yaml
expect 0 run apart.yaml --out apart
[[ $(verdict apart) == "False not converged: a plane separates the classes"*"add a prior"* ]] || fail "apart: $(verdict apart)"
expect 0 run apart.yaml --out apart --set algorithm=hfsad
[[ $(verdict apart) == "False not converged: a plane separates the classes"*"add a prior"* ]] || fail "apart, hfsad: $(verdict apart)"
# The same with rows of both classes on the plane, whose loss stays. A federation says it in the same words.
says_none() # LOSS INTERCEPT WORDS, more settings
{
    printf 'data: weak.csv\nloss: {%s}\nfeatures: {intercept: %s}\n' "$1" "$2" >weak.yaml
    expect 0 run weak.yaml --out weak "${@:4}"
    [[ $(verdict weak) == "False not converged: "*"$3"*"no minimum; add "* ]] || fail "$1, intercept $2: $(verdict weak)"
    expect 0 up weak.yaml --out weakly --quiet "${@:4}"
    [ "$(verdict weak)" = "$(verdict weakly)" ] || fail "$1: up says $(verdict weakly)"
}
weak() # y of the rows on the plane, y of the others
{
    echo edge,client,y,x1,x2
    for y in $1; do
        printf '%s\n' "a,p,$y,0,1" "b,q,$y,0,1" "b,q,$y,0,-1"
    done
    for y in $2; do
        printf '%s\n' "a,r,$y,$((y > 0 ? 2 : -2)),1" "b,s,$y,$((y > 0 ? 1 : -1)),0"
    done
}
tiny=(--set prior.cloud.penalty=l1 --set prior.cloud.weight=1 --set prior.cloud.lambda=0.01)
weak '1 -1' '1 -1' >weak.csv
says_none 'kind: logistic' none 'a plane separates some rows'
says_none 'kind: logistic' global 'a plane separates some rows'
expect 0 run weak.yaml --out weak --set loss.kind=squared-hinge
[[ $(verdict weak) == "True converged: "* ]] || fail "squared-hinge: $(verdict weak)"
weak '1 -1' '1' >weak.csv
says_none 'kind: logistic' client 'all rows of a client or edge' "${tiny[@]}"
weak '0 1' '0 1' >weak.csv
says_none 'kind: multinomial, classes: 2' global 'a plane separates some rows'
says_none 'kind: multinomial, classes: 3' global 'a class has no rows' "${tiny[@]}"
weak '1 3' '0' >weak.csv
says_none 'kind: poisson' none 'some counts of 0'
says_none 'kind: poisson' client 'all counts of a client or edge' "${tiny[@]}"

expect 0 run apart.yaml --out own --set run.polish=false
cmp apart/model.csv own/model.csv || fail "apart: not the run's own model"
[[ $(verdict own) == "None not known: "*"run.polish=true"* ]] || fail "own: $(verdict own)"
expect 0 run apart.yaml --out tied --set prior.cloud.penalty=l1 --set prior.cloud.weight=1 --set prior.cloud.lambda=0.1
[[ $(verdict tied) == "True converged: "* ]] || fail "with a prior: $(verdict tied)"

# Nothing is known: a baseline, the paper's preset without a prior, a start.
printf 'data: data.csv\nloss: {kind: squared}\n' >spec.yaml
unknown() {
    local reason=$1
    shift
    expect 0 run spec.yaml --out other "$@"
    [[ $(verdict other) == "None not known: "*"$reason"* ]] || fail "$*: $(verdict other)"
}
unknown "baseline" --set algorithm=fedavg
unknown "only the polish" --set preset=paper --set prior.cloud.penalty=none --set prior.edge.penalty=none
unknown "only the polish" --set run.iterations=0

# Not convex: stationary by the polish; without it, and with links that let go, by the residuals of the last row, which
# also tell whether the nodes have stopped moving. `up` says the same.
expect 0 generate quantile --edges 2 --clients 5 --features 4 --rows 20 --out quantile
printf 'data: quantile/data.csv\nloss: {kind: squared}\n' >bent.yaml
bent() {
    local command=$1 expected=$2
    shift 2
    expect 0 "$command" bent.yaml --out "bent-$command" --quiet "$@"
    # shellcheck disable=SC2053
    [[ $(verdict "bent-$command") == $expected ]] || fail "$command $*: $(verdict "bent-$command")"
}
scad=(--set prior.cloud.penalty=scad --set prior.cloud.lambda=0.1)
bent run "True converged: stationary: a convex model*" "${scad[@]}" --set run.iterations=50
bent run "True converged: stationary: by the residuals*" "${scad[@]}" --set run.polish=false
bent run "True converged: stationary: by the residuals*" --set link.client.penalty=mcp --set run.iterations=4000 --set run.trace_every=100
# Only smoothing is left: the message names the way out, which takes the run there.
bent run "False not converged: the smoothing of the links*" --set link.client.penalty=mcp --set run.iterations=300
tenth() { python3 -c 'import json, sys; print(json.load(open("bent-run/summary.json"))["settings"]["schedule"][sys.argv[1]]["alpha"] / 10)' "$1"; }
bent run "True converged: stationary: by the residuals*" --set link.client.penalty=mcp --set run.iterations=300 \
    --set schedule.client.alpha="$(tenth client)" --set schedule.edge.alpha="$(tenth edge)"
for command in run up; do
    bent $command "False not converged: the residuals do not show*" "${scad[@]}" --set run.polish=false --set run.iterations=9 \
        --set link.client.penalty=group-mcp --set link.edge.penalty=group-scad
done
cmp bent-run/model.csv bent-up/model.csv || fail "links of norms: up has another model"
# Hard links hold the model at 0, where its own length says nothing; and clients that have let go make ten steps for each
# step of the cloud, whose prior still moves it while nothing moves in their last step.
bent run "False not converged: the nodes have stopped moving*" --set prior.cloud.penalty=mcp --set prior.cloud.lambda=1 --set run.polish=false \
    --set run.start=zero --set run.iterations=5 --set schedule.client.c=1e7 --set schedule.edge.c=1e7
printf 'client,y,x\na,3,1\na,2.9,1\na,-3.1,-1\nb,-3,1\nb,-3.1,1\nb,2.8,-1\n' >two.csv
printf '{data: two.csv, loss: squared, link: {client: {penalty: scad, lambda: 0.1, gamma: 2.5, weight: 2}}, prior: {cloud: {penalty: l2, lambda: 0.3, weight: 1}},
 run: {iterations: 20, local_steps: 10, start: start.csv}}\n' >two.yaml
echo 1 >start.csv
expect 0 run two.yaml --out two --quiet
[[ $(verdict two) == "False not converged: "* ]] || fail "clients that have let go: $(verdict two)"

# Without a polish the model is the best of all rows, here of one before the last.
expect 0 generate phase-retrieval --clients 30 --snr-db 0 --out rough
best=(--set preset=tuned --set run.polish=false --set run.iterations=150 --set run.edge_rounds=10)
for command in run up; do
    expect 0 $command rough/spec.yaml --out rough/$command --quiet "${best[@]}"
    [[ $(verdict rough/$command) == "False not converged: "* ]] || fail "best: $(verdict rough/$command)"
done
cmp rough/run/model.csv rough/up/model.csv || fail "best: up has another model"
python3 - <<'PYTHON' || fail "best: the model is not that of the best row"
import csv, json
least = min(float(row["consensus_objective"]) for row in csv.DictReader(open("rough/run/trace.csv")))
s = json.load(open("rough/run/summary.json"))
assert s["safeguard"]["repairs"] > 0 and s["best_objective"] == least < s["figures"]["consensus_objective"], (least, s)
PYTHON

# Phase retrieval: a stationary point, also from a start that the robust one replaces. With two rows per coordinate the
# iterations alone freeze; from the start as it is given the model is another one. A federation does the same.
expect 0 generate phase-retrieval --clients 10 --snr-db 40 --out phase
sed 's/^-\{0,1\}[0-9].*/1/' phase/truth.csv >phase/start.csv
start() { expect 0 run phase/spec.yaml --set preset=tuned --set run.iterations=20 --set "run.start=$1" --out "phase/$2" "${@:3}"; }
start start.csv bad
start robust robust
[[ $(verdict phase/bad) == "True converged: stationary"* ]] || fail "phase: $(verdict phase/bad)"
cmp phase/bad/model.csv phase/robust/model.csv || fail "phase: the bad start was kept"
start start.csv kept --set run.cycles=false
cmp -s phase/bad/model.csv phase/kept/model.csv && fail "phase: run.cycles=false did not keep the start"
# At 0 the loss has no slope: clients with several rows stay there, and the run says so; the search of the polish leaves it,
# in a federation to the same bytes.
python3 - <<'PYTHON'
import random
random.seed(5)
with open("zero.csv", "w") as f:
    print("edge,client,y,a,b,c", file=f)
    for row in range(60):
        x = [random.gauss(0, 1) for _ in range(3)]
        print("e%d,c%d,%r,%s" % (row % 3, row % 12, (x[0] - 2 * x[1]) ** 2 + random.expovariate(9), ",".join(map(repr, x))), file=f)
PYTHON
printf 'data: zero.csv\nloss: phase-retrieval\nrun: {start: zero, cycles: false, iterations: 60}\n' >zero.yaml
expect 0 run zero.yaml --out zero --quiet --set run.polish=false
[[ $(verdict zero) == "False not converged: the model is 0: "* ]] || fail "phase from 0: $(verdict zero)"
for command in run up; do
    expect 0 $command zero.yaml --out zero-$command --quiet
    [[ $(verdict zero-$command) == "True converged: stationary"* ]] || fail "phase left 0: $(verdict zero-$command)"
done
cmp zero-run/model.csv zero-up/model.csv || fail "phase left 0: up has another model"
python3 - <<'PYTHON' || fail "phase left 0: the model is not that of the truth"
import csv
model = next([float(v) for v in row[1:]] for row in csv.reader(open("zero-run/model.csv")) if row[0] == "cloud")
assert min(sum(abs(a - s * b) for a, b in zip(model, (1, -2, 0))) for s in (1, -1)) < 0.1, model
PYTHON
expect 0 up phase/spec.yaml --set preset=tuned --set run.iterations=20 --set run.start=start.csv --out phase/up --quiet
cmp phase/bad/model.csv phase/up/model.csv || fail "phase: up has another model"
python3 - <<'PYTHON' || fail "phase: the model is not that of the truth"
import csv
truth = [float(v) for v in open("phase/truth.csv")]
model = next([float(v) for v in row[1:]] for row in csv.reader(open("phase/bad/model.csv")) if row[0] == "cloud")
error = min(sum((a - s * b) ** 2 for a, b in zip(model, truth)) for s in (1, -1)) / sum(b * b for b in truth)
assert error < 1e-3, error
PYTHON

# A bound is never above the truth: columns that hardly vary, and an objective that falls to 1e-10 of its start. The
# model that drew y is one of those that the bound is about.
draw() { # SEED: t.csv, and the objective of that model in the file truth
    awk -v seed="$1" 'function u() { seed = (seed * 16807) % 2147483647; return seed / 2147483647 }
        function n(  i, sum) { for (i = sum = 0; i < 12; i++) sum += u(); return sum - 6 }
        BEGIN { print "edge,client,y,a,b,c,d,p,q,r,s"
            for (i = 0; i < 240; i++) { g = int(4 * u()); e = 1e8 * n(); F += e * e / 2; p = n(); q = n(); r = n()
                printf "e%d,c%d,%.17g,%d,%d,%d,%d,%.17g,%.17g,%.17g,%.17g\n", i % 3, i % 2,
                    1e13 + 3e7 * p + 1e8 * q - 5e7 * r + e,
                    g == 0, g == 1, g == 2, g == 3, 1e6 + p, 1e6 + q, 1e6 + r, exp(10 + 2 * n()) }
            printf "%.17g\n", F >"truth" }' >t.csv
}
printf '{data: t.csv, loss: {kind: squared}}\n' >steep.yaml
for seed in 9 13 16 17 34; do
    draw $seed
    expect 0 run steep.yaml --quiet --out steep$seed
    python3 -c 'import json, sys
p = json.load(open(sys.argv[1]))["polish"]
sys.exit(p["objective_after"] - p["gap"] > float(sys.argv[2]))' steep$seed/summary.json "$(cat truth)" ||
        fail "seed $seed: the bound excludes the model that drew the data"
done
finish
