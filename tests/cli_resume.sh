#!/usr/bin/env bash
# hfsad run --resume and --warm-start: killed, interrupted, extended and mixed-up folders end as the run that nobody
# disturbed; what does not fit is refused and changes nothing. Needs HFSAD, the path of the program.
# Hundreds of files are synced here; in memory that takes no time.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"

cat >make_data.py <<'PYTHON'
"""make_data.py FILE ROWS SEED: 3 edges with 5 clients of ROWS rows each, 4 features."""
import random, sys

path, rows, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random.seed(seed)
truth = [1.5, 0, -2, 0.5]
with open(path, "w") as f:
    f.write("edge,client,y,x1,x2,x3,x4\n")
    for i in range(15 * rows):
        x = [random.gauss(0, 1) for _ in truth]
        y = abs(sum(a * b for a, b in zip(x, truth)) + random.gauss(0, 0.1))
        f.write(",".join([f"e{i % 3}", f"c{i % 15}", repr(y)] + [repr(v) for v in x]) + "\n")
PYTHON
python3 make_data.py one.csv 1 1
python3 make_data.py many.csv 6 2
printf '1.5\n0\n-2\n0.5\n' >truth.csv
cat >phase.yaml <<'YAML'
data: one.csv
truth: truth.csv
loss: {kind: phase-retrieval, box: 5}
run: {iterations: 300, trace_every: 10, cycles: false}
YAML
cat >quantile.yaml <<'YAML'
data: many.csv
loss: {kind: quantile, tau: 0.4}
prior: {cloud: {penalty: l1, lambda: 0.1}}
run: {iterations: 300, edge_rounds: 2, trace_every: 3}
YAML
cat >absent.yaml <<'YAML'
data: one.csv
loss: {kind: absolute}
run: {iterations: 8000, edge_rounds: 3, trace_every: 70, participation: {client: 0.4, edge: 0.7, at_least_every: 5}}
YAML
cat >mixed.yaml <<'YAML'
data: many.csv
loss: {kind: huber}
run: {iterations: 300, edge_rounds: 2, trace_every: 7}
overrides:
  - {node: e1, prior: {penalty: mcp, lambda: 0.2, gamma: 3}, participation: 0.5}
  - {node: "e0/*", loss: {kind: squared}, local_steps: 2}
YAML

same() { same_output "$1" "$2" state.csv || fail "$3"; }

echo "-- killed at any moment"
# Not the clock says when: a run is killed after its checkpoint was replaced one to three times, and a few glances at it
# later, which is between two replacements of the same update or in the iterations that follow.
cat >kill.py <<'PYTHON'
import glob, os, random, re, subprocess, sys

hfsad, seed = os.environ["HFSAD"], int(os.environ.get("SEED", "7"))
random.seed(seed)

def mark(path):
    try:
        about = os.stat(path)
        return about.st_ino, about.st_mtime_ns
    except FileNotFoundError:
        return None

def disturb(p, path, before):
    """Kills p on its way; False where it ended first."""
    updates, glances = random.choice((1, 1, 1, 2, 3)), random.choice((0, 0, 1, 3, 10, 100, 1000))
    while updates and p.poll() is None:
        now = mark(path)
        updates -= now != before
        before = now
    for _ in range(glances):
        mark(path)
    if p.poll() is not None:
        return False
    p.kill()
    return p.wait() == -9

def run(*words):
    return subprocess.Popen([hfsad, "run", *words, "--quiet"], stderr=subprocess.PIPE, text=True)

# The run has no end until it has been killed often enough; then it is given one, and so is a run that nobody disturbs.
KILLS, ENDLESS = 5, "run.iterations=10000000"
for spec in sys.argv[1:]:
    for threads in "1", "2":
        out, alone, seen = f"killed-{spec}-{threads}", f"whole-{spec}-{threads}", set()
        path = f"{out}/checkpoint.bin"
        for _ in range(KILLS):
            before = mark(path)
            words = ["--resume", out] if before else [f"{spec}.yaml", "--out", out]
            p = run(*words, "--threads", threads, "--set", ENDLESS, "--set", "output.every_seconds=1e-4")
            assert disturb(p, path, before), (spec, p.stderr.read())
            seen.add(mark(path))
        assert len(seen) == KILLS, "killed without an update in between"
        p = run("--resume", out, "--set", "run.iterations=0")  # refused, which tells where it stands
        done = int(re.search("at iteration ([0-9]+)", p.communicate()[1])[1])
        end = f"run.iterations={done + 40}"
        for words in (["--resume", out, "--threads", threads], [f"{spec}.yaml", "--out", alone, "--threads", "1"]):
            p = run(*words, "--set", end)
            assert p.wait() == 0, (words, p.stderr.read())
        assert not glob.glob(f"{out}/.*"), os.listdir(out)
        print(f"{spec}, {threads} threads: killed {KILLS} times up to iteration {done}")
PYTHON
python3 kill.py phase quantile absent mixed || fail "kills (SEED=${SEED:-7})"
for spec in phase quantile absent mixed; do
    same whole-$spec-1 killed-$spec-1 "killed: $spec, SEED=${SEED:-7}"
    same whole-$spec-2 killed-$spec-2 "killed: $spec by two threads, SEED=${SEED:-7}"
done

echo "-- files of different moments"
expect 0 run absent.yaml --out moment0 --set run.iterations=90 --quiet
expect 0 run absent.yaml --out moment1 --set run.iterations=200 --quiet
expect 0 run absent.yaml --out whole --set run.iterations=333 --quiet
for moment in 0 1; do
    for other in checkpoint.bin coefficients.csv model.csv state.csv trace.csv summary.json none; do
        rm -rf moment && cp -a moment$moment moment
        [ $other = none ] && rm moment/[mst]* || cp moment$((1 - moment))/$other moment/
        expect 0 run --resume moment --set run.iterations=333 --quiet
        same whole moment "files of moment $moment but $other"
    done
done
[ "$(names moment)" = "checkpoint.bin coefficients.csv model.csv state.csv summary.json trace.csv " ] || fail "files: $(names moment)"

# The polish is done again, in a time of its own, the last of the file's seconds.
polished_apart() {
    case $1 in
    *.json) python3 -c 'import json, sys
s = json.load(open(sys.argv[1]))
s.get("polish", {}).pop("seconds", None)
print(s)' "$1" ;;
    *) cat "$1" ;;
    esac
}

echo "-- finished runs"
cp -a whole again
expect 0 run --resume again
[ -s stdout.txt ] || fail "no table"
for file in whole/*; do # summary and trace have the same seconds too
    cmp <(polished_apart "$file") <(polished_apart "again/${file##*/}") || fail "a finished run that is resumed changes ${file##*/}"
done
expect 0 run absent.yaml --out stopped --set run.stop.absolute=0.5 --quiet
grep -q '"stopped":.*"tolerance"' stopped/summary.json || fail "the stop rule did not stop"
cp -a stopped stopped-again
expect 0 run --resume stopped-again --quiet
same stopped stopped-again "a run that met its tolerances"
expect 0 run --resume stopped-again --quiet --set run.stop.absolute=0 --set run.iterations=333
same whole stopped-again "a stop rule that was lifted"

echo "-- interrupted"
cat >interrupt.py <<'PYTHON'
import json, os, signal, subprocess

hfsad = os.environ["HFSAD"]
start = lambda *words: subprocess.Popen([hfsad, "run", *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
long = start("absent.yaml", "--out", "interrupted", "--set", "run.iterations=50000000", "--set", "run.trace_every=1000",
             "--set", "output.every_seconds=0.001")
while not os.path.exists("interrupted/summary.json"):
    assert long.poll() is None
for words in (["--resume", "interrupted"], ["absent.yaml", "--out", "interrupted"]):
    other = start(*words)
    stdout, stderr = other.communicate()
    assert other.returncode == 2 and stdout == "" and "another run is writing to interrupted" in stderr, stderr
while json.load(open("interrupted/summary.json"))["iterations"] < 10:
    assert long.poll() is None
long.send_signal(signal.SIGINT)
long.communicate()
assert long.returncode == 130
done = json.load(open("interrupted/summary.json"))["iterations"]
rows = open("interrupted/trace.csv").readlines()
assert int(rows[-1].split(",")[0]) == done
for out, words in (("interrupted", ["--resume", "interrupted"]), ("alone", ["absent.yaml", "--out", "alone"])):
    p = start(*words, "--quiet", "--set", f"run.iterations={done + 1001}", "--set", "run.trace_every=1000")
    assert p.wait() == 0, p.stderr.read()
PYTHON
python3 interrupt.py || fail "interrupt.py"
same alone interrupted "interrupted between two rows of the trace"

echo "-- from another folder"
mkdir -p here/specs elsewhere
cp one.csv here/ && cp truth.csv here/specs/ && cp phase.yaml here/specs/
(cd here && "$HFSAD" run specs/phase.yaml --out out --quiet --set run.iterations=150 &&
    "$HFSAD" run specs/phase.yaml --out all --quiet --set run.iterations=250) || fail "a spec in a folder"
(cd elsewhere && "$HFSAD" run --resume ../here/out --quiet --set run.iterations=250) || fail "resumed from another folder"
same here/all here/out "resumed from another folder"
[ "$(names elsewhere)" = "" ] || fail "resuming left $(names elsewhere)"

echo "-- bad input"
expect 0 run phase.yaml --out good --set run.iterations=20 --quiet
cp -a good good-copy
# refuse WORD ARGUMENTS…: exit status 2, one line with WORD in it, nothing changed.
refuse() {
    local word=$1
    shift
    expect_line 2 run "$@"
    says "$word"
    [ -s stdout.txt ] && fail "output on stdout: hfsad run $*"
    diff -r good good-copy >&2 || fail "a refused run changed its folder: hfsad run $*"
}
refuse 'for run.iterations\|iteration 20; set run.iterations' --resume good --set run.iterations=19
refuse 'another value for run.seed;' --resume good --set run.seed=5
refuse 'other values for loss.box, run.edge_rounds;' --resume good --set loss.box=4 --set run.edge_rounds=3
refuse 'for overrides;' --resume good --set 'overrides=[{node: e1, participation: 0.5}]'
refuse 'loss.kind' --resume good absent.yaml
refuse 'run.iteration' --resume good --set run.iteration=30
refuse 'data' --resume good --set data=many.csv
refuse 'missing.csv' --resume good --set data=missing.csv
refuse 'truth' --resume good --set truth=none
refuse 'omit --out' --resume good --out other
refuse 'omit --warm-start' --resume good --warm-start good
refuse 'checkpoint.bin cannot be opened' --resume elsewhere
refuse '--resume missing: no such folder; name the output folder' --resume missing
refuse '--resume one.csv: no such folder' --resume one.csv
refuse 'a spec file is missing'
cp good/checkpoint.bin kept.bin
for damage in 'truncate -s -1' 'truncate -s 0' 'truncate -s 20' 'truncate -s +8' 'truncate -s 100000' \
    'sed -i s/hfsadchk/hfsadchl/' 'cp one.csv'; do
    rm -rf bad && cp -a good bad
    $damage bad/checkpoint.bin
    expect_line 2 run --resume bad
    says 'bad/checkpoint.bin'
done
rm -rf bad && cp -a good bad
expect 0 run phase.yaml --out bad --quiet --set output.checkpoint=false --set run.iterations=5
[ -e bad/checkpoint.bin ] && fail "output.checkpoint: false leaves the checkpoint of another run"
refuse 'output.checkpoint: true' --resume bad
# data that moved but did not change
cp one.csv moved.csv
expect 0 run --resume good --quiet --set data=moved.csv --set run.iterations=25

echo "-- warm start"
expect 0 run absent.yaml --out trained --set run.iterations=50 --quiet
expect 0 run absent.yaml --out warm --warm-start trained --set run.iterations=0 --quiet
cmp trained/model.csv warm/model.csv || fail "a warm start is not the model"
python3 - <<'PYTHON' || fail "a warm start's state"
import csv
model = {r[0]: r[1:] for r in csv.reader(open("trained/model.csv", newline=""))}
for name, k, last, *zq in list(csv.reader(open("warm/state.csv", newline="")))[1:]:
    assert k == last == "0" and zq == 2 * model[name], name
PYTHON
grep -q '"start":.*"trained"' warm/summary.json || fail "the summary does not tell of the warm start"
# A model without clients and without e1 and e2: they start from their nearest ancestors.
grep -v 'e[12]\|/' trained/model.csv >part.csv
expect 0 run absent.yaml --out warm --warm-start part.csv --set run.iterations=0 --quiet
python3 - <<'PYTHON' || fail "a warm start from ancestors"
import csv
given, got = ({r[0]: r[1:] for r in csv.reader(open(p, newline=""))} for p in ("part.csv", "warm/model.csv"))
assert set(given) == {"node", "cloud", "e0"}
for name, w in list(got.items())[1:]:
    assert w == given["e0" if name.startswith("e0") else "cloud"], name
PYTHON
# A feature of the model is no intercept of the data, nor the other way round.
expect_line 2 run absent.yaml --out refused --warm-start trained --set features.intercept=edge
says 'a model of 4 features, but the data have 4 and features.intercept is set'
expect 0 run absent.yaml --out edges --set features.intercept=edge --set features.standardize=true --quiet
expect 0 run absent.yaml --out warm --warm-start edges --set features.intercept=edge --set run.iterations=0 --quiet
python3 - <<'PYTHON' || fail "a warm start with intercepts"
import csv
given, got = ({r[0]: r[1:] for r in csv.reader(open(p, newline=""))} for p in ("edges/model.csv", "warm/model.csv"))
assert list(given) == list(got) and given["node"][-1] == "intercept"
for name in list(got)[1:]:
    for a, b in zip(given[name], got[name]):
        assert abs(float(a) - float(b)) <= 1e-12 * (1 + abs(float(a))), name
PYTHON
# It is a start, so a resumed run does not need it any more.
expect 0 run absent.yaml --out warm-whole --warm-start part.csv --set run.iterations=30 --quiet
expect 0 run absent.yaml --out warm-part --warm-start part.csv --set run.iterations=9 --quiet
rm part.csv
expect 0 run --resume warm-part --set run.iterations=30 --quiet
same warm-whole warm-part "resumed after a warm start"
printf 'node,w1\ncloud,1\n' >short.csv
printf 'node,w1,w2,w3,intercept\ncloud,1,1,1,1\n' >intercept.csv
printf 'node,w1,w2,w3,w4\n' >empty.csv
printf 'node,w1,w2,w3,w4\ne0,1,1,1,1\n' >headless.csv
printf 'node,w1,w2,w3,w4\ncloud,1,1,nan,1\n' >nan.csv
printf 'node,w1,w2,w3,w4\ncloud,1,1,1\n' >ragged.csv
printf 'node,w1,w2,w3,w4\ncloud,1,1,1,1\ncloud,1,1,1,1\n' >twice.csv
head -c -2 trained/model.csv >cut.csv
printf 'node,w1,w2,w3,intercept\ncloud,1,1,1,1\n' >constant.csv
: >void.csv
while read -r file word; do
    rm -rf refused
    expect_line 2 run absent.yaml --out refused --warm-start "$file"
    says "$word"
    [ -e refused ] && fail "a refused warm start made its folder"
done <<'LIST'
short.csv 1 features, but the data have 4
intercept.csv a model of 3 features and an intercept, but the data have 4 and features.intercept is none
empty.csv no row for the cloud
headless.csv no row for the cloud
nan.csv nan.csv:2
ragged.csv ragged.csv:2
twice.csv lines 2 and 3 both belong to the node "cloud"
one.csv one.csv:1: column 1 is called
missing.csv cannot be read
elsewhere elsewhere/model.csv cannot be read
cut.csv cut
constant.csv intercept
void.csv void.csv
LIST

# run.stop.time ends a run as Ctrl-C does, but with exit status 0: the folder goes on to the bits of a run without it.
expect 0 run quantile.yaml --out timed --set run.iterations=1000000 --set run.stop.time=0.05
grep -q 'time limit' stdout.txt || fail "run.stop.time: not in the table"
done=$(tail -n 1 timed/trace.csv | cut -d, -f1)
[ "$done" -lt 1000000 ] || fail "run.stop.time: no end before $done"
expect 0 run quantile.yaml --resume timed --set run.iterations=$((done + 30)) --set run.stop.time=0
expect 0 run quantile.yaml --out untimed --set run.iterations=$((done + 30))
cmp timed/model.csv untimed/model.csv || fail "run.stop.time: another model after $done iterations"
finish
