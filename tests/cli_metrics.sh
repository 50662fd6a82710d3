#!/usr/bin/env bash
# --metrics: the text is well formed, its values agree with the run, bad addresses are refused. Needs HFSAD, the path of
# the program, and mosquitto.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
PATH=$PATH:/usr/sbin
pids=()
stop() {
    [ ${#pids[@]} = 0 ] || kill -9 "${pids[@]}" 2>/dev/null
    rm -rf "$work"
}
trap stop EXIT

# poll_for COMMAND…: until it succeeds, 60 s at most.
poll_for() {
    local end=$((SECONDS + 60))
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        read -rt 0.05 <> <(:) || :
    done
}

cat >scrape.py <<'PYTHON'
"""scrape.py PORT FILE: writes `name{labels} value` lines, after checks of the format."""
import re, sys, urllib.request, urllib.error

base = f"http://127.0.0.1:{sys.argv[1]}"
with urllib.request.urlopen(base + "/metrics", timeout=10) as r:
    kind = r.headers["Content-Type"]
    assert kind.startswith("text/plain; version=0.0.4"), kind
    text = r.read().decode()
assert text.endswith("\n")
sample = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*\})? (NaN|[+-]Inf|[-+0-9.e]+)$')
types, helped, seen, last = {}, set(), set(), None
for line in text.splitlines():
    if line.startswith("# HELP "):
        name = line.split()[2]
        assert name not in helped, line
        helped.add(name)
    elif line.startswith("# TYPE "):
        _, _, name, type = line.split()
        assert name not in types and name in helped and type in ("counter", "gauge"), line
        assert (type == "counter") == name.endswith("_total"), line
        types[name] = last = type and name
    else:
        m = sample.match(line)
        assert m and m[1] == last, line  # the samples of a family stand together
        assert (m[1], m[2]) not in seen, line
        seen.add((m[1], m[2]))
        float(m[3])
open(sys.argv[2], "w").write("".join(l + "\n" for l in text.splitlines() if l[0] != "#"))
for path, method, status in (("/", "GET", 404), ("/metrics", "POST", 405), ("/metrics/x", "GET", 404)):
    try:
        urllib.request.urlopen(urllib.request.Request(base + path, method=method), timeout=10)
        raise SystemExit(f"{method} {path} was answered")
    except urllib.error.HTTPError as e:
        assert e.code == status, (path, method, e.code)
PYTHON

expect 0 generate quantile --edges 2 --clients 3 --features 4 --rows 20 --out .
echo "algorithm: hfsad" >>spec.yaml # the rounds and their bytes are counted
"$HFSAD" run spec.yaml --set run.iterations=40 --quiet --out sim || fail "the simulator"
printf '%s\n' "listener 0 $work/broker" 'allow_anonymous true' 'persistence false' 'log_type none' >broker.conf
[ "$(id -u)" != 0 ] || echo 'user root' >>broker.conf
mosquitto -c broker.conf >/dev/null 2>&1 &
pids+=($!)
poll_for test -S broker || fail "no broker"

# begin NAME COMMAND…: a process of the federation that serves metrics at a port of the system's choice.
declare -A process
begin() {
    local name=$1
    shift
    "$HFSAD" "$@" spec.yaml --set run.iterations=40 --broker "unix://$work/broker" --state "$name" \
        --metrics 127.0.0.1:0 2>"$name.log" >/dev/null </dev/null &
    process[$name]=$!
    pids+=($!)
}
port_of() { sed -n 's/.*serves metrics: port \([0-9]*\),.*/\1/p' "$1.log"; }
has_port() { [ -n "$(port_of "$1")" ]; }
# scrape NAME: into NAME.prom
scrape() { python3 scrape.py "$(port_of "$1")" "$1.prom" || fail "the metrics of $1 are not well formed"; }
# value NAME METRIC: of the last scrape
value() { awk -v m="$2" '$1 == m { print $2 }' "$1.prom"; }
# is NAME METRIC VALUE: scrapes
is() { scrape "$1" && [ "$(value "$1" "$2")" = "$3" ]; }
agree() { [ "$(value "$1" "$2")" = "$3" ] || fail "$1: $2 is '$(value "$1" "$2")', not '$3'"; }

# Nobody below it yet: the cloud says so.
begin cloud cloud --out out --quiet --linger 1000
poll_for has_port cloud || fail "the cloud serves no metrics"
poll_for is cloud 'hfsad_connected{node="cloud"}' 1 || fail "the cloud is not connected"
agree cloud 'hfsad_phase{node="cloud"}' 0
agree cloud 'hfsad_children{node="cloud"}' 2
agree cloud 'hfsad_children_live{node="cloud"}' 0

# Bad addresses, before anything is written.
for address in 127.0.0.1 127.0.0.1: :9100 nonsense:x 127.0.0.1:99999 1:2:3 '[::1:80' no.such.host.invalid:80; do
    expect_line 2 client spec.yaml --name edge1/client1 --state bad --metrics "$address"
    says "metrics cannot be served at"
done
expect_line 2 client spec.yaml --name edge1/client1 --state bad --metrics "127.0.0.1:$(port_of cloud)"
says "the port is in use"
[ ! -e bad ] || fail "a refused process left a state folder"

for edge in edge1 edge2; do
    begin "$edge" edge --name "$edge" --linger 1000
done
begin clients1 client --all-of edge1
begin clients2 client --all-of edge2
poll_for is cloud 'hfsad_phase{node="cloud"}' 2 || fail "the cloud did not end"
poll_for is cloud 'hfsad_children_live{node="cloud"}' 2 || fail "the cloud does not see that its edges live"
wait "${process[clients1]}" "${process[clients2]}" || fail "clients"
scrape edge1
agree cloud hfsad_iteration 40
agree edge1 'hfsad_children{node="edge1"}' 3
agree edge1 'hfsad_phase{node="edge1"}' 2
agree cloud 'hfsad_messages_refused_total{node="cloud",reason="bytes"}' 0
# the figures are those of the trace, the steps those of the simulator
cat >agree.py <<'PYTHON'
import csv

def metrics(name):
    return dict(l.rsplit(" ", 1) for l in open(name).read().splitlines())

cloud, edge = metrics("cloud.prom"), metrics("edge1.prom")
row = list(csv.DictReader(open("sim/trace.csv")))[-1]
for metric, column in (("objective",) * 2, ("consensus_objective",) * 2, ("primal_residual",) * 2,
                       ("dual_residual",) * 2, ("consensus_gap",) * 2, ("smoothing_gap",) * 2,
                       ("model_up_bytes", "bytes_up"), ("model_down_bytes", "bytes_down")):
    assert float(cloud["hfsad_" + metric]) == float(row[column]), (metric, cloud["hfsad_" + metric], row[column])
assert float(edge['hfsad_steps_total{node="edge1"}']) >= 40, edge
rounds = float(edge['hfsad_round{node="edge1"}'])
assert rounds >= 40 and rounds % 40 == 0, rounds
for name, m in (("cloud", cloud), ("edge1", edge)):
    commits, taken = float(m["hfsad_commits_total"]), float(m["hfsad_commit_seconds_total"])
    assert commits >= 40 and 0 < taken < 600, (name, commits, taken)
    least = 40 * 4 * 8  # 40 vectors of 4 doubles
    assert float(m["hfsad_sent_bytes_total"]) > least and float(m["hfsad_received_bytes_total"]) > least, name
    assert float(m["hfsad_messages_sent_total"]) >= 40 and float(m["hfsad_resident_memory_bytes"]) > 1e6
PYTHON
python3 agree.py || fail "the values do not agree with the run"
cmp -s sim/model.csv out/model.csv || fail "model.csv differs from the simulator's"

# Callers that ask for nothing, or byte by byte without an end, do not keep others out for long.
python3 - "$(port_of cloud)" <<'PYTHON' || fail "half-open connections keep others out"
import select, socket, sys, time, urllib.request
port, end, held = int(sys.argv[1]), time.monotonic() + 20, []
for i in range(140):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(("127.0.0.1", port))
    held.append(s)
while time.monotonic() < end:
    for i, s in enumerate(held):
        try:
            s.send(b"GET /metrics HTTP/1.1\r\nX: " if i % 2 else b"G") if i % 3 else None
        except OSError:
            pass
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=3).read()
        sys.exit(0)
    except OSError:
        select.select([], [], [], 0.1)
sys.exit(1)
PYTHON

# Grafana's panels and alerts ask for metrics that are there.
cat "${SOURCE_DIR:-$tests/..}"/deploy/grafana/* | grep -o 'hfsad_[a-z_]*' | sort -u | while read -r metric; do
    grep -q "^$metric[ {]" cloud.prom || [ "$metric" = hfsad_waits_for_seconds ] || echo "$metric"
done >unknown.txt
[ -s unknown.txt ] && fail "metrics of deploy/grafana that the cloud does not export: $(cat unknown.txt)"
python3 -m json.tool "${SOURCE_DIR:-$tests/..}/deploy/grafana/dashboard.json" >/dev/null || fail "the dashboard is no JSON"

# A broker that is gone shows, and SIGTERM ends the process at once though a server runs in it.
kill -9 "${pids[0]}"
wait "${pids[0]}" 2>/dev/null
poll_for is cloud 'hfsad_connected{node="cloud"}' 0 || fail "the cloud does not say that its broker is gone"
agree cloud hfsad_connects_total 1
for name in cloud edge1 edge2; do
    kill -TERM "${process[$name]}"
    wait "${process[$name]}" 2>/dev/null
    [ $? = 0 ] || fail "$name: its run is over, so it ends well"
done
finish
