#!/usr/bin/env bash
# Frames have tags: a party that reads and writes all topics (tests/hostile_broker.py) alters, forges, replays and reorders
# them, and gets refused frames and nothing else. Once with a secret, once with certificates, with kills. Needs HFSAD.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"
need_paho

expect 0 generate quantile --edges 2 --clients 2 --features 5 --rows 12 --out q --quiet
sets=(--set algorithm=hfsad --set run.polish=false --set run.iterations=150 --set run.cycles=false)
expect 0 nodes q/spec.yaml
mv stdout.txt nodes.txt
printf 'listener 1 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\nmax_queued_messages 10000\n' >plain.conf
start_broker plain.conf
head -c 32 /dev/urandom >secret
chmod 600 secret
expect 0 keys init --dir keys
expect 0 keys issue cloud edge1 edge2 edge1/client1 edge1/client2 edge2/client3 edge2/client4 --dir keys

begin() {
    local log=$1
    shift
    setpriv --pdeathsig KILL "$@" 2>>"$log" >/dev/null &
    last=$!
    members="$members $last"
}
node() { begin "$run-$1.log" "$HFSAD" "${@:2}" "${common[@]}" --durability process; }
# among_enemies RUN OPTION…: every node a process; edge1 and one client are killed on the way.
among_enemies() {
    run=$1
    common=(q/spec.yaml "${sets[@]}" --set "federation.name=$run" --broker "mqtt://127.0.0.1:$port" "${@:2}")
    expect 0 run q/spec.yaml "${sets[@]}" --set "federation.name=$run" --out "run-$run" --quiet
    setpriv --pdeathsig KILL "$python" "$tests/hostile_broker.py" "$port" "$run" 7 >"$run-hostile.txt" 2>&1 &
    local hostile=$! cloud
    members="$members $hostile"
    until_true 20 grep -q ready "$run-hostile.txt" || fail "no hostile party: $(cat "$run-hostile.txt")"
    node cloud cloud --state "state-$run/cloud" --out "up-$run" --quiet --linger 0
    cloud=$last
    node edge2 edge --name edge2 --state "state-$run/edge2" --linger 0
    for client in edge1/client1 edge2/client3 edge2/client4; do node "${client/\//+}" client --name "$client" --state "state-$run/${client/\//+}"; done
    for round in 20 400 none; do
        node edge1 edge --name edge1 --state "state-$run/edge1" --linger 0
        local edge=$last
        node edge1+client2 client --name edge1/client2 --state "state-$run/edge1+client2"
        [ "$round" != none ] || break
        until_true 40 eval 'tail -n 1 "up-$run/trace.csv" | grep -qE "^[0-9]{$((${#round} - 1)),}," || ! kill -0 '"$cloud" || fail "$run: no row $round"
        kill -9 "$edge" "$last" 2>/dev/null
    done
    until_true 60 eval '! kill -0 '"$cloud" || { fail "$run: the cloud does not end: $(tail -n 3 "$run"-*.log)"; kill -9 "$cloud"; }
    wait "$cloud" || fail "$run: the cloud ends with $?: $(tail -n 3 "$run-cloud.log")"
    kill "$hostile"
    wait "$hostile" 2>/dev/null
    same_output "run-$run" "up-$run" || fail "$run: another output than that of hfsad run"
    tail -n 1 "$run-hostile.txt"
    for attack in altered 'of a later round' replayed 'of another node' 'second process'; do
        grep -q "[0-9] $attack" "$run-hostile.txt" || fail "$run: no frames $attack"
    done
    grep -q 'not genuine' "$run-edge2.log" && grep -q 'without a tag' "$run-edge2.log" || fail "$run: no refusals in the log: $(cat "$run-edge2.log")"
    ! grep -hE 'already runs|beyond the bounds|older than what' "$run"-*.log || fail "$run: a forged frame has had an effect"
}
among_enemies secret --secret secret
among_enemies certified --keys keys
grep -q 'hello' certified-hostile.txt || fail "no hello was altered"

# A secret that others can read, one that is too short, and both ways at once: refused.
chmod 644 secret
expect_line 2 edge q/spec.yaml --name edge1 --secret secret --state x
says 'other users can read this secret; set its mode to 0600'
printf short >short
chmod 600 short secret
expect_line 2 edge q/spec.yaml --name edge1 --secret short --state x
says 'a secret has 16 to 4096 bytes'
expect_line 2 edge q/spec.yaml --name edge1 --secret secret --keys keys --state x
says 'not both'
finish
