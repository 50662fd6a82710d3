#!/usr/bin/env bash
# hfsad run with run.polish: what the folder holds then, resumed or not, by any number of threads, interrupted in the
# middle. Needs HFSAD, the path of the program.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"

# figure FOLDER KEY…: a figure of summary.json.
figure() { python3 -c 'import json, sys
at = json.load(open(sys.argv[1] + "/summary.json"))
for key in sys.argv[2:]: at = at[key]
print(at)' "$@"; }

expect 0 generate quantile --edges 3 --clients 8 --features 12 --rows 20 --tau 0.8 --out sites --quiet
spec=sites/spec.yaml
expect 0 run $spec --set run.iterations=40 --set run.polish=false --out plain
expect 0 run $spec --set run.iterations=40 --set run.polish=true --out polished --threads 1
grep -q '^polish  *objective .* lower' stdout.txt || fail "the table does not tell of the polish"
[ "$(figure polished polish accepted)" = True ] || fail "not accepted: $(figure polished polish reason)"
python3 - <<'PYTHON' || fail "the figures of the polish do not fit the models"
import csv, json
p = json.load(open("polished/summary.json"))["polish"]
assert p["objective_after"] < p["objective_before"] and 0 <= p["gap"] <= 1e-8 * p["objective_after"], p
assert p["exchanges"] > 0 and p["bytes_up"] > 0 and p["bytes_down"] > 0 and p["relative_error"] > 0, p
models = [row[1:] for row in csv.reader(open("polished/model.csv"))][1:]
assert len(models) == 1 + 3 + 24 and all(m == models[0] for m in models)
plain = json.load(open("plain/summary.json"))
assert "polish" not in plain and abs(plain["figures"]["consensus_objective"] / p["objective_before"] - 1) < 1e-12
w = [float(v) for v in models[0]]
loss = sum(0.8 * max(r, 0) + 0.2 * max(-r, 0) for r in (
    float(row[2]) - sum(float(x) * v for x, v in zip(row[3:], w)) for row in list(csv.reader(open("sites/data.csv")))[1:]))
prior = json.load(open("polished/summary.json"))["settings"]["prior"]["cloud"]
objective = loss + prior["weight"] * prior["lambda"] * sum(map(abs, w))
assert abs(objective / p["objective_after"] - 1) < 1e-10, (objective, p["objective_after"])
PYTHON
python3 - <<'PYTHON' || fail "the trace is not the run's own"
import csv
a, b = (list(csv.DictReader(open(d + "/trace.csv"))) for d in ("plain", "polished"))
for row in a + b:
    del row["seconds"]
assert a == b and len(a) == 41
PYTHON
cmp -s plain/state.csv polished/state.csv || fail "the state is not the run's own"

# Other threads, and on the way through a checkpoint: the same bytes.
expect 0 run $spec --set run.iterations=40 --set run.polish=true --out threads --threads 3
cmp polished/model.csv threads/model.csv || fail "three threads give another model"
expect 0 run --resume plain --set run.polish=true
cmp polished/model.csv plain/model.csv || fail "a run that is polished later has another model"
expect 0 run $spec --set run.iterations=15 --set run.polish=true --out halves
expect 0 run --resume halves --set run.iterations=40
cmp polished/model.csv halves/model.csv || fail "a run in two parts has another model"
expect 0 run --resume halves --set run.polish=false --set run.iterations=41
[ "$(python3 -c 'import json; print("polish" in json.load(open("halves/summary.json")))')" = False ] ||
    fail "a run without polish tells of it"

# Where nodes may differ nothing is done, and said so.
expect 0 run $spec --set run.iterations=5 --set run.polish=true --set link.client.penalty=mcp --out apart
grep -q '^polish  *not done: link: mcp' stdout.txt || fail "the table does not say why there was no polish"
[ "$(figure apart polish accepted)" = False ] || fail "links that let go were polished"
figure apart polish reason | grep -q '^link: mcp' || fail "summary.json does not say why there was no polish"

# A signal in the middle leaves the run's own end, from which --resume polishes. Six hundred coordinates without a prior
# take many exchanges.
expect 0 generate quantile --edges 2 --clients 4 --features 600 --rows 200 --digits 4 --out wide --quiet
wide=(run wide/spec.yaml --set prior.cloud.penalty=none --set run.iterations=2 --set run.edge_rounds=1 --quiet)
expect 0 "${wide[@]}" --out own
"$HFSAD" "${wide[@]}" --set run.polish=true --out cut 2>stderr.txt &
process=$!
until grep -q '"stopped":.*"iterations"' cut/summary.json 2>/dev/null; do
    kill -0 $process 2>/dev/null || break
done
kill -TERM $process # a shell starts its background jobs with Ctrl-C ignored
wait $process
status=$?
[ $status = 143 ] || fail "exit status $status after SIGTERM in the polish"
cmp own/model.csv cut/model.csv || fail "an interrupted polish changed the models"
[ "$(figure cut polish reason)" = interrupted ] || fail "summary.json does not tell of the interruption"
finish
