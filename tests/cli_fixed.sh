#!/usr/bin/env bash
# Asynchronous training with `wire: fixed` and no cohorts: a client is replaced, another leaves and joins again, and the replay leaves the
# same files. Needs HFSAD.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"
expect 0 generate quantile --edges 2 --clients 4 --features 3 --rows 8 --out . --quiet
printf 'listener 1 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n' >plain.conf
start_broker plain.conf
sets=(--set federation.mode=async --set federation.wire=fixed --set run.iterations=3000 --set run.trace_every=50
    --set federation.deadline=2 --set output.every_seconds=0.05 --set run.polish=false)
begin() {
    setpriv --pdeathsig KILL "$HFSAD" "${@:2}" "${sets[@]}" --broker mqtt://localhost:$port --state "states/$1" 2>>"$1.log" >/dev/null &
    last=$!
    members="$members $last"
}
declare -a p
begin cloud cloud spec.yaml --out out --quiet --record record.cloud --linger 1
cloud=$last
for e in 1 2; do begin edge$e edge spec.yaml --name edge$e --record record.edge$e --linger 1; done
for i in 1 2 3 4; do begin 1c$i client spec.yaml --name edge1/client$i; p[i]=$last; done
for i in 5 6 7 8; do begin 2c$i client spec.yaml --name edge2/client$i; done
row() { [ "$(tail -n 1 out/trace.csv 2>/dev/null | cut -d, -f1)" -ge "$1" ] 2>/dev/null; }
until_true 60 row 100 || fail "no rows: $(cat cloud.log)"
kill -KILL "${p[3]}"
wait "${p[3]}" 2>/dev/null
rm -rf states/1c3
expect 0 readmit spec.yaml "${sets[@]}" edge1/client3 --state states/cloud
begin 1c3 client spec.yaml --name edge1/client3
expect 0 retire spec.yaml "${sets[@]}" edge1/client4 --state states/cloud
wait "${p[4]}" || fail "client 4 does not end: $(cat 1c4.log)"
expect 0 readmit spec.yaml "${sets[@]}" edge1/client4 --state states/cloud
rm -rf states/1c4
begin 1c4 client spec.yaml --name edge1/client4
wait "$cloud" || fail "the cloud: $(cat cloud.log)"
until_true 60 test -s record.edge1 -a -s record.edge2 || fail "the edges do not end"
cat record.cloud record.edge1 record.edge2 >record
expect 0 run spec.yaml "${sets[@]}" --replay record --out again --quiet
cmp -s out/model.csv again/model.csv || fail "the replay has another model"
without_time() { cut -d, --complement -f"$(head -n 1 out/trace.csv | tr , '\n' | grep -nx seconds | cut -d: -f1)" "$1"; }
[ "$(without_time out/trace.csv)" = "$(without_time again/trace.csv)" ] || fail "the replay has another trace"
finish
