# Sourced by the tests of clustered brokers after broker.sh. A test has start_node I, which sets ${nodes[I]} to the
# process and writes node-I.log; node_answers I; follows I LINES: whether node I works with the others after that many
# lines of its log; and the first of the ports in $port, 10 apart.
# shellcheck shell=bash disable=SC2154

# as NODE pub|sub BROKER ARGUMENTS…
as() {
    mosquitto_"$2" -V 311 -h localhost -p $((port + 10 * $3 - 10)) --cafile keys/ca.crt --cert "keys/nodes/$1.crt" --key "keys/nodes/$1.key" "${@:4}" 2>>clients.log
}

# chaos SECONDS WORDS: a federation whose members are spread over three nodes, each of which is killed and comes back
# within SECONDS: the bytes of `hfsad run`. WORDS are in the log of a node that a member came to. $CLUSTER_ITERATIONS
# must outlast three deaths.
chaos() {
    # shellcheck disable=SC2054 # commas of a broker
    local options=(--set algorithm=hfsad --set run.polish=false --set "run.iterations=${CLUSTER_ITERATIONS:-500}" --set run.edge_rounds=4 --set output.every_seconds=0.1)
    local all=mqtts://localhost:$port,mqtts://localhost:$((port + 10)),mqtts://localhost:$((port + 20))
    local node process=() cloud i at
    expect 0 run spec.yaml "${options[@]}" --quiet --out sim
    for node in "edge --name edge1" "edge --name edge2" "client --name edge1/client1" "client --name edge1/client2" "client --all-of edge2"; do
        # shellcheck disable=SC2086 # words
        "$HFSAD" ${node%% *} spec.yaml ${node#* } "${options[@]}" --set federation.retain=false --keys keys --broker "$all" --durability process --state "state/${node##*/}" >>nodes.log 2>&1 &
        process+=($!)
        members="$members $!"
    done
    "$HFSAD" cloud spec.yaml "${options[@]}" --set federation.retain=false --keys keys --broker "$all" --durability process --state state/cloud --out out --quiet >>nodes.log 2>&1 &
    cloud=$!
    members="$members $cloud"
    rows() { cat out/trace.csv 2>/dev/null | wc -l; }
    beyond() { [ "$(rows)" -gt "$1" ] || ! kill -0 $cloud; }
    for i in 1 2 3; do
        until_true 100 beyond $(($(rows) + 2)) || fail "no progress before node $i is killed"
        grep -q "$2" node-$i.log || fail "no member began at node $i"
        kill -KILL "${nodes[$i]}"
        wait "${nodes[$i]}" 2>/dev/null
        until_true 150 beyond $(($(rows) + 5)) || fail "no progress without node $i of the cluster: $(tail -n 3 node-?.log nodes.log)"
        kill -0 $cloud 2>/dev/null || fail "the run has ended before node $i was back: CLUSTER_ITERATIONS is too small"
        kill -STOP "${process[0]}" # so that the run cannot end meanwhile
        at=$(wc -l <node-$i.log)
        start_node $i
        until_true "$1" node_answers $i || fail "node $i does not come back"
        # the next node may go once this one follows the others: two of three must agree
        until_true 60 follows $i "$at" || fail "node $i does not follow the others"
        kill -CONT "${process[0]}"
    done
    wait $cloud || fail "the cloud ends with $?: $(tail -n 5 nodes.log)"
    same_output sim out || fail "a federation with a broken cluster comes to another result"
}
