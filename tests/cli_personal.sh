#!/usr/bin/env bash
# personal: groups: the groups that the table and summary.json tell of are those of the data, `hfsad assign` gives the
# clients of the training their models and new clients their groups, and what cannot be done is said.
. "$(dirname "$0")/shell.sh"

cat >make.py <<'PYTHON'
import random
random.seed(3)
models = ([1, -2, 0.5], [-1, 1, 0.5])
def write(name, clients):
    with open(name, "w") as f:
        f.write("edge,client,y,u,v,w\n")
        for c in clients:
            for _ in range(25):
                x = [random.gauss(0, 1), random.gauss(0, 100), random.gauss(0, 0.01)]
                s = 3 + sum(a * b * k for a, b, k in zip(models[c % 3 == 0], x, (1, 0.01, 100)))
                f.write(f"e{c % 2},c{c},{s + random.gauss(0, 0.3)},{x[0]},{x[1]},{x[2]}\n")
write("data.csv", range(20))
write("new.csv", range(30, 40))
PYTHON
python3 make.py
cat >spec.yaml <<'YAML'
data: data.csv
loss: {kind: absolute}
features: {intercept: global}
personal: groups
YAML
expect 0 run spec.yaml --out out
grep -q '^groups  *2 found in' stdout.txt || fail "the table does not tell of the groups"
grep -q '2: 7 clients: e0/c0, ' stdout.txt || fail "the second group is not in the table"
expect 0 assign --model out --data data.csv
cp stdout.txt assigned.csv
expect 0 assign --model out --data new.csv
cp stdout.txt new-assigned.csv
python3 - <<'PYTHON' || fail "groups, models and assignment do not fit"
import csv, json
s = json.load(open("out/summary.json"))
assert s["personal"]["groups"] == 2 and s["personal"]["exchanges"] > 0, s["personal"]
assert [g["clients"] for g in s["groups"]] == [13, 7] and "names" not in s["groups"][0], s["groups"]
assert set(s["groups"][1]["names"]) == {f"e{c % 2}/c{c}" for c in range(20) if c % 3 == 0}
model = {r[0]: [float(v) for v in r[1:]] for r in list(csv.reader(open("out/model.csv")))[1:]}
rows = list(csv.DictReader(open("assigned.csv")))
assert len(rows) == 20
for r in rows:
    assert int(r["group"]) == 1 + (int(r["node"].split("c")[1]) % 3 == 0), r
    w = [float(r[k]) for k in ("w1", "w2", "w3", "intercept")]
    assert all(abs(a - b) <= 1e-6 * (1 + abs(b)) for a, b in zip(w, model[r["node"]])), (r, model[r["node"]])
    true = ([1, -0.02, 50, 3], [-1, 0.01, 50, 3])[int(r["group"]) - 1]
    assert all(abs(a - b) < 0.1 * (1 + abs(b)) for a, b in zip(w, true)), w
for r in csv.DictReader(open("new-assigned.csv")):
    assert int(r["group"]) == 1 + (int(r["node"].split("c")[1]) % 3 == 0), r
PYTHON

# Without the clients' models nothing of a client reaches the cloud but sums.
expect 0 run spec.yaml --set output.clients=false --out few
python3 -c 'import json; g = json.load(open("few/summary.json"))["groups"]; assert [x["clients"] for x in g] == [13, 7] and not g[1]["names"], g' ||
    fail "without the clients' models"
expect 0 assign --model few --data new.csv
cmp -s stdout.txt new-assigned.csv || fail "output.clients changes the groups"

expect 0 run spec.yaml --set groups.most=1 --out one
grep -q '^groups  *1: all clients' stdout.txt || fail "the table does not tell of one group"
expect 0 run spec.yaml --set link.client.penalty=mcp --out apart
grep -q '^groups  *not looked for: link' stdout.txt || fail "the table does not say why there are no groups"
expect 2 assign --model apart --data new.csv
grep -q 'personal: groups' stderr.txt || fail "no remedy: $(cat stderr.txt)"
# Only clients that have the cloud's model are counted as such: few iterations, and more.
for iterations in 3 2000; do
    expect 0 run spec.yaml --set personal=none --set link.client.penalty=mcp --set run.iterations=$iterations --out held-$iterations
    python3 - held-$iterations <<'PYTHON' || fail "the clients with the cloud's model, after $iterations iterations: $(grep -A 3 '^groups' stdout.txt)"
import csv, json, re, statistics, sys
columns = [[float(r[m]) for r in csv.DictReader(open("data.csv"))] for m in "uvw"]
mean, scale = [statistics.fmean(c) for c in columns], [statistics.pstdev(c) for c in columns]
model = {}
for r in list(csv.reader(open(sys.argv[1] + "/model.csv")))[1:]:  # of the columns as the links see them: standardised
    w = [float(v) for v in r[1:]]
    model[r[0]] = [v * s for v, s in zip(w, scale)] + [w[3] + sum(v * m for v, m in zip(w, mean))]
let_go = {n for g in json.load(open(sys.argv[1] + "/summary.json"))["groups"] for n in g.get("names", ())}
held = [n for n in model if "/" in n and n not in let_go]
most = 0.01 * max(abs(v) for v in model["cloud"][:3])
same = sum(max(abs(a - b) for a, b in zip(model[n], model["cloud"])) <= most for n in held)
text = " ".join(open("stdout.txt").read().split())
words = f"{len(held)} client{'s' * (len(held) != 1)} with the cloud's model" if same == len(held) else (
    f"that no link has let go, {same} of them with the cloud's model to 1%")
assert words in text, (words, text)
assert (same == len(held)) == (" found: %d client" % len(held) in text and "no link has let go" not in text)
PYTHON
done
cut -d, -f1,2,4- new.csv >blind.csv
expect 2 assign --model out --data blind.csv
grep -q 'no y' stderr.txt || fail "rows without y: $(cat stderr.txt)"
finish
