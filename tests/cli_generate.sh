#!/usr/bin/env bash
# hfsad generate from end to end: its files against the laws they are said to be drawn by, refusals, full disks, and
# that the commands it suggests work. Needs HFSAD, the path of the program.
# shellcheck source=tests/shell.sh
. "$(dirname "$0")/shell.sh"

# ---- the files ----

expect 0 generate phase-retrieval --edges 3 --clients 20 --features 10 --snr-db 5 --seed 4 --out small
[ "$(names small)" = "data.csv spec.yaml truth.csv " ] || fail "files: $(names small)"
python3 - <<'PYTHON' || fail "small/data.csv is not what the paper says"
import csv, math

rows = list(csv.reader(open("small/data.csv")))
truth = [float(line) for line in open("small/truth.csv")]
assert rows[0] == ["edge", "client", "y"] + [f"x{m}" for m in range(1, 11)], rows[0]
rows = rows[1:]
assert [r[0] for r in rows] == [f"edge{1 + i // 20}" for i in range(60)]
assert [r[1] for r in rows] == [f"client{1 + i}" for i in range(60)]
assert len(truth) == 10 and sum(t != 0 for t in truth) == 3
for l in range(3):
    kept = {tuple(float(v) != 0 for v in r[3:]) for r in rows[20 * l:20 * l + 20]}
    assert len(kept) == 1 and sum(kept.pop()) == 8
signal = [sum(float(v) * t for v, t in zip(r[3:], truth)) ** 2 for r in rows]
noise = [float(r[2]) - s for r, s in zip(rows, signal)]
assert min(noise) > -1e-12
scale = math.sqrt(sum(signal) / (60 * 21.8 * 10 ** 0.5))  # 1/lambda_1
assert 0.1 < sum(n < scale * math.log(2) for n in noise) / 60 < 0.8  # the median of the usual noise
for text in (v for r in rows for v in r[2:]):
    assert float(text) == float("%.17g" % float(text)) and "%.17g" % float(text) == text, text
PYTHON

expect 0 generate phase-retrieval --edges 3 --clients 20 --features 10 --snr-db 5 --seed 4 --out again
cmp -s small/data.csv again/data.csv && cmp -s small/spec.yaml again/spec.yaml || fail "the same seed gave other bytes"
expect 0 generate phase-retrieval --edges 3 --clients 20 --features 10 --snr-db 5 --seed 5 --out other
cmp -s small/data.csv other/data.csv && fail "another seed gave the same bytes"

# ---- quantile ----

# y <= <x,w> in the share tau of the rows, also of the held-out ones, whatever the noise
law=(--edges 3 --clients 4 --features 7 --rows 60 --test-rows 30 --nonzero 2 --tau 0.8 --seed 3)
n=0
for noise in gaussian student "student --df 1.5" "mixture --outliers 0.2 --outlier-factor 30" laplace \
    "logistic --noise-scale 3" "student --heteroscedastic --shift 2"; do
    n=$((n + 1))
    # shellcheck disable=SC2086
    expect 0 generate quantile "${law[@]}" --noise $noise --out "quantile$n"
    [ "$(names "quantile$n")" = "data.csv spec.yaml test.csv truth.csv " ] || fail "files: $(names "quantile$n")"
done
python3 - <<'PYTHON' || fail "quantile data are not what they should be"
import csv, math

truths = set()
for n in range(1, 8):
    truth = [float(line) for line in open(f"quantile{n}/truth.csv")]
    truths.add(tuple(truth))
    assert len(truth) == 7 and sum(t != 0 for t in truth) == 2
    for name, count in (("data", 60), ("test", 30)):
        rows = list(csv.reader(open(f"quantile{n}/{name}.csv")))
        assert rows[0] == ["edge", "client", "y"] + [f"x{m}" for m in range(1, 8)], rows[0]
        rows = rows[1:]
        assert [r[1] for r in rows] == [f"client{1 + i // count}" for i in range(12 * count)]
        assert [r[0] for r in rows] == [f"edge{1 + i // (4 * count)}" for i in range(12 * count)]
        below = sum(float(r[2]) <= sum(float(v) * t for v, t in zip(r[3:], truth)) for r in rows) / len(rows)
        assert abs(below - 0.8) < 5 * math.sqrt(0.16 / len(rows)), (n, name, below)
assert len(truths) == 1  # the noise is not of the model
PYTHON
cmp -s <(cut -d, -f1,2,4- quantile1/data.csv) <(cut -d, -f1,2,4- quantile2/data.csv) || fail "features depend on the noise"
cmp -s <(head -61 quantile1/data.csv) <(head -61 quantile3/data.csv) && fail "the noise's law changes nothing"

# the spec's head is the command that makes the same bytes
again() {
    local folder=$1 command
    command=$(sed -n '/^# Made by: hfsad /,/^# `/{s/^# Made by: hfsad //;s/^#   //;/^#/d;p}' "$folder/spec.yaml" | tr '\n' ' ')
    # shellcheck disable=SC2086
    expect 0 $command --out "$folder-again"
    diff -r "$folder" "$folder-again" >/dev/null || fail "other bytes by: hfsad $command"
}
for n in 4 7; do again "quantile$n"; done
again small
grep -q 'kind: quantile, tau: 0.8}' quantile1/spec.yaml || fail "the spec has another tau"

# a client's rows do not depend on the other clients, nor on how many rows there are
expect 0 generate quantile --edges 5 --clients 4 --features 7 --rows 20 --nonzero 2 --tau 0.8 --seed 3 \
    --noise gaussian --out more-edges
cmp -s <(grep ',client7,' quantile1/data.csv | head -20) <(grep ',client7,' more-edges/data.csv) ||
    fail "the rows of client7 depend on the number of edges or rows"

# ---- several intensities per client: those of as many clients with one ----

expect 0 generate phase-retrieval --edges 3 --clients 5 --rows 4 --features 10 --snr-db 5 --seed 4 --out dealt
cmp -s <(cut -d, -f1,3- dealt/data.csv) <(cut -d, -f1,3- small/data.csv) || fail "--rows draws other intensities"
cmp -s dealt/truth.csv small/truth.csv || fail "--rows draws another model"
[ "$(tail -n +2 dealt/data.csv | cut -d, -f2 | uniq -c | tr -s ' \n' ' ')" = "$(printf ' 4 client%d' {1..15}) " ] ||
    fail "--rows deals out otherwise"
again dealt

# ---- a folder tree, rounded, with a constant per edge ----

tree=(--edges 3 --clients 4 --features 5 --rows 12 --test-rows 7 --noise-scale 0 --intercepts 2 --digits 5 --seed 6
    --names 'region,site')
expect 0 generate quantile "${tree[@]}" --out flat
expect 0 generate quantile "${tree[@]}" --tree --out forest
[ "$(names forest | tr ' ' '\n' | grep -c csv)" = 25 ] && [ -f forest/data/region3/site12.csv ] || fail "files: $(names forest)"
[ -z "$(find forest -name '.*')" ] || fail "hidden files are left"
python3 - <<'PYTHON' || fail "the tree, the digits or the constants"
import csv

truth = [float(line) for line in open("flat/truth.csv")]
constants = {}
for part, count in (("data", 12), ("test", 7)):
    rows = list(csv.reader(open(f"flat/{part}.csv")))
    files = {}
    for edge, client, *numbers in rows[1:]:
        files.setdefault((edge, client), []).append(numbers)
        assert all(number == "%.5g" % float(number) for number in numbers)
        y, *x = map(float, numbers)
        constants.setdefault(edge, []).append(y - sum(a * b for a, b in zip(x, truth)))
    assert len(files) == 12 and all(len(f) == count for f in files.values())
    for (edge, client), wanted in files.items():
        assert list(csv.reader(open(f"forest/{part}/{edge}/{client}.csv"))) == [rows[0][2:]] + wanted
means = [sum(c) / len(c) for c in constants.values()]
assert all(abs(v - m) < 1e-3 for c, m in zip(constants.values(), means) for v in c), constants
assert len(means) == 3 and min(abs(a - b) for i, a in enumerate(means) for b in means[:i]) > 0.01, means
PYTHON
again forest
grep -q '^features: {intercept: edge}' forest/spec.yaml || fail "the spec has no intercept"
for folder in flat forest; do
    expect 0 run $folder/spec.yaml --quiet --set run.iterations=5 --out $folder/run
done
cmp -s flat/run/model.csv forest/run/model.csv || fail "a tree is read as other data"
cp -r forest forest-before
expect_line 2 generate quantile "${tree[@]}" --tree --out forest --force
says "forest/data already exists; give another --out, or remove it"
diff -r forest forest-before >/dev/null || fail "a tree was touched"

# ---- clustered ----

expect 0 generate clustered --edges 4 --clients 10 --features 6 --rows 30 --test-rows 5 --nonzero 2 --groups 3 \
    --minority 0.2 --noise-scale 0 --distance 1.5 --out clustered
[ "$(names clustered)" = "data.csv groups.csv spec.yaml test.csv truth-1.csv truth-2.csv truth-3.csv truth.csv " ] ||
    fail "files: $(names clustered)"
expect 0 generate clustered --edges 4 --clients 10 --features 6 --rows 30 --minority-by edge --minority 0.25 \
    --noise-scale 0 --out whole-edges
expect 0 generate clustered --edges 4 --clients 10 --features 6 --rows 30 --loss hinge --noise-scale 0 --out classes
python3 - <<'PYTHON' || fail "clustered data are not what they should be"
import csv

def read(folder, count):
    models = {g: [float(line) for line in open(f"{folder}/truth-{g}.csv")] for g in range(1, count + 1)}
    groups = list(csv.reader(open(f"{folder}/groups.csv")))
    assert groups[0] == ["client", "group"] and [g[0] for g in groups[1:]] == [f"client{j}" for j in range(1, 41)]
    assert open(f"{folder}/truth.csv").read() == open(f"{folder}/truth-1.csv").read()
    return models, {name: int(group) for name, group in groups[1:]}

def rows(path):
    for r in list(csv.reader(open(path)))[1:]:
        yield r[0], r[1], float(r[2]), [float(v) for v in r[3:]]

def dot(a, b):
    return sum(x * y for x, y in zip(a, b))

models, groups = read("clustered", 3)
assert [sum(g == k for g in groups.values()) for k in (1, 2, 3)] == [32, 4, 4]
for l in range(4):
    assert sum(groups[f"client{10 * l + j}"] > 1 for j in range(1, 11)) == 2
for g in (2, 3):
    apart = [abs(a - b) for a, b in zip(models[g], models[1])]
    assert sum(d != 0 for d in apart) == 2 and all(d == 0 or abs(d - 1.5) < 1e-12 for d in apart)
for name in ("data", "test"):
    for edge, client, y, x in rows(f"clustered/{name}.csv"):
        assert abs(y - dot(x, models[groups[client]])) < 1e-12

models, groups = read("whole-edges", 2)
edges = {}
for edge, client, y, x in rows("whole-edges/data.csv"):
    edges.setdefault(edge, set()).add(groups[client])
assert sorted(map(sorted, edges.values())) == [[1], [1], [1], [2]]

models, groups = read("classes", 2)
for edge, client, y, x in rows("classes/data.csv"):
    assert y == (1 if dot(x, models[groups[client]]) > 0 else -1)
PYTHON
expect 0 generate clustered --edges 2 --clients 10 --features 4 --rows 2 --names gateway,device --out devices
cmp -s <(tail -n +2 devices/data.csv | cut -d, -f2 | uniq) <(tail -n +2 devices/groups.csv | cut -d, -f1) ||
    fail "groups.csv has other names"
expect 0 generate clustered --edges 4 --clients 10 --features 6 --rows 200 --loss poisson --minority 0.2 --out counts
python3 - <<'PYTHON' || fail "counts are not Poisson numbers of the mean exp(<x,w>)"
import csv, math
truth = {g: [float(line) for line in open(f"counts/truth-{g}.csv")] for g in (1, 2)}
group = {client: int(g) for client, g in list(csv.reader(open("counts/groups.csv")))[1:]}
n = left = squares = 0
for edge, client, y, *x in list(csv.reader(open("counts/data.csv")))[1:]:
    mean = math.exp(sum(float(a) * b for a, b in zip(x, truth[group[client]])))
    assert float(y) >= 0 and float(y) == int(float(y)), y
    z = (float(y) - mean) / math.sqrt(mean)
    n, left, squares = n + 1, left + z, squares + z * z
assert n == 8000 and abs(left / n) < 5 / math.sqrt(n) and abs(squares / n - 1) < 0.15, (n, left / n, squares / n)
PYTHON
for folder in clustered whole-edges classes devices counts; do again "$folder"; done
grep -q 'kind: hinge}' classes/spec.yaml || fail "the spec has another loss"

# ---- the specs run, and what they find is nearer to the truth than their start ----

expect 0 generate clustered --edges 5 --clients 10 --features 5 --rows 80 --out two-laws
for folder in quantile1 quantile7 whole-edges classes two-laws counts; do
    expect 0 run "$folder/spec.yaml" --quiet --set algorithm=hfsad --set run.iterations=40 --out "$folder/run"
    [ "$(wc -l <"$folder/run/trace.csv")" = 42 ] || fail "$folder: no trace of 41 rows"
done
python3 - <<'PYTHON' || fail "what the runs found"
import csv

def errors(folder):
    return [float(row["relative_error"]) for row in csv.DictReader(open(f"{folder}/run/trace.csv"))]

for folder in ("quantile1", "two-laws"):
    found = errors(folder)
    assert found[-1] < 0.1 and (found[0] == 1 or folder == "two-laws"), (folder, found)

# the clients that left the majority's model are those of the other group
groups = dict(list(csv.reader(open("two-laws/groups.csv")))[1:])
models = {row[0]: [float(v) for v in row[1:]] for row in list(csv.reader(open("two-laws/run/model.csv")))[1:]}
for name, w in models.items():
    if "/" in name:
        apart = max(abs(a - b) for a, b in zip(w, models["cloud"])) > 1
        assert apart == (groups[name.split("/")[1]] == "2"), name
PYTHON

# ---- the next command, as printed, from a folder with a difficult name ----

expect 0 generate phase-retrieval --edges 2 --clients 5 --features 4 --out "a 'quoted' name"
next=$(sed -n 's/^next: hfsad/hfsad/p' stdout.txt)
[ -n "$next" ] || fail "no next command"
hfsad() { "$HFSAD" "$@" --quiet --set run.iterations=3; }
eval "$next" || fail "the suggested command failed: $next"
[ "$(wc -l <"a 'quoted' name/run/trace.csv")" = 5 ] || fail "the suggested run left no trace of 4 rows"
head -1 "a 'quoted' name/run/trace.csv" | grep -q relative_error || fail "the truth is not used"

expect 0 generate phase-retrieval --edges 2 --clients 5 --features 4 --out hush --quiet
[ ! -s stdout.txt ] && [ ! -s stderr.txt ] && [ -s hush/data.csv ] || fail "--quiet: $(cat stdout.txt stderr.txt)"

# ---- refusals: exit status 2, nothing written ----

cp small/data.csv before.csv
expect_line 2 generate phase-retrieval --out small --seed 9
says "--force"
cmp -s small/data.csv before.csv || fail "a file was replaced without --force"
expect 0 generate phase-retrieval --out small --seed 9 --force
cmp -s small/data.csv before.csv && fail "--force replaced nothing"
mkdir partly && touch partly/spec.yaml
expect_line 2 generate phase-retrieval --out partly
[ "$(names partly)" = "spec.yaml " ] || fail "files beside one that was kept: $(names partly)"

refused() {
    local message=$1
    shift
    expect_line 2 generate "$@" --out refused
    says "$message"
    [ ! -e refused ] || { fail "written although refused: $*"; rm -rf refused; }
}
refused "did you mean phase-retrieval?" phase-reterival
refused "known: phase-retrieval, quantile, clustered" x
refused "kind of data (phase-retrieval, quantile or clustered) is missing"
refused "--edges" phase-retrieval --edges 0
refused "--clients" phase-retrieval --clients 1.5
refused "--features" phase-retrieval --features -3
refused "--snr-db" phase-retrieval --snr-db nan
refused "--snr-db" phase-retrieval --snr-db inf
refused "--keep-x" phase-retrieval --keep-x 0
refused "--keep-w" phase-retrieval --keep-w 1.2
refused "--seed" phase-retrieval --seed -1
refused "from 0 to 9007199254740992, not '9007199254740993'" phase-retrieval --seed 9007199254740993
refused "from 0 to 9007199254740992," phase-retrieval --seed 99999999999999999999
refused "clients" phase-retrieval --edges 100000 --clients 100000
refused "100000000000000 numbers" phase-retrieval --edges 10000 --clients 10000 --features 1000000
refused "snr" phase-retrieval --snr 20
refused "--rho is an option of quantile data, not of phase-retrieval" phase-retrieval --rho 0.5
refused "--digits" phase-retrieval --digits 18
for names in region ',' 'region,' ',site' 'a,b,c' "a b,c" a/b,c "$(printf 'x%.0s' {1..30}),y"; do
    refused "--names must be two words" clustered --names "$names"
done
refused "--digits" quantile --digits 0
refused "--intercepts" quantile --intercepts -1
refused "--intercepts is an option of quantile data" phase-retrieval --intercepts 1
refused "--rows must be" phase-retrieval --rows 0
refused "--groups is an option of clustered data, not of quantile" quantile --groups=2
refused "--keep-x is an option of phase-retrieval data, not of clustered" --keep-x 0.5 clustered
refused "unexpected argument 'clustered'" quantile clustered
for kind in quantile clustered; do
    refused "--rows" $kind --rows 0
    refused "--test-rows" $kind --test-rows -1
    refused "--nonzero must be" $kind --nonzero 0
    refused "--nonzero 9 is more than --features 8" $kind --nonzero 9 --features 8
    refused "--rho" $kind --rho 1
    refused "--shift" $kind --shift -1
    refused "did you mean gaussian" $kind --noise gausian
    refused "--noise-scale" $kind --noise-scale -0.5
    refused "--noise-scale" $kind --noise-scale nan
    refused "--df must be" $kind --noise student --df 0
    refused "--df needs --noise student; give both or neither" $kind --noise laplace --df 3
    refused "--outliers must be" $kind --noise mixture --outliers 1.5
    refused "--outliers needs --noise mixture; give both or neither" $kind --outliers 0.5
    refused "--outlier-factor must be" $kind --noise mixture --outlier-factor 0
    refused "--outlier-factor needs --noise mixture; give both or neither" $kind --outlier-factor 5
    refused "--tau" $kind --tau 0
    refused "--tau" $kind --tau 1
    refused "--heteroscedastic takes no value" $kind --heteroscedastic=yes
    refused "100000000000000 numbers, more than" $kind --edges 1000 --clients 1000 --rows 1000000 --features 100
done
refused "--tau needs --loss quantile; give both or neither" clustered --loss squared --tau 0.3
for loss in smoothed-quantile expectile; do
    expect 0 generate clustered --out "of-$loss" --quiet --loss $loss --clients 3 --rows 8 --features 4
    expect 0 run "of-$loss/spec.yaml" --quiet --out "of-$loss/out" --set run.iterations=3
    grep -q "kind: $loss" "of-$loss/spec.yaml" || fail "the spec of --loss $loss has another loss"
done
refused "--tau needs --loss quantile; give both or neither" clustered --task classification --tau 0.3
refused "logistic or hinge" clustered --task classification --loss squared
refused "squared or huber" clustered --task regression --loss hinge
refused "--task" clustered --task clustering
refused "--loss" clustered --loss phase-retrieval
refused "--groups" clustered --groups 1
refused "--groups" clustered --groups 21
refused "--minority must be" clustered --minority 0.6
refused "--minority must be" clustered --minority 0
refused "--minority 0.1 of 4 clients is 0, too few for 1 minority group" clustered --edges 2 --clients 2
refused "--minority 0.1 of 20 clients is 2, too few for 3 minority groups" clustered --edges 2 --clients 10 --groups 4
refused "too few" clustered --minority-by edge --edges 4
refused "leaves no majority; increase --edges" clustered --minority-by edge --edges 1 --minority 0.5
refused "--minority-by" clustered --minority-by cloud
refused "--distance" clustered --distance 0
refused "fewer groups or more features" clustered --features 1 --groups 4
expect_line 2 generate phase-retrieval
says "--out"
touch file
expect_line 2 generate phase-retrieval --out file/below
expect 0 generate --help
grep -q "clustered --out DIR" stdout.txt || fail "the help does not name the kinds"
expect 0 generate --out x phase-retrieval --help
grep -q -- "--keep-x" stdout.txt && ! grep -q -- "--rho" stdout.txt || fail "the help has not the options of the kind"
expect 0 generate clustered --help
grep -q -- "--rho" stdout.txt && ! grep -q -- "--keep-x" stdout.txt || fail "the help has not the options of the kind"
[ ! -e x ] || fail "the help wrote files"

# ---- a disk that is full: exit status 1, earlier files intact ----

cp -r small intact
(
    failures=0
    ulimit -f 8
    expect_line 1 generate phase-retrieval --features 200 --out small --force
    expect_line 1 generate phase-retrieval --features 200 --out new/folder
    expect_line 1 generate quantile --out new/folder
    expect_line 1 generate clustered --out new/folder
    expect_line 1 generate quantile --tree --out new/folder
    exit "$failures"
) || fail "a full disk"
for name in data.csv truth.csv spec.yaml; do
    cmp -s "small/$name" "intact/$name" || fail "a full disk changed $name"
done
[ "$(names small)" = "$(names intact)" ] || fail "a full disk left $(names small)"
[ ! -e new ] || fail "a full disk left a new folder"

# ---- Ctrl-C while the files are written: nothing is left, not even the folder ----

python3 - <<'PYTHON' || fail "interrupts"
import os, signal, subprocess

paper = ["phase-retrieval", "--features", "2000", "--clients", "400"]
rows = ["quantile", "--features", "2000", "--rows", "10"]
for number, status, data in ((signal.SIGINT, 130, paper), (signal.SIGTERM, 143, paper), (signal.SIGHUP, 129, rows),
                             (signal.SIGINT, 130, rows + ["--tree"])):
    p = subprocess.Popen(
        [os.environ["HFSAD"], "generate", *data, "--quiet", "--out", "interrupted/run"],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        while p.poll() is None and not os.path.exists("interrupted/run"):
            pass
        p.send_signal(number)
        out, err = p.communicate(timeout=120)
    finally:
        p.kill()
    assert p.returncode == status, (number, p.returncode, err)
    assert err.splitlines() == ["hfsad: interrupted; nothing was written"], err
    assert out == "" and not os.path.exists("interrupted")
PYTHON

finish
