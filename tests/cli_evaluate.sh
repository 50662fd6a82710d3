#!/usr/bin/env bash
# hfsad evaluate from end to end: every figure of the table, of evaluation.csv and of evaluation.json recomputed from
# model.csv and the data; refusals that leave nothing behind; full disks. Needs HFSAD, the path of the program.
# shellcheck source=tests/shell.sh
. "$(dirname "$0")/shell.sh"

cat >make_data.py <<'PYTHON'
"""FILE with a random number of rows for each client: make_data.py FILE KIND SEED [weight] EDGE:CLIENT…; the rows of all
clients are mixed. truth.csv is the model behind them."""
import random, sys

file, kind, seed, *nodes = sys.argv[1:]
weights = nodes[0] == "weight"
random.seed(int(seed))
truth = [1.5, 0.0, -2.0, 0.5, 0.0]
with open("truth.csv", "w") as f:
    f.writelines(f"{t!r}\n" for t in truth)
rows = [n.split(":") for n in nodes[weights:] for _ in range(random.randint(1, 9))]
random.shuffle(rows)
with open(file, "w") as f:
    f.write("edge,client,y," + ("weight," if weights else "") + ",".join(f"x{m + 1}" for m in range(len(truth))) + "\n")
    for edge, client in rows:
        x = [random.gauss(0, 1) for _ in truth]
        s = sum(a * b for a, b in zip(x, truth)) + random.gauss(0, 1)
        y = {"square": s * s, "line": s, "sign": 1 if s > 0 else -1}[kind]
        weight = [repr(random.uniform(0.1, 3))] if weights else []
        f.write(",".join([edge, client, repr(y)] + weight + [repr(v) for v in x]) + "\n")
PYTHON

cat >check.py <<'PYTHON'
"""check.py MODEL DATA OUT WITH [TRUTH]: recomputes OUT/evaluation.csv, OUT/evaluation.json and stdout.txt."""
import csv, fnmatch, json, math, re, statistics, sys

folder, data, out, whose = sys.argv[1:5]
truth_path = sys.argv[5] if len(sys.argv) > 5 else None
truth = truth_path and [float(t) for t in open(truth_path)]
settings = json.load(open(folder + "/summary.json"))["settings"]
head, *body = csv.reader(open(folder + "/model.csv"))
intercept = head[-1] == "intercept"
model = {r[0]: list(map(float, r[1:])) for r in body}
F = len(head) - 1 - intercept
names, *rows = csv.reader(open(data))
features = [i for i, n in enumerate(names) if n.startswith("x")]


def parent(node):
    return node.rsplit("/", 1)[0] if "/" in node else "cloud"


def above(node):
    while node != "cloud":
        node = parent(node)
        yield node


def chosen(client):
    if whose == "cloud":
        return "cloud"
    if whose == "edge":
        return parent(client)
    while client not in model:
        assert whose == "auto"
        client = parent(client)
    return client


def law(client):
    l = dict(settings["loss"])
    for o in settings["overrides"]:
        if fnmatch.fnmatchcase(client, o["node"]):
            l.update(o.get("loss", {}))
    return l


def loss(l, y, s):
    kind, r = l["kind"], y - s
    if kind == "phase-retrieval":
        return abs(y - s * s)
    if kind == "quantile":
        return l["tau"] * r if r > 0 else (l["tau"] - 1) * r
    if kind == "absolute":
        return abs(r)
    if kind == "squared":
        return r * r / 2
    if kind == "huber":
        return r * r / 2 if abs(r) <= l["delta"] else l["delta"] * abs(r) - l["delta"] ** 2 / 2
    if kind == "logistic":
        return math.log1p(math.exp(-abs(y * s))) + max(0, -y * s)
    return max(0, 1 - y * s)


def same(a, b):
    return a == b or (a is not None and b is not None and math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12))


def number(text):
    return float(text) if text else None


def ratio(a, b):
    return a / b if b else None


clients = {}
for r in rows:
    row = dict(zip(names, r))
    client = (row["edge"] + "/" if row["edge"] else "") + row["client"]
    w = model[chosen(client)]
    s = math.fsum(float(r[i]) * w[m] for m, i in enumerate(features)) + (w[-1] if intercept else 0)
    y, l = float(row["y"]), law(client)
    clients.setdefault(client, []).append((float(row.get("weight", 1)), loss(l, y, s), y, s, l))


def figures(below):
    """Of the rows of these clients."""
    mine = [r for c in below for r in clients[c]]
    weight = math.fsum(r[0] for r in mine)
    f = {"rows": len(mine), "weight": weight, "loss": math.fsum(r[0] * r[1] for r in mine) / weight}
    sums = {c: math.fsum(r[0] * r[1] for r in clients[c]) for c in below}
    f["total"] = math.fsum(
        sums[c] / math.fsum(r[0] for r in clients[c]) if clients[c][0][4]["scale"] == "mean" else sums[c] for c in below
    )
    two = [r for r in mine if r[4]["kind"] in ("logistic", "hinge")]
    f["accuracy"] = ratio(math.fsum(r[0] for r in two if (r[3] >= 0) == (r[2] > 0)), math.fsum(r[0] for r in two))
    ranked = [r for r in mine if r[4]["kind"] == "quantile"]
    all_ranked = math.fsum(r[0] for r in ranked)
    f["coverage"] = ratio(math.fsum(r[0] for r in ranked if r[2] <= r[3]), all_ranked)
    tilted = [r[0] * max(r[4]["tau"] * (r[2] - r[3]), (r[4]["tau"] - 1) * (r[2] - r[3])) for r in ranked]
    f["pinball"] = ratio(math.fsum(tilted), all_ranked)
    f["tau"] = ratio(math.fsum(r[0] * r[4]["tau"] for r in ranked), all_ranked)
    numbers = [(r[0], r[2], r[3] ** 2 if r[4]["kind"] == "phase-retrieval" else r[3]) for r in mine if r not in two]
    w = math.fsum(r[0] for r in numbers)
    f["rmse"] = f["mae"] = f["r2"] = None
    if numbers:
        square = math.fsum(c * (y - p) ** 2 for c, y, p in numbers)
        mean = math.fsum(c * y for c, y, p in numbers) / w
        f["rmse"], f["mae"] = math.sqrt(square / w), math.fsum(c * abs(y - p) for c, y, p in numbers) / w
        f["r2"] = 1 - ratio(square, math.fsum(c * (y - mean) ** 2 for c, y, p in numbers)) if len({y for c, y, p in numbers}) > 1 else None
    count = lambda sign, right: math.fsum(r[0] for r in two if (r[2] > 0) == sign and ((r[3] >= 0) == (r[2] > 0)) == right)
    names = {"true_positive": (1, 1), "false_negative": (1, 0), "true_negative": (0, 1), "false_positive": (0, 0)}
    f.update({n: count(*k) if two else None for n, k in names.items()})
    f["auc"] = f["f1"] = f["calibration"] = None
    if two:
        f["f1"] = ratio(2 * f["true_positive"], 2 * f["true_positive"] + f["false_positive"] + f["false_negative"])
        pairs = [(a[0] * b[0], (a[3] > b[3]) + (a[3] == b[3]) / 2) for a in two if a[2] > 0 for b in two if b[2] < 0]
        f["auc"] = ratio(math.fsum(c * v for c, v in pairs), math.fsum(c for c, v in pairs))
    sure = [(r[0], 1 / (1 + math.exp(-r[3])), r[2] > 0) for r in two if r[4]["kind"] == "logistic"]
    if sure:
        bins = {}
        for c, p, up in sure:
            bins.setdefault(min(9, int(10 * p)), []).append(c * (p - up))
        f["calibration"] = math.fsum(abs(math.fsum(b)) for b in bins.values()) / math.fsum(r[0] for r in sure)
    return f


def support(node):
    if node not in model:
        return {"nonzero": None, "recall": None, "precision": None, "relative_error": None}
    w = model[node][:F]
    f = {"nonzero": sum(v != 0 for v in w)}
    if truth:
        hits = sum(v != 0 and t != 0 for v, t in zip(w, truth))
        f["recall"] = hits / sum(t != 0 for t in truth)
        f["precision"] = ratio(hits, f["nonzero"])
        signs = (1, -1) if law(node if node in clients else "cloud")["kind"] == "phase-retrieval" else (1,)
        size = math.fsum(t * t for t in truth)
        f["relative_error"] = min(math.fsum((v - g * t) ** 2 for v, t in zip(w, truth)) for g in signs) / size
    return f


inner = {"cloud"} | {a for c in clients for a in above(c)}
below = {n: [c for c in clients if n in above(c)] for n in inner}
found = {n: figures(below[n]) for n in inner}
found.update({c: figures([c]) for c in clients})
kinds = {r[4]["kind"] for c in clients.values() for r in c}
columns = ["node", "rows", "weight", "loss", "total"]
columns += ["accuracy"] * bool(kinds & {"logistic", "hinge"}) + ["coverage", "tau"] * ("quantile" in kinds)
columns += ["model", "nonzero"] + ["recall", "precision", "relative_error"] * bool(truth)
measures = ["rmse", "mae", "r2"] * bool(kinds - {"logistic", "hinge"})
measures += ["auc", "f1", "calibration", "true_positive", "false_positive", "true_negative", "false_negative"] * bool(
    kinds & {"logistic", "hinge"})
measures += ["pinball"] * ("quantile" in kinds)
columns += measures

head, *body = csv.reader(open(out + "/evaluation.csv"))
assert head == columns, head
assert sorted(r[0] for r in body) == sorted(found) and len(body) == len(found), body
assert body[0][0] == "cloud"
for r in body:
    row = dict(zip(head, r))
    node = row["node"]
    used = chosen(node) if node in clients else node if node in model else ""
    assert row["model"] == used, (row, used)
    wanted = {**found[node], **support(used)}
    for key in columns:
        if key not in ("node", "model"):
            assert same(number(row[key]), wanted[key]), (node, key, row[key], wanted[key])

summary = json.load(open(out + "/evaluation.json"))
edges = sorted(inner - {"cloud"})
worst = lambda nodes: max(found[n]["loss"] for n in nodes)
assert summary["model"] == folder and summary["data"] == data and summary["with"] == whose
assert summary.get("truth") == truth_path
assert summary["loss"]["kind"] == settings["loss"]["kind"] and summary["loss"]["scale"] == settings["loss"]["scale"]
for key in ("tau", "delta"):
    assert summary["loss"].get(key, settings["loss"].get(key)) == settings["loss"].get(key), key
assert (summary["edges"], summary["clients"], summary["rows"]) == (len(edges), len(clients), len(rows))
assert same(summary["weight"], found["cloud"]["weight"])
assert same(summary["mean_loss"], found["cloud"]["loss"]) and same(summary["total_loss"], found["cloud"]["total"])
assert ("worst_edge" in summary) == bool(edges)
for key, nodes in (("worst_edge", edges), ("worst_client", clients)):
    if nodes:
        assert same(summary[key]["loss"], worst(nodes)), (key, summary[key], worst(nodes))
        assert summary[key]["node"] in nodes and same(found[summary[key]["node"]]["loss"], worst(nodes))
median = statistics.median(found[c]["loss"] for c in clients)
assert same(summary["median_client_loss"], median), (summary["median_client_loss"], median)
for key in ["accuracy", "coverage", "tau"] + measures:
    assert (key in summary) == (key in columns)
    assert key not in summary or same(summary[key], found["cloud"][key]), key
tier = lambda c: "cloud" if chosen(c) == "cloud" else "own" if chosen(c) == c else "edge"
used = [tier(c) for c in clients]
assert summary["clients_by_model"] == {t: used.count(t) for t in ("own", "edge", "cloud")}, used
assert summary["features"] == F
assert set(summary["cloud_model"]) == set(support("cloud"))
for key, value in support("cloud").items():
    assert same(summary["cloud_model"][key], value), key

table = {}
for line in open("stdout.txt"):
    cells = re.split(" {2,}", line.rstrip("\n"))
    table.setdefault(cells[0], cells[1:])
near = lambda text, value: math.isclose(float(text), value, rel_tol=1e-4, abs_tol=1e-4)
assert near(table["mean loss"][0], found["cloud"]["loss"]) and near(table["total loss"][0], found["cloud"]["total"])
assert near(table["worst client"][0], worst(clients)) and table["worst client"][1] == summary["worst_client"]["node"]
assert near(table["median client"][0], median)
assert table["non-zero"][0].split()[:3] == [str(support("cloud")["nonzero"]), "of", str(F)]
shown = [n for n in table if n in found and n != "cloud"]
assert len(shown) == min(10, len(edges)) + min(10, len(clients)), shown
for n in shown:
    assert table[n][0] == str(found[n]["rows"]) and near(table[n][1], found[n]["loss"]), (n, table[n])
for group in (edges, clients):  # the worst, the worst first
    losses = [found[n]["loss"] for n in shown if n in group]
    ordered = sorted((found[n]["loss"] for n in group), reverse=True)[: len(losses)]
    assert all(map(same, losses, ordered)), (losses, ordered)
PYTHON

tree="edge1:a edge1:b region/edge2:c region/edge2:d :e"
others="edge1:new region/edge3:f region:g :h other/place:i other/place:j other/place:k"

# recompute NAME KIND LOSS [SPEC LINE]: trains on the tree's clients and evaluates on them and on others.
recompute() {
    # shellcheck disable=SC2086
    python3 make_data.py "$1.csv" "$2" 1 weight $tree
    # shellcheck disable=SC2086
    python3 make_data.py "$1-test.csv" "$2" 2 weight $tree
    # shellcheck disable=SC2086
    python3 make_data.py "$1-all.csv" "$2" 3 $tree $others
    printf 'data: %s.csv\nloss: %s\n%s\n' "$1" "$3" "${4-}" >"$1.yaml"
    expect 0 run "$1.yaml" --out "$1" --quiet --set run.iterations=20
    checked "$1" "$1" client
}
# checked MODEL DATA CHOICES…
checked() {
    local data=$2 with
    for with in "${@:3}"; do
        expect 0 evaluate --model "$1" --data "$data-test.csv" --with "$with" --out "$1-out" --truth truth.csv
        python3 check.py "$1" "$data-test.csv" "$1-out" "$with" truth.csv || fail "$1: wrong figures with $with"
        [ -s stderr.txt ] && fail "$1: something on stderr"
    done
    expect 0 evaluate --model "$1" --data "$data-all.csv" --out "$1-all"
    python3 check.py "$1" "$data-all.csv" "$1-all" auto || fail "$1: wrong figures for new clients"
    [ "$(names "$1-all")" = "evaluation.csv evaluation.json " ] || fail "$1: files $(names "$1-all")"
}

sparse="prior: {cloud: {penalty: l1, lambda: 1, weight: 9}, edge: {penalty: mcp, lambda: 1, gamma: 3, weight: 5}}"
recompute square square "{kind: phase-retrieval}" "$sparse"
recompute tilted line "{kind: quantile, tau: 0.3}" "$sparse"
recompute least line "{kind: squared, scale: mean}"
recompute median line "{kind: absolute}"
recompute robust line "{kind: huber, delta: 0.5}"
recompute chance sign "{kind: logistic}"
recompute margin sign "{kind: hinge}"
recompute mixed sign "{kind: squared}" "overrides: [{node: 'edge1/*', loss: {kind: logistic, scale: mean}},
  {node: edge1/b, loss: {kind: hinge}}, {node: 'region/edge2/*', loss: {kind: quantile, tau: 0.7}},
  {node: 'region/edge2/d', loss: {tau: 0.2}}, {node: e, loss: {kind: huber, delta: 0.3}}]"

echo "-- an intercept, a model of zeros, clients right below the cloud"
cp -r tilted shifted
awk -F, -v OFS=, 'NR == 1 { print $0, "intercept" } NR > 1 { print $0, NR / 7 }' tilted/model.csv >shifted/model.csv
checked shifted tilted auto client edge cloud
cmp -s shifted-all/evaluation.csv tilted-all/evaluation.csv && fail "the intercept changes nothing"
cp -r tilted empty
awk -F, 'NR > 1 { $0 = $1 ",0,0,0,0,0" } 1' tilted/model.csv >empty/model.csv
checked empty tilted edge
grep -q "precision  *none" <("$HFSAD" evaluate --model empty --data tilted.csv --truth truth.csv) || fail "0/0 is not said"
python3 make_data.py flat.csv line 4 :a :b :c :d
printf 'data: flat.csv\nloss: {kind: absolute}\n' >flat.yaml
expect 0 run flat.yaml --out flat --quiet --set run.iterations=5
expect 0 evaluate --model flat --data flat.csv --out flat-out
python3 check.py flat flat.csv flat-out auto || fail "wrong figures without edges"
grep -q "worst edge" stdout.txt && fail "a worst edge where there is none"

# On the data of a run whose links tie nothing, the clients' losses are all there is to its objective.
echo "-- against the run's own objective"
for scale in sum mean; do
    for features in "{}" "{intercept: client, standardize: true}"; do
        printf 'data: robust.csv\nloss: {kind: huber, delta: 0.5, scale: %s}\nfeatures: %s\n%s\n' $scale "$features" \
            'link: {client: {penalty: none}, edge: {penalty: none}}' >untied.yaml
        expect 0 run untied.yaml --out untied --quiet --set run.iterations=2 --set schedule.client.c=1
        expect 0 evaluate --model untied --data robust.csv --with client --out untied-out
        python3 - <<'PYTHON' || fail "the loss on the training data is not the objective, $scale, $features"
import json, math

run, total = json.load(open("untied/summary.json")), json.load(open("untied-out/evaluation.json"))["total_loss"]
assert run["figures"]["objective"] > 1e-3, run["figures"]
assert math.isclose(run["figures"]["objective"], total, rel_tol=1e-9), (run["figures"]["objective"], total)
PYTHON
    done
done

echo "-- refusals"
cp -r tilted-all before
# refused MESSAGE ARGUMENTS…: exit status 2, one line, earlier files are as they were and there are no new ones.
refused() {
    local message=$1
    shift
    expect_line 2 evaluate "$@" --out tilted-all
    says "$message"
    diff -r tilted-all before >/dev/null || { fail "written although refused: $*"; rm -rf tilted-all && cp -r before tilted-all; }
    expect_line 2 evaluate "$@" --out new/folder
    [ ! -e new ] || { fail "made although refused: $*"; rm -rf new; }
    expect_line 2 evaluate "$@"
    [ -s stdout.txt ] && fail "printed although refused: $*"
}
refused "the client h has no model in tilted" --model tilted --data tilted-all.csv --with client
refused "the edge .* has no model in tilted" --model tilted --data tilted-all.csv --with edge
refused "known: auto, client, edge, cloud" --model tilted --data tilted.csv --with nobody
refused "--model DIR is missing" --data tilted.csv
refused "--data FILE is missing" --model tilted
refused "nowhere/summary.json cannot be read: No such file" --model nowhere --data tilted.csv
cut -d, -f1-6 tilted-all.csv >narrow.csv
refused "narrow.csv has 3 features, but the model in tilted has 5" --model tilted --data narrow.csv
head -2 truth.csv >short.csv
refused "2 numbers for truth, expected 5" --model tilted --data tilted.csv --truth short.csv
sed 's/.*/0/' truth.csv >zeros.csv
refused "truth is all zero" --model tilted --data tilted.csv --truth zeros.csv
refused "absent.csv" --model tilted --data tilted.csv --truth absent.csv
refused "has y = .*: the logistic loss takes the labels -1 and 1" --model chance --data tilted.csv
refused "has y = .*: the hinge loss takes the labels -1 and 1" --model margin --data tilted.csv
sed 's/^\([^,]*,[^,]*\),[^,]*/\1,1e150/; 1s/1e150/y/' least-all.csv >large.csv
awk -F, 'NR > 1 { $0 = $1 ",1e160,1e160,0,0,0" } 1' least/model.csv >huge.csv
cp -r least huge && mv huge.csv huge/model.csv
refused "the loss of row 1 of .* is not finite" --model huge --data large.csv
cp -r tilted cut && head -c -9 tilted/model.csv >cut/model.csv
refused "cut/model.csv:[0-9]*: the file is cut short" --model cut --data tilted.csv
sed 's/"quantile"/"mine"/' tilted/summary.json >cut/summary.json
refused "loss.kind" --model cut --data tilted.csv
mkdir own && cp tilted-all.csv own/evaluation.csv
expect_line 2 evaluate --model tilted --data own/evaluation.csv --out own
says "would be replaced"
cmp -s own/evaluation.csv tilted-all.csv || fail "the data was replaced"
cp truth.csv own/evaluation.json
expect_line 2 evaluate --model tilted --data tilted.csv --truth own/evaluation.json --out own
expect_line 2 evaluate --model tilted --data tilted.csv --out truth.csv
expect 0 evaluate --help
grep -q -- "--truth FILE" stdout.txt || fail "the help does not list --truth"
expect 0 evaluate --model tilted --data tilted.csv --quiet
[ -s stdout.txt ] && fail "--quiet prints"

echo "-- a full disk"
{ head -1 tilted-all.csv; for i in $(seq 400); do echo "edge1,n$i,1,1,2,3,4,5"; done; } >long.csv
(
    failures=0
    ulimit -f 8
    expect_line 1 evaluate --model tilted --data long.csv --out tilted-all
    expect_line 1 evaluate --model tilted --data long.csv --out new/folder
    exit "$failures"
) || fail "a full disk"
diff -r tilted-all before >/dev/null || fail "a full disk changed the files"
[ ! -e new ] || fail "a full disk left a folder"

finish
