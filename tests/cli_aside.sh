#!/usr/bin/env bash
# A child of an asynchronous run that sends messages beyond the bounds of the mathematics is set aside and named, and the run goes on to its end without
# it. And robust sums: tests/liars.py. Needs HFSAD, mosquitto, paho-mqtt.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"
need_paho
cat >liar.py <<'END'
"""Answers each DOWN of edge1 in the name of edge1/client1, by an UP that no rows can give."""
import sys
import paho.mqtt.client as mqtt
from frames import frame, numbers
def on_message(client, _, m):
    if not m.payload: # a node that begins clears its topics
        return
    kind, run, phase, round_, _k, _sigma, values = numbers(m.payload)
    if kind == 0 and phase == 2:
        client.publish("hfsad/run/edge1/client1/up", frame(1, run, phase, round_, [1e300] * len(values), 10**6, 1e12))
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2) if hasattr(mqtt, "CallbackAPIVersion") else mqtt.Client()
client.on_message = on_message
client.on_subscribe = lambda *_: print("ready", flush=True)
client.connect("127.0.0.1", int(sys.argv[1]))
client.subscribe("hfsad/run/edge1/down")
client.loop_forever()
END
expect 0 generate quantile --edges 1 --clients 4 --features 3 --rows 8 --out . --quiet
printf 'listener 1 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n' >plain.conf
start_broker plain.conf
sets=(--set federation.mode=async --set algorithm=hfsad --set run.polish=false --set federation.deadline=1 --set run.iterations=400 --set run.trace_every=100)
begin() {
    setpriv --pdeathsig KILL "${@:2}" 2>"$1.log" >/dev/null &
    last=$!
    members="$members $last"
}
setpriv --pdeathsig KILL "$python" liar.py "$port" >liar.txt 2>liar.log &
members="$members $!"
until_true 60 grep -q ready liar.txt || fail "the liar is not ready: $(cat liar.log)"
begin cloud "$HFSAD" cloud spec.yaml "${sets[@]}" --broker mqtt://localhost:$port --state s-cloud --out out --quiet --linger 1 --record record.cloud
cloud=$last
begin edge1 "$HFSAD" edge spec.yaml "${sets[@]}" --broker mqtt://localhost:$port --state s-edge --name edge1 --linger 1 --record record.edge1
for i in 1 2 3 4; do
    begin c$i "$HFSAD" client spec.yaml "${sets[@]}" --broker mqtt://localhost:$port --state s-$i --name edge1/client$i
    [ $i != 1 ] || honest=$last
done
# from here on only the liar speaks for it: an honest message of a round makes the lie an old one
until_true 60 grep -q 'client1: set up' c1.log || fail "not set up: $(cat c1.log)"
kill -STOP "$honest"
until_true 90 eval "! kill -0 $cloud 2>/dev/null" || fail "the run does not end: $(cat edge1.log)"
wait "$cloud" || fail "the cloud: $(cat cloud.log)"
grep -q 'sets aside.*edge1/client1' edge1.log || fail "the liar is not set aside: $(cat edge1.log)"
grep -q 'sets aside.*edge1/client[234]' edge1.log && fail "an honest client is set aside"
[ "$(tail -n 1 out/trace.csv | cut -d, -f1)" = 400 ] || fail "the run has not come to its end"
awk -F, 'NR > 1 && ($2 > 1e6 || $2 < -1e6) { exit 1 }' out/trace.csv || fail "the lies have moved the models"

grep -A 3 '"absent"' out/summary.json | grep -q '"why":.*"set aside"' || fail "the summary does not name the liar: $(grep -A 5 '"absent"' out/summary.json)"
until_true 60 test -s record.edge1 || fail "the edge does not end"
cat record.cloud record.edge1 >record
expect 0 run spec.yaml "${sets[@]}" --replay record --out again --quiet
same_output again out || fail "the replay is another run"

expect_line 2 run spec.yaml --out no --set aggregate=median --set algorithm=star
says 'aggregate: trimmed and median need algorithm hfsad'
expect_line 2 run spec.yaml --out no --set aggregate=trimmed --set run.polish=true
says 'run.polish false'
python3 "$tests/liars.py" "$HFSAD" || fail "robust sums"
finish
