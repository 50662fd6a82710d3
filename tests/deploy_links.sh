#!/usr/bin/env bash
# A federation over a bad line: edges and clients in one network namespace, broker and cloud in another, between them a
# wire (wire.py) that cuts, loses, doubles, delays and reorders packets at drawn moments, with half-open connections among
# it. The result is that of `hfsad run` to the byte. The wire is a program and not tc's netem, which many kernels lack.
# Needs HFSAD; without the right to make namespaces or /dev/net/tun it says so and passes.
# LINKS_SECONDS: how long the line is bad, ITERATIONS: of the run, which must last longer; SEED: when what happens.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
wire=$(realpath "$(dirname "$0")/wire.py")
. "$(dirname "$0")/shell.sh"
export PATH=$PATH:/usr/sbin:/sbin
hub=hfsad-hub$$ site=hfsad-site$$
seed=${SEED:-$((RANDOM))} wire_pid=
stop() {
    local machine
    [ -z "$wire_pid" ] || kill -9 "$wire_pid" 2>/dev/null
    for machine in "$hub" "$site"; do
        # shellcheck disable=SC2046  # a list
        kill -9 $(ip netns pids "$machine" 2>/dev/null) 2>/dev/null
        ip netns del "$machine" 2>/dev/null
    done
    rm -rf "${work:?}"
}
trap stop EXIT
if ! ip netns add "$hub" 2>why.txt || ! ip netns add "$site" 2>>why.txt || ! (: <>/dev/net/tun) 2>>why.txt; then
    echo "no namespaces or no /dev/net/tun here ($(head -1 why.txt)): links are not cut"
    finish
    exit
fi
mkfifo wire.says
python3 "$wire" "$seed" "${LINKS_SECONDS:-0}" "$hub" "$site" >wire.says 2>wire.log &
wire_pid=$!
exec 4<wire.says
if ! read -r -t 20 line <&4 || [ "$line" != ready ]; then
    echo "no wire can be made here ($(tail -1 wire.log)): links are not cut"
    finish
    exit
fi

expect 0 generate phase-retrieval --edges 2 --clients 3 --features 12 --out d
cat >spec.yaml <<YAML
data: d/data.csv
loss: {kind: phase-retrieval, box: 5}
run: {iterations: ${ITERATIONS:-80}, edge_rounds: 3, polish: false} # the line is the matter
YAML
printf '%s\n' 'listener 1883 10.78.0.1' 'allow_anonymous true' 'persistence false' 'set_tcp_nodelay true' 'log_type none' >broker.conf
[ "$(id -u)" != 0 ] || echo 'user root' >>broker.conf
broker="--broker mqtt://10.78.0.1 --insecure --keepalive 5"
pids=
# on MACHINE LOG COMMAND…
on() {
    ip netns exec "$1" "${@:3}" >"$2" 2>&1 &
    pids="$pids $!"
}
on "$hub" broker.log mosquitto -c broker.conf
# shellcheck disable=SC2086 # a list of words
{
for edge in edge1 edge2; do
    on "$site" $edge.log "$HFSAD" edge spec.yaml --name $edge $broker --linger 3
    on "$site" $edge-clients.log "$HFSAD" client spec.yaml --all-of $edge $broker
done
timeout $((150 + 3 * ${LINKS_SECONDS:-0})) ip netns exec "$hub" "$HFSAD" cloud spec.yaml $broker --out out --quiet --linger 1 2>cloud.log ||
    fail "the cloud (SEED=$seed): exit status $?: $(tail -n 5 cloud.log edge*.log)"
}
kill -TERM "$wire_pid"
wait "$wire_pid" || fail "the wire (SEED=$seed): $(cat wire.log)"
echo "seed $seed"
cat <&4
expect 0 run spec.yaml --out run --quiet
cmp -s run/model.csv out/model.csv || fail "the model over a bad line (SEED=$seed)"
# but for the seconds
[ "$(cut -d, -f1-7 run/trace.csv)" = "$(cut -d, -f1-7 out/trace.csv)" ] || fail "the trace over a bad line (SEED=$seed)"
finish
