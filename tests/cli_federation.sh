#!/usr/bin/env bash
# hfsad up, cloud, edge, client, status, nodes: real processes and a real broker give the bytes of `hfsad run`, whoever
# is killed when; strangers and impostors change nothing; what is wrong is said in one line. Needs HFSAD.
# KILLS: how many processes are killed per spec (12), SEED: when and which.
# States are synced at every round; in memory that takes no time.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"
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
features: {intercept: edge, standardize: true}
run: {iterations: 15, edge_rounds: 3, trace_every: 4}
YAML
cat >half.yaml <<'YAML'
data: d/data.csv
loss: {kind: phase-retrieval, box: 5}
preset: paper
run: {iterations: 30, edge_rounds: 4, participation: {client: 0.5}}
federation: {wire: delta}
YAML
cat >floats.yaml <<'YAML'
data: deep
loss: {kind: quantile, tau: 0.7}
features: {intercept: edge}
run: {iterations: 16, edge_rounds: 3, trace_every: 4, participation: {client: 0.6, edge: 0.7}}
federation: {wire: float}
YAML
cat >loose.yaml <<'YAML'
data: d/data.csv
loss: {kind: phase-retrieval, box: 5}
link: {client: {penalty: mcp}}
run: {iterations: 20, edge_rounds: 1, tries: 2}
YAML
printf 'edge,client,y,x1\ne,a,1.1291180211379384,-1.5020502687275359\ne,b,0.5036750853084759,0.19485176815075786\n' >cycled.csv
cat >cycled.yaml <<'YAML' # the stage before training has new cycles, as long as it is
data: cycled.csv
loss: {kind: phase-retrieval, box: 3}
link: {edge: {penalty: mcp}}
run: {iterations: 5, edge_rounds: 5, local_steps: 5, trace_every: 1, polish: false}
YAML
cat >polished.yaml <<'YAML'
data: deep
loss: {kind: quantile, tau: 0.7}
features: {intercept: global, standardize: true}
run: {iterations: 10, edge_rounds: 2, polish: true}
YAML
cat >star.yaml <<'YAML'
data: deep
loss: {kind: quantile, tau: 0.7}
features: {intercept: global}
prior: {cloud: {penalty: l1, weight: 1, lambda: 1}}
YAML
cat >averaged.yaml <<'YAML'
data: deep
algorithm: fedprox
loss: {kind: quantile, tau: 0.7}
prior: {cloud: {penalty: l1, lambda: 0.3}, edge: {penalty: l1, lambda: 0.1}}
features: {intercept: edge}
run: {iterations: 16, edge_rounds: 3, trace_every: 4, participation: {client: 0.6, edge: 0.7}}
YAML
sed 's/iterations: 10,/iterations: 200, stop: {relative: 0.05},/' polished.yaml >settled.yaml # polished where it stops by itself
{ cat polished.yaml && echo 'personal: groups'; } >grouped.yaml
cat >async.yaml <<'YAML'
data: d/data.csv
truth: d/truth.csv
loss: {kind: phase-retrieval, box: 5}
run: {iterations: 60, edge_rounds: 4}
federation: {mode: async, deadline: 0.2}
YAML

same() { same_output "$1" "$2" || fail "$3"; }
whole() { same_output "$1" "$2" state.csv checkpoint.bin || fail "$3"; } # with the states of all nodes

echo "-- undisturbed"
for spec in tuned deep half floats loose cycled polished settled grouped averaged star; do
    expect 0 run $spec.yaml --out run-$spec --quiet
    expect 0 up $spec.yaml --out up-$spec --quiet
    [ $spec = averaged ] || whole run-$spec up-$spec "$spec: up and run" # a baseline has no links
    same run-$spec up-$spec "$spec: up and run"
    [ ! -e $spec-state ] || fail "$spec: the state is still there"
done
grep -q '"stopped":.*tolerance' up-settled/summary.json || fail "settled: $(grep '"stopped"' up-settled/summary.json)"
[ "$(names up-tuned)" = "checkpoint.bin coefficients.csv model.csv state.csv summary.json trace.csv " ] || fail "names in the folder: $(names up-tuned)"
for set in federation.wire=double run.iterations=32; do
    expect 0 run floats.yaml --set $set --out other-$set --quiet
done
cmp -s run-floats/model.csv other-federation.wire=double/model.csv && fail "floats: nothing is rounded"
expect 0 run --resume up-floats --set run.iterations=32 --quiet
whole other-run.iterations=32 up-floats "floats: a federation goes on in the simulator"
expect 0 up tuned.yaml --out up-processes --quiet --processes
whole run-tuned up-processes "a process for every client"
# files of the whole federation, in which a client finds its own rows
{ printf '\n# who: at the end\n' && awk -F, 'NR > 1 { print $3, "1:" $4, "5:" $8, "#", $1 "/" $2 }' d/data.csv; } >whole.svm
{ printf '\357\273\277' && cut -d, -f2- d/data.csv; } >whole.csv
for data in whole.svm whole.csv; do
    expect 0 run tuned.yaml --set data=$data --set truth=none --set run.iterations=3 --out run-$data --quiet
    expect 0 up tuned.yaml --set data=$data --set truth=none --set run.iterations=3 --out up-$data --quiet --processes
    whole run-$data up-$data "$data, a process for every client"
done
for name in '#1' 'a+b' 'feature 1' 'features 2' ..; do # the list of nodes and topics have no place for these
    printf 'edge,client,y,x\n%s,a,1,1\nb,c,1,2\n' "$name" >name.csv
    expect_line 2 up tuned.yaml --set data=name.csv --set truth=none --out nobody --state nobody-state
    says "^hfsad: $name cannot be a node's name"
    [ ! -e nobody ] && [ ! -e nobody-state ] || fail "$name: something was written"
done
for name in 'a/b' 'a#'; do
    expect_line 2 up tuned.yaml --set "federation.name=$name" --out nobody --state nobody-state
    says "^hfsad: federation.name: .* cannot be the name of a run"
done
expect_line 2 up async.yaml --set run.participation.client=0.5 --out nobody --state nobody-state
says 'nodes take part when they are ready, not by draws'
# names that are like those of state folders, and long ones
long=$(printf 'n%.0s' $(seq 250))
printf 'edge,client,y,x\n..x,f,1,1\nother,a,1,1\nother-clients,b,1,2\nother/clients,c,2,1\nother_clients,d,1,3\n%s,e,1,1\n' "$long" >names.csv
printf '%s\n' "data: names.csv" "loss: {kind: absolute}" "run: {iterations: 5}" >names.yaml
expect 0 run names.yaml --out run-names --quiet
for each in '' --processes; do
    expect 0 up names.yaml --out up-names --quiet $each
    whole run-names up-names "names $each"
    [ ! -e names-state ] || fail "names $each: left $(names names-state)"
done
expect 0 up tuned.yaml --out up-table
grep -q '^relative error' stdout.txt || fail "no table"

echo "-- killed, seed $seed"
cat >kill.py <<'PYTHON'
"""kill.py SPEC KILLS SEED [OPTIONS]: an `up` whose processes are killed at drawn moments. Not the clock says when: a
process is killed after the state of one that was drawn has changed so many times, or has not for PAUSE seconds (1)."""
import glob, os, random, select, signal, subprocess, sys, time

spec, kills, seed, options = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
pause = float(os.environ.get("PAUSE", 1))
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
    states = glob.glob(state + "/*/mark")
    tick()
    if not states:
        continue
    watched, changes, seen, end = random.choice(sorted(states)), random.randint(1, 30), 0, time.monotonic() + pause
    last = stamp(watched)
    while seen < changes and time.monotonic() < end and up.poll() is None:
        tick()
        now = stamp(watched)
        seen += now != last
        last = now
    # not the thread of up's leak sanitizer, without which it would never end
    alive = {pid: words for pid in children() if (words := command(pid)) and words != command(up.pid)}
    if not alive:
        continue
    victim = random.choice(sorted(alive))
    words = alive[victim]
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:  # it has ended since, and `up` has waited for it
        continue
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
for spec in tuned deep half floats loose averaged; do
    long=run.iterations=$((15 * kills)) # it must not end before
    expect 0 run $spec.yaml --set $long --out long-$spec --quiet
    python3 kill.py $spec "$kills" "$seed" --set $long || fail "$spec: killed (SEED=$seed)"
    [ $spec = averaged ] || whole long-$spec killed-$spec "$spec: killed (SEED=$seed)"
    same long-$spec killed-$spec "$spec: killed (SEED=$seed)"
done
expect 0 run polished.yaml --set run.iterations=1 --out short-polished --quiet # most of it is the polish
PAUSE=0.05 python3 kill.py polished 10 "$seed" --set run.iterations=1 || fail "polished: killed (SEED=$seed)"
whole short-polished killed-polished "polished: killed (SEED=$seed)"
PAUSE=0.05 python3 kill.py star 8 "$seed" --set run.stop.gap=0 || fail "star: killed (SEED=$seed)"
expect 0 run star.yaml --set run.stop.gap=0 --out exact-star --quiet
whole exact-star killed-star "star: killed (SEED=$seed)"
expect 0 run grouped.yaml --set run.iterations=1 --set run.polish=false --out short-grouped --quiet
PAUSE=0.05 python3 kill.py grouped 6 "$seed" --set run.iterations=1 --set run.polish=false || fail "grouped: killed (SEED=$seed)"
whole short-grouped killed-grouped "grouped: killed (SEED=$seed)"

echo "-- stopped, moved, continued"
cat >stop.py <<'PYTHON'
"""An `up` that is interrupted once its cloud has stored something of the training."""
import os, select, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell ignores it in what it starts with &
up = subprocess.Popen([os.environ["HFSAD"], "up", "tuned.yaml", "--set", "run.iterations=60", "--out", "stopped",
                       "--state", "here", "--quiet"], stderr=subprocess.PIPE, text=True)
end = time.monotonic() + 60
while up.poll() is None and not os.path.exists("stopped/trace.csv") and time.monotonic() < end:
    select.select([], [], [], 0.001)
up.send_signal(signal.SIGINT)
said = up.stderr.read()
status = up.wait()
assert status == 130, (status, said)
assert "wrote stopped" in said and "continues from here" in said, said
PYTHON
python3 stop.py || fail "interrupted"
[ "$(names stopped)" = "checkpoint.bin coefficients.csv model.csv state.csv summary.json trace.csv " ] || fail "interrupted: $(names stopped)"
grep -q '"stopped":.*interrupted' stopped/summary.json || fail "an interrupted run does not say so"
expect 0 run tuned.yaml --set "run.iterations=$(tail -n 1 stopped/trace.csv | cut -d, -f1)" --set run.polish=false --out there --quiet
cmp stopped/model.csv there/model.csv || fail "an interrupted run has other models than one that ends there"
rm -r there
mv here there
expect 0 run tuned.yaml --set run.iterations=60 --out run-60 --quiet
cp -r stopped resumed
expect 0 run --resume resumed --set run.iterations=60 --quiet
whole run-60 resumed "an interrupted federation goes on in the simulator"
expect_line 2 up tuned.yaml --out other --state there --quiet
says 'the state folder there holds the state of another run, of cloud: they differ in: run.iterations; give another state folder'
expect 0 up tuned.yaml --set run.iterations=60 --out stopped --state there --quiet
whole run-60 stopped "continued elsewhere"

mkdir elsewhere
cat >kill_up.py <<'PYTHON'
"""An `up` that is killed itself, once its cloud has stored something."""
import os, select, subprocess, time
up = subprocess.Popen([os.environ["HFSAD"], "up", "tuned.yaml", "--set", "run.iterations=60", "--out", "orphan",
                       "--quiet"], env={**os.environ, "TMPDIR": "elsewhere"})
end = time.monotonic() + 60
while up.poll() is None and not os.path.exists("orphan/trace.csv") and time.monotonic() < end:
    select.select([], [], [], 0.001)
up.kill()
assert up.wait() == -9
PYTHON
python3 kill_up.py || fail "up is killed"
[ "$(names elsewhere)" = "" ] || fail "a killed up leaves $(names elsewhere) elsewhere"
expect 0 up tuned.yaml --set run.iterations=60 --out orphan --quiet
whole run-60 orphan "goes on after up was killed"
[ ! -e tuned-state ] || fail "the state of a killed up is still there"
# one that was killed while it removed its state, of which a part is left
expect 0 up tuned.yaml --set run.iterations=60 --out torn --state torn-state --keep-state --quiet
rm -r torn-state/cloud torn-state/edge1
touch torn-state/+done
# and one that was killed while it wrote: no process has this number
touch torn-state/.+nodes.999999999.tmp torn-state/.+broker.conf.999999999.tmp
expect 0 up tuned.yaml --set run.iterations=60 --out torn --state torn-state --quiet
whole run-60 torn "after a removal that was cut off"
[ ! -e torn-state ] || fail "left after a removal that was cut off: $(names torn-state)"

echo "-- asynchronous"
expect 0 up async.yaml --out up-async --quiet
expect 0 run async.yaml --replay up-async/record --out replayed --quiet
whole replayed up-async "replay of an asynchronous federation"
[ "$(wc -l <up-async/trace.csv)" -gt 3 ] || fail "an asynchronous run shows no rows on its way"
expect 0 up async.yaml --set federation.wire=float --out up-floats-async --quiet
expect 0 run async.yaml --set federation.wire=float --replay up-floats-async/record --out replayed-floats --quiet
whole replayed-floats up-floats-async "replay of one whose messages are rounded"
expect 0 up async.yaml --set run.stop.relative=0.5 --out up-stopped --quiet
grep -q '"stopped":.*tolerance' up-stopped/summary.json || fail "an asynchronous run does not stop"
expect 0 run async.yaml --set run.stop.relative=0.5 --replay up-stopped/record --out replayed-stopped --quiet
whole replayed-stopped up-stopped "replay of one that has stopped"
expect 0 up loose.yaml --set federation.mode=async --out up-loose-async --quiet
expect 0 run loose.yaml --set federation.mode=async --replay up-loose-async/record --out replayed-loose --quiet
whole replayed-loose up-loose-async "replay of one that begins from consensus"

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
expect_line 2 client tuned.yaml --name edge1/client1 --data nofile.csv $list
says '^hfsad: nofile.csv cannot be read: No such file or directory; name the file with the client.s rows (--data)'
expect_line 2 client tuned.yaml --name edge1/client99 $list
says 'no client edge1/client99 in this federation'
expect_line 2 edge tuned.yaml --name edge1 --broker mqtt://192.0.2.1 $list
says '\--insecure'
expect_line 2 edge tuned.yaml --name edge1 --broker mqtt://nowhere.invalid --insecure $list
says 'nowhere.invalid'
}
expect_line 2 up tuned.yaml --set algorithm=fedavg --set federation.mode=async
says 'federation.mode sync'
expect_line 2 up tuned.yaml --set algorithm=fedavg --set federation.wire=float
says 'federation.wire double'
echo 'edge1/client1' >bad.txt
expect_line 2 cloud tuned.yaml --set federation.nodes=bad.txt
says 'number of features is missing'
expect_line 2 edge tuned.yaml
expect_line 2 client tuned.yaml

echo "-- strangers"
# TLS with certificates on both sides and the access list of hfsad keys; a federation of real nodes, and among them
# strangers with mosquitto's own tools.
cat >frame.py <<'PYTHON'
"""frame.py HOW <FRAME: another frame made from a client's UP."""
import sys
from frames import frame, numbers

how = sys.argv[1]
kind, run, phase, round_, k, sigma, values = numbers(sys.stdin.buffer.read())
if how == "size":
    values.append(1.0)
elif how == "nan":
    values[0] = float("nan")
elif how == "future":
    round_ += 10**9
elif how == "run":
    run ^= 1
elif how == "lie":
    values = [1e6 for v in values]
sys.stdout.buffer.write(frame(kind, run, phase, round_, values, k, sigma))
PYTHON

# pub CERTIFICATE TOPIC <FRAME: by a certificate without its ending
pub() { mosquitto_pub -V 5 -q 1 -r -h localhost -p "$port" --cafile keys/ca.crt --cert "$1.crt" --key "$1.key" -t "$2" -s 2>>pub.log; }

cp tuned.yaml secure.yaml
expect 0 keys init
# shellcheck disable=SC2046 # a list of names
expect 0 keys issue cloud edge1 edge2 edge3 observer $(grep /client nodes.txt)
expect 0 keys init --dir foreign
expect 0 keys issue edge1/client1 --dir foreign
start_broker keys/mosquitto.conf
secure="--broker mqtts://localhost:$port --keys keys"
# shellcheck disable=SC2086 # lists of words
{
long="--set run.iterations=400 --set run.cycles=false" # a new cycle would make the frames below old
expect 0 run secure.yaml $long --out run-400 --quiet
setpriv --pdeathsig KILL "$HFSAD" cloud secure.yaml $long $secure --linger 0 --out up-400 --quiet 2>cloud.log &
cloud=$!
members="$members $cloud"
# another spec: one line on both sides, at once, also where the cloud has begun to ask less often
for _ in 1 2 3 4; do
    before=${EPOCHREALTIME/[.,]/}
    expect_line 2 edge secure.yaml $long $secure --name edge1 --state other --set run.seed=9 --set loss.box=4
    took=$((${EPOCHREALTIME/[.,]/} - before))
    says 'edge1: cloud has another spec.*they differ in: loss.box, run.seed'
done
[ $took -lt 2000000 ] || fail "it takes $took us to find that the spec is another"
[ "$(grep -c 'edge1: has another spec.*loss.box, run.seed' cloud.log)" = 1 ] && ! grep -q refused cloud.log ||
    fail "the cloud, of an edge with another spec: $(cat cloud.log)"
for edge in edge1 edge2 edge3; do
    setpriv --pdeathsig KILL "$HFSAD" edge secure.yaml $long --name $edge $secure --linger 0 --log json 2>$edge.log &
    members="$members $!"
done
# It is the second one of this name as soon as the first one is connected.
for _ in 1 2 3 4 5; do
    "$HFSAD" status secure.yaml $long $secure >stdout.txt 2>stderr.txt
    grep -q '^  edge1 .* live ' stdout.txt && break
done
expect_line 2 edge secure.yaml $long $secure --name edge1 --state twin --log-level error
says 'edge1 already runs'
expect_line 2 client secure.yaml $long $secure --all-of edge1 --state other --set run.seed=9
says 'edge1/client1: edge1 has another spec.*they differ in: run.seed'
# The cloud may have met the twin's key: of the cloud's messages some may be refused.
[ "$(grep -c '"edge1/client1".*has another spec.*run.seed' edge1.log)" = 1 ] && ! grep -q 'refused.*edge1/client' edge1.log ||
    fail "an edge, of clients with another spec: $(cat edge1.log)"
for edge in edge1 edge2 edge3; do
    setpriv --pdeathsig KILL "$HFSAD" client secure.yaml $long --all-of $edge $secure 2>$edge-clients.log &
    members="$members $!"
done
own=hfsad/run/edge1/client1/up
# One that the edge has had, from which the others are made; a client that begins clears its topic by an empty one first.
for _ in 1 2 3 4 5; do
    mosquitto_sub -V 5 -h localhost -p "$port" --cafile keys/ca.crt --cert keys/nodes/edge1.crt --key keys/nodes/edge1.key \
        -t $own -C 1 -N -W 20 >old.frame || fail "no UP of a client is to be seen"
    [ ! -s old.frame ] || break
done
# The run must not end before: without the cloud nobody goes on.
kill -STOP "$cloud"
expect_line 2 client secure.yaml $long --name edge1/client1 --broker mqtts://localhost:$port --ca keys/ca.crt \
    --certificate foreign/nodes/edge1/client1.crt --key foreign/nodes/edge1/client1.key --state f1
says 'TLS with the broker fails.*unknown ca'
expect_line 2 client secure.yaml $long --name edge1/client1 --broker mqtts://localhost:$port --ca foreign/ca.crt \
    --certificate keys/nodes/edge1/client1.crt --key keys/nodes/edge1/client1.key --state f2
says 'certificate'
}
for how in size nan future run lie; do python3 frame.py $how <old.frame >$how.frame; done
rounds=0
while kill -0 "$cloud" 2>/dev/null && [ "$rounds" -lt 40 ]; do
    [ "$rounds" != 3 ] || kill -CONT "$cloud"
    pub keys/nodes/edge1/client2 $own <lie.frame    # in another's name
    pub foreign/nodes/edge1/client1 $own <lie.frame # of another authority
    for how in old size nan future run; do pub keys/nodes/edge1/client1 $own <$how.frame; done
    rounds=$((rounds + 1))
done
[ "$rounds" -gt 0 ] || fail "the run was over before anybody could disturb it"
# shellcheck disable=SC2086 # a list of words
expect 0 status secure.yaml --set run.iterations=400 --set run.cycles=false $secure
grep -q '^  edge1 ' stdout.txt || fail "status: $(cat stdout.txt)"
wait "$cloud" || fail "the cloud among strangers: $(cat cloud.log)"
same run-400 up-400 "among strangers"
grep -q '"level":"warning".*without a tag.*edge1/client1/up' edge1.log || fail "a frame without a tag is not logged: $(head -20 edge1.log)"

echo "-- what the broker remembers of other runs"
# shellcheck disable=SC2086 # lists of words
for run in 30 30 31; do
    long="--set run.iterations=$run"
    rm -rf again
    for edge in edge1 edge2 edge3; do
        setpriv --pdeathsig KILL "$HFSAD" edge secure.yaml $long --name $edge $secure --linger 0 --state again/$edge 2>>again.log &
        members="$members $!"
        setpriv --pdeathsig KILL "$HFSAD" client secure.yaml $long --all-of $edge $secure --state again/$edge-clients 2>>again.log &
        members="$members $!"
    done
    expect 0 run secure.yaml $long --out run-again --quiet
    timeout 60 "$HFSAD" cloud secure.yaml $long $secure --state again/cloud --out up-again --quiet --linger 1 2>>again.log ||
        fail "another run on the same broker: $(tail again.log)"
    same run-again up-again "another run on the same broker"
done

finish
