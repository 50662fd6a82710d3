#!/usr/bin/env bash
# A client and an edge whose state folders are lost are readmitted: the run goes on, trace and summary say so, and `hfsad run --replay`
# leaves the same files; with the default algorithm, whose clients keep no state, the same files as `hfsad run`. Needs HFSAD.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
PATH=$PATH:/usr/sbin

expect 0 generate quantile --edges 2 --clients 2 --features 3 --rows 6 --out . --quiet
expect_line 2 readmit spec.yaml edge1/client9
says 'no such node'
expect_line 2 readmit spec.yaml cloud
says 'cannot be replaced'
expect_line 2 readmit spec.yaml edge1/client1 --set algorithm=fedavg
says 'no links'
expect_line 2 readmit spec.yaml edge1/client1 --state nowhere
says 'state folder'

mkdir -m 700 asked
for command in readmit retire; do "$HFSAD" $command --state asked --wait 0 edge1/client1 edge1/client2 >/dev/null 2>&1; done
[ "$(grep -l retire asked/readmit-* | wc -l)" = 2 ] && [ "$(ls asked | wc -l)" = 2 ] || fail "an earlier request stays: $(ls asked)"

# lose NAME...: while `up` stands still, processes end with their state folders; false: it is too late
lose() {
    local name pid victim
    kill -STOP $up 2>/dev/null || return 1
    for name; do
        victim=
        for pid in $(cat /proc/$up/task/$up/children); do
            tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -qxF -- "states/$name" && victim=$pid
        done
        [ -n "$victim" ] && kill -9 "$victim" && until_gone "$victim" && rm -rf "states/$name"
    done
    kill -CONT $up
    [ -n "$victim" ]
}
until_gone() { while [ -n "$(tr -d '\0' <"/proc/$1/cmdline" 2>/dev/null)" ]; do read -r -t 0.02 <><(:); done; }
until_true() { for ((i = 0; i < 1000; i++)); do eval "$1" && return; read -r -t 0.02 <><(:); done; fail "in vain: $1"; }
begin() {
    rm -rf states out
    setpriv --pdeathsig KILL "$HFSAD" up spec.yaml --processes --state states --out out --quiet "$@" 2>up.log &
    up=$!
}
sets=(--set algorithm=hfsad --set run.polish=false --set run.iterations=1500 --set output.every_seconds=0.05 --set run.edge_rounds=2)
begin "${sets[@]}"
until_true '[ -s out/trace.csv ] && [ "$(wc -l <out/trace.csv)" -gt 20 ]'
if ! lose edge1+client1 edge2; then
    echo "the run was faster than the test"
    finish
    exit
fi
expect 0 readmit --state states/cloud edge1/client1 edge2
wait $up || fail "the federation does not end: $(cat up.log)"
expect 0 run spec.yaml "${sets[@]}" --replay out/record --out again --quiet
same_output again out state.csv checkpoint.bin || fail "the replay is another run: $(cat out/record)"
grep -q '"node":.*"edge1/client1"' out/summary.json && grep -q '"node":.*"edge2"' out/summary.json || fail "the summary does not name the nodes"
[ "$(head -1 out/trace.csv | tr , '\n' | tail -1)" = readmitted ] && [ "$(tail -1 out/trace.csv | tr , '\n' | tail -1)" = 2 ] ||
    fail "the trace does not say so"
expect 0 run spec.yaml "${sets[@]}" --out plain --quiet
same_output plain out >/dev/null 2>&1 && fail "nothing has started anew"

# Asynchronous: an edge has lost its record too. Its parent has copies of what it has heard, so that the replay is the same run.
async=("${sets[@]}" --set federation.mode=async --set run.iterations=4000 --set federation.deadline=0.2)
begin "${async[@]}"
until_true '[ -s out/trace.csv ] && [ "$(wc -l <out/trace.csv)" -gt 20 ]'
if lose edge2; then
    expect 0 readmit --state states/cloud edge2
    lose edge1 edge1+client1 && "$HFSAD" readmit --state states/cloud edge1 edge1/client1 --wait 20 >/dev/null 2>&1
    wait $up || fail "the asynchronous federation does not end: $(cat up.log)"
    expect 0 run spec.yaml "${async[@]}" --replay out/record --out again --force --quiet
    python3 "$(dirname "$0")/same_output.py" --models again out || fail "the replay of lost edges is another run"
    grep -q '"node":.*"edge2"' out/summary.json || fail "the summary does not name the edge"
    grep -q '^edge2 anew ' out/record || fail "the edge has not begun anew: $(grep -v '[0-9]:' out/record)"
else
    wait $up
    echo "the asynchronous run was faster than the test"
fi

# A client that is let in again and does not come: its edge has nobody, and the end does not wait for that edge as for one that lives (a minute and more).
expect 0 generate quantile --edges 2 --clients 1 --features 3 --rows 6 --out . --force --quiet
begin "${async[@]}"
until_true '[ -s out/trace.csv ] && [ "$(wc -l <out/trace.csv)" -gt 20 ]'
"$HFSAD" retire --state states/cloud edge2/client1 --wait 20 >/dev/null 2>&1
until_true '! grep -qsz "states/edge2.client1" /proc/[0-9]*/cmdline'
"$HFSAD" readmit --state states/cloud edge2/client1 --wait 20 >/dev/null 2>&1
began=$SECONDS
wait $up || fail "the federation without a client does not end: $(cat up.log)"
[ $((SECONDS - began)) -lt 50 ] || fail "the end has waited $((SECONDS - began)) seconds for a client that is not there"
expect 0 run spec.yaml "${async[@]}" --replay out/record --out again --force --quiet
python3 "$(dirname "$0")/same_output.py" --models again out || fail "the replay without a client is another run"
expect 0 generate quantile --edges 2 --clients 2 --features 3 --rows 6 --out . --force --quiet

# Readmitted behind the last row: the models above are those of that row.
own=("${sets[@]}" --set run.iterations=20 --set features.intercept=client)
expect 0 run spec.yaml "${own[@]}" --out whole --quiet
echo 'cloud admitted 21 40 1 edge1/client1' >late
expect 0 run spec.yaml "${own[@]}" --replay late --out late.out --quiet
[ "$(diff whole/model.csv late.out/model.csv | grep -c '^>')" = 1 ] || fail "a late readmission: $(diff whole/model.csv late.out/model.csv)"

# The default: lost while it is asked, the star begins anew, and comes to the same bytes.

expect 0 generate quantile --edges 2 --clients 2 --features 12 --rows 60 --out . --force --quiet
gap=(--set run.stop.gap=1e-12)
begin "${gap[@]}"
until_true '[ -s states/edge1+client1/mark ]'
# It may have been faster than this test: then there is no record.
lose edge1+client1 && "$HFSAD" readmit --state states/cloud edge1/client1 --wait 5 >/dev/null 2>&1
wait $up || fail "the star does not end: $(cat up.log)"
if [ -s out/record ]; then
    expect 0 run spec.yaml "${gap[@]}" --replay out/record --out star --quiet
    same_output star out || fail "the star is another one: $(cat out/record)"
fi
finish
