#!/usr/bin/env bash
# A federation of separate processes with certificates, its cloud with --dash: the nodes are in the history, repairs of
# the safeguard are there while it trains, and a killed cloud continues its entry. Needs HFSAD.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"
export HFSAD_HISTORY=$work/h.db

python3 - <<'P'
import random
random.seed(3)
with open("data.csv", "w") as f:
    f.write("edge,client,y,x1,x2\n")
    for row in range(24):
        x = [random.gauss(0, 1) for _ in range(2)]
        f.write(f"edge{row % 2},client{row % 4},{x[0] - 2 * x[1]},{x[0]},{x[1]}\n")
P
printf '1e160\n1e160\n' >start.txt # so far away that the safeguard must act
cat >spec.yaml <<'S'
data: data.csv
loss: {kind: absolute}
algorithm: hfsad
run: {iterations: 2000, edge_rounds: 3, start: start.txt, polish: false, trace_every: 10}
S
# sql TEXT: by another reader
sql() { python3 -c "
import sqlite3, sys
for row in sqlite3.connect('file:h.db?mode=ro', uri=True).execute(sys.argv[1]): print(*row, sep='|')" "$1"; }
# holds CONDITION: waits until it does, a minute at most
holds() {
    python3 -c '
import sqlite3, sys, time
end = time.monotonic() + 60
while time.monotonic() < end:
    try:
        if sqlite3.connect("file:h.db?mode=ro", uri=True).execute(sys.argv[1]).fetchone()[0] == 1:
            sys.exit(0)
    except sqlite3.OperationalError:
        pass # not there yet
    time.sleep(0.05)
sys.exit(1)' "SELECT $1"
}
# Without it, what follows would only wait.
must() {
    "$@" && return
    fail "$*: $(tail -n 3 cloud.txt; sql 'SELECT * FROM node'; sql 'SELECT node, text FROM event')"
    finish
}
# start_node NAME COMMAND ARGUMENTS…: its number is in $pid
start_node() {
    "$HFSAD" "${@:2}" --keys keys --broker "mqtts://localhost:$port" --state "state-${1//\//-}" >"${1//\//-}.txt" 2>&1 </dev/null &
    pid=$!
    members="$members $pid"
}
start_cloud() { start_node cloud cloud spec.yaml --out far --dash 127.0.0.1:0 --linger 1; }

expect 0 keys init
expect 0 keys issue cloud observer edge0 edge1 edge0/client0 edge0/client2 edge1/client1 edge1/client3
start_broker keys/mosquitto.conf

echo "-- the nodes, and repairs while it trains"
start_cloud
cloud=$pid
for edge in edge0 edge1; do start_node $edge edge spec.yaml --name $edge; done
for client in edge0/client0 edge0/client2 edge1/client1; do start_node $client client spec.yaml --name $client; done
must holds "count(*) > 0 FROM node WHERE path = 'edge1' AND state = 'live'"
start_node edge1/client3 client spec.yaml --name edge1/client3
last=$pid
must holds "rows >= 3 FROM run"
kill -STOP "$last" # the run waits for it meanwhile
must holds "count(*) > 0 FROM event WHERE text LIKE 'safeguard: repair %'"
must holds "count(*) = 7 FROM node WHERE state IN ('live', 'stale')"
[ "$(sql 'SELECT id, kind, status FROM run')" = "1|cloud|running" ] || fail "$(sql 'SELECT id, kind, status FROM run')"
address=$(sed -n 's,.*dashboard at \(http://127.0.0.1:[0-9]*\)/run/1$,\1,p' cloud.txt)
python3 - "$address" <<'P' || fail "the dashboard of the cloud"
import json, sys, urllib.request
get = lambda path: json.load(urllib.request.urlopen(sys.argv[1] + path, timeout=60))
assert get("/api/run/1")["federation"] == 1 and len(get("/api/trace/1")["iteration"]) > 0
assert {n["path"] for n in get("/api/nodes/1?under=-2")["inner"]} == {"cloud", "edge0", "edge1"}
P

echo "-- a killed cloud goes on in its entry"
kill -KILL "$cloud"
wait "$cloud" 2>/dev/null
"$HFSAD" runs | grep -q killed || fail "not shown as killed: $("$HFSAD" runs)"
start_cloud
kill -CONT "$last"
wait "$pid" || fail "the second cloud: $(tail -n 5 cloud.txt)"
[ "$(sql 'SELECT id, kind, status FROM run')" = "1|cloud|done" ] || fail "not one entry: $(sql 'SELECT id, kind, status, why FROM run')"
holds "count(*) = 1 FROM event WHERE text = 'continues in a new process'" || fail "no word of the new process"
[ "$(sql 'SELECT count(*), count(DISTINCT iteration), min(iteration), max(iteration) FROM trace')" = "201|201|0|2000" ] ||
    fail "rows: $(sql 'SELECT count(*), min(iteration), max(iteration) FROM trace')"
[ "$(sql 'SELECT rows FROM run')" = 201 ] || fail "counted rows: $(sql 'SELECT rows FROM run')"
holds "count(*) = 7 FROM node" || fail "nodes"
expect 0 run spec.yaml --out near --quiet --no-history
same_output near far || fail "another result"

echo "-- a new start is a new entry"
start_cloud
must holds "count(*) = 2 FROM run"
kill -KILL "$pid"

echo "-- so does hfsad up"
"$HFSAD" up spec.yaml --out up --quiet --set run.iterations=20000 >up.txt 2>&1 &
pid=$!
must holds "rows >= 3 FROM run WHERE kind = 'up'"
kill -KILL "$pid"
wait "$pid" 2>/dev/null
"$HFSAD" up spec.yaml --out up --quiet --set run.iterations=20000 >up.txt 2>&1 &
pid=$!
must holds "count(*) > 0 FROM event WHERE run = 3 AND text = 'continues in a new process'"
kill -TERM "$pid"
wait "$pid"
[ "$(sql "SELECT id, status FROM run WHERE kind = 'up'")" = "3|interrupted" ] || fail "$(sql 'SELECT id, kind, status FROM run')"
rm -rf spec-state
"$HFSAD" up spec.yaml --out up --quiet --set run.iterations=20 >up.txt 2>&1 || fail "up: $(cat up.txt)"
[ "$(sql "SELECT id, status FROM run WHERE kind = 'up'" | tail -n 1)" = "4|done" ] || fail "another run continued an entry"
finish
