#!/usr/bin/env bash
# A client whose name comes to federation.nodes while an asynchronous run goes on: processes above it read the list again, it joins when its
# process speaks, an edge and the cloud may be killed meanwhile, and `hfsad run --replay` leaves the same files. Needs HFSAD.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"

expect 0 generate quantile --edges 2 --clients 4 --features 3 --rows 8 --out . --quiet
"$HFSAD" nodes spec.yaml >all.txt
grep -v 'edge1/client4' all.txt >nodes.txt
expect_line 2 admit spec.yaml edge1/client4 --set federation.mode=async
says 'no list of nodes'
printf 'listener 1 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n' >plain.conf
start_broker plain.conf
sets=(--set federation.nodes=nodes.txt --set federation.mode=async --set run.iterations=3000 --set run.trace_every=100
    --set federation.deadline=2 --set output.every_seconds=0.05)
expect_line 2 admit spec.yaml edge3/client4 "${sets[@]}"
says 'edge3/client4: the list has no edge edge3; .* without a new edge'
expect_line 2 admit spec.yaml edge1/client1 "${sets[@]}"
says 'edge1/client1 is in the list already'
expect_line 2 admit
says 'is missing'
expect_line 2 admit spec.yaml edge1/client4 --set federation.nodes=nodes.txt
says 'lock step'
# What no process could go on with must not come to the list.
for set in federation.wire=fixed federation.stale=wait federation.join_seconds=0; do
    expect_line 2 admit spec.yaml edge1/client4 "${sets[@]}" --set $set
    says 'clients can come later only if'
done
! grep -q later nodes.txt || fail "the list has grown: $(cat nodes.txt)"
begin() {
    setpriv --pdeathsig KILL "$HFSAD" "${@:2}" "${sets[@]}" --broker mqtt://localhost:$port --state "states/$1" 2>>"$1.log" >/dev/null &
    last=$!
    members="$members $last"
}
begin cloud cloud spec.yaml --out out --quiet --record record.cloud
cloud=$last
begin edge2 edge spec.yaml --name edge2 --record record.edge2
begin edge1 edge spec.yaml --name edge1 --record record.edge1
edge1=$last
for i in 1 2 3; do begin 1c$i client spec.yaml --name edge1/client$i; done
begin 2c client spec.yaml --all-of edge2
row() { [ "$(tail -n 1 out/trace.csv 2>/dev/null | cut -d, -f1)" -ge "$1" ]; }
until_true 60 row 200 || fail "no rows: $(cat cloud.log)"
expect 0 admit spec.yaml edge1/client4 "${sets[@]}"
grep -qx 'later edge1/client4' nodes.txt || fail "the list has not grown: $(cat nodes.txt)"
grown() { grep -q 'the list of nodes has grown' edge1.log && grep -q 'the list of nodes has grown' cloud.log; }
until_true 60 grown || fail "the longer list is not noticed: $(cat edge1.log cloud.log)"
begin 1c4 client spec.yaml --name edge1/client4
kill -KILL "$edge1" "$cloud"
begin edge1 edge spec.yaml --name edge1 --record record.edge1
begin cloud cloud spec.yaml --out out --quiet --record record.cloud
cloud=$last
joined() { grep -q 'edge1/client4: readmitted' cloud.log; }
until_true 60 joined || fail "edge1/client4 does not join: $(cat cloud.log edge1.log 1c4.log)"
# An edge without clients is not waited for: not at rows, nor a minute or two at the end.
expect 0 retire --state states/cloud edge2/client5 edge2/client6 edge2/client7 edge2/client8
until_true 60 row 3000 || fail "the run stands still: $(cat cloud.log)"
until_true 45 eval "! kill -0 $cloud 2>/dev/null" || fail "the run does not end: $(cat cloud.log edge1.log)"
wait "$cloud" || fail "the cloud: $(cat cloud.log)"
until_true 60 test -s record.edge1 -a -s record.edge2 || fail "the edges do not end"
[ "$(wc -l <out/model.csv)" = 12 ] || fail "the output has other nodes: $(cut -d, -f1 out/model.csv)"
cat record.cloud record.edge1 record.edge2 >record
grep -qx 'cloud later edge1/client4' record || fail "the record does not name the client"
expect 0 run spec.yaml "${sets[@]}" --replay record --out again --quiet
same_output again out || fail "the replay is another run"
finish
