#!/usr/bin/env bash
# personal: groups with secure aggregation: masked answers add up to the plain ones; run, up private and up fixed write the same bytes, also
# under kills and with replay; the cloud has models and sizes of groups, and no row, weight or name of a client; each client writes its own
# model and weights; no group is smaller than a cohort; a question for the weights of one client is refused. Needs HFSAD.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"
. "$tests/federate.sh"
export PYTHONPATH=$tests PYTHONDONTWRITEBYTECODE=1

python3 - <<'PYTHON'
import random
random.seed(5)
models = ([1, -2, 0.5], [-1, 1, 0.5])
with open("data.csv", "w") as f:
    f.write("edge,client,y,u,v,w\n")
    for c in range(14):
        for _ in range(12):
            x = [random.gauss(0, 1), random.gauss(0, 100), random.gauss(0, 0.01)]
            s = sum(a * b * k for a, b, k in zip(models[c % 3 == 0], x, (1, 0.01, 100)))
            f.write(f"e,c{c},{s + random.gauss(0, 0.3)},{x[0]},{x[1]},{x[2]}\n")
PYTHON
cat >spec.yaml <<'YAML'
data: data.csv
loss: {kind: absolute}
features: {intercept: global}
personal: groups
run: {iterations: 4, polish: false}
algorithm: hfsad
output: {clients: false}
YAML
cat >broker.in <<'CONF'
listener 1883 127.0.0.1
allow_anonymous true
CONF
start_broker broker.in

secure=(privacy.aggregation=secure privacy.cohort=5)
sets() { for s in "$@"; do printf -- '--set\n%s\n' "$s"; done; }
mapfile -t secure_sets < <(sets "${secure[@]}")
mapfile -t fixed_sets < <(sets federation.wire=fixed privacy.cohort=5)

# ---- the same bytes ----
federate fixed 0 federation.wire=fixed privacy.cohort=5
gap=150 federate private 8 "${secure[@]}"
python3 "$tests/check_masks.py" private.txt fixed.txt >masks.txt 2>&1 || { fail "masks"; cat masks.txt >&2; }
expect 0 run spec.yaml "${secure_sets[@]}" --out run
grep -q '^groups  *2 found in' stdout.txt || fail "groups: $(grep -A 3 '^groups' stdout.txt)"
expect 0 run spec.yaml "${fixed_sets[@]}" --out run-fixed --quiet
same_output run-fixed fixed || fail "up fixed differs from run"
same_output run private || fail "up private differs from run"
cmp -s run/model.csv run-fixed/model.csv || fail "secure and fixed have other models"

# ---- what the cloud has, and what the clients have ----
"$HFSAD" assign --model private --data data.csv >assigned.csv || fail "assign"
until_true 20 test -s own-private/groups.csv || fail "the clients have not written their weights"
python3 - <<'PYTHON' || fail "files of cloud and clients"
import csv, json, math
s = json.load(open("private/summary.json"))
assert [g["clients"] for g in s["groups"]] == [9, 5], s["groups"]
assert not any(g.get("names") for g in s["groups"]), s["groups"]
assert "e/c" not in open("private/summary.json").read() + open("private/model.csv").read()
table = lambda name: {r["node"]: r for r in csv.DictReader(open(name))}
own, weights, assigned = table("own-private/model.csv"), table("own-private/groups.csv"), table("assigned.csv")
assert len(own) == len(weights) == 14, (len(own), len(weights))
models = [g["model"] for g in s["groups"]]
data = {}
for r in csv.DictReader(open("data.csv")):
    data.setdefault("e/" + r["client"], []).append([float(r[k]) for k in "yuvw"])
for node, r in own.items():
    w = [float(r[k]) for k in ("w1", "w2", "w3", "intercept")]
    p = [float(weights[node]["p%d" % k]) for k in (1, 2)]
    # by the definition, from the rows and the cloud's summary
    f = [sum(abs(y - m[0] * a - m[1] * b - m[2] * c - m[3]) for y, a, b, c in data[node]) for m in models]
    e = [g["share"] * math.exp((min(f) - x) / s["personal"]["scale"]) for g, x in zip(s["groups"], f)]
    assert all(abs(a - b / sum(e)) < 1e-9 for a, b in zip(p, e)), (node, p, e)
    assert int(weights[node]["group"]) == int(assigned[node]["group"]) == 1 + (int(node[3:]) % 3 == 0), node
    mean = [sum(q * m[i] for q, m in zip(p, models)) for i in range(4)]
    assert all(abs(a - b) <= 1e-9 * (1 + abs(b)) for a, b in zip(w, mean)), (node, w, mean)
PYTHON
grep -rlq 'e/c' fixed private --include='*.csv' && fail "the cloud names clients"

# ---- a client that was killed after the last question has its groups in its state folder ----
[ "$(find state-private/client -name groups.last | wc -l)" = 1 ] || fail "the groups are not in the state folder: $(ls state-private/client)"

# ---- asynchronous, and its replay ----
expect 0 up spec.yaml "${secure_sets[@]}" --set federation.mode=async --out async --quiet
expect 0 run spec.yaml "${secure_sets[@]}" --set federation.mode=async --replay async/record --out replay --quiet
cmp -s async/model.csv replay/model.csv || fail "the replay has another model"
python3 - <<'PYTHON' || fail "the replay has other groups"
import json
a, b = (json.load(open(name + "/summary.json"))["groups"] for name in ("async", "replay"))
assert a == b and len(a) == 2, (a, b)
PYTHON

# ---- no group smaller than a cohort ----
expect 0 run spec.yaml --set privacy.aggregation=secure --set privacy.cohort=6 --out large
grep -q '^groups  *1: all clients' stdout.txt || fail "a group of 5 with cohorts of 6: $(grep -A 3 '^groups' stdout.txt)"
finish
