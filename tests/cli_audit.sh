#!/usr/bin/env bash
# Clients that mind their own data: an audit of every question, questions that the spec does not have, privacy.refuse and
# privacy.least_rows. Needs HFSAD.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"
expect 0 generate quantile --edges 2 --clients 2 --features 4 --rows 9 --out q --quiet

printf 'data: q/data.csv\nloss: {kind: quantile, tau: 0.5}\n' >plain.yaml
echo "-- an audit: every question of every client, nothing refused, the same bytes"
for set in algorithm=star algorithm=hfsad algorithm=fedavg features.standardize=true features.intercept=edge personal=groups output.errors=true; do
    spec=q/spec.yaml
    rm -rf r
    [ $set != output.errors=true ] || spec=plain.yaml
    expect 0 run $spec --set $set --set run.iterations=6 --out r --quiet
    rm -rf audit.log u
    expect 0 up $spec --set $set --set run.iterations=6 --out u --audit audit.log --quiet
    cmp -s r/model.csv u/model.csv || fail "$set: another model"
    ! grep refused audit.log || fail "$set: a question of the spec is refused"
    for client in edge1/client1 edge1/client2 edge2/client3 edge2/client4; do
        [ "$(grep -c " $client .*number of rows: answered" audit.log)" = 1 ] || fail "$set: $client: $(head -3 audit.log)"
    done
done
[ "$(stat -c %a audit.log)" = 600 ] || fail "others can read the audit"

echo "-- a client that refuses a model of a round ends by name; nobody waits for it"
timeout 60 "$HFSAD" up q/spec.yaml --set algorithm=hfsad --set run.polish=false --set privacy.largest=1e-4 --state refusing --out refused --quiet 2>stderr.txt
status=$?
{ [ $status -ne 0 ] && [ $status -ne 124 ]; } || fail "a model beyond privacy.largest: exit status $status"
says 'client[1-4]: refuses a model with numbers beyond privacy.largest; the run diverges, or privacy.largest is too small'

echo "-- a spec that needs what clients refuse fails early"
expect_line 2 run q/spec.yaml --set privacy.refuse=polish
says "clients do not answer 'polish', and this spec asks these questions: set algorithm: hfsad and run.polish: false"
expect_line 2 up q/spec.yaml --set privacy.refuse=star
says "'star'.*set algorithm: hfsad"
expect_line 2 run q/spec.yaml --set privacy.refuse=everything
says "unknown questions 'everything'; known are standardize, robust-start, step, star, polish, errors, groups"
sed 's/^loss.*/loss: {kind: phase-retrieval}\nprivacy: {refuse: [polish, robust-start]}/' q/spec.yaml >phase.yaml
sed -i 's/^data: /data: q\//; /^truth/d' phase.yaml
expect_line 2 run phase.yaml --set algorithm=hfsad --set run.polish=false
says "'robust-start'.*set run.start: zero or normal, and run.cycles: false"
expect 0 run phase.yaml --set algorithm=hfsad --set run.polish=false --set run.start=normal --set run.cycles=false --set run.iterations=3 --out p --quiet
expect_line 2 run q/spec.yaml --set privacy.least_rows=10
says 'edge1/client1 has 9 rows, fewer than privacy.least_rows, 10'
expect_line 2 client q/spec.yaml --set privacy.least_rows=10 --name edge1/client1 --state s
says 'edge1/client1 has 9 rows, fewer than privacy.least_rows, 10'
expect_line 2 edge q/spec.yaml --name edge1 --audit x --state s

echo "-- a client steps on no model beyond privacy.largest, and answers no question about one"
for set in algorithm=hfsad algorithm=star; do
    rm -rf audit.log large-state
    "$HFSAD" up q/spec.yaml --state large-state --set $set --set run.polish=auto --set privacy.largest=1e-9 --out large --audit audit.log --quiet 2>large.log &
    large=$!
    until_true 30 grep -q "edge1/client1 .*refused: a model with numbers beyond privacy.largest" audit.log || fail "$set: $(tail -n 3 audit.log)"
    kill -TERM $large
    wait $large
done
grep -q 'question 1.*star: .*refused: a model with numbers beyond' audit.log || fail "star: $(grep refused audit.log | head -n 3)"
expect 0 up q/spec.yaml --set privacy.largest=100 --out large --quiet

echo "-- an edge that asks questions of its own choosing"
need_paho
printf 'listener 1 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n' >plain.conf
start_broker plain.conf
common="q/spec.yaml --set algorithm=hfsad --set run.polish=false --set run.iterations=20 --set run.cycles=false --broker mqtt://127.0.0.1:$port --durability process"
# shellcheck disable=SC2086 # lists of words
{
    "$HFSAD" run ${common%% --broker*} --out whole --quiet
    setpriv --pdeathsig KILL "$python" "$tests/curious_edge.py" "$port" run edge1 edge1/client1 4 >curious.txt 2>&1 &
    curious=$!
    setpriv --pdeathsig KILL "$HFSAD" cloud $common --state c --out fed --quiet --linger 0 2>cloud.log &
    cloud=$!
    members="$members $curious $cloud"
    for edge in edge1 edge2; do
        # what was asked so far is question 1, as long as clients are missing
        [ $edge = edge1 ] || until_true 60 eval "! kill -0 $curious"
        setpriv --pdeathsig KILL "$HFSAD" edge $common --name $edge --state $edge --linger 0 2>$edge.log &
        members="$members $!"
        setpriv --pdeathsig KILL "$HFSAD" client $common --all-of $edge --state $edge-c --audit $edge.audit 2>$edge-c.log &
        members="$members $!"
    done
}
grep -q '^asked 143 questions, 0 answered$' curious.txt || fail "the curious edge: $(cat curious.txt)"
[ "$(grep -c 'edge1/client1 .*sum of residuals.*refused: a question that this spec does not have' edge1.audit)" -ge 80 ] || fail "the audit: $(tail -n 5 edge1.audit)"
grep -q 'edge1/client1 .*scale of the data.*refused: another question with the number of one that was answered' edge1.audit || fail "the same number twice: $(grep scale edge1.audit)"
until_true 60 eval "! kill -0 $cloud" || { fail "the cloud does not end: $(tail -n 3 ./*.log)"; kill -9 $cloud; }
wait $cloud || fail "the cloud: $(tail -n 3 cloud.log)"
cmp -s whole/model.csv fed/model.csv || fail "another model"

echo "-- an edge that asks the star's questions out of their order, each refused; the run goes on"
common="q/spec.yaml --set algorithm=star --broker mqtt://127.0.0.1:$port --durability process --set federation.name=disorder"
# shellcheck disable=SC2086 # lists of words
{
    "$HFSAD" run q/spec.yaml --set algorithm=star --out star --quiet
    setpriv --pdeathsig KILL "$HFSAD" cloud $common --state dc --out star-fed --quiet --linger 0 2>cloud.log &
    cloud=$!
    setpriv --pdeathsig KILL "$python" "$tests/curious_edge.py" "$port" disorder edge1 edge1/client1 4 $cloud >curious.txt 2>&1 &
    members="$members $! $cloud"
    until_true 60 grep -q listening curious.txt
    for edge in edge1 edge2; do
        setpriv --pdeathsig KILL "$HFSAD" edge $common --name $edge --state d$edge --linger 0 2>$edge.log &
        members="$members $!"
        setpriv --pdeathsig KILL "$HFSAD" client $common --all-of $edge --state d$edge-c --audit d$edge.audit 2>$edge-c.log &
        members="$members $!"
    done
}
until_true 60 eval "! kill -0 $cloud" || { fail "the cloud does not end: $(tail -n 3 ./*.log)"; kill -9 $cloud; }
wait $cloud || fail "the cloud: $(tail -n 3 cloud.log)"
grep -q '^asked [3-6] questions, 0 answered$' curious.txt || fail "the edge without an order: $(cat curious.txt)"
[ "$(grep -c 'edge1/client1 .*refused: a question of star, polish or groups out of its order' dedge1.audit)" -ge 3 ] || fail "the audit: $(grep refused dedge1.audit)"
cmp -s star/model.csv star-fed/model.csv || fail "another model"
finish
