#!/usr/bin/env bash
# hfsad predict from end to end: every column recomputed from model.csv and the data, whose model is taken, refusals
# that leave nothing behind, full disks, interrupts. Needs HFSAD, the path of the program.
# shellcheck source=tests/shell.sh
. "$(dirname "$0")/shell.sh"

cat >make_data.py <<'PYTHON'
"""FILE with a random number of rows for each client: make_data.py FILE KIND SEED [weight] EDGE:CLIENT…; the rows of all
clients are mixed."""
import random, sys

file, kind, seed, *nodes = sys.argv[1:]
weights = nodes[0] == "weight"
random.seed(int(seed))
M = 4
truth = [1.5, 0.0, -2.0, 0.5]
rows = [n.split(":") for n in nodes[weights:] for _ in range(random.randint(1, 6))]
random.shuffle(rows)
with open(file, "w") as f:
    f.write("edge,client,y," + ("weight," if weights else "") + ",".join(f"x{m + 1}" for m in range(M)) + "\n")
    for edge, client in rows:
        x = [random.gauss(0, 1) for _ in range(M)]
        s = sum(a * b for a, b in zip(x, truth)) + random.gauss(0, 0.3)
        y = {"square": s * s, "line": s, "sign": 1 if s > 0 else -1}[kind]
        weight = [repr(random.uniform(0.1, 3))] if weights else []
        f.write(",".join([edge, client, repr(y)] + weight + [repr(v) for v in x]) + "\n")
PYTHON

cat >check.py <<'PYTHON'
"""check.py MODEL DATA PREDICTIONS WITH: recomputes the predictions; overrides match whole names or edge/*."""
import csv, fnmatch, json, math, sys

folder, data, predictions, whose = sys.argv[1:]
settings = json.load(open(folder + "/summary.json"))["settings"]
head, *body = csv.reader(open(folder + "/model.csv"))
intercept = head[-1] == "intercept"
model = {r[0]: list(map(float, r[1:])) for r in body}
names, *rows = csv.reader(open(data))
features = [i for i, n in enumerate(names) if n.startswith("x")]
count, wanted, kinds, order = {}, {}, set(), []


def full(edge, client):
    return edge + "/" + client if edge else client


def parent(node):
    return node.rsplit("/", 1)[0] if "/" in node else "cloud"


def chosen(client):
    if whose == "cloud":
        return "cloud"
    if whose == "edge":
        return parent(client)
    while client not in model:
        assert whose == "auto"
        client = parent(client)
    return client


def kind_of(client):
    kind = settings["loss"]["kind"]
    for o in settings["overrides"]:
        if fnmatch.fnmatchcase(client, o["node"]):
            kind = o.get("loss", {}).get("kind", kind)
    return kind


for r in rows:
    row = dict(zip(names, r))
    client = full(row["edge"], row["client"])
    count[client] = count.get(client, 0) + 1
    w = model[chosen(client)]
    s = math.fsum(float(r[i]) * w[m] for m, i in enumerate(features)) + (w[-1] if intercept else 0)
    kind = kind_of(client)
    kinds.add(kind)
    prediction = s * s if kind == "phase-retrieval" else 1 / (1 + math.exp(-s)) if kind == "logistic" else s
    label = (1 if s >= 0 else -1) if kind in ("logistic", "hinge") else None
    order.append((row["edge"], row["client"], count[client]))
    wanted[order[-1]] = prediction, label, chosen(client), float(row["y"])

labels = bool(kinds & {"logistic", "hinge"})
head, *body = csv.reader(open(predictions))
assert head == ["edge", "client", "row", "prediction"] + ["label"] * labels + ["node", "y"], head
assert len(body) == len(rows), (len(body), len(rows))
for place, r in enumerate(body):
    row = dict(zip(head, r))
    key = row["edge"], row["client"], int(row["row"])
    assert key == order[place], (order[place], key)
    prediction, label, node, y = wanted.pop(key)
    assert math.isclose(float(row["prediction"]), prediction, rel_tol=1e-11, abs_tol=1e-12), (row, prediction)
    assert row["prediction"] == "%.17g" % float(row["prediction"]), row
    assert row["node"] == node and float(row["y"]) == y, (row, node, y)
    assert not labels or row["label"] == ("" if label is None else str(label)), (row, label)
PYTHON

tree="edge1:a edge1:b region/edge2:c region/edge2:d :e"
others="edge1:new region/edge3:f region:g :h other/place:i"

# recompute NAME KIND LOSS [SPEC LINE]: trains on the tree's clients and predicts for them and for others.
recompute() {
    # shellcheck disable=SC2086
    python3 make_data.py "$1.csv" "$2" 1 $tree
    # shellcheck disable=SC2086
    python3 make_data.py "$1-test.csv" "$2" 2 weight $tree
    # shellcheck disable=SC2086
    python3 make_data.py "$1-all.csv" "$2" 3 $tree $others
    printf 'data: %s.csv\nloss: %s\n%s\n' "$1" "$3" "${4-}" >"$1.yaml"
    expect 0 run "$1.yaml" --out "$1" --quiet --set run.iterations=5
    checked "$1" "$1" edge
}
# checked MODEL DATA CHOICES…
checked() {
    local data=$2 with
    for with in "${@:3}"; do
        expect 0 predict --model "$1" --data "$data-test.csv" --with "$with"
        python3 check.py "$1" "$data-test.csv" stdout.txt "$with" || fail "$1: wrong predictions with $with"
        [ -s stderr.txt ] && fail "$1: something on stderr"
    done
    expect 0 predict --model "$1" --data "$data-all.csv" --out "$1-predictions.csv"
    [ -s stdout.txt ] && fail "$1: something on stdout beside --out"
    python3 check.py "$1" "$data-all.csv" "$1-predictions.csv" auto || fail "$1: wrong predictions for new clients"
}

recompute square square "{kind: phase-retrieval}"
recompute tilted line "{kind: quantile, tau: 0.3}"
recompute least line "{kind: squared}"
recompute median line "{kind: absolute}"
recompute robust line "{kind: huber, delta: 0.5}"
recompute chance sign "{kind: logistic}"
recompute margin sign "{kind: hinge}"
recompute mixed sign "{kind: squared}" "overrides: [{node: 'edge1/*', loss: {kind: logistic}}, {node: edge1/b, loss: {kind: hinge}}]"
grep -q '^,e,1,[^,]*,,e,' <("$HFSAD" predict --model mixed --data mixed-test.csv) || fail "mixed: a label where there is none"

echo "-- an intercept"
cp -r tilted shifted
awk -F, -v OFS=, 'NR == 1 { print $0, "intercept" } NR > 1 { print $0, NR / 7 }' tilted/model.csv >shifted/model.csv
checked shifted tilted auto client edge cloud
cmp -s shifted-predictions.csv tilted-predictions.csv && fail "the intercept changes nothing"

echo "-- without the clients' models"
expect 0 run tilted.yaml --out plain --quiet --set run.iterations=5 --set output.clients=false
# Without y the same predictions; files with and without it do not go together.
cut -d, -f1,2,4- tilted-all.csv >unlabelled.csv
expect 0 predict --model plain --data unlabelled.csv --out unlabelled-predictions.csv
expect 0 predict --model plain --data tilted-all.csv --out labelled-predictions.csv
[ "$(cut -d, -f1-5 labelled-predictions.csv)" = "$(cat unlabelled-predictions.csv)" ] || fail "without y"
mkdir -p half/edge1
printf 'y,x1,x2,x3,x4\n1,1,2,3,4\n' >half/edge1/a.csv
printf 'x1,x2,x3,x4\n1,2,3,4\n' >half/edge1/b.csv
expect_line 2 predict --model plain --data half
says 'b.csv has no column "y", unlike the previous files'

expect 0 predict --model plain --data tilted-all.csv --out plain.csv
python3 check.py plain tilted-all.csv plain.csv auto || fail "wrong predictions by edges"
expect_line 2 predict --model plain --data tilted.csv --with client
says "output.clients"

echo "-- refusals"
cp tilted-predictions.csv before.csv
# refused MESSAGE ARGUMENTS…: exit status 2, one line, an earlier file is as it was and there is no new one.
refused() {
    local message=$1
    shift
    expect_line 2 predict "$@" --out tilted-predictions.csv
    says "$message"
    cmp -s tilted-predictions.csv before.csv || { fail "written although refused: $*"; cp before.csv tilted-predictions.csv; }
    expect_line 2 predict "$@" --out new/folder/file.csv
    [ ! -e new ] || { fail "made although refused: $*"; rm -rf new; }
    expect_line 2 predict "$@"
    [ -s stdout.txt ] && fail "printed although refused: $*"
}
refused "the client h has no model in tilted" --model tilted --data tilted-all.csv --with client
refused "the edge .* has no model in tilted" --model tilted --data tilted-all.csv --with edge
refused "did you mean client" --model tilted --data tilted.csv --with clients
refused "--model DIR is missing" --data tilted.csv
refused "--data FILE is missing" --model tilted
refused "nowhere/summary.json cannot be read: No such file" --model nowhere --data tilted.csv
refused "nothing.csv" --model tilted --data nothing.csv
cut -d, -f1-6 tilted.csv >narrow.csv
refused "narrow.csv has 3 features, but the model in tilted has 4" --model tilted --data narrow.csv
sed 's/$/,1/; 1s/,1$/,x5/' tilted.csv >wide.csv
refused "wide.csv has 5 features, but the model in tilted has 4" --model tilted --data wide.csv
sed '3s/,[^,]*$/,nan/' tilted.csv >hole.csv
refused "hole.csv:3:" --model tilted --data hole.csv
cp -r tilted cut && head -c -9 tilted/model.csv >cut/model.csv
refused "cut/model.csv:[0-9]*: the file is cut short" --model cut --data tilted.csv
head -n -1 tilted/model.csv >cut/model.csv
refused "cut/model.csv has [0-9]* models, but the summary.json beside it states" --model cut --data tilted.csv
sed '3s/,[^,]*/,inf/' tilted/model.csv >cut/model.csv
refused 'cut/model.csv:3: w1 is "inf"; expected a finite number' --model cut --data tilted.csv
awk -F, -v OFS=, 'NR > 1 { $2 = "1e308"; $3 = "1e308" } 1' tilted/model.csv >cut/model.csv
sed 's/^\([^,]*,[^,]*,[^,]*\),[^,]*,[^,]*/\1,9,9/; 1s/,9,9/,x1,x2/' tilted.csv >large.csv
refused "the prediction of row 1 of .* is not finite" --model cut --data large.csv
sed '1s/x1,x2/x2,x1/' tilted.csv >swapped.csv
refused 'swapped.csv: feature 1 is "x2", but "x1" in tilted;' --model tilted --data swapped.csv
cp tilted/summary.json cut/summary.json
sed -i 's/"feature_names":.*/"feature_names": ["x1", 3],/' cut/summary.json
refused 'data.feature_names" is not a list' --model cut --data tilted.csv
sed -i '/"feature_names"/d' cut/summary.json
cp tilted/model.csv cut/model.csv
expect 0 predict --model cut --data swapped.csv
head -c 300 tilted/summary.json >cut/summary.json
refused "cut/summary.json is not a complete JSON object" --model cut --data tilted.csv

mkdir folder
expect_line 2 predict --model tilted --data tilted.csv --out folder
says "not a regular file"
expect_line 2 predict --model tilted --data tilted.csv --out new/
[ ! -e new ] || fail "a folder was made for a file without a name"
expect_line 2 predict --model tilted --data tilted.csv --out before.csv/below
cp tilted.csv own.csv
expect_line 2 predict --model tilted --data own.csv --out ./own.csv
says "would be replaced"
cmp -s own.csv tilted.csv || fail "the data was replaced"
expect_line 2 predict --model tilted --data tilted.csv --out tilted/model.csv
expect 0 predict --help
grep -q -- "--with WHOSE" stdout.txt || fail "the help does not list --with"

echo "-- files"
expect 0 predict --model tilted --data tilted.csv --out new/folder/file.csv
"$HFSAD" predict --model tilted --data tilted.csv | cmp -s - new/folder/file.csv || fail "--out and standard output differ"
[ "$(names new/folder)" = "file.csv " ] || fail "left beside the file: $(names new/folder)"

head -1 tilted.csv >long.csv
tail -n +2 tilted.csv | head -5 | awk '{ for (i = 0; i < 3000; i++) print }' >>long.csv
(
    failures=0
    ulimit -f 8
    expect_line 1 predict --model tilted --data long.csv --out new/folder/file.csv
    says "ulimit -f"
    expect_line 1 predict --model tilted --data long.csv --out another/file.csv
    exit "$failures"
) || fail "a full disk"
[ "$(names new/folder)" = "file.csv " ] && [ ! -e another ] || fail "a full disk left something"
"$HFSAD" predict --model tilted --data tilted.csv | cmp -s - new/folder/file.csv || fail "a full disk changed the file"
if [ -w /dev/full ]; then
    "$HFSAD" predict --model tilted --data tilted.csv >/dev/full 2>stderr.txt
    [ $? = 1 ] && says "standard output could not be written" || fail "a full standard output"
fi
"$HFSAD" predict --model tilted --data long.csv 2>stderr.txt | head -1 >/dev/null
[ "${PIPESTATUS[0]}" = 141 ] && [ ! -s stderr.txt ] || fail "a reader that went away"

echo "-- interrupts"
python3 - <<'PYTHON' || fail "interrupts"
import os, signal, subprocess

with open("large.csv", "w") as f:
    f.write("edge,client,y,x1,x2,x3,x4\n" + "edge1,a,1,1,2,3,4\n" * 300000)
for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
    p = subprocess.Popen(
        [os.environ["HFSAD"], "predict", "--model", "tilted", "--data", "large.csv", "--out", "interrupted/file.csv"],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        while p.poll() is None and not os.path.exists("interrupted"):
            pass
        p.send_signal(number)
        out, err = p.communicate(timeout=120)
    finally:
        p.kill()
    assert p.returncode == status, (number, p.returncode, err)
    assert [line for line in err.splitlines() if not line.startswith("row ")] == [
        "hfsad: interrupted; nothing was written"
    ], err
    assert out == "" and not os.path.exists("interrupted")
PYTHON

finish
