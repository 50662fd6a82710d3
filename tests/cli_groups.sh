#!/usr/bin/env bash
# Groups of clients: hfsad evaluate by groups, its figures summed up anew from those of the clients, and hfsad plot, its
# picture against model.csv; the groups of a run and those of a file; bad input. Needs HFSAD, the path of the program.
# shellcheck source=tests/shell.sh
. "$(dirname "$0")/shell.sh"

"$HFSAD" generate clustered --names gate,dev --edges 3 --clients 10 --features 4 --nonzero 2 --rows 30 --test-rows 7 --groups 3 \
    --minority 0.2 --distance 4 --loss squared --out data >/dev/null || fail "no data"
expect 0 run data/spec.yaml --quiet --set run.iterations=60 --out own
expect 0 run data/spec.yaml --quiet --set run.iterations=60 --set link.client.penalty=tv --out one

cat >check.py <<'PYTHON'
"""check.py OUT GROUPS.CSV [FOUND]: evaluation.json and stdout.txt by group, from evaluation.csv. FOUND: the run named them."""
import csv, json, sys

out, file = sys.argv[1:3]
group = dict(list(csv.reader(open(file)))[1:])
clients = [r for r in csv.DictReader(open(out + "/evaluation.csv")) if "/" in r["node"]]
labels = list(dict.fromkeys(group.values()))
said = {g["group"]: g for g in json.load(open(out + "/evaluation.json"))["groups"]}
table = [line.split() for line in open("stdout.txt")]
assert set(said) == set(labels), (said, labels)
for label in labels:
    mine = [r for r in clients if group[r["node"].split("/")[1]] == label]
    rows = sum(int(r["rows"]) for r in mine)
    loss = sum(int(r["rows"]) * float(r["loss"]) for r in mine) / rows
    error = sum(float(r["relative_error"]) for r in mine) / len(mine)
    g = said[label]
    assert (g["clients"], g["rows"]) == (len(mine), rows), (g, len(mine), rows)
    assert abs(g["mean_loss"] - loss) < 1e-9 * loss and abs(g["relative_error"] - error) < 1e-9 * error, (g, loss, error)
    assert [label, str(len(mine)), str(rows), "%.6g" % loss, "%.6g" % error] in table, (label, table)
PYTHON
for run in own one; do
    expect 0 evaluate --model $run --data data/test.csv --groups data/groups.csv --truth data/truth-2.csv --out $run-figures
    python3 check.py $run-figures data/groups.csv || fail "$run: figures by the groups of a file"
done
# whole names; a name for clients of several edges
sed '2,$s/^dev\([0-9]\),/gate1\/dev\1,/; s/^dev10,/gate1\/dev10,/' data/groups.csv >whole.csv
grep -q '^gate1/dev10,' whole.csv || fail "no whole names"
expect 0 evaluate --model own --data data/test.csv --groups whole.csv --truth data/truth-2.csv --out whole-figures
diff own-figures/evaluation.json whole-figures/evaluation.json >/dev/null || fail "whole names make a difference"

# the groups that the run found are the file's, the cloud's first
expect 0 evaluate --model own --data data/test.csv --truth data/truth-2.csv --out found
python3 check.py found data/groups.csv || fail "the groups of the run"
expect 0 evaluate --model one --data data/test.csv --out none
grep -q '"groups"' none/evaluation.json && fail "groups of a run that has none"

# ---- the picture ----
if command -v gnuplot >/dev/null; then
    expect 0 plot own one --truth data/truth-1.csv --truth data/truth-2.csv --out drawn
    [ "$(names drawn)" = "models.png models.svg " ] || fail "plots: $(names drawn)"
    [ "$(head -c 4 drawn/models.png | tail -c 3)" = PNG ] || fail "no PNG"
    for label in 'group 1: 24 clients' 'group 2: 3 clients' 'group 3: 3 clients' 'cloud of one' 'truth-1.csv' 'truth-2.csv'; do
        grep -q "$label" drawn/models.svg || fail "the SVG does not say '$label'"
    done
    expect 0 plot one --out alone
    grep -q '30 clients' alone/models.svg || fail "the SVG does not count the clients"
    seq 30 | awk 'BEGIN { print "client,group" } { print "dev" $1 ",g" $1 % 6 }' >six.csv
    expect 0 plot own/ --groups six.csv --out six
    for label in 'group g1: 5 clients' 'group g4: 5 clients' 'other groups: 10 clients'; do
        grep -q "$label" six/models.svg || fail "the SVG does not say '$label'"
    done
    mkdir empty
    PATH=$work/empty expect 2 plot own --out refused
    says "gnuplot"
    [ ! -e refused ] || fail "written without gnuplot"
fi

# ---- wrong input: one line, status 2, nothing written ----
refused() {
    local words=$1
    shift
    expect_line 2 "$@" --out refused
    says "$words"
    [ ! -e refused ] || fail "written: hfsad $*"
}
both() {
    refused "$1" evaluate --model own --data data/test.csv --groups "$2"
    refused "$1" plot own --groups "$2"
}
both "no-such.csv cannot be read" no-such.csv
both "cannot be read" data
printf 'client;group\n' >bad.csv && both "bad.csv:1: the header must be client,group" bad.csv
printf '' >bad.csv && both "bad.csv:1: the header" bad.csv
printf 'client,group\n\n' >bad.csv && both "bad.csv lists no clients" bad.csv
for line in dev1 'dev1,' ',1' 'dev1,1,2' "dev1,$(printf '%070d' 1)"; do
    printf 'client,group\ndev2,1\n%s\n' "$line" >bad.csv && both "bad.csv:3: .* is not of the form client,group" bad.csv
done
printf 'client,group\ndev1,1\ndev2,1\ndev1,2\n' >bad.csv && both "lists dev1 twice" bad.csv
grep -v '^dev17,' data/groups.csv >bad.csv && both "bad.csv lists no group for gate2/dev17" bad.csv
seq 1001 | awk 'BEGIN { print "client,group" } { print "d" $1 "," $1 }' >bad.csv
both "bad.csv:1002: more than 1000 groups" bad.csv
refused "output folder of a run" plot
refused "own/nothing" plot own own/nothing
refused "truth" plot own --truth data/groups.csv
truths=()
for _ in 1 2 3 4 5; do truths+=(--truth data/truth-1.csv); done
refused "more than 4 true models" plot own "${truths[@]}"
"$HFSAD" generate quantile --edges 2 --clients 2 --features 5 --rows 9 --out other >/dev/null
expect 0 run other/spec.yaml --quiet --set run.iterations=2 --out five
refused "five has 5 features and own has 4" plot own five
expect 0 run other/spec.yaml --quiet --set run.iterations=2 --set output.clients=false --out clientless
refused "clientless has no models of clients" plot clientless
cp -r own torn && sed -i 's/"names":.*\[.*/"names": [7/; ' torn/summary.json
expect 2 plot torn --out refused
[ ! -e refused ] || fail "written from a damaged summary"
expect_line 2 evaluate --model own --data data/test.csv --groups data/groups.csv --out data/groups.csv
finish
