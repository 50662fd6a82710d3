#!/usr/bin/env bash
# hfsad up, cloud, edge, client, status, nodes: real processes and a real broker give the bytes of `hfsad run`, whoever
# is killed when; strangers and impostors change nothing; what is wrong is said in one line. Needs HFSAD.
# KILLS: how many processes are killed per spec (12), SEED: when and which.
# States are synced at every round; in memory that takes no time.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
PATH=$PATH:/usr/sbin
seed=${SEED:-$((RANDOM))} kills=${KILLS:-12}

cat >make_data.py <<'PYTHON'
"""Data in a folder tree of depth 3: clients of 2 to 9 rows."""
import os, random
random.seed(5)
for edge in ("r/a", "r/b", "s/c", "d"):
    os.makedirs("deep/" + edge)
    for c in range(3):
        with open(f"deep/{edge}/c{c}.csv", "w") as f:
            f.write("y,u,v,w\n")
            for i in range(random.randint(2, 9)):
                x = [random.gauss(0, 1) for _ in range(3)]
                f.write(",".join(map(repr, [x[0] - x[2] + random.gauss(0, 0.2) + 1] + x)) + "\n")
PYTHON
python3 make_data.py
expect 0 generate phase-retrieval --edges 3 --clients 6 --features 5 --out d
cat >tuned.yaml <<'YAML'
data: d/data.csv
truth: d/truth.csv
loss: {kind: phase-retrieval, box: 5}
run: {iterations: 20}
YAML
cat >deep.yaml <<'YAML'
data: deep
loss: {kind: quantile, tau: 0.7}
features: {intercept: edge}
run: {iterations: 15, edge_rounds: 3, trace_every: 4}
YAML
cat >half.yaml <<'YAML'
data: d/data.csv
loss: {kind: phase-retrieval, box: 5}
preset: paper
run: {iterations: 30, edge_rounds: 4, participation: {client: 0.5}}
YAML
cat >async.yaml <<'YAML'
data: d/data.csv
truth: d/truth.csv
loss: {kind: phase-retrieval, box: 5}
run: {iterations: 20, edge_rounds: 4}
federation: {mode: async, deadline: 0.2}
YAML

cat >same.py <<'PYTHON'
"""same.py A B: exits with 1 and a line where two output folders differ in more than seconds and threads."""
import csv, json, os, sys

def content(folder, name):
    path = os.path.join(folder, name)
    if name == "trace.csv":
        rows = list(csv.reader(open(path, newline="")))
        at = rows[0].index("seconds")
        return [r[:at] + r[at + 1 :] for r in rows]
    if name == "summary.json":
        summary = json.load(open(path))
        for key in ("seconds", "iterations_per_second", "threads"):
            del summary[key]
        return list(summary.items())  # with its order
    return open(path, "rb").read()

for name in ("model.csv", "trace.csv", "summary.json"):
    if content(sys.argv[1], name) != content(sys.argv[2], name):
        sys.exit(f"{sys.argv[1]} and {sys.argv[2]} differ in {name}")
PYTHON
same() { python3 same.py "$1" "$2" || fail "$3"; }

echo "-- undisturbed"
for spec in tuned deep half; do
    expect 0 run $spec.yaml --out run-$spec --quiet
    expect 0 up $spec.yaml --out up-$spec --quiet
    same run-$spec up-$spec "$spec: up and run"
    [ ! -e $spec-state ] || fail "$spec: the state is still there"
done
[ "$(names up-tuned)" = "model.csv summary.json trace.csv " ] || fail "names in the folder: $(names up-tuned)"
expect 0 up tuned.yaml --out up-processes --quiet --processes
same run-tuned up-processes "a process for every client"
expect 0 up tuned.yaml --out up-table
grep -q '^relative error' stdout.txt || fail "no table"

echo "-- killed, seed $seed"
cat >kill.py <<'PYTHON'
"""kill.py SPEC KILLS SEED [OPTIONS]: an `up` whose processes are killed at drawn moments. Not the clock says when: a
process is killed after the state of one that was drawn has changed so many times, or has not for a second."""
import glob, os, random, select, signal, subprocess, sys, time

spec, kills, seed, options = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
random.seed(f"{spec} {seed}")
out, state = f"killed-{spec}", f"killed-{spec}-state"
up = subprocess.Popen([os.environ["HFSAD"], "up", spec + ".yaml", "--out", out, "--state", state, "--quiet",
                       "--log-level=error"] + options)

def children():
    try:
        return [int(p) for p in open(f"/proc/{up.pid}/task/{up.pid}/children").read().split()]
    except OSError:
        return []

def command(pid):
    """Its words; none: it is dead already, and only `up` does not know yet."""
    try:
        words = open(f"/proc/{pid}/cmdline").read().split("\0")
    except OSError:
        return []
    return words if words[0] else []

def stamp(path):
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0

def tick():
    select.select([], [], [], 0.001)

done = {}
while sum(done.values()) < kills and up.poll() is None:
    states = glob.glob(state + "/*/state.db-wal")
    tick()
    if not states:
        continue
    watched, changes, seen, end = random.choice(sorted(states)), random.randint(1, 30), 0, time.monotonic() + 1
    last = stamp(watched)
    while seen < changes and time.monotonic() < end and up.poll() is None:
        tick()
        now = stamp(watched)
        seen += now != last
        last = now
    alive = {pid: words for pid in children() if (words := command(pid))}
    if not alive:
        continue
    victim = random.choice(sorted(alive))
    words = alive[victim]
    os.kill(victim, signal.SIGKILL)
    kind = words[1] if words[0].endswith("hfsad") else words[0]
    done[kind] = done.get(kind, 0) + 1
try:
    status = up.wait(timeout=120)
except subprocess.TimeoutExpired:
    up.send_signal(signal.SIGTERM)
    up.wait()
    sys.exit(f"{spec}: it does not end any more (seed {seed}, {done})")
print(f"{spec}: killed {sum(done.values())} times: {done}")
sys.exit(status)
PYTHON
for spec in tuned deep half; do
    long=run.iterations=$((15 * kills)) # it must not end before
    expect 0 run $spec.yaml --set $long --out long-$spec --quiet
    python3 kill.py $spec "$kills" "$seed" --set $long || fail "$spec: killed (SEED=$seed)"
    same long-$spec killed-$spec "$spec: killed (SEED=$seed)"
done

echo "-- stopped, moved, continued"
cat >stop.py <<'PYTHON'
"""An `up` that is interrupted once its cloud has stored something of the training."""
import os, select, signal, subprocess, sys, time
up = subprocess.Popen([os.environ["HFSAD"], "up", "tuned.yaml", "--set", "run.iterations=60", "--out", "stopped",
                       "--state", "here", "--quiet"], stderr=subprocess.PIPE, text=True)
end = time.monotonic() + 60
while up.poll() is None and not os.path.exists("stopped/trace.csv") and time.monotonic() < end:
    select.select([], [], [], 0.001)
up.send_signal(signal.SIGINT)
said = up.stderr.read()
status = up.wait()
assert status == 130, (status, said)
assert "wrote stopped" in said and "goes on from here" in said, said
PYTHON
python3 stop.py || fail "interrupted"
[ "$(names stopped)" = "model.csv summary.json trace.csv " ] || fail "interrupted: $(names stopped)"
grep -q '"stopped":.*interrupted' stopped/summary.json || fail "an interrupted run does not say so"
mv here there
expect 0 run tuned.yaml --set run.iterations=60 --out run-60 --quiet
expect_line 2 up tuned.yaml --out other --state there --quiet
says 'state of another run'
expect 0 up tuned.yaml --set run.iterations=60 --out stopped --state there --quiet
same run-60 stopped "continued elsewhere"

echo "-- asynchronous"
expect 0 up async.yaml --out up-async --quiet
expect 0 run async.yaml --replay up-async/record --out replayed --quiet
same replayed up-async "replay of an asynchronous federation"

echo "-- what is wrong"
expect 0 nodes tuned.yaml
cp stdout.txt nodes.txt
[ "$(grep -c / nodes.txt)" = 21 ] || fail "the list of nodes: $(cat nodes.txt)"
sed 's/,[^,]*$//' d/data.csv >narrow.csv
list="--set federation.nodes=nodes.txt"
# shellcheck disable=SC2086 # two words
{
expect_line 2 client tuned.yaml --name edge1/client1 --data narrow.csv $list
says 'narrow.csv: 4 features; the federation has 5'
expect_line 2 client tuned.yaml --name edge1/client99 $list
says 'edge1/client99 is no client'
expect_line 2 edge tuned.yaml --name edge1 --broker mqtt://192.0.2.1 $list
says '\--insecure'
expect_line 2 edge tuned.yaml --name edge1 --broker mqtt://nowhere.invalid --insecure $list
says 'nowhere.invalid'
}
expect_line 2 up tuned.yaml --set run.tries=3
says 'run.tries'
expect_line 2 up tuned.yaml --set algorithm=fedavg
says 'algorithm'
echo 'edge1/client1' >bad.txt
expect_line 2 cloud tuned.yaml --set federation.nodes=bad.txt
says 'number of features is missing'
expect_line 2 edge tuned.yaml
expect_line 2 client tuned.yaml

finish
