#!/usr/bin/env bash
# bench/convergence, a quick run: its figures of one trial against the trace of `hfsad run` on the same data, threads, bad
# options. Needs HFSAD and CONVERGENCE, the paths of the two programs.
. "$(dirname "$0")/shell.sh"
: "${CONVERGENCE:?the path of the benchmark}"

"$CONVERGENCE" --quick --trials 2 --tuning 1 --threads 1 >one.txt || fail "--quick"
"$CONVERGENCE" --quick --trials 2 --tuning 1 --threads 2 >two.txt || fail "--quick with two threads"
# The seconds aside, also those in the last column of the tables.
timeless() { grep -v '\.seconds_' "$1" | sed 's/^\(| .*|\)[^|]*|$/\1/'; }
cmp <(timeless one.txt) <(timeless two.txt) || fail "the figures depend on the threads"

seed=77
"$CONVERGENCE" --quick --only phase --trials 1 --tuning 1 --seed $seed >lines.txt || fail "--only phase"
expect 0 generate phase-retrieval --edges 3 --clients 20 --features 5 --seed $seed --out data
cat >spec.yaml <<YAML
data: data/data.csv
truth: data/truth.csv
loss: {kind: phase-retrieval, box: 5}
prior: {edge: {penalty: scad, lambda: 0.1, gamma: 2.4}, cloud: {penalty: scad, lambda: 0.1, gamma: 2.4}}
run: {seed: $seed}
YAML
expect 0 run spec.yaml --out tuned_km10_pc1
expect 0 run spec.yaml --set preset=paper --set run.edge_rounds=1 --out paper_km1_pc1
expect 0 run spec.yaml --set algorithm=fedavg --set run.participation.client=0.3 --out fedavg_km10_pc0.3
python3 - <<'PYTHON' || fail "figures and trace differ (seed $seed)"
import csv, json
lines = {}
for line in open("lines.txt"):
    words = line.split()
    if line.startswith("phase_"):
        lines[words[0]] = float(words[1])
def near(a, b, part=1e-4):
    assert abs(a - b) <= part * abs(b), (a, b)
for name in ("tuned_km10_pc1", "paper_km1_pc1", "fedavg_km10_pc0.3"):
    trace = list(csv.DictReader(open(f"{name}/trace.csv")))
    error = [float(row["relative_error"]) for row in trace]
    before = json.load(open(f"{name}/summary.json"))["before_training"]
    def figure(what):
        return lines[f"phase_+20dB_3x20x5.{name}.{what}"]
    for after in (50, 100, 200, 300):
        near(figure(f"median_{after}"), error[after])
    assert figure("lost") == (error[300] > 0.05)
    for level in ("1e-2", "1e-3", "1e-4", "1e-5"):
        first = next((i for i, e in enumerate(error) if e <= float(level)), None)
        assert figure(f"reached_{level}") == (first is not None), (name, level)
        if first is None:
            continue
        assert figure(f"iterations_{level}") == first, (name, level)
        sent = sum(int(trace[first][key]) + int(before[key]) for key in ("bytes_up", "bytes_down"))
        # whoever takes part by chance sends unequal amounts
        near(figure(f"bytes_{level}"), sent, 1e-4 if name.endswith("pc1") else 0.3)
PYTHON

"$CONVERGENCE" --trials 0 2>stderr.txt
[ $? = 2 ] || fail "--trials 0 was taken"
says "trials needs a number"
"$CONVERGENCE" --surprise 2>stderr.txt
[ $? = 2 ] || fail "an unknown option was taken"
finish
