#!/usr/bin/env bash
# docs/protocol.md is enough to write a client: tests/foreign_client.py, in Python, takes part beside two of `hfsad client`,
# is killed between its state and its message, and begins again; the output is that of `hfsad run`, to the byte.
# Needs HFSAD.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"
need_paho

# Data of one row per client: FOLDER/CLIENT.csv, eleven features (so that the sums of eight have a rest).
cat >make_data.py <<'PYTHON'
"""make_data.py CLIENT…"""
import os, random, sys
random.seed(11)
for client in sys.argv[1:]:
    os.makedirs(os.path.dirname(client), exist_ok=True)
    x = [random.gauss(0, 1) for _ in range(11)]
    with open(client + ".csv", "w") as f:
        f.write(",".join(["y"] + [f"x{m}" for m in range(11)]) + "\n")
        f.write(",".join(map(repr, [x[0] - 2 * x[10] + random.gauss(0, 0.3)] + x)) + "\n")
PYTHON
python3 make_data.py tree/north/a tree/north/b tree/south/c mixed/a mixed/b mixed/east/c star/a star/b star/c

# Of the tree: who takes part is drawn, more steps than one, questions not after every iteration. Of the mixed one: the cloud is
# the parent of the client, whose place is behind an edge's. Of the star: the safeguard repairs, which changes the client's c.
# shellcheck disable=SC2034 # by their names
tree="loss.kind=absolute run.iterations=14 run.edge_rounds=3 run.trace_every=4 run.local_steps=2 run.seed=5
    run.participation.client=0.6 run.participation.at_least_every=1 run.polish=false federation.name=tree"
# shellcheck disable=SC2034
mixed="loss.kind=squared preset=paper run.iterations=12 run.edge_rounds=4 federation.name=mixed"
# shellcheck disable=SC2034
star="loss.kind=squared run.iterations=16 run.edge_rounds=10 run.local_steps=10 schedule.client.c=0.001 run.polish=false federation.name=star"
for spec in tree mixed star; do
    echo "data: $spec" >$spec.yaml
    for setting in ${!spec}; do
        case $setting in
        loss.kind=*) echo "loss: {kind: ${setting#*=}}" >>$spec.yaml ;;
        esac
    done
done

# begin LOG COMMAND…: as a process of this test; its number is in $last.
begin() {
    local log=$1
    shift
    setpriv --pdeathsig KILL "$@" 2>"$log" >&2 &
    last=$!
    members="$members $last"
}
# end_of PROCESS: waits for it; its exit status. The shell would say that one was killed.
end_of() {
    local status
    wait "$1" 2>/dev/null
    status=$?
    members=${members/ $1/}
    return $status
}
# The edge $node of federate.
begin_edge() {
    begin "edge-$node.log" "$HFSAD" edge "$spec.yaml" "${sets[@]}" --name "$node" --broker "mqtt://127.0.0.1:$port" "${secret[@]}" --linger 0
}
# federate SPEC CLIENT EDGES CLIENTS ROUND…: a federation in which CLIENT is the Python program, killed after each ROUND; its
# edge is killed then, too, and has forgotten all that clients have said.
federate() {
    local spec=$1 foreign=$2 edges=$3 clients=$4 sets=() settings=() node cloud edge='' status round
    shift 4
    for node in ${!spec}; do
        sets+=(--set "$node")
        settings+=("$node")
    done
    expect 0 run "$spec.yaml" "${sets[@]}" --out "run-$spec" --quiet
    expect 0 nodes "$spec.yaml" "${sets[@]}"
    mv stdout.txt "$spec-nodes.txt"
    begin "cloud-$spec.log" "$HFSAD" cloud "$spec.yaml" "${sets[@]}" --broker "mqtt://127.0.0.1:$port" "${secret[@]}" --linger 0 --out "up-$spec" --quiet
    cloud=$last
    for node in $edges; do
        begin_edge
        [ "$node" != "${foreign%/*}" ] || edge=$last
    done
    for node in $clients; do
        begin "client.log" "$HFSAD" client "$spec.yaml" "${sets[@]}" --name "$node" --broker "mqtt://127.0.0.1:$port" "${secret[@]}"
    done
    for round in "$@" none; do
        DIE=${round/none/-1} begin foreign.log timeout -k 1 60 "$python" "$tests/foreign_client.py" "$port" "$spec-nodes.txt" \
            "$foreign" "$(tail -n 1 "$spec/$foreign.csv")" "$spec-foreign.json" "${settings[@]}"
        end_of "$last"
        status=$?
        [ "$round" != none ] || break
        [ "$status" = 137 ] || fail "$spec: it was not killed after round $round: $status, $(cat foreign.log)"
        [ -n "$edge" ] || continue
        kill -9 "$edge"
        end_of "$edge"
        node=${foreign%/*}
        begin_edge
        edge=$last
    done
    [ "$status" = 0 ] || { fail "$spec: the client ends with $status: $(cat foreign.log)"; tail -n 3 "cloud-$spec.log" >&2; return; }
    end_of "$cloud" || fail "$spec: the cloud ends with $?: $(tail -n 3 "cloud-$spec.log")"
    same_output "run-$spec" "up-$spec" || fail "$spec: another output than that of hfsad run"
}

printf 'listener 1 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n' >plain.conf
start_broker plain.conf
# With tags first.
head -c 40 /dev/urandom >run.secret
chmod 600 run.secret
secret=(--secret run.secret)
export SECRET=run.secret
federate tree north/b "north south" "north/a south/c" 0 18
secret=()
unset SECRET
federate mixed b east "a east/c" 12
federate star c "" "a b" 100
grep -q '"repairs":.*[1-9]' run-star/summary.json || fail "star: no repair"

# A client that lies ends the run, by its name, and nothing of what it says gets to the others.
lies() {
    local sets=() settings=() node cloud status
    for node in $tree federation.name="lie-$1"; do
        sets+=(--set "$node")
        settings+=("$node")
    done
    begin "cloud-lie.log" "$HFSAD" cloud tree.yaml "${sets[@]}" --broker "mqtt://127.0.0.1:$port" --out "lie-$1" --state "$1-cloud" --linger 1 --quiet
    cloud=$last
    for node in north south; do begin "edge-$node.log" "$HFSAD" edge tree.yaml "${sets[@]}" --name $node --state "$1-$node" --broker "mqtt://127.0.0.1:$port" --linger 0; done
    for node in north/a south/c; do begin "client.log" "$HFSAD" client tree.yaml "${sets[@]}" --name $node --state "$1-${node/\//-}" --broker "mqtt://127.0.0.1:$port"; done
    LIE=$1 DIE=-1 begin foreign.log timeout -k 1 60 "$python" "$tests/foreign_client.py" "$port" tree-nodes.txt north/b "$(tail -n 1 tree/north/b.csv)" "$1.json" "${settings[@]}"
    until_true 20 eval '! kill -0 '"$cloud" || { fail "$1: the cloud does not end: $(tail -n 3 edge-north.log foreign.log)"; kill -9 "$cloud"; }
    end_of "$cloud"
    [ "$?" = 2 ] && grep -q 'north/b has sent messages beyond the bounds' cloud-lie.log || fail "$1: the cloud says $(cat cloud-lie.log)"
    grep -q 'a message was refused: with a number beyond the bounds.*north/b' edge-north.log || fail "$1: the edge says $(cat edge-north.log)"
    cut -d, -f1-7 "lie-$1/trace.csv" | grep -qiE ',nan|,-?inf|e\+[1-9][0-9]' && fail "$1: the trace has $(tail -n 1 "lie-$1/trace.csv")"
    for node in ${members/ $broker/}; do
        kill -9 "$node" 2>/dev/null
        end_of "$node"
    done
}
for lie in huge answer; do lies $lie; done
finish
