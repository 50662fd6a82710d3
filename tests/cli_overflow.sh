#!/usr/bin/env bash
# Numbers that overflow: a federation ends as `hfsad run` does, to the byte, whether the run comes through or not.
. "$(dirname "$0")/shell.sh"

python3 - <<'PYTHON'
import random
random.seed(3)
with open("data.csv", "w") as f:
    f.write("edge,client,y,x1,x2\n")
    for client in range(5):
        for _ in range(3):
            x = [random.gauss(0, 1) for _ in range(2)]
            f.write(f"edge{client % 2},client{client},{x[0] - 2 * x[1]},{x[0]},{x[1]}\n")
PYTHON

# alike STATUS LOSS START WIRE [FILE…]: from a start of such numbers
alike() {
    local status=$1 loss=$2 start=$3 wire=$4
    shift 4
    printf '%s\n' "$start" "$start" >start.txt
    cat >spec.yaml <<SPEC
data: data.csv
loss: {kind: $loss}
run: {iterations: 9, edge_rounds: 3, start: start.txt}
federation: {wire: $wire}
SPEC
    rm -rf run up spec-state
    expect "$status" run spec.yaml --out run --quiet
    expect "$status" up spec.yaml --out up --quiet
    same_output run up "$@" || fail "$loss from $start by $wire: the federation's output is another one"
}

echo "-- squares overflow, and the safeguard does what it can"
alike 0 absolute 1e160 double state.csv checkpoint.bin
[ "$(python3 -c 'import json; print(json.load(open("up/summary.json"))["safeguard"]["repairs"])')" -gt 0 ] ||
    fail "the safeguard has done nothing"
echo "-- the objective overflows"
alike 1 squared 1e160 delta state.csv checkpoint.bin
grep -q '"diverged"' up/summary.json || fail "the run has not diverged"
echo "-- numbers that do not fit a float are sent as they are"
alike 0 absolute 1e60 float state.csv checkpoint.bin
echo "-- a model too small for a float, and a sigma that makes it large: no lie"
cat >spec.yaml <<'SPEC'
data: data.csv
algorithm: hfsad
loss: {kind: huber, solver: linearized}
preset: paper
aggregate: median
features: {intercept: client, standardize: true}
run: {iterations: 40, edge_rounds: 2, polish: false}
schedule: {client: {c: 1.0e+95}}
federation: {wire: float}
SPEC
rm -rf run up spec-state
expect 0 run spec.yaml --out run --quiet
expect 0 up spec.yaml --out up --quiet
same_output run up || fail "the federation's output is another one"
echo "-- intercepts of edges, larger than all coefficients: no lie either"
awk -F, -v OFS=, 'NR > 1 { $3 += 1000 } 1' data.csv >far.csv
cat >spec.yaml <<'SPEC'
data: far.csv
loss: {kind: squared}
features: {intercept: edge}
run: {iterations: 60, edge_rounds: 2, polish: false}
federation: {mode: async}
SPEC
rm -rf run up spec-state
expect 0 up spec.yaml --out up --quiet
grep -q 'beyond the bounds' stderr.txt && fail "honest clients are refused: $(cat stderr.txt)"
expect 0 run spec.yaml --replay up/record --out run --quiet
same_output run up || fail "the replay is another run"
finish
