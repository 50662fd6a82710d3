#!/usr/bin/env bash
# A client that comes to federation.nodes while an asynchronous run goes on, with certificates and the exact access list of `hfsad keys broker`: the
# broker and the nodes admit it by its certificate and its name, nobody without both, and `hfsad run --replay` leaves the same files. Needs HFSAD.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"

expect 0 generate quantile --edges 2 --clients 2 --features 3 --rows 8 --out . --quiet
"$HFSAD" nodes spec.yaml >all.txt
grep -v 'edge1/client2' all.txt >nodes.txt
echo 'federation: {nodes: nodes.txt, mode: async, deadline: 1}' >>spec.yaml
sets=(--set run.iterations=2500 --set run.trace_every=100 --set algorithm=hfsad --set run.polish=false --set output.every_seconds=0.05)
expect 0 keys init --host localhost
expect 0 keys issue --nodes nodes.txt
expect 0 keys broker spec.yaml --out broker
! grep -q 'edge1/client2' broker/acl || fail "the access list knows the client before it is admitted"
start_broker broker/mosquitto.conf
begin() {
    setpriv --pdeathsig KILL "$HFSAD" "${@:2}" "${sets[@]}" --keys keys --broker "mqtts://localhost:$port" --state "states/$1" 2>>"$1.log" >/dev/null &
    last=$!
    members="$members $last"
}
begin cloud cloud spec.yaml --out out --quiet --record record.cloud
cloud=$last
for edge in 1 2; do begin edge$edge edge spec.yaml --name edge$edge --record record.edge$edge; done
begin 1c1 client spec.yaml --name edge1/client1
begin 2c client spec.yaml --all-of edge2
row() { [ "$(tail -n 1 out/trace.csv 2>/dev/null | cut -d, -f1)" -ge "$1" ]; }
until_true 60 row 100 || fail "no rows: $(cat cloud.log)"
expect 0 admit spec.yaml edge1/client2 "${sets[@]}"
# A name without a certificate is nobody.
expect_line 2 client spec.yaml --name edge1/client2 "${sets[@]}" --keys keys --broker "mqtts://localhost:$port" --state states/nobody
expect 0 keys issue --nodes nodes.txt
expect 0 keys broker spec.yaml --out broker
grep -q 'edge1/client2' broker/acl || fail "the access list does not know the client"
kill -HUP "$broker"
begin 1c2 client spec.yaml --name edge1/client2
joined() { grep -q 'edge1/client2: readmitted' cloud.log; }
until_true 60 joined || fail "edge1/client2 does not join: $(cat cloud.log edge1.log 1c2.log)"
until_true 90 eval "! kill -0 $cloud 2>/dev/null" || fail "the run does not end: $(cat cloud.log edge1.log)"
wait "$cloud" || fail "the cloud: $(cat cloud.log)"
until_true 60 test -s record.edge1 -a -s record.edge2 || fail "the edges do not end"
cat record.cloud record.edge1 record.edge2 >record
grep -qx 'cloud later edge1/client2' record || fail "the record does not name the client"
expect 0 run spec.yaml "${sets[@]}" --replay record --out again --quiet
same_output again out || fail "the replay is another run"
finish
