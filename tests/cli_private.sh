#!/usr/bin/env bash
# Secure aggregation: a plain federation gives its clients' rows away (attack_rows.py), a private one does not; what clients say is
# uniform and adds up to the plain sums (check_masks.py), also if nodes are killed; the output is that of `hfsad run`; specs and
# cohorts that cannot be private are refused. Needs HFSAD.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
. "$tests/broker.sh"
. "$tests/federate.sh"
export PYTHONPATH=$tests PYTHONDONTWRITEBYTECODE=1

python3 - <<'PYTHON'
import random
random.seed(3)
with open("data.csv", "w") as f:
    f.write("edge,client,y," + ",".join("x%d" % m for m in range(6)) + "\n")
    for c in range(9):
        x = [random.gauss(0, 1) for _ in range(6)]
        f.write("e,c%d,%r,%s\n" % (c, x[0] - 2 * x[5] + random.gauss(0, 0.3), ",".join(map(repr, x))))
PYTHON
cat >spec.yaml <<'YAML'
data: data.csv
loss: {kind: absolute}
link: {client: {penalty: tv, weight: 5}}
schedule: {client: {c: 2, alpha: 1}}
run: {iterations: 6, edge_rounds: 3, polish: true}
output: {clients: false}
YAML

cat >broker.in <<'CONF'
listener 1883 127.0.0.1
allow_anonymous true
CONF
start_broker broker.in

# ---- the attack ----
federate plain 0
python3 "$tests/attack_rows.py" plain.txt data.csv 5 2 1 >attack.txt || { fail "the rows of a plain federation were not found"; cat attack.txt >&2; }
federate fixed 0 federation.wire=fixed privacy.cohort=4
federate private 0 privacy.aggregation=secure privacy.cohort=4
python3 "$tests/attack_rows.py" private.txt data.csv 5 2 1 >attack.txt
[ $? = 1 ] || { fail "rows of a private federation were found"; cat attack.txt >&2; }
federate words 0 federation.wire=fixed federation.fraction=40 # words without masks hide nothing
python3 "$tests/attack_rows.py" words.txt data.csv 5 2 1 >attack.txt || { fail "the rows of a federation in fixed point were not found"; cat attack.txt >&2; }
federate noise 0 privacy.rho=1 privacy.clip=1 run.polish=false federation.fraction=40 # each client hides by itself
python3 "$tests/attack_rows.py" noise.txt data.csv 5 2 1 >attack.txt
[ $? = 1 ] || { fail "rows of a federation with noise were found"; cat attack.txt >&2; }
python3 "$tests/check_masks.py" private.txt fixed.txt >masks.txt 2>&1 || { fail "masks"; cat masks.txt >&2; }
python3 "$tests/check_masks.py" fixed.txt fixed.txt >masks.txt 2>&1 && fail "plain words pass for masked ones"

# ---- the same result, and under kills ----
expect 0 run spec.yaml --set privacy.aggregation=secure --set privacy.cohort=4 --out run --quiet
for one in private fixed; do
    cmp -s run/model.csv $one/model.csv || fail "$one: another model than the simulator's"
done
kills=${HFSAD_PRIVATE_KILLS:-12} # hundreds by hand: a run as long as it takes
long=(run.participation.client=0.6 "run.iterations=$((kills > 12 ? 2 * kills : 6))")
federate killed "$kills" privacy.aggregation=secure privacy.cohort=4 "${long[@]}"
expect 0 run spec.yaml --set privacy.aggregation=secure --set privacy.cohort=4 --set "${long[0]}" --set "${long[1]}" --out run2 --quiet
cmp -s run2/model.csv killed/model.csv || fail "killed: another model than the simulator's"
federate killed-plain 0 federation.wire=fixed privacy.cohort=4 "${long[@]}"
python3 "$tests/check_masks.py" killed.txt killed-plain.txt >masks.txt 2>&1 || { fail "masks under kills"; cat masks.txt >&2; }
grep -q '^e/' private/model.csv && fail "the cloud has models of clients"

# ---- noise by secrets: a client that is killed draws the noise of a round again as it was ----
noise=(privacy.rho=100 privacy.clip=1 privacy.aggregation=secure privacy.cohort=4 run.polish=false run.iterations=8)
federate noisy 0 "${noise[@]}"
mv noisy noisy-first
mkdir -p kept/client
cp state-noisy/client/noise.key kept/client/
rm -r state-noisy
mv kept state-noisy
start_broker broker.in # without the messages that the first run left
federate noisy 6 "${noise[@]}"
cmp -s noisy-first/model.csv noisy/model.csv || fail "killed: other noise"

# ---- files ----
find state-private -name cohort.key ! -perm 600 | grep . && fail "a key that others may read"
[ "$(find state-private -name cohort.key | wc -l)" = 1 ] || fail "not one key for the clients' process"

# ---- no key in a log, an audit, a message or an output ----
python3 - <<'PYTHON' || fail "keys outside of their files"
import base64, glob, os, sys
keys = [open(f, "rb").read() for f in glob.glob("state-*/**/*.key", recursive=True)]
files = [f for f in glob.glob("**/*", recursive=True) if os.path.isfile(f) and not f.endswith(".key")]
shapes = [s for k in keys for s in (k[:16], k[16:], k.hex().encode()[:24], k.hex().upper().encode()[:24], base64.b64encode(k)[:20])]
assert len(keys) >= 4 and any(f.endswith(".log") for f in files) and any(f.endswith(".audit") for f in files) and "private.txt" in files
control = open(glob.glob("state-*/**/cohort.key", recursive=True)[0], "rb").read()
assert any(s in b"x" + control.hex().encode() for s in shapes)
found = [f for f in files for s in shapes if s in open(f, "rb").read()]
print(*found)
sys.exit(bool(found))
PYTHON

# ---- with certificates: keys are signed, and checked against the authority ----
"$HFSAD" keys init >/dev/null && "$HFSAD" keys issue cloud e e/c{0..8} >/dev/null 2>&1 || fail "keys"
start_broker keys/mosquitto.conf
signed=(spec.yaml --set privacy.aggregation=secure --set privacy.cohort=4 --keys keys --broker "mqtts://localhost:$port")
setpriv --pdeathsig KILL "$HFSAD" edge "${signed[@]}" --name e --state state-signed/edge --linger 0.5 2>signed-edge.log &
members="$members $!"
setpriv --pdeathsig KILL "$HFSAD" client "${signed[@]}" --all-of e --state state-signed/clients --out own 2>signed.log &
members="$members $!"
clients=$!
timeout 60 "$HFSAD" cloud "${signed[@]}" --state state-signed/cloud --out signed --linger 0.5 --quiet 2>signed-cloud.log || { fail "with certificates"; tail -3 signed*.log >&2; }
cmp -s run/model.csv signed/model.csv || fail "with certificates: another model than the simulator's"
wait "$clients"
grep -q 'are not signed' signed.log && fail "keys are not signed in spite of certificates"
grep -q 'are not signed' private.log || fail "keys without a certificate are not reported"
[ "$(grep -c '^e/c' own/model.csv)" = 9 ] || fail "the clients' own models: $(cat own/model.csv)"
grep -qa CERTIFICATE state-signed/clients/cohort.list && fail "texts in the list"
[ "$(stat -c %s state-signed/clients/cohort.list)" -gt 3000 ] || fail "the list has no certificates"

# ---- refused ----
expect_line 2 run spec.yaml --set privacy.aggregation=secure --set privacy.cohort=10 --out x --quiet
says 'e has 9 clients'
expect_line 2 run spec.yaml --set privacy.aggregation=secure --set federation.mode=async --set federation.local_seconds=1 --out x --quiet
says 'all members of a cohort make the same steps'
expect_line 2 run spec.yaml --set privacy.aggregation=secure --set privacy.cohort=1 --out x --quiet
says '2 or more'
expect_line 2 run spec.yaml --set privacy.cohort=4 --out x --quiet
says 'needs federation.wire fixed'
finish
