#!/usr/bin/env bash
# Differential privacy: `hfsad up` with the noise of the seed writes what `hfsad run` writes, plain and with secure aggregation; noise by secrets
# differs from run to run; summary and trace have the account; what has no noise is refused or not computed. Needs HFSAD.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"

# Another number of rows for each client, so that a message that depends on it is seen.
python3 - <<'PYTHON'
import random
random.seed(5)
with open("data.csv", "w") as f:
    f.write("edge,client,y,x1,x2,x3\n")
    for c in range(12):
        for r in range(1 + 3 * c):
            x = [random.gauss(0, 1) for _ in range(3)]
            f.write("e%d,c%d,%r,%s\n" % (c // 6, c, x[0] - 2 * x[2] + random.gauss(0, 0.3), ",".join(map(repr, x))))
with open("truth.csv", "w") as f:
    f.write("1\n0\n-2\n")
PYTHON
cat >spec.yaml <<'YAML'
data: data.csv
truth: truth.csv
loss: {kind: absolute}
privacy: {rho: 50, delta: 1e-6, clip: 0.5, rows: 15, noise: seed}
run: {iterations: 6, edge_rounds: 2}
YAML
secure=(--set privacy.aggregation=secure --set privacy.cohort=3)

expect 0 run spec.yaml --out run --quiet
expect 0 up spec.yaml --out up --quiet
same_output run up || fail "plain: up differs from run"
expect 0 run spec.yaml "${secure[@]}" --out run-secure --quiet
expect 0 up spec.yaml "${secure[@]}" --out up-secure --quiet
same_output run-secure up-secure || fail "secure: up differs from run"
expect 0 run spec.yaml "${secure[@]}" --threads 1 --out run-one --quiet
same_output run-secure run-one || fail "another number of threads"
cmp -s run/model.csv run-secure/model.csv && fail "a share of the noise is all of it"

# ---- asynchronously: the record gives the same run, and no client steps more often than its budget says ----
for one in plain secure; do
    async=(--set federation.mode=async --set "privacy.aggregation=$one")
    [ $one = secure ] && async+=(--set privacy.cohort=3)
    expect 0 up spec.yaml "${async[@]}" --out async-$one --quiet
    expect 0 run spec.yaml "${async[@]}" --replay async-$one/record --out again-$one --quiet
    same_output async-$one again-$one || fail "asynchronous, $one: the replay differs"
    python3 - async-$one <<'PYTHON' || fail "the account of an asynchronous run, $one"
import csv, json, sys
p = json.load(open(sys.argv[1] + "/summary.json"))["privacy"]
rho = [float(r["rho"]) for r in csv.DictReader(open(sys.argv[1] + "/trace.csv"))]
assert p["rounds"] == 12 and p["rho_spent"] == 50, p
assert rho[0] == 0 and abs(rho[1] - 50 * 4 / 12) < 1e-12 and rho[-1] == 50, rho  # those that are ahead have begun the second iteration
PYTHON
done

# ---- a budget for each row ----
record=(--set privacy.record=6 --set privacy.clip=2 --set privacy.rho=1)
expect 0 run spec.yaml "${record[@]}" --out run-record --quiet
expect 0 up spec.yaml "${record[@]}" --out up-record --quiet
same_output run-record up-record || fail "a budget for each row: up differs from run"
expect 0 run spec.yaml "${record[@]}" --set privacy.record=none --out run-client --quiet
python3 - <<'PYTHON' || fail "a budget for each row: the noise"
import json
r, c = (json.load(open(f"run-{k}/summary.json"))["privacy"] for k in ("record", "client"))
assert (r["unit"], c["unit"], r["record"]) == ("record", "client", 6), r
assert c["deviation"] == 2 * 2 / (2 * 1 / 12) ** 0.5 and r["deviation"] < c["deviation"], (r, c)
PYTHON
expect 0 privacy spec.yaml "${record[@]}" --trials 1
grep -q 'for each row$' stdout.txt || fail "hfsad privacy with a budget for each row: $(cat stdout.txt)"
expect_line 2 run spec.yaml "${record[@]}" --set privacy.record=0.5 --out x --quiet
says 'is longer than privacy.record'
expect 2 up spec.yaml "${record[@]}" --set privacy.record=0.5 --out x --quiet
grep -q 'is longer than privacy.record' stderr.txt || fail "up with a long row: $(cat stderr.txt)"
expect_line 2 run spec.yaml "${record[@]}" --set loss.kind=squared --out x --quiet
says 'must have a bounded slope'
expect_line 2 run spec.yaml "${record[@]}" "${secure[@]}" --out x --quiet
says 'privacy.record: with secure aggregation'
expect_line 2 run spec.yaml --set privacy.rho=none --set privacy.clip=none --set privacy.record=1 --out x --quiet
says 'privacy.record needs'

# ---- the account ----
python3 - <<'PYTHON' || fail "the account"
import csv, json
rows = list(csv.DictReader(open("run/trace.csv")))
assert list(rows[0])[-2:] == ["rho", "epsilon"], list(rows[0])
assert [float(r["rho"]) for r in rows] == [50 * (i / 6) for i in range(7)], [r["rho"] for r in rows]
assert all(r["objective"] == "nan" and r["dual_residual_tier2"] == "nan" for r in rows)
assert all(float(r["relative_error"]) > 0 for r in rows)
s = json.load(open("run/summary.json"))
p = s["privacy"]
assert p["rounds"] == 12 and p["rho_spent"] == 50 and p["epsilon_spent"] == float(rows[-1]["epsilon"]), p
assert p["guaranteed"] is False and abs(p["deviation"] - 0.5 * (2 * 12 / 50) ** 0.5) < 1e-12, p
assert s["figures"]["objective"] is None and "rows" not in s["data"], s["figures"]
PYTHON
expect 0 run spec.yaml --set run.iterations=2 --set run.edge_rounds=auto --out part --quiet
[ "$(sed 1d part/trace.csv | awk -F, '{print $(NF - 1)}' | xargs)" = "0 25 50" ] || fail "the account of edge_rounds: auto"
head -1 part/trace.csv | grep -q 'gap_bound,rho,epsilon$' || fail "columns"
expect 0 run spec.yaml --set privacy.rho=none --set privacy.clip=none --out none --quiet
head -1 none/trace.csv | grep -q 'gap_bound$' || fail "columns without noise"
grep -q rho_spent none/summary.json && fail "an account without noise"

# ---- absences: the budget is divided over the rounds of the client with the most of them ----
absent=("${secure[@]}" --set run.participation.client=0.4 --set run.participation.edge=0.7)
expect 0 run spec.yaml "${absent[@]}" --out run-absent --quiet
expect 0 up spec.yaml "${absent[@]}" --out up-absent --quiet
same_output run-absent up-absent || fail "absences: up differs from run"
python3 - <<'PYTHON' || fail "the account of absences"
import csv, json
p = json.load(open("run-absent/summary.json"))["privacy"]
rows = [float(r["rho"]) for r in csv.DictReader(open("run-absent/trace.csv"))]
assert 3 <= p["rounds"] <= 11 and abs(p["deviation"] - 0.5 * (2 * p["rounds"] / 50) ** 0.5) < 1e-12, p
assert rows[-1] == 50 and all(a <= b for a, b in zip(rows, rows[1:])) and abs(rows[1] - 50 * 2 / p["rounds"]) < 1e-9, rows
PYTHON

# ---- noise by secrets ----
expect 0 up spec.yaml --set privacy.noise=secret --set run.seed=1 --state state --keep-state --out secret --quiet --durability process
cmp -s run/model.csv secret/model.csv && fail "the noise of secrets is that of the seed"
find state -name noise.key ! -perm 600 | grep . && fail "a key that others may read"
[ "$(find state -name noise.key | wc -l)" = 2 ] || fail "not one key for each process of clients"
grep -q '"guaranteed":.*true' secret/summary.json || fail "not guaranteed"
# a state that goes back would repeat noise; only one that is synced has room behind its snapshot (store_file.c)
find state -type f -name state -size -1024k | grep . && fail "states with noise that a loss of power takes back"
rm state/e0++clients/noise.key
expect 2 client spec.yaml --set privacy.noise=secret --all-of e0 --state state/e0++clients --broker mqtt://127.0.0.1:1
grep -q 'noise.key is missing' stderr.txt || { fail "a missing key is drawn anew"; cat stderr.txt >&2; }
expect 0 up spec.yaml --set privacy.noise=secret --out other --quiet
cmp -s other/model.csv secret/model.csv && fail "two runs with the same noise"
# A key that outlives its run would give the next run, perhaps with other rows, the same noise: it cancels in their difference.
[ -e spec-state ] && fail "the keys of the noise outlive their run: $(find spec-state)"

# ---- planning ----
expect 0 privacy spec.yaml --trials 2
python3 - <<'PYTHON' || { fail "hfsad privacy"; cat stdout.txt >&2; }
lines = open("stdout.txt").read().splitlines()
assert lines[0].startswith("budget         rho 50, epsilon "), lines[0]
rows = [l.split() for l in lines[4:7]]
assert [r[:2] for r in rows] == [["1", "2"], ["3", "6"], ["6", "12"]], rows
assert rows[2][2] == "0.346" and all(len(r) == 6 and float(r[4][:-1]) > 0 for r in rows), rows  # 0.5 sqrt(2 * 12 / 50)
PYTHON
expect 0 privacy spec.yaml "${absent[@]}" --trials 1
python3 - <<'PYTHON' || fail "hfsad privacy with absences: other rounds than those of the run"
import json
rounds = json.load(open("run-absent/summary.json"))["privacy"]["rounds"]
assert open("stdout.txt").read().splitlines()[6].split()[:2] == ["6", str(rounds)], rounds
PYTHON
expect_line 2 privacy spec.yaml --set privacy.rho=none --set privacy.clip=none
says 'no privacy.clip and no budget'

# ---- refused ----
for one in run.polish=true features.standardize=true algorithm=star prior.cloud.penalty=l1; do
    expect_line 2 run spec.yaml --set $one --out x --quiet
    says "privacy with noise: ${one%%[.=]*}"
done
expect_line 2 run spec.yaml --set privacy.rho=1e-9 --out x --quiet
says 'nothing but noise'
for one in clip=5e-324 clip=1e+300 rho=1e-300; do # which steps and variances cannot have
    expect_line 2 run spec.yaml --set privacy.$one --out x --quiet
    says 'privacy with noise: .*1e-'
done
expect_line 2 path spec.yaml --out x --quiet
says 'would spend the budget'
expect 0 run spec.yaml --set run.iterations=6 --set output.checkpoint=true --out kept --quiet
expect_line 2 run spec.yaml --resume kept --set run.iterations=9 --set output.checkpoint=true --quiet
says 'the privacy budget was divided; keep it'
finish
