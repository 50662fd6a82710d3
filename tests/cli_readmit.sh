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

# lose NAME...: while `up` stands still, processes end with their state folders, of which $kept gets a copy; false: it is too late. restore
# NAME...: the same, and the folders are those copies then.
lose() {
    local name pid victim
    kill -STOP $up 2>/dev/null || return 1
    for name; do
        victim=
        for pid in $(cat /proc/$up/task/$up/children); do
            tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -qxF -- "states/$name" && victim=$pid
        done
        [ -n "$victim" ] && kill -9 "$victim" && until_gone "$victim" || continue
        [ -z "$kept" ] || cp -r "states/$name" "$kept"
        rm -rf "states/$name"
        [ -z "$old" ] || cp -r "$old/$name" states
    done
    kill -CONT $up
    [ -n "$victim" ]
}
kept='' old=''
restore() { local old=kept; lose "$@"; }
pid_of() { # NAME: its process
    local pid
    for pid in $(cat /proc/$up/task/$up/children); do
        tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -qxF -- "states/$1" && echo "$pid"
    done
}
until_gone() { while [ -n "$(tr -d '\0' <"/proc/$1/cmdline" 2>/dev/null)" ]; do read -r -t 0.02 <><(:); done; return 0; }
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
    python3 "$tests/same_output.py" --models again out || fail "the replay of lost edges is another run"
    grep -q '"node":.*"edge2"' out/summary.json || fail "the summary does not name the edge"
    grep -q '^edge2 anew ' out/record || fail "the edge has not begun anew: $(grep -v '[0-9]:' out/record)"
else
    wait $up
    echo "the asynchronous run was faster than the test"
fi

# A folder from before the readmission of its node: both sides name it at once. Before, the parent dropped what such a client sent, and the
# client waited for ever: in lock step if no round was done meanwhile (a frozen sibling), asynchronously always.
# old_life WHAT NODES...: the folders of these processes are kept, lost, readmitted and put back.
old_life() {
    local what=$1 began frozen sets=(--set algorithm=hfsad --set run.polish=false --set run.iterations=1000000)
    shift
    [ "$what" != asynchronous ] || sets+=(--set federation.mode=async --set federation.deadline=0.2)
    rm -rf kept && mkdir kept
    begin "${sets[@]}" --log-level info
    until_true '[ -s out/trace.csv ] && [ "$(wc -l <out/trace.csv)" -gt 5 ]'
    frozen=$([ "$what" != frozen ] || pid_of edge1+client2)
    [ -z "$frozen" ] || kill -STOP "$frozen"
    kept=kept lose "$@" || fail "$what: nothing was lost"
    expect 0 readmit --state states/cloud "${@//+//}"
    for one; do until_true "grep -q '${one//+//}: readmitted' up.log"; done
    restore "${@: -1}" || fail "$what: nothing was restored"
    [ -z "$frozen" ] || kill -CONT "$frozen"
    began=$SECONDS
    until_true '! kill -0 $up 2>/dev/null' && wait $up
    [ $? = 2 ] || fail "$what: an old folder is not refused: $(tail -5 up.log)"
    [ $((SECONDS - began)) -le 15 ] || fail "$what: refused after $((SECONDS - began)) s"
    grep -q "the state of edge1/client1 in states/edge1+client1 is older than what edge1 has seen: " up.log || fail "$what: the client does not say so: $(cat up.log)"
    grep -q "edge1: a child does not have the state that this node has seen: edge1/client1 has ended with a state from before its readmission" up.log ||
        fail "$what: the edge does not say so: $(cat up.log)"
}
old_life frozen edge1+client1
old_life asynchronous edge1+client1
old_life branch edge1 edge1+client1

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
python3 "$tests/same_output.py" --models again out || fail "the replay without a client is another run"
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
