#!/usr/bin/env bash
# Asynchronous training does not wait for the dead: with one client killed and one stopped of ten, the cloud steps on at the pace of
# the others, rows appear, the run ends, and the absent are named; a client that comes back joins in. Clients join and leave. Needs HFSAD.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"

expect 0 generate quantile --edges 2 --clients 5 --features 3 --rows 8 --out . --quiet
printf 'listener 1 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n' >plain.conf
start_broker plain.conf
# shellcheck disable=SC2206 # words
sets=(--set federation.mode=async --set run.iterations=100000000 --set run.trace_every=50 --set run.polish=false --set federation.deadline=2)
begin() {
    setpriv --pdeathsig KILL "$HFSAD" "${@:2}" "${sets[@]}" --broker mqtt://localhost:$port --state "states/$1" 2>>"$1.log" >"$1.out" &
    last=$!
    members="$members $last"
}
# begin_all [I]: all nodes, or all but edge1/clientI
begin_all() {
    begin cloud cloud spec.yaml --out out --quiet --record record.cloud
    cloud=$last
    for edge in 2 1; do begin edge$edge edge spec.yaml --name edge$edge --record record.edge$edge; done
    edge1=$last
    for i in {1..5}; do
        [ "$i" = "${1:-}" ] || begin 1c$i client spec.yaml --name edge1/client$i
        pids[i]=$last
        begin 2c$i client spec.yaml --name edge2/client$((i + 5))
    done
}
declare -a pids
rows() { [ "$(wc -l <out/trace.csv)" -gt "$1" ]; }
last_row() { tail -n 1 out/trace.csv 2>/dev/null | cut -d, -f1; }
# pace: global iterations in two seconds, by the rows of the trace
pace() {
    local before
    before=$("$HFSAD" status spec.yaml "${sets[@]}" --broker mqtt://localhost:$port --wait 0.3 | sed -n 's/^iteration \([0-9]*\) .*/\1/p')
    read -r -t 3 <><(:)
    echo $(($("$HFSAD" status spec.yaml "${sets[@]}" --broker mqtt://localhost:$port --wait 0.3 | sed -n 's/^iteration \([0-9]*\) .*/\1/p') - before))
}
begin_all
until_true 30 rows 3 || fail "no rows: $(cat cloud.log)"
whole=$(pace)
kill -STOP "${pids[2]}"
kill -KILL "${pids[4]}"
absent() { grep -q 'goes on without: edge1/client2' edge1.log && grep -q 'goes on without: edge1/client4' edge1.log; }
until_true 30 absent || fail "the absent are not named: $(cat edge1.log)"
read -r -t 3 <><(:) # rows are taken without them from now on
less=$(pace)
echo "iterations in three seconds: $whole with all, $less without two of ten"
[ "$less" -gt 0 ] || fail "the pace is $less, $whole with all"
kill -CONT "${pids[2]}"
back() { grep -q 'goes on with: edge1/client2' edge1.log; }
until_true 20 back || fail "a client that is back is not heard: $(cat edge1.log)"

# A fleet that changes. One client is not there at the set-up and joins later, one is killed for good, one is stopped for a while, one
# leaves; cloud and edge1 are killed and started again. Rows, polish and end go without the absent, the records say which, and
# `hfsad run --replay` leaves the same files.
kill -9 ${members/ $broker/} 2>/dev/null
wait ${members/ $broker/} 2>/dev/null
members=" $broker"
rm -rf states out ./*.log
sets=(--set federation.mode=async --set run.iterations=2500 --set run.trace_every=100 --set federation.deadline=2 --set federation.name=end
    --set output.every_seconds=0.05 --set federation.join_seconds=2)
row() { [ "$(last_row)" -ge "$1" ]; }
begin_all 3
until_true 60 row 300 || fail "no training without edge1/client3: $(cat cloud.log edge1.log)"
grep -q 'goes on without: edge1/client3' edge1.log || fail "a client that is not there at the set-up is not named: $(cat edge1.log)"
kill -KILL "${pids[1]}"
kill -STOP "${pids[4]}"
begin 1c3 client spec.yaml --name edge1/client3
expect 0 retire --state states/cloud edge2/client10
kill -KILL "$cloud" "$edge1"
begin edge1 edge spec.yaml --name edge1 --record record.edge1
begin cloud cloud spec.yaml --out out --record record.cloud
cloud=$last
joined() { grep -q 'edge1/client3: readmitted' cloud.log; }
until_true 60 joined || fail "edge1/client3 does not join: $(cat cloud.log 1c3.log)"
kill -CONT "${pids[4]}"
left() { grep -q 'has left the federation' 2c5.log; }
until_true 60 left || fail "edge2/client10 does not end: $(cat 2c5.log)"
until_true 120 eval "! kill -0 $cloud" || fail "the run does not end without a client: $(cat cloud.log edge1.log)"
wait "$cloud" || fail "the cloud: $(cat cloud.log)"
until_true 60 test -s record.edge1 -a -s record.edge2 || fail "the edges do not end"
grep -q 'goes on without: edge1/client1' edge1.log || fail "the absent is not named"
[ "$(last_row)" = 2500 ] && [ "$(wc -l <out/model.csv)" = 14 ] || fail "the output of a run without a client: $(last_row)"
grep -q '^edge1 end .* 0:-' record.edge1 && grep -q '^edge2 end .* 4:-' record.edge2 || fail "records do not name the absent: $(tail -n 1 record.edge1 record.edge2)"
grep -q 'a client is absent' out/summary.json || fail "polished without a client: $(grep -A 3 '"polish"' out/summary.json)"
# names_absent FOLDER: the summary names these, and no others
names_absent() {
    python3 -c 'import json, sys; absent = json.load(open(sys.argv[1] + "/summary.json"))["absent"]
sys.exit(absent != [dict(zip(("node", "why"), word.split("="))) for word in sys.argv[2:]])' "$@"
}
names_absent out "edge1/client1=did not answer" edge2/client10=left || fail "the summary does not name the absent: $(grep -A 9 '"absent"' out/summary.json)"
tr -s ' \n' ' ' <cloud.out | grep -q 'absent edge1/client1 (did not answer), edge2/client10 (left)' || fail "the last lines do not name the absent: $(cat cloud.out)"
grep -A 3 '"retired"' out/summary.json | grep -q edge2/client10 || fail "the summary does not say which client has left"
cat record.cloud record.edge1 record.edge2 >record
expect 0 run spec.yaml "${sets[@]}" --replay record --out again --quiet
same_output again out || fail "the replay is another run"
expect_line 2 retire spec.yaml edge1/client1
says 'lock step'
expect_line 2 retire spec.yaml edge1 --set federation.mode=async
says 'only clients'
finish
