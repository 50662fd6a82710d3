#!/usr/bin/env bash
# Labels as tables have them: 0 and 1, text, any two numbers, true and false give the models of the same table with -1
# and 1, bit for bit, by every command; columns of text are categories.
. "$(dirname "$0")/shell.sh"

python3 - <<'PYTHON'
import random

random.seed(3)
rows = []
for i in range(90):
    x = [random.gauss(0, 1), random.gauss(2, 3)]
    town = random.choice(["bonn", "köln", "0-5 km"])
    side = x[0] - 0.3 * x[1] + (town == "bonn") + random.gauss(0, 1) > 0
    rows.append(("e%d" % (i % 2), "c%d" % (i % 6), bool(side), x, town))


def table(name, label, y=lambda r: r[2], hot=True, line=lambda r: ""):
    with open(name, "w") as f:
        f.write("edge,client,y,a,b," + ("town=bonn,town=köln" if hot else "town") + "\n")
        for r in rows:
            place = "%d,%d" % (r[4] == "bonn", r[4] == "köln") if hot else r[4]
            f.write("%s,%s,%s,%r,%r,%s\n" % (r[0], r[1], label[y(r)], r[3][0], r[3][1], place))


table("signs.csv", {False: -1, True: 1})
table("digits.csv", {False: 0, True: 1})
table("truth.csv", {False: "FALSE", True: "TRUE"})
table("r.csv", {False: 1, True: 2})
table("text.csv", {False: "absent", True: '"present"'}, hot=False)
table("towns.csv", {False: -1, True: 1}, hot=False)
table("mixed.csv", {0: -1, 1: 0, 2: 1}, y=lambda r: 2 * r[2] if r[3][0] > -1 else 1)
table("three.csv", {0: "low", 1: "middle", 2: "high"}, y=lambda r: int(r[2]) + (r[3][0] > 0))
table("three-digits.csv", {0: 1, 1: 2, 2: 0}, y=lambda r: int(r[2]) + (r[3][0] > 0))
table("ones.csv", {False: 1, True: 1})
with open("svm.svm", "w") as f, open("svm-signs.svm", "w") as g:
    for r in rows:
        rest = "1:%r 2:%r # %s/%s\n" % (r[3][0], r[3][1], r[0], r[1])
        f.write("%d %s" % (r[2], rest))
        g.write("%d %s" % (2 * r[2] - 1, rest))
PYTHON

rest='features: {intercept: global, standardize: true}\nprior: {cloud: {penalty: l1, lambda: 0.5}}\n'
spec() { # NAME DATA LOSS
    # shellcheck disable=SC2059
    printf "data: $2\nloss: $3\n$rest" >"$1.yaml"
}
same() { # A B FILE…: the same bytes
    local a=$1 b=$2 f
    shift 2
    for f in "$@"; do cmp -s "$a/$f" "$b/$f" || fail "$a/$f and $b/$f differ"; done
}

spec signs signs.csv logistic
spec digits digits.csv logistic
spec truth truth.csv '{kind: logistic}'
spec r '{file: r.csv, labels: [1, 2]}' logistic
spec text text.csv logistic
for name in signs digits truth r text; do
    expect 0 run $name.yaml --out $name
    cp stdout.txt $name.txt
    same signs $name model.csv
done
grep -q '^labels' signs.txt && fail "-1 and 1 need no line"
grep -q '^labels  *0 is -1, 1 is 1$' digits.txt || fail "the result does not say what 0 and 1 are"
grep -q '^labels  *absent is -1, present is 1$' text.txt || fail "the result does not say what the texts are"
grep -q '^categories  *town (text, 3 levels)$' text.txt || fail "the result does not name the column of text"

# every other loss of two classes, every algorithm, several rows a client or one
for loss in hinge squared-hinge; do
    for algorithm in star hfsad fedavg; do
        for name in signs digits; do
            expect 0 run $name.yaml --out o-$name --force --quiet --set loss=$loss --set algorithm=$algorithm --set run.iterations=5
        done
        same o-signs o-digits model.csv
    done
done
spec s1 svm-signs.svm hinge
spec s2 svm.svm hinge
for name in s1 s2; do expect 0 run $name.yaml --out $name --quiet --set algorithm=hfsad --set run.iterations=5; done
same s1 s2 model.csv
sed -n '1,7p' signs.csv >signs-one.csv
sed -n '1,7p' digits.csv >digits-one.csv
for name in signs digits; do
    printf 'data: %s-one.csv\nloss: logistic\nrun: {iterations: 5}\nalgorithm: hfsad\n' $name >one.yaml
    expect 0 run one.yaml --out one-$name --quiet
done
same one-signs one-digits model.csv

# the same words in evaluate and predict
for name in signs digits text r; do
    expect 0 evaluate --model $name --data $name.csv
    grep -v '^model\|^confusion' stdout.txt >$name-evaluated.txt
    grep '^confusion' stdout.txt >>confusion.txt
    cmp signs-evaluated.txt $name-evaluated.txt || fail "evaluate differs for $name"
    expect 0 predict --model $name --data $name.csv --out $name-predicted.csv
done
expect 0 evaluate --model digits --data signs.csv # the other convention is the same
python3 - <<'PYTHON' || fail "confusion or predictions"
import csv

words = [line.split() for line in open("confusion.txt")]
assert [(w[2], w[8]) for w in words] == [("1:", "-1:"), ("1:", "0:"), ("present:", "absent:"), ("2:", "1:")], words
assert len({tuple(w[3:8] + w[9:]) for w in words}) == 1, words
tables = {n: list(csv.DictReader(open(n + "-predicted.csv"))) for n in ("signs", "digits", "text", "r")}
names = {"signs": ("-1", "1"), "digits": ("0", "1"), "text": ("absent", "present"), "r": ("1", "2")}
for n, rows in tables.items():
    for a, b in zip(tables["signs"], rows):
        assert a["prediction"] == b["prediction"]
        for column in ("label", "y"):
            assert names[n][a[column] == "1"] == b[column], (n, column, a, b)
PYTHON

# paths, folds, rows held out
for name in signs digits text; do
    expect 0 path $name.yaml --lambdas 4 --folds 3 --out p-$name --no-plot --quiet
    expect 0 path $name.yaml --lambdas 4 --heldout 0.3 --out h-$name --no-plot --quiet
    expect 0 path $name.yaml --lambdas 4 --heldout $name.csv --out f-$name --no-plot --quiet
    for kind in p h f; do same $kind-signs $kind-$name path.csv best/model.csv; done
done

# a federation, whose clients see one file, or their own
for name in digits text; do
    expect 0 up $name.yaml --out up-$name --quiet
    same signs up-$name model.csv
    expect 0 predict --model up-$name --data $name.csv --out up-predicted.csv
    cmp -s $name-predicted.csv up-predicted.csv || fail "predictions by the models of up differ for $name"
done
mkdir -p own/e0 own/e1
for c in 0 1 2 3 4 5; do
    for name in digits ones; do
        awk -F, -v c="c$c" 'NR == 1 || $2 == c' $name.csv | cut -d, -f3- >own/e$((c % 2))/c$c-$name.csv
    done
done
printf 'data: own\nloss: logistic\n' >own.yaml
expect 0 run own.yaml --out o-own --quiet # clients with all 1 beside clients with 0 and 1
printf 'data: ones.csv\nloss: hinge\nprior: {cloud: l2}\n' >ones.yaml
expect 0 run ones.yaml --out o-ones
grep -q '^labels' stdout.txt && fail "all 1 are the same in both conventions"

# other losses of some clients keep their 0; a mixture of 0 and -1 is refused
printf 'data: digits.csv\nloss: logistic\noverrides: [{node: e0/c0, loss: squared}]\nalgorithm: hfsad\nrun: {iterations: 3}\n' >some.yaml
expect 0 run some.yaml --out o-some --quiet
python3 - <<'PYTHON'
rows = open("digits.csv").read().split("\n")
out = [r if r.startswith("e0,c0,") else r.replace(",0,", ",-1,", 1) if r.split(",")[2:3] == ["0"] else r for r in rows]
open("some.csv", "w").write("\n".join(out))
PYTHON
sed 's/digits/some/' some.yaml >some2.yaml
expect 0 run some2.yaml --out o-some2 --quiet
same o-some o-some2 model.csv
spec mixed mixed.csv logistic
expect_line 2 run mixed.yaml --out o-mixed
says 'y is 0 in row .* and -1 in row .*loss.classes'
expect_line 2 evaluate --model signs --data mixed.csv
says 'y is 0 in row'
spec other r.csv logistic
expect_line 2 run other.yaml --out o-mixed
says 'y = 2.*data: {labels: \[1, 2\]}'
spec wrong '{file: digits.csv, labels: [1, 2]}' logistic
expect_line 2 run wrong.yaml --out o-mixed
says '"0" is not one of the 2 labels'

# several classes by name
spec three '{file: three.csv, labels: [high, low, middle]}' '{kind: multinomial, classes: 3}'
spec three2 three.csv '{kind: multinomial, classes: 3}'
spec three3 three-digits.csv '{kind: multinomial, classes: 3}'
for name in three three2 three3; do expect 0 run $name.yaml --out $name --quiet; done
same three3 three model.csv
same three3 three2 model.csv
expect 0 predict --model three2 --data three.csv
grep -q ',middle,.*,middle$' stdout.txt || fail "classes are not predicted by their names"
spec three4 three.csv logistic
expect_line 2 run three4.yaml --out o-mixed
says 'y has 3 labels.*{kind: multinomial, classes: 3}'
spec three5 three.csv squared
expect_line 2 run three5.yaml --out o-mixed
says 'the squared loss takes numbers'

# a path of several levels and of several classes by the hinge loss: every point as `hfsad run` trains it
printf 'data: {file: signs.csv, y: a}\nloss: {kind: quantile, tau: [0.2, 0.8]}\nfeatures: {intercept: global}\nprior: {cloud: l1}\n' >l.yaml
printf 'data: three.csv\nloss: {kind: hinge, classes: 3}\nfeatures: {intercept: global}\nprior: {cloud: elastic-net}\n' >h.yaml
for name in l h; do
    expect 0 path $name.yaml --lambdas 5 --folds 3 --out pp-$name --quiet
    python3 - $name <<'PYTHON' || fail "the path of $name"
import csv, json, os, subprocess, sys

name = sys.argv[1]
rows = list(csv.DictReader(open("pp-%s/path.csv" % name)))
assert len(rows) == 5 and all(r["converged"] == "1" for r in rows) and rows[0]["nonzero"] == "0", rows
for r in rows[1::3]:
    subprocess.run([os.environ["HFSAD"], "run", name + ".yaml", "--out", "one", "--force", "--quiet", "--set",
                    "prior.cloud.lambda=" + r["lambda"], "--set", "run.stop.gap=1e-6"], check=True)
    least = json.load(open("one/summary.json"))["figures"]["objective"]
    assert abs(float(r["objective"]) - least) <= 2e-4 * least, (r, least)
PYTHON
done

# spaces within quotes do not count: predict finds the labels and levels again; a name that no list can hold is refused
sed 's/,"present",/," present ",/; s/,bonn$/,"bonn "/' text.csv >spaces.csv
spec spaces spaces.csv logistic
expect 0 run spaces.yaml --out spaces --quiet
same signs spaces model.csv
expect 0 predict --model spaces --data spaces.csv --out spaces-predicted.csv
cmp -s text-predicted.csv spaces-predicted.csv || fail "spaces within quotes: other predictions"
sed 's/,"present",/,"so ""present""",/' text.csv >quotes.csv
spec quotes quotes.csv logistic
expect 0 run quotes.yaml --out quotes --quiet
same signs quotes model.csv
expect 0 predict --model quotes --data quotes.csv --out quotes-predicted.csv
python3 - <<'PYTHON' || fail "quotes in labels: predictions that no reader takes"
import csv

rows = [list(csv.DictReader(open(n + "-predicted.csv"))) for n in ("text", "quotes")]
words = {"absent": "absent", "present": 'so "present"'}
for a, b in zip(*rows):
    assert (words[a["label"]], words[a["y"]]) == (b["label"], b["y"]), (a, b)
PYTHON
for name in '"to,wn"' to=wn '"town "'; do
    sed "1s/,town$/,$name/" text.csv >names.csv
    spec names names.csv logistic
    expect_line 2 run names.yaml --out o-mixed
    says 'names.csv:2: column 6 .*rename the column'
done

# a column that is left out
spec but '{file: text.csv, features: [-town]}' logistic
spec only '{file: text.csv, features: [a, b]}' logistic
for name in but only; do expect 0 run $name.yaml --out $name --quiet; done
same but only model.csv
cut -d, -f1-5 <text.csv >without.csv
expect 0 predict --model but --data without.csv --out without-predicted.csv
spec nobut '{file: text.csv, features: [-towns]}' logistic
expect_line 2 run nobut.yaml --out o-mixed
says 'no column "-towns"'

# columns of text: a typing error is none; neither are names and dates
printf 'edge,client,y,a\n' >typo.csv
for i in 1 2 3 4 5 6 7 8 9; do echo "e,c,$i,$i.5" >>typo.csv; done
echo 'e,c,3,1..5' >>typo.csv
printf 'data: typo.csv\nloss: squared\n' >typo.yaml
expect_line 2 run typo.yaml --out o-mixed
says 'typo.csv:11: column 4 (a): "1..5" is not a number'
sed 's/1\.\.5/2020-01-05/; s/\.5$/-01-01/' typo.csv >dates.csv
printf 'data: dates.csv\nloss: squared\n' >dates.yaml
expect_line 2 run dates.yaml --out o-mixed
says 'column a: 10 rows have 10 different texts.*data: {categorical: \[a\]}'
cut -d, -f3- <towns.csv | sed 's/,-1,/,1,/' >client.csv
printf 'data: towns.csv\nloss: squared\nfederation: {nodes: nodes.txt}\n' >own-text.yaml
printf 'features 4\nedge/client\n' >nodes.txt
expect_line 2 client own-text.yaml --name edge/client --data client.csv --broker mqtt://127.0.0.1:1
says 'column 4 (town): "[^"]*" is not a number; if the column is a category.*data: {categorical: \["town=.*|\.\.\."\]}'
finish
