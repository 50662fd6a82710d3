#!/usr/bin/env bash
# hfsad client --rows disk: a client of 1,000 dense rows and 10,000 features stays below 32 MiB of memory while it reads,
# is set up and trains, by TLS, and the model has the bytes of `hfsad run`. Under the address sanitizer, whose memory is
# another, the data is smaller and the memory is not looked at. Needs HFSAD.
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"
rows=1000 features=10000 most=32768 # KiB
if grep -q __asan_init "$HFSAD"; then rows=50 features=3000 most=; fi

cat >make_data.py <<'PYTHON'
"""make_data.py ROWS FEATURES: the same rows as a/edge1/client1.csv and as b/edge1/client1.npy, each a piece of one long
sequence, so that making them takes no time."""
import array, os, random, sys
rows, features = int(sys.argv[1]), int(sys.argv[2])
random.seed(3)
base = [random.randint(-1000, 1000) / 256 for _ in range(features + 13 * rows)]
texts, numbers = [repr(v) for v in base], array.array("d", base)
y = [sum(base[13 * r + m] for m in range(0, features, features // 7)) + random.choice((-1, 0, 2)) for r in range(rows)]
os.makedirs("a/edge1")
os.makedirs("b/edge1")
with open("a/edge1/client1.csv", "w") as f:
    f.write(",".join(["y"] + [f"x{m + 1}" for m in range(features)]) + "\n")
    for r in range(rows):
        f.write(",".join([repr(y[r])] + texts[13 * r : 13 * r + features]) + "\n")
with open("b/edge1/client1.npy", "wb") as f:
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {features + 1}), }}".ljust(117) + "\n"
    f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
    for r in range(rows):
        array.array("d", [y[r]]).tofile(f)
        numbers[13 * r : 13 * r + features].tofile(f)
PYTHON
python3 make_data.py $rows $features

cat >peak.py <<'PYTHON'
"""peak.py COMMAND…: runs it; its peak of resident memory in KiB goes to peak.txt."""
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:])
_, status, used = os.wait4(child.pid, 0)
open("peak.txt", "w").write(str(used.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))
PYTHON

cat >quantile.yaml <<'YAML'
data: a
loss: {kind: quantile, tau: 0.3}
features: {intercept: client, standardize: true}
run: {iterations: 2, edge_rounds: 2}
YAML
cat >squared.yaml <<'YAML'
data: b
loss: {kind: squared}
run: {iterations: 2, edge_rounds: 2}
YAML
printf 'features %s\nedge1/client1\n' $features >nodes.txt
list="--set federation.nodes=nodes.txt"

expect 0 keys init
expect 0 keys issue cloud edge1 edge1/client1
start_broker keys/mosquitto.conf
secure="--broker mqtts://localhost:$port --keys keys"

# shellcheck disable=SC2086 # lists of words
for spec in quantile squared; do
    expect 0 run $spec.yaml --out run-$spec --quiet
    more="$list --set federation.name=$spec"
    setpriv --pdeathsig KILL "$HFSAD" cloud $spec.yaml $more $secure --out up-$spec --quiet --linger 0 2>cloud.log &
    cloud=$!
    setpriv --pdeathsig KILL "$HFSAD" edge $spec.yaml --name edge1 $more $secure --linger 0 2>edge.log &
    members="$members $cloud $!"
    data=$(echo [ab]/edge1/client1.*)
    [ $spec = quantile ] && data=${data% *} || data=${data#* }
    python3 peak.py "$HFSAD" client $spec.yaml --name edge1/client1 --data "$data" --rows disk $more $secure 2>client.log ||
        fail "$spec: the client: $(cat client.log)"
    wait "$cloud" || fail "$spec: the cloud: $(cat cloud.log)"
    cmp run-$spec/model.csv up-$spec/model.csv || fail "$spec: another model with rows on the disk"
    echo "$spec, $data: $(cat peak.txt) KiB at most"
    [ -z "$most" ] || [ "$(cat peak.txt)" -lt "$most" ] || fail "$spec: $(cat peak.txt) KiB, expected less than $most"
    [ "$(names $spec-state/edge1+client1)" = "$(names $spec-state/cloud)" ] ||
        fail "$spec: the client leaves $(names $spec-state/edge1+client1)"
done

# What is wrong is said before anything is written.
cut -d, -f1-4 a/edge1/client1.csv >narrow.csv
# shellcheck disable=SC2086 # a list of words
expect_line 2 client quantile.yaml --name edge1/client1 --data narrow.csv --rows disk --state new/state $list
says 'narrow.csv: 3 features; the federation has'
[ ! -e new ] || fail "the state folder of a client that was refused"
# shellcheck disable=SC2086 # a list of words
expect_line 2 client quantile.yaml --name edge1/client1 --rows tape $list
says 'rows'
finish
