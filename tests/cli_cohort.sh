#!/usr/bin/env bash
# Asynchronous training with secure cohorts: it goes on under kills, two clients of one cohort that are lost for good at once leave it if the
# authority has signed it, and not otherwise; the replay leaves the same files. Needs HFSAD.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"

expect 0 generate quantile --edges 1 --clients 11 --features 4 --rows 5 --seed 3 --out . --quiet
"$HFSAD" keys init >/dev/null && "$HFSAD" keys issue cloud edge1 edge1/client{1..11} >/dev/null 2>&1 || fail "keys"
start_broker keys/mosquitto.conf
# With stale: wait nothing goes on without a client for long, so the run does not end before the clients have left. Cohorts: clients 1 to 5 and 6 to 11.
sets=(--set federation.mode=async --set federation.stale=wait --set privacy.aggregation=secure --set privacy.cohort=4
    --set run.iterations=40 --set run.edge_rounds=3 --set run.trace_every=5 --set run.polish=false --set output.every_seconds=0.05
    --set run.participation.at_least_every=2)
begin() {
    setpriv --pdeathsig KILL "$HFSAD" "${@:2}" "${sets[@]}" --keys keys --broker "mqtts://localhost:$port" --state "states/$1" \
        --durability process 2>>"$1.log" >/dev/null &
    last=$!
    members="$members $last"
}
begin_edge() { begin edge edge spec.yaml --name edge1 --record record.edge --linger 1; }
begin cloud cloud spec.yaml --out out --quiet --record record.cloud --linger 1
cloud=$last
begin_edge
edge=$last
declare -a pids
for i in {1..11}; do
    begin c$i client spec.yaml --name edge1/client$i
    pids[i]=$last
done
row() { [ "$(tail -n 1 out/trace.csv 2>/dev/null | cut -d, -f1)" -ge "$1" ] 2>/dev/null; }
until_true 60 row 5 || fail "no rows: $(cat cloud.log edge.log)"
kill -KILL "${pids[7]}" "${pids[8]}" "${pids[2]}" "$edge"
wait "${pids[7]}" "${pids[8]}" "${pids[2]}" "$edge" 2>/dev/null
begin_edge
edge=$last
begin c2 client spec.yaml --name edge1/client2

# ---- two clients of one cohort that are lost for good ----
expect_line 2 retire spec.yaml "${sets[@]}" edge1/client8 --state states/cloud
says 'only if the authority has signed it'
"$HFSAD" keys cohort spec.yaml edge1/client8 edge1/client2 "${sets[@]}" --set run.seed=7 >other || fail "keys cohort"
expect_line 1 retire spec.yaml "${sets[@]}" edge1/client8 --state states/cloud --cohort other --wait 60
says 'the cloud has refused it'
refused() { grep -q 'no client that can leave' cloud.log; }
until_true 60 refused || fail "a proof for another run: $(cat cloud.log)"
"$HFSAD" keys cohort spec.yaml edge1/client{7,8} "${sets[@]}" >proof || fail "keys cohort"
kill -KILL "${pids[9]}"
wait "${pids[9]}" 2>/dev/null
begin c9 client spec.yaml --name edge1/client9
expect 0 retire spec.yaml "${sets[@]}" edge1/client{7,8} --state states/cloud --cohort proof --wait 60
kill -KILL "$last"
wait "$last" 2>/dev/null
[ "$(wc -l <states/c9/cohort.gone)" = 2 ] || fail "the cohort of client 9 is not kept"
begin c9 client spec.yaml --name edge1/client9
wait "$cloud" || fail "the cloud: $(tail -3 cloud.log)"
wait "$edge" 2>/dev/null
cat record.cloud record.edge >record
expect 0 run spec.yaml "${sets[@]}" --replay record --out replay --quiet
cmp -s out/model.csv replay/model.csv || fail "the replay has another model"
without_time() { cut -d, --complement -f"$(head -n 1 out/trace.csv | tr , '\n' | grep -nx seconds | cut -d: -f1)" "$1"; }
[ "$(without_time out/trace.csv)" = "$(without_time replay/trace.csv)" ] || fail "the replay has another trace"
row 40 || fail "no last row: $(cat out/trace.csv)"
for i in 7 8; do grep -q "edge1/client$i" out/summary.json || fail "the summary does not name client $i, which has left"; done
finish
