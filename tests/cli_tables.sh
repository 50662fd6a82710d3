#!/usr/bin/env bash
# Tables as people have them: separators, row labels of R and pandas, compressed files, named columns, categories,
# missing values, rows without clients. Each gives the models of the same table in the plain form.
. "$(dirname "$0")/shell.sh"

python3 - <<'PYTHON'
import csv, gzip, random, subprocess

random.seed(7)
rows = []
for i in range(60):
    x = [random.gauss(0, 1), random.gauss(0, 100)]
    region = random.choice(["north", "south", "west"])
    y = 2 * x[0] - 0.01 * x[1] + {"north": 0, "south": 1, "west": -2}[region] + random.gauss(0, 0.1)
    rows.append((i % 3, i % 12, y, 1 + i % 2, x[0], x[1], region))


def table(name, head, line, separator=",", opener=open):
    with opener(name, "wt") as f:
        f.write(separator.join(head) + "\n")
        for i, r in enumerate(rows):
            f.write(separator.join(str(v) for v in line(i, r)) + "\n")


def hot(region):
    return [int(region == "south"), int(region == "west")]


def plain(i, r):
    return ["e%d" % r[0], "c%d" % r[1], repr(r[2]), r[3], repr(r[4]), repr(r[5])] + hot(r[6])


HEAD = ["edge", "client", "y", "weight", "age", "income", "region=south", "region=west"]
table("plain.csv", HEAD, plain)
table("semicolon.csv", HEAD, lambda i, r: [str(v).replace(".", ",") for v in plain(i, r)], ";")
table("tab.csv", HEAD, plain, "\t")
table("space.csv", HEAD, lambda i, r: [v if k % 2 else " %s " % v for k, v in enumerate(plain(i, r))], " ")
table("r.csv", ['""'] + ['"%s"' % h for h in HEAD], lambda i, r: ['"%d"' % (i + 1)] + plain(i, r))
table("r-table.csv", ['"%s"' % h for h in HEAD], lambda i, r: ['"%d"' % (i + 1)] + plain(i, r), " ")
table("pandas.csv", [""] + HEAD, lambda i, r: [i] + plain(i, r))
table("plain.csv.gz", HEAD, plain, opener=gzip.open)
subprocess.run(["zstd", "-q", "plain.csv"], check=True)
# The same numbers under other names, among columns that are not wanted, with the category as text.
table("named.csv", ["id", "kg", "age", "place", "price", "income", "region", "note", "site"],
      lambda i, r: [i, r[3], repr(r[4]), "e%d" % r[0], repr(r[2]), repr(r[5]), r[6], "some text", "c%d" % r[1]])
table("first.csv", HEAD[2:], lambda i, r: plain(i, r)[2:])
holes = {(5, 4), (9, 4), (20, 5)}
means = {c: sum(r[c] for i, r in enumerate(rows) if (i, c) not in holes) / sum((i, c) not in holes for i in range(60))
         for c in (4, 5)}
for name, word in (("holes.csv", "NA"), ("empty.csv", ""), ("filled.csv", None)):
    table(name, HEAD, lambda i, r: plain(i, r)[:4] + [
        (repr(means[c]) if word is None else word) if (i, c) in holes else repr(r[c]) for c in (4, 5)] + hot(r[6]))
PYTHON

loss='loss: {kind: huber}\nfeatures: {intercept: global}\n'
spec() { # NAME DATA
    # shellcheck disable=SC2059
    printf "algorithm: hfsad\ndata: $2\n$loss" >"$1.yaml"
}
train() { # NAME DATA: what the spec of that name trains
    spec "$1" "$2"
    expect 0 run "$1.yaml" --out "$1" --quiet
}
same_model() {
    cmp -s plain/model.csv "$1/model.csv" || fail "$1: another model than plain"
}

train plain plain.csv
for name in semicolon tab space r r-table pandas; do
    train "$name" "$name.csv"
    same_model "$name"
done
train gz plain.csv.gz
same_model gz
train zst plain.csv.zst
same_model zst

named='{file: named.csv, y: price, client: site, edge: place, weight: kg, features: [age, inc*], categorical: region}'
train named "$named"
same_model named
python3 - <<'PYTHON' || fail "named: the summary does not say how the table was read"
import json
s = json.load(open("named/summary.json"))
assert s["data"]["feature_names"] == ["age", "income", "region=south", "region=west"], s["data"]
assert s["settings"]["columns"]["categorical"] == "region=north|south|west", s["settings"]["columns"]
assert s["settings"]["columns"]["y"] == "price" and "split" not in s["settings"]
assert "columns" not in json.load(open("plain/summary.json"))["settings"]
PYTHON
# stated levels, in another order: another base, the same predictions
train levels "${named/categorical: region/categorical: [region=west|north|south]}"
"$HFSAD" predict --model named --data named.csv >named.out
"$HFSAD" predict --model plain --data plain.csv >plain.out
cmp -s named.out plain.out || fail "predict: a named table differs from the plain one"
python3 - <<'PYTHON' || fail "levels: other predictions"
import csv, subprocess, os
out = subprocess.run([os.environ["HFSAD"], "predict", "--model", "levels", "--data", "named.csv"], capture_output=True, text=True, check=True).stdout
a, b = (list(csv.DictReader(t)) for t in (out.splitlines(), open("plain.out")))
assert all(abs(float(x["prediction"]) - float(y["prediction"])) < 1e-4 for x, y in zip(a, b))
order = [(r["place"], r["site"]) for r in csv.DictReader(open("named.csv"))]
assert [(r["edge"], r["client"]) for r in a] == order, "not in the order of the input"
PYTHON
cut -d, -f1-6,8- named.csv >without.csv
expect_line 2 predict --model named --data without.csv
says "no column \"region\""
sed '3s/north\|south\|west/east/' named.csv >east.csv
expect_line 2 predict --model named --data east.csv
says 'east.csv:3: column 7 (region): "east" is not one of the 3 levels'

# Missing values.
spec holes holes.csv
expect_line 2 run holes.yaml --out none
says 'holes.csv:7: column 5 (age): "NA" is not finite; 2 rows have no value in this column'
expect_line 2 run holes.yaml --out none
says 'data.missing'
# Rows without y are counted; a column of names is refused with the line that leaves it out.
printf 'client,y,x,country\na,,1,Chad\na,2,2,"Gambia, The"\nb,NA,3,Mali\nb,1,4,Peru\n' >countries.csv
spec countries countries.csv
expect_line 2 run countries.yaml --out none
says 'column 2 (y): empty field (a hole); 2 rows have no value in this column; expected a number: fill them, or leave the rows out'
sed -i 's/a,,1/a,3,1/; s/b,NA/b,4/' countries.csv
expect_line 2 run countries.yaml --out none
says 'column 4 (country): the level of a category holds a comma'
says 'features: \[-country\]'
printf 'client,y,x,size\na,1,1,gr\366\337er\na,2,2,small\nb,3,3,small\nb,1,4,gr\366\337er\n' >latin.csv
spec latin latin.csv
expect_line 2 run latin.yaml --out none
says 'latin.csv:2: column 4 (size): "gr.xf6.xdfer" is not UTF-8; save the table as UTF-8'
iconv -f latin1 -t utf-8 latin.csv >utf8.csv
train utf8 utf8.csv
expect 0 predict --model utf8 --data utf8.csv
for kind in 'PAR1:a Parquet file' 'ARROW1:a Feather file' 'PK\003\004:an Excel or zip file'; do
    printf '%b' "${kind%%:*}\\n\\0\\0" >binary
    expect_line 2 run plain.yaml --set data=binary --out none
    says "binary: ${kind#*:}, not text; save it as CSV"
done
[ ! -e none ] || fail "something was written"
printf 'client,y,x\na,1,2\nb,2,\n' >one-hole.csv
expect_line 2 run holes.yaml --set data=one-hole.csv --out none
says 'one-hole.csv:3: column 3 (x): empty field (a hole); 1 row has no value in this column; .*data.missing'
printf 'client,y,place,x\na,1,north,2\nb,2,south,1\n' >words.csv
expect_line 2 run holes.yaml --set data=words.csv --out none
says 'column place: 2 rows have 2 different texts.*data: {features: .-place.}.*data: {categorical: .place.}'
train holes '{file: holes.csv, missing: mean}'
train empty '{file: empty.csv, missing: mean}'
train filled filled.csv
cmp -s holes/model.csv filled/model.csv || fail "missing: mean: another model than that of a filled table"
cmp -s empty/model.csv filled/model.csv || fail "missing: mean: another model with empty fields"
"$HFSAD" predict --model holes --data empty.csv >holes.out
"$HFSAD" predict --model filled --data filled.csv >filled.out
cmp -s holes.out filled.out || fail "predict with missing values"

# Rows without clients are dealt, reproducibly and evenly; predictions need no client.
spec first first.csv
expect_line 2 run first.yaml --out none
says 'no column "client"'
train dealt '{file: first.csv, split: {edges: 3, clients: 7}}'
python3 - <<'PYTHON' || fail "split: clients or rows are not as they should be"
import csv, json
d = json.load(open("dealt/summary.json"))["data"]
assert (d["edges"], d["clients"], d["rows"]) == (3, 7, 60), d
a, b = ({r["node"]: r for r in csv.DictReader(open(n + "/model.csv"))} for n in ("dealt", "plain"))
assert all(abs(float(a["cloud"][k]) - float(b["cloud"][k])) < 1e-3 for k in b["cloud"] if k != "node")
PYTHON
train again '{file: first.csv, split: {edges: 3, clients: 7}}'
cmp -s dealt/model.csv again/model.csv || fail "split: two runs differ"
expect 0 up dealt.yaml --out dealt-up --quiet
cmp -s dealt/model.csv dealt-up/model.csv || fail "split: up differs from run"
expect 0 up named.yaml --out named-up --quiet
cmp -s named/model.csv named-up/model.csv || fail "named columns: up differs from run"
"$HFSAD" predict --model dealt --data first.csv >dealt.out
[ "$(wc -l <dealt.out)" = 61 ] || fail "predict: rows without clients"
train by '{file: named.csv, y: price, features: [age, income], split: {by: site, edges: 2}}'
expect_line 2 run plain.yaml --set data.split.clients=5 --out none
says "remove one of both"

# What is damaged or named wrongly is refused.
head -c 300 plain.csv.gz >cut.csv.gz
spec cut cut.csv.gz
expect_line 2 run cut.yaml --out none
says "cut.csv.gz: gzip cannot decompress it"
expect_line 2 run plain.yaml --set data.y=cost --out none
says 'no column "cost" in the header'
expect_line 2 run plain.yaml --set 'data.features=[age, size]' --out none
says "data.features names it"
expect_line 2 run plain.yaml --set 'data.categorical==a|b' --out none
says 'data.categorical: "=a|b"'
[ ! -e none ] || fail "something was written"
# The same client name below two edges is two clients.
printf 'edge,client,y,x\na,c,1,1\nb,c,2,1\n' >twice.csv
train twice twice.csv
grep -q '^a/c,' twice/model.csv && grep -q '^b/c,' twice/model.csv || fail "one name below two edges"
finish
