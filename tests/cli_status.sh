#!/usr/bin/env bash
# hfsad status: one tree out of two brokers; who is live, gone at once where it was stopped or killed, and done where the
# run has ended. Real processes and real brokers. Needs HFSAD.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"

expect 0 generate quantile --edges 2 --clients 2 --features 3 --rows 12 --out . --quiet
echo "algorithm: hfsad" >>spec.yaml # it does not end by itself
printf 'listener 1 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n' >plain.conf
start_broker plain.conf
above=mqtt://localhost:$port
start_broker plain.conf
below=mqtt://localhost:$port

# start NAME COMMAND…: a node, gone with this script; its number is in process[NAME]
declare -A process
start() {
    setpriv --pdeathsig KILL "$HFSAD" "${@:2}" --state "states/$1" 2>"$1.log" >/dev/null &
    process[$1]=$!
    members="$members $!"
}
# the clients of edge1 are at a broker of their own
start_all() {
    start cloud cloud spec.yaml "$@" --broker $above --out out --quiet --linger 0.2
    start edge1 edge spec.yaml "$@" --name edge1 --broker-above $above --broker-below $below --linger 0.2
    start edge2 edge spec.yaml "$@" --name edge2 --broker $above --linger 0.2
    start client1 client spec.yaml "$@" --name edge1/client1 --broker $below
    start client2 client spec.yaml "$@" --name edge1/client2 --broker $below
    start clients client spec.yaml "$@" --all-of edge2 --broker $above
}
# end_of NAME STATUS
end_of() {
    local status
    timeout 60 tail --pid="${process[$1]}" -s 0.02 -f /dev/null || fail "$1 does not end: $(cat "$1.log")"
    wait "${process[$1]}" 2>/dev/null
    status=$?
    [ "$status" = "$2" ] || fail "$1: exit status $status instead of $2: $(cat "$1.log")"
}
# look URL…: what status says into seen.txt, a line `node state phase round` each
look() {
    local url brokers=()
    for url in "$@"; do brokers+=(--broker "$url"); done
    "$HFSAD" status spec.yaml "${sets[@]}" "${brokers[@]}" --wait 0.15 >stdout.txt 2>stderr.txt || return
    awk 'NR > 1 && NF > 5 { print $1, $2, $3, $4 }' stdout.txt >seen.txt
}
# is NODE STATE: in seen.txt
is() { grep -q "^$1 $2 " seen.txt; }
all_are() { look $above $below && [ "$(grep -c "^[a-z0-9]* $1 " seen.txt)" = 7 ]; }

echo "-- one tree"
sets=(--set run.iterations=1000000)
start_all "${sets[@]}"
training() {
    all_are live && [ "$(grep -c ' training [1-9]' seen.txt)" = 7 ] &&
        grep -q '^iteration [1-9][0-9]* of 1000000, objective' stdout.txt
}
until_true 30 training || fail "not all are live and training, with figures: $(cat stdout.txt ./*.log)"
# an edge is seen at both of its brokers, the others at theirs
look $below
is edge1 live && is client1 live && is cloud unknown && is edge2 unknown || fail "below: $(cat stdout.txt)"
look $above
is edge1 live && is client1 unknown && is cloud live || fail "above: $(cat stdout.txt)"

# again and again, until a signal
"$HFSAD" status spec.yaml "${sets[@]}" --broker $above --broker $below --wait 0.1 --watch >watched.txt 2>&1 &
watcher=$!
members="$members $watcher"
drawn() { [ "$(grep -c '^iteration [1-9]' watched.txt)" -ge 3 ]; }
until_true 20 drawn || fail "status --watch: $(cat watched.txt)"
kill -TERM $watcher
wait $watcher
[ $? = 143 ] || fail "status --watch: exit status"

echo "-- gone"
# it is gone once its process is: nobody has to wait for anything
kill -TERM "${process[client1]}"
end_of client1 143
look $above $below
grep -q '^client1 gone training [1-9]' seen.txt || fail "a client that was stopped: $(cat stdout.txt)"
is client2 live && is edge1 live || fail "the others: $(cat stdout.txt)"
waits() { look $above $below && grep -q '^edge1 waits for edge1/client1 for [1-9][0-9]* s' stdout.txt; }
until_true 20 waits || fail "status does not name the node that is waited for: $(cat stdout.txt)"
kill -TERM "${process[edge1]}"
end_of edge1 143
for url in $above $below "$above $below"; do
    # shellcheck disable=SC2086 # one or two
    look $url
    is edge1 gone || fail "an edge that was stopped, at $url: $(cat stdout.txt)"
done
kill -KILL "${process[client2]}"
wait "${process[client2]}" 2>/dev/null
killed() { look $above $below && grep -q '^client2 gone - -' seen.txt; }
until_true 10 killed || fail "a client that was killed: $(cat stdout.txt)"
# it comes back, at the upper broker as at the lower one
start edge1 edge spec.yaml "${sets[@]}" --name edge1 --broker-above $above --broker-below $below
start client1 client spec.yaml "${sets[@]}" --name edge1/client1 --broker $below
start client2 client spec.yaml "${sets[@]}" --name edge1/client2 --broker $below
until_true 20 all_are live || fail "not all are back: $(cat stdout.txt)"
# a second process of a name that is refused does not say that the first one is gone
expect_line 2 edge spec.yaml "${sets[@]}" --name edge2 --broker $above --state twin --log-level error
look $above $below
is edge2 live || fail "after a second one: $(cat stdout.txt)"
# not even of another spec, where it is a parent
expect 2 cloud spec.yaml --set run.seed=9 --broker $above --state twin --out twin-out --quiet --log-level error
says 'cloud already runs'
[ ! -e twin-out ] && all_are live || fail "after a second cloud of another spec: $(cat stdout.txt edge1.log)"
for name in cloud clients edge1 edge2 client1 client2; do
    kill -TERM "${process[$name]}"
    end_of $name 143
done
all_are gone || fail "after all were stopped: $(cat stdout.txt)"

# its state is of other data: a row less, or another number in one
sed 2d data.csv >fewer.csv
awk -F, -v OFS=, '$1 == "edge1" && $2 == "client1" && !done { $NF = "0.123"; done = 1 } 1' data.csv >other.csv
cmp -s data.csv other.csv && fail "no number was changed"
for rows in fewer.csv other.csv; do
    expect_line 2 client spec.yaml "${sets[@]}" --name edge1/client1 --data $rows --state states/client1
    says 'states/client1 holds a state of edge1/client1 for another spec or other data: give another state folder'
done

echo "-- done"
sets=(--set run.iterations=40)
rm -r states
start_all "${sets[@]}"
for name in cloud clients edge1 edge2 client1 client2; do end_of $name 0; done
all_are 'done' || fail "after the end: $(cat stdout.txt)"
grep -q '^iteration 40 of 40, objective' stdout.txt || fail "the last figures: $(cat stdout.txt)"
# those of another spec are nothing to this one
sets=(--set run.seed=7)
look $above $below
is cloud gone || fail "the end of another run: $(cat stdout.txt)"

echo "-- a broker that is down"
expect 1 status spec.yaml --set run.iterations=40 --broker $above --broker mqtt://localhost:1 --wait 0.1
says "broker 'mqtt://localhost:1' does not answer"
grep -q '^cloud  *done' stdout.txt || fail "the other broker: $(cat stdout.txt)"
expect_line 1 status spec.yaml --broker mqtt://localhost:1 --wait 0.1
[ ! -s stdout.txt ] || fail "a tree of nothing: $(cat stdout.txt)"
finish
