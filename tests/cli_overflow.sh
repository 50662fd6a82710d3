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
finish
