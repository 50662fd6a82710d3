#!/usr/bin/env bash
# State folders of processes that were killed: `hfsad state` verifies them; a folder that was damaged since is refused
# within seconds, by the process and by `hfsad up`, or the run ends with the bytes of `hfsad run`. Needs HFSAD.
# DAMAGES: how many (8), SEED: which.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"
seed=${SEED:-$((RANDOM))} damages=${DAMAGES:-8}

expect 0 generate quantile --edges 2 --clients 3 --features 4 --rows 3 --out d
cat >spec.yaml <<'YAML'
data: d/data.csv
loss: {kind: quantile}
algorithm: hfsad
run: {iterations: 600}
YAML
expect 0 run spec.yaml --out run --quiet
cat >killed.py <<'PYTHON'
"""killed.py FOLDER COMMITS: an `up` with this state folder, killed with all its processes once its cloud has committed so
often."""
import os, select, struct, subprocess, sys, time
up = subprocess.Popen([os.environ["HFSAD"], "up", "spec.yaml", "--out", "killed", "--state", sys.argv[1], "--quiet"])

def commits():
    try:
        mark = open(sys.argv[1] + "/cloud/mark", "rb").read().ljust(1024, b"\0")
    except OSError:
        return 0
    return max(struct.unpack_from("<Q", mark, at + 16)[0] for at in (0, 512))

end = time.monotonic() + 60
while up.poll() is None and time.monotonic() < end and commits() < int(sys.argv[2]):
    select.select([], [], [], 0.001)
up.kill()
assert up.wait() == -9
PYTHON
python3 killed.py good 60 || fail "up is killed"
unused() { "$HFSAD" state check good >stdout.txt 2>stderr.txt || ! grep -q 'in use' stderr.txt; }
until_true 20 unused || fail "the processes of a killed up live on"

echo "-- hfsad state"
expect 0 state check good
[ "$(grep -c '^good/.*: sound; run [0-9a-f]*, [0-9]* commits' stdout.txt)" = 5 ] || fail "check: $(cat stdout.txt)"
cp stdout.txt checked.txt
[ "$(stat -c %a good good/cloud good/cloud/state good/cloud/mark | tr '\n' ' ')" = "700 700 600 600 " ] || fail "modes"
expect 0 state export good/cloud
python3 - <<'PYTHON' || fail "export: $(head -c 1000 stdout.txt)"
import json
lines = [json.loads(line) for line in open("stdout.txt")]
assert lines[0]["folder"] == "good/cloud" and lines[0]["commits"] > 20
state = [line for line in lines if "state" in line]
assert [s["state"] for s in state] == ["cloud"] and len(state[0]["hex"]) == 2 * state[0]["bytes"] > 200
rows = [line for line in lines if "row" in line]
run = open("run/trace.csv").read().splitlines()
names = run[0].split(",")
assert len(rows) > 15
for row, text in zip(rows, run[1:]):
    wanted = dict(zip(names, map(float, text.split(","))))
    assert row["row"] == wanted["iteration"] and row["objective"] == wanted["objective"], (row, wanted)
PYTHON
expect 0 state export good/edge1++clients
grep -q '^{"heard_by":\["edge1/client1"' stdout.txt || fail "export: no messages"
expect 0 state check good
cmp -s stdout.txt checked.txt || fail "check and export have changed something"
mkdir empty
expect_line 2 state check empty
says 'empty is not a state folder'
expect_line 2 state repair good
says "'repair' is neither check nor export"
expect 0 up spec.yaml --out went-on --state good --quiet --keep-state
same_output run went-on || fail "goes on after a kill"
rm -rf good killed
python3 killed.py good 60 || fail "up is killed"
until_true 20 unused || fail "the processes of a killed up live on"

echo "-- $damages damages, seed $seed"
cat >spoil.py <<'PYTHON'
"""spoil.py N: makes `bad`, a copy of `good` with one damage; prints what it is and which folder it is in."""
import os, random, shutil, sys
number = int(sys.argv[1])
random.seed(f"{os.environ['SEED']} {number}")
shutil.rmtree("bad", ignore_errors=True)
shutil.copytree("good", "bad", ignore=shutil.ignore_patterns("+broker"))  # a socket
which = random.choice(sorted(n for n in os.listdir("good") if n[0] != "+"))
name = random.choice(["state", "state", "state", "mark"])
path = f"bad/{which}/{name}"
data = bytearray(open(path, "rb").read())
end = len(data.rstrip(b"\0"))
at, some = random.randrange(end), random.randrange(1, 2000)
what = ["flip", "cut", "zero", "insert", "swap", "delete"][number % 6]
if what == "flip":
    data[at] ^= 1 << random.randrange(8)
elif what == "cut":
    del data[at:]
elif what == "zero":
    data[at:at + some] = bytes(len(data[at:at + some]))
elif what == "insert":
    data[at:at] = random.randbytes(some)
elif what == "swap":
    other = random.choice([n for n in sorted(os.listdir("good")) if n[0] != "+" and n != which])
    data = open(f"good/{other}/{name}", "rb").read()
if what == "delete":
    os.remove(path)
else:
    open(path, "wb").write(data)
print(what, which, name)
PYTHON
refused=0
for i in $(seq "$damages"); do
    read -r what which name < <(SEED=$seed python3 spoil.py "$i")
    rm -rf out
    SECONDS=0
    timeout 60 "$HFSAD" up spec.yaml --out out --state bad --quiet >stdout.txt 2>stderr.txt
    status=$?
    case $status in
    0) same_output run out || fail "$what of $which/$name: other bytes (SEED=$seed)" ;;
    2)
        refused=$((refused + 1))
        grep -q "^hfsad: bad/$which/\(state\|mark\) .*(byte [0-9]*): restore the whole folder" stderr.txt ||
            fail "$what of $which/$name is refused so: $(cat stderr.txt)"
        [ $SECONDS -le 20 ] || fail "$what of $which/$name: refused after $SECONDS s"
        "$HFSAD" state check bad >/dev/null 2>&1 && fail "$what of $which/$name: check finds nothing"
        ;;
    *) fail "$what of $which/$name: exit status $status (SEED=$seed): $(cat stderr.txt)" ;;
    esac
done
echo "$refused of $damages refused"
[ $refused -ge $((damages / 2)) ] || fail "only $refused of $damages damages are refused"

echo "-- old copies of whole folders"
# In lock step nobody is ahead of its neighbours: who goes on from an old copy hears of rounds that it cannot know.
mv good early
mkdir late
cp -r early/[!+]* early/+nodes late
python3 killed.py late 400 || fail "up is killed"
unused() { "$HFSAD" state check late >stdout.txt 2>stderr.txt || ! grep -q 'in use' stderr.txt; }
until_true 20 unused || fail "the processes of a killed up live on"
for which in cloud edge1 edge1++clients lost; do
    rm -rf bad out
    mkdir bad
    cp -r late/[!+]* late/+nodes bad
    if [ $which = lost ]; then
        which=cloud
        rm -r bad/cloud
    else
        rm -r "bad/$which"
        cp -r "early/$which" bad
    fi
    SECONDS=0
    timeout 60 "$HFSAD" up spec.yaml --out out --state bad --quiet >stdout.txt 2>stderr.txt
    status=$?
    [ $status = 2 ] || fail "$which: exit status $status: $(cat stderr.txt)"
    says "^hfsad: .*the state of [a-z0-9/]* in bad/$which is older than what [a-z0-9/]* has seen: round [0-9]*, that one is at [0-9]*; restore"
    [ $SECONDS -le 30 ] || fail "$which: refused after $SECONDS s"
done
# An empty folder is named on both sides: by the node, and by its parent.
for which in edge1 edge1++clients; do
    rm -rf bad out
    mkdir bad
    cp -r late/[!+]* late/+nodes bad
    rm -r "bad/$which"
    setpriv --pdeathsig KILL "$HFSAD" up spec.yaml --out out --state bad --log-level info --quiet >/dev/null 2>stderr.txt &
    up=$!
    members="$members $up"
    named() { grep -q "waits for its state folder: the state folder bad/$which is empty, and the run has come to round [0-9]*" stderr.txt &&
        grep -q "a child does not have the state.*has an empty state folder, and this node has seen step [0-9]*" stderr.txt; }
    until_true 20 named || fail "an empty folder of $which: $(cat stderr.txt)"
    kill "$up"
    wait "$up" 2>/dev/null
done
expect 0 up spec.yaml --out went-on --state late --quiet
same_output run went-on || fail "goes on after all that"

echo "-- an old copy of an asynchronous client's folder"
sed 's/600/3000/' spec.yaml >async.yaml
echo 'federation: {mode: async, quorum: 1}' >>async.yaml
sed -i 's/spec.yaml/async.yaml/' killed.py
rm -rf killed out
rm -rf early late
python3 killed.py early 60 || fail "up is killed"
until_true 20 unused
mkdir late
cp -r early/[!+]* early/+nodes late
python3 killed.py late 400 || fail "up is killed"
until_true 20 unused
rm -r late/edge1++clients
cp -r early/edge1++clients late
timeout 60 "$HFSAD" up async.yaml --out out --state late --quiet >stdout.txt 2>stderr.txt
[ $? = 2 ] || fail "an old copy of asynchronous clients: $(cat stderr.txt)"
says "the state of edge1/client[0-9] in late/edge1++clients is older than what edge1 has seen"
says "edge1: a child does not have the state that this node has seen: edge1/client[0-9] was at step [0-9]* when it ended" # and its parent names it

echo "-- an earlier version"
mkdir old
printf 'SQLite format 3' >old/state.db
expect_line 2 cloud spec.yaml --state old --broker mqtt://localhost:1
says 'old/state.db is a state of an earlier version'
expect_line 2 state check old
says 'old/state.db is a state of an earlier version'
echo "-- a client has ended the run, all others have old copies"
sed -i 's/async.yaml/spec.yaml/' killed.py
rm -rf old whole killed good
python3 killed.py good 60 || fail "up is killed"
until_true 20 unused
cp -r good old && rm -f old/+*
expect 0 up spec.yaml --out ended --state good --keep-state --quiet
mkdir whole && cp -r old/* whole/
one=$(basename "$(ls -d good/*clients | head -1)")
rm -rf "whole/$one" && cp -r "good/$one" whole/ && cp good/+nodes good/+secret whole/
SECONDS=0
expect 2 up spec.yaml --out again --state whole --quiet
grep -q 'older than what' stderr.txt || fail "old copies beside a client that has ended: $(cat stderr.txt)"
[ $SECONDS -lt 40 ] || fail "refused after $SECONDS s only"

finish
