#!/usr/bin/env bash
# How processes of a federation end, with real ones and a real broker: what is wrong leaves nothing behind, neither with
# the one who says it nor with the others, who hear of it; a full disk takes time and nothing else; a federation goes on
# elsewhere from its state folders; certificates that have run out or were taken back. Needs HFSAD.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"
program=$HFSAD
# `expect` ends also where the program would wait for ever
printf '#!/bin/sh\nexec timeout 60 "%s" "$@"\n' "$program" >patient
chmod +x patient
HFSAD=$work/patient

# start LOG COMMAND…: in the background, gone with this script; its number is in $started. A LOG that begins with | is
# written by another process, as this one's disk will be full.
start() {
    if [[ $1 == \|* ]]; then
        setpriv --pdeathsig KILL "${@:2}" 2> >(exec cat >"${1#|}") >/dev/null &
    else
        setpriv --pdeathsig KILL "${@:2}" 2>"$1" >/dev/null &
    fi
    started=$!
    members="$members $started"
}
# ends STATUS PID WHAT: waits for it, a minute at most
ends() {
    local status
    timeout 60 tail --pid="$2" -s 0.02 -f /dev/null || fail "$3 does not end"
    kill -0 "$2" 2>/dev/null && return
    wait "$2"
    status=$?
    [ "$status" = "$1" ] || fail "$3: exit status $status instead of $1"
}
all_gone() { [ -z "$(find . -name mark)" ] && [ ! -e "$1" ] || fail "$2: left behind: $(find . -path '*state*')"; }

expect 0 generate phase-retrieval --edges 2 --clients 3 --features 5 --out d
cat >spec.yaml <<'YAML'
data: d/data.csv
loss: {kind: phase-retrieval, box: 5}
run: {iterations: 40}
YAML
printf 'listener 1 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n' >plain.conf
expect 0 keys init
expect 0 keys issue cloud edge1 edge2 edge1/client1
expect 0 keys init --dir foreign

echo "-- what is wrong leaves nothing behind"
start_broker plain.conf
expect_line 2 edge spec.yaml --name edge1 --broker mqtts://localhost:$port
says 'needs the certificate of the authority'
all_gone spec-state "no certificate of the authority"
expect_line 2 edge spec.yaml --name edge1 --broker mqtt://nowhere.invalid --insecure --log-level error
says 'nowhere.invalid'
all_gone spec-state "an unknown host"
expect_line 2 cloud spec.yaml --broker mqtts://localhost:$port --keys nowhere
says 'nowhere/ca.crt'
all_gone spec-state "no keys"
[ ! -e spec-out ] || fail "an output folder is left"
expect_line 2 up spec.yaml --set run.start=short.csv --quiet
says 'short.csv'
all_gone spec-state "up with a start that is missing"
touch file
expect_line 2 edge spec.yaml --name edge1 --broker mqtt://localhost:$port --state file/state
says 'state folder file/state cannot be used: .*give another state folder (--state)'
expect_line 2 up spec.yaml --state file/state --quiet
says 'state folder file/state cannot be used: .*give another state folder (--state)'
mkdir own
expect_line 2 edge spec.yaml --name edge1 --broker mqtts://localhost:$port --keys nowhere --state own
[ -d own ] || fail "a folder that was there before is gone"
expect 0 run spec.yaml --out run --quiet
expect 0 up spec.yaml --out up --quiet
cmp -s run/model.csv up/model.csv || fail "up after all that"

echo "-- a mistake that the cloud finds ends all"
echo 1 >short.csv
short="--set run.start=short.csv --broker mqtt://localhost:$port --log-level error"
pids=
# shellcheck disable=SC2086 # lists of words
{
for edge in edge1 edge2; do
    start $edge.log "$program" edge spec.yaml --name $edge $short
    pids="$pids $edge:$started"
done
start edge1-clients.log "$program" client spec.yaml --all-of edge1 $short
pids="$pids edge1-clients:$started"
for c in 1 2 3; do
    start client$c.log "$program" client spec.yaml --name edge2/client$((c + 3)) $short
    pids="$pids client$c:$started"
done
expect_line 2 cloud spec.yaml $short
}
says 'short.csv: .*5'
for p in $pids; do
    ends 2 "${p#*:}" "${p%:*}"
    [ "$(wc -l <"${p%:*}.log")" = 1 ] || fail "${p%:*}: not one line: $(cat "${p%:*}.log")"
    grep -q 'the cloud has ended the run: .*short.csv' "${p%:*}.log" || fail "${p%:*}: $(cat "${p%:*}.log")"
done
all_gone spec-state "a mistake that the cloud finds"
# what the broker remembers of it does not end those who come later
for n in 1 2 3 4 5; do printf '0.5\n'; done >short.csv
# shellcheck disable=SC2086
{
for edge in edge1 edge2; do
    start $edge.log "$program" edge spec.yaml --name $edge $short --linger 0
    start $edge-clients.log "$program" client spec.yaml --all-of $edge $short
done
expect 0 run spec.yaml --set run.start=short.csv --out run-5 --quiet
expect 0 cloud spec.yaml $short --out cloud-5 --linger 1 --quiet
}
cmp -s run-5/model.csv cloud-5/model.csv || fail "once the mistake is mended: $(cat edge*.log)"

echo "-- also one that it finds when the others have begun to train"
rm -rf spec-state
head -2 d/truth.csv >truth.csv
late="--set truth=truth.csv --set run.start=short.csv --broker mqtt://localhost:$port --log-level error"
# shellcheck disable=SC2086 # lists of words
for status in 2 0; do
    pids=
    for edge in edge1 edge2; do
        start late-$edge.log "$program" edge spec.yaml --name $edge $late --linger 1
        pids="$pids $started"
        start late-$edge-clients.log "$program" client spec.yaml --all-of $edge $late
        pids="$pids $started"
    done
    expect $status cloud spec.yaml $late --out cloud-late --linger 1 --quiet
    for pid in $pids; do ends $status $pid "a process, truth wrong and then right"; done
    if [ $status = 2 ]; then
        says 'truth.csv: 2 numbers for truth'
        grep -l 'the cloud has ended the run: .*truth.csv' late-*.log >heard.txt
        [ "$(wc -l <heard.txt)" = 4 ] || fail "not all hear of it: $(cat late-*.log)"
    fi
    cp d/truth.csv .
done
cmp -s run-5/model.csv cloud-late/model.csv || fail "the run that goes on with the right truth"

echo "-- an interrupt in a stage before the run, of which there is nothing to write"
rm -rf spec-state
stages="--set link.client.penalty=mcp --set run.start=consensus --set run.edge_rounds=3000 --broker mqtt://localhost:$port"
pids=
# shellcheck disable=SC2086 # lists of words
{
for edge in edge1 edge2; do
    start stage-$edge.log "$program" edge spec.yaml --name $edge $stages
    pids="$pids $started"
    start stage-$edge-clients.log "$program" client spec.yaml --all-of $edge $stages
    pids="$pids $started"
done
start stage-cloud.log "$program" cloud spec.yaml $stages --out staged --quiet
cloud=$started
until_true 30 grep -q 'edge1: set up' stage-edge1.log && until_true 30 grep -q 'cloud: set up' stage-cloud.log ||
    fail "it does not begin: $(cat stage-*.log)"
before=${EPOCHREALTIME/[.,]/}
kill -TERM $cloud
ends 143 $cloud "a cloud in a stage before the run"
[ $((${EPOCHREALTIME/[.,]/} - before)) -lt 2500000 ] || fail "it waits for models that nobody needs"
[ ! -e staged ] || fail "a stage before the run has left $(names staged)"
kill -KILL $pids $cloud 2>/dev/null
wait $pids 2>/dev/null
}
rm -rf spec-state

echo "-- a full disk, a second process of a name, and going on elsewhere"
# run_all FOLDER OF THE STATES: all nodes by the broker at $port; their numbers are in $pids, those that are named too
run_all() {
    pids=
    start "|$1-cloud.log" "$program" cloud spec.yaml $long --broker mqtt://localhost:$port --state "$1/cloud" --out moved --quiet --linger 1 --log-level debug
    cloud=$started
    for edge in edge1 edge2; do
        start "|$1-$edge.log" "$program" edge spec.yaml $long --name $edge --broker mqtt://localhost:$port --state "$1/$edge" --linger 0
        pids="$pids $started"
        start "|$1-$edge-clients.log" "$program" client spec.yaml $long --all-of $edge --broker mqtt://localhost:$port --state "$1/$edge-clients"
        pids="$pids $started"
    done
    read -r edge1 clients1 _ <<<"$pids"
}
rows() { grep -c "a row of the trace" here-cloud.log; }
more_rows() { [ "$(rows)" -gt "$1" ]; }
# shellcheck disable=SC2086 # lists of words
{
long="--set run.iterations=1500 --set run.edge_rounds=2"
expect 0 run spec.yaml $long --out run-long --quiet
run_all here
until_true 30 more_rows 3 || fail "it does not train: $(cat here-*.log)"
for full in "$edge1 edge1" "$clients1 edge1-clients" "$cloud cloud"; do
    read -r pid name <<<"$full"
    prlimit --pid "$pid" --fsize=0:unlimited
    until_true 20 grep -q 'the state cannot be written: here/.* cannot grow: File too large; raise the limit' here-$name.log || fail "$name: a full disk is not noticed"
    # what was on its way has come now, and nothing follows
    before=$(rows)
    expect_line 2 edge spec.yaml $long --name edge2 --broker mqtt://localhost:$port --state here/edge2
    says 'the state folder here/edge2 is in use by another process'
    if [ $name = edge1 ]; then
        expect_line 2 edge spec.yaml $long --name edge2 --broker mqtt://localhost:$port --state twin --log-level error
        says 'edge2 already runs'
        [ ! -e twin ] || fail "the second process has left its state"
        # and does not end those who train with the first one
        expect_line 2 cloud spec.yaml $long --broker mqtt://localhost:$port --state twin --out twin-out --quiet --log-level error
        says 'cloud already runs'
        [ ! -e twin ] && [ ! -e twin-out ] || fail "the second cloud has left something"
    fi
    [ "$(rows)" -le $((before + 1)) ] || fail "$name: it goes on with a full disk: $before, $(rows) rows"
    [ $name != cloud ] || break # from here it goes on elsewhere
    prlimit --pid "$pid" --fsize=unlimited:unlimited
    until_true 20 grep -q 'the state can be written again' here-$name.log || fail "$name: room on the disk is not noticed"
    until_true 20 more_rows "$before" || fail "$name: it does not go on: $(tail -3 here-*.log)"
done
kill -KILL $cloud $pids $broker || fail "the run was over too early"
wait $cloud $pids $broker 2>/dev/null

# whose a state folder is: of another spec, of other nodes, of another name
way_out='give another state folder'
expect_line 2 edge spec.yaml --name edge1 --state here/edge1
says "the state folder here/edge1 holds the state of another run, of edge1: they differ in: run.iterations, run.edge_rounds; $way_out, or remove"
expect_line 2 client spec.yaml $long --set run.seed=5 --all-of edge1 --state here/edge1-clients
says "here/edge1-clients holds the state of another run, of edge1/client[123] and 2 more: they differ in: run.seed; $way_out"
expect 0 nodes spec.yaml
{ cat stdout.txt; echo edge2/client9; } >more.txt
expect_line 2 cloud spec.yaml $long --set federation.nodes=more.txt --state here/cloud --out more
says "here/cloud holds the state of another run, of cloud: they differ in: the list of nodes; $way_out"
expect_line 2 edge spec.yaml $long --name edge2 --state here/edge1
says "the state folder here/edge1 belongs to edge1, not to edge2: $way_out"
expect_line 2 cloud spec.yaml $long --state here/edge1 --out more
says "the state folder here/edge1 belongs to edge1, not to cloud: $way_out"
expect_line 2 client spec.yaml $long --all-of edge2 --state here/edge1-clients
says "here/edge1-clients belongs to edge1/client[123], not to clients of edge2: $way_out"
[ ! -e more ] || fail "an output folder is left"

mkdir elsewhere
mv here elsewhere/there
start_broker plain.conf
run_all elsewhere/there
ends 0 $cloud "the cloud elsewhere"
for pid in $pids; do ends 0 $pid "a process elsewhere"; done
}
cmp -s run-long/model.csv moved/model.csv || fail "the model, on full disks and moved"
[ "$(wc -l <run-long/trace.csv)" = "$(wc -l <moved/trace.csv)" ] || fail "the trace, on full disks and moved"

echo "-- certificates that have run out or were taken back"
mkdir authority && touch authority/index && echo 01 >authority/serial
printf '%s\n' '[ca]' 'default_ca=a' '[a]' 'database=authority/index' 'serial=authority/serial' 'new_certs_dir=authority' \
    'default_md=sha256' 'policy=p' 'unique_subject=no' '[p]' 'commonName=supplied' >authority/conf
openssl req -new -key keys/nodes/edge1.key -subj /CN=edge1 -out authority/request 2>/dev/null
openssl ca -batch -notext -config authority/conf -cert keys/ca.crt -keyfile keys/ca.key -in authority/request \
    -startdate 20200101000000Z -enddate 20200201000000Z -out expired.crt >/dev/null 2>&1 || fail "openssl ca"
openssl ca -batch -notext -config authority/conf -cert keys/ca.crt -keyfile keys/ca.key -in authority/request \
    -startdate 20400101000000Z -enddate 20410101000000Z -out future.crt >/dev/null 2>&1 || fail "openssl ca"
cp keys/nodes/edge1.crt old.crt
cp keys/nodes/edge1.key old.key
rm -rf spec-state elsewhere
expect_line 1 status spec.yaml --broker mqtts://localhost:$port --ca keys/ca.crt --wait 0.3
says "broker 'mqtts://localhost:$port' does not answer.*does it speak TLS at this port? If not, give mqtt://"
start_broker keys/mosquitto.conf
# by_files CERTIFICATE: edge1 with it is refused
by_files() {
    expect_line "${by_files_status:-2}" edge spec.yaml --name edge1 --broker mqtts://localhost:$port --ca keys/ca.crt --certificate "$1" \
        --key old.key --log-level error
}
# let_in EDGE: it gets a connection
let_in() {
    rm -f let-in.log # what the one before has written is not this one's
    start let-in.log "$program" edge spec.yaml --name "$1" --broker mqtts://localhost:$port --keys keys --log-level debug
    until_true 20 grep -q "$1: connected" let-in.log || fail "$1 gets no connection: $(cat let-in.log)"
    kill -TERM "$started"
    ends 143 "$started" "$1"
}
# who gives the wrong kind of URL is told so, and waits
start tongue.log "$program" edge spec.yaml --name edge1 --broker mqtt://localhost:$port
until_true 20 grep -q 'waits for the broker.*does it require TLS at this port? Then give mqtts://' tongue.log || fail "no word of mqtts: $(cat tongue.log)"
kill -TERM "$started"
ends 143 "$started" "an edge at a port with TLS"
by_files expired.crt
says 'expired.crt has expired: issue a new certificate'
by_files_status=75 # a restart may find the clock set
by_files future.crt
by_files_status=
says 'future.crt is not valid yet: the clock of this machine is before'
let_in edge1
expect_line 2 keys revoke edge1 edge7
says 'nodes/edge7.crt'
expect_line 2 keys revoke edge1 --days 3
let_in edge1
expect 0 keys revoke edge1
[ ! -e keys/nodes/edge1.crt ] && [ ! -e keys/nodes/edge1.key ] || fail "files of a certificate that was taken back"
[ "$(openssl crl -in keys/revoked.crl -noout -text | grep -c 'Serial Number')" = 1 ] || fail "the list of revoked ones"
kill -HUP "$broker"
let_in edge2
by_files old.crt
says 'TLS with the broker fails.*certificate revoked'
expect 0 keys issue edge1
[ ! -s stderr.txt ] || fail "a name that the access list has needs no SIGHUP: $(cat stderr.txt)"
kill -HUP "$broker"
let_in edge1
by_files old.crt
expect 0 keys revoke edge2 edge1
[ "$(openssl crl -in keys/revoked.crl -noout -text | grep -c 'Serial Number')" = 3 ] || fail "the list grows"
openssl crl -in keys/revoked.crl -CAfile keys/ca.crt -noout 2>verified.txt
grep -q 'verify OK' verified.txt || fail "the list is not signed by the authority"
all_gone spec-state "certificates"

finish
