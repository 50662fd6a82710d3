#!/usr/bin/env bash
# hfsad run from end to end: the shape of its files, every figure recomputed from them, bad input, full disks,
# interrupts, threads. Needs HFSAD, the path of the program.
. "$(dirname "$0")/shell.sh"

cat >make_data.py <<'PYTHON'
"""data.csv and truth.csv: make_data.py KIND M SEED PATH:CLIENTS…; PATH may be empty (a client of the cloud)."""
import random, sys

kind, M, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random.seed(seed)
truth = [random.gauss(0, 1) if m % 3 else 0.0 for m in range(M)]
with open("truth.csv", "w") as f:
    f.writelines(f"{t!r}\n" for t in truth)
with open("data.csv", "w") as f:
    f.write(",".join(["edge", "client", "y"] + [f"x{m + 1}" for m in range(M)]) + "\n")
    n = 0
    for group in sys.argv[4:]:
        path, clients = group.rsplit(":", 1)
        for _ in range(int(clients)):
            n += 1
            x = [random.gauss(0, 1) for _ in range(M)]
            s = sum(a * b for a, b in zip(x, truth))
            y = {"square": s * s + random.expovariate(10), "line": s + random.gauss(0, 0.3), "sign": 1 if s > 0 else -1}
            f.write(",".join([path, f"c{n}", repr(y[kind])] + [repr(v) for v in x]) + "\n")
PYTHON

cat >check.py <<'PYTHON'
"""check.py OUT [BEFORE] [OVERRIDES]: recomputes the last row of OUT/trace.csv from model.csv, state.csv and data.csv
with the settings of summary.json. BEFORE: the folder of the same run with one iteration less, for the dual residual.
OVERRIDES: those of the spec, as JSON."""
import csv, json, math, os, sys

out, before = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
overrides = json.loads(sys.argv[3]) if len(sys.argv) > 3 else []
bad = []


def rows(path):
    with open(path, newline="") as f:
        head, *body = list(csv.reader(f))
    for row in body:
        if len(row) != len(head):
            bad.append(f"{path}: a row of {len(row)} instead of {len(head)}")
        for text in row[1:]:
            if "%.17g" % float(text) != text:
                bad.append(f"{path}: {text} is not what %.17g prints")
    return head, body


def link_state(folder):
    head, body = rows(folder + "/state.csv")
    M = (len(head) - 3) // 2
    assert head == ["node", "k", "last"] + [f"{v}{m + 1}" for v in "zq" for m in range(M)], head
    return {r[0]: (int(r[1]), list(map(float, r[3 : 3 + M])), list(map(float, r[3 + M :]))) for r in body}


summary = json.load(open(out + "/summary.json"))
settings = summary["settings"]
head, body = rows(out + "/model.csv")
M = len(head) - 1
assert head == ["node"] + [f"w{m + 1}" for m in range(M)], head
model = {r[0]: list(map(float, r[1:])) for r in body}
links = link_state(out)
with open("data.csv", newline="") as f:
    data = list(csv.reader(f))[1:]
observation = {(r[0] + "/" if r[0] else "") + r[1]: (float(r[2]), list(map(float, r[3:]))) for r in data}
if not settings["output"]["clients"]:
    model.update({c: links[c][1] for c in observation})
inner = [n for n in model if n not in observation]
assert set(links) == set(model) - {"cloud"}
assert body[0][0] == "cloud"


def parent(node):
    return node.rsplit("/", 1)[0] if "/" in node else "cloud"


def tier(node):
    return node.count("/") + 1


def override(node, key, default):
    value = dict(default)
    for o in overrides:
        if o["node"] == node:
            value.update(o.get(key, {}))
    return value


def loss(l, y, s):
    r = y - s
    kind = l["kind"]
    if kind == "phase-retrieval":
        return abs(y - s * s)
    if kind == "quantile":
        return max(l["tau"] * r, (l["tau"] - 1) * r)
    if kind == "absolute":
        return abs(r)
    if kind == "squared":
        return r * r / 2
    if kind == "huber":
        return r * r / 2 if abs(r) <= l["delta"] else l["delta"] * abs(r) - l["delta"] ** 2 / 2
    if kind == "logistic":
        return math.log1p(math.exp(-abs(y * s))) + max(0, -y * s)
    return max(0, 1 - y * s)


def penalty(p, t, mu=0.0):
    if p["penalty"] == "none":
        return 0.0
    a, l, w = abs(t), p["lambda"], p["weight"]
    smooth = 0 if a >= mu else t * t / (2 * mu) + mu / 2 - a
    if p["penalty"] in ("tv", "l1"):
        v = l * a
    elif p["penalty"] == "mcp":
        g = p["gamma"]
        v = l * a - t * t / (2 * g) if a <= g * l else g * l * l / 2
    else:
        g = p["gamma"]
        if a <= l:
            v = l * a
        elif a <= g * l:
            v = (2 * g * l * a - t * t - l * l) / (2 * (g - 1))
        else:
            v = l * l * (g + 1) / 2
    return w * (v + l * smooth)


def of_link(node, what):
    which = "client" if node in observation else "edge"
    return override(node, what, settings[what][which])


def of_prior(node):
    return settings["prior"]["cloud"] if node == "cloud" else override(node, "prior", settings["prior"]["edge"])


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b))


def far(a, b):
    return math.fsum((x - y) ** 2 for x, y in zip(a, b))


w0 = model["cloud"]
found = {}
client_loss = lambda at: math.fsum(
    loss(override(c, "loss", settings["loss"]), y, dot(x, at(c))) for c, (y, x) in observation.items()
)
priors = lambda at: math.fsum(penalty(of_prior(n), t) for n in inner for t in at(n))
gaps = [(n, t) for n in links for t in [a - b for a, b in zip(model[n], model[parent(n)])]]
found["objective"] = (
    client_loss(model.get) + priors(model.get) + math.fsum(penalty(of_link(n, "link"), t) for n, t in gaps)
)
found["consensus_objective"] = client_loss(lambda _: w0) + priors(lambda _: w0)
found["consensus_gap"] = max(abs(a - b) for w in model.values() for a, b in zip(w, w0))
found["smoothing_gap"] = math.fsum(
    penalty(of_link(n, "link"), t, of_link(n, "schedule")["alpha"] / math.sqrt(links[n][0])) - penalty(of_link(n, "link"), t)
    for n, t in gaps
    if links[n][0]
)
tiers = summary["data"]["depth"]
primal, dual = [0.0] * tiers, [0.0] * tiers
for n, (k, z, q) in links.items():
    primal[tier(n) - 1] += far(model[n], z) + far(model[parent(n)], q)
found["primal_residual"] = math.sqrt(math.fsum(primal))
for t in range(tiers):
    found[f"primal_residual_tier{t + 1}"] = math.sqrt(primal[t])
if before:
    for n, (k, z, q) in link_state(before).items():
        k_now, z_now, q_now = links[n]
        if k_now > k:
            dual[tier(n) - 1] += of_link(n, "schedule")["c"] ** 2 * k_now * (far(z, z_now) + far(q, q_now))
    found["dual_residual"] = math.sqrt(math.fsum(dual))
    for t in range(tiers):
        found[f"dual_residual_tier{t + 1}"] = math.sqrt(dual[t])
if settings["truth"]:
    truth = list(map(float, open("truth.csv")))
    signs = (1, -1) if settings["loss"]["kind"] == "phase-retrieval" else (1,)
    found["relative_error"] = min(far(w0, [s * t for t in truth]) for s in signs) / dot(truth, truth)
if settings["run"]["participation"]["edge"] == 1:
    T, rounds = summary["iterations"], settings["run"]["edge_rounds"]
    client_steps = sum(links[c][0] for c in observation) // settings["run"]["local_steps"]
    children = lambda n: sum(parent(c) == n for c in links)
    found["bytes_up"] = 8 * M * (client_steps + T * (len(inner) - 1))
    found["bytes_down"] = 8 * M * T * (children("cloud") + rounds * sum(children(n) for n in inner if n != "cloud"))
    for n in inner:
        if n != "cloud" and links[n][0] != T * rounds:
            bad.append(f"{n} stepped {links[n][0]} times instead of {T * rounds}")

head, body = rows(out + "/trace.csv")
assert head[:10] == (
    "iteration,objective,consensus_objective,primal_residual,dual_residual,consensus_gap,smoothing_gap,"
    "seconds,bytes_up,bytes_down"
).split(","), head
assert ("relative_error" in head) == bool(settings["truth"]), head
last = dict(zip(head, map(float, body[-1])))
for key, value in found.items():
    if not math.isclose(last[key], value, rel_tol=1e-9, abs_tol=1e-9):
        bad.append(f"{key} is {last[key]!r} in the trace, {value!r} recomputed")
for key, value in summary["figures"].items():
    if key in last and last[key] != value:
        bad.append(f"{key} is {last[key]!r} in the trace, {value!r} in the summary")
if summary["figures"]["nonzero_coefficients"] != sum(w != 0 for w in w0):
    bad.append("nonzero_coefficients is wrong")
shape = summary["data"]
if (shape["clients"], shape["inner_nodes"], shape["features"]) != (len(observation), len(inner), M):
    bad.append(f"wrong shape {shape}")
if int(last["iteration"]) != summary["iterations"]:
    bad.append("the summary is of another iteration than the trace")
for line in bad:
    print(f"{out}: {line}", file=sys.stderr)
sys.exit(bool(bad))
PYTHON

cut_seconds() { cut -d, -f1-7,9- "$1"; }

# recompute NAME ITERATIONS [OVERRIDES]: runs spec.yaml twice and checks every figure.
recompute() {
    expect 0 run spec.yaml --out "$1" --set "run.iterations=$2" --set run.polish=false
    expect 0 run spec.yaml --out "$1-before" --set "run.iterations=$(($2 - 1))" --set run.polish=false
    python3 check.py "$1" "$1-before" "${3:-[]}" || fail "the figures of $1 are not those of its files"
    cmp -s <(head -n -1 "$1/trace.csv" | cut_seconds -) <(cut_seconds "$1-before/trace.csv") ||
        fail "$1: one iteration less is not the same trace but for its last row"
}

echo "-- figures"
python3 make_data.py square 6 1 edge1:4 edge2:1 edge3:7
cat >spec.yaml <<'SPEC'
data: data.csv
truth: truth.csv
loss: {kind: phase-retrieval, box: 5}
preset: paper
run: {edge_rounds: 1}
SPEC
# docs/algorithm.md, "Presets": the weight of an edge's prior is N_l - 1/L.
eta() { echo "{\"node\": \"edge$1\", \"prior\": {\"weight\": $(python3 -c "print($2 - 1 / 3)")}}"; }
paper="[$(eta 1 4), $(eta 2 1), $(eta 3 7)]"
recompute paper 25 "$paper"
recompute first 1 "$paper"
cp spec.yaml phase.yaml

python3 make_data.py line 7 2 edge1:9 edge2:3
cat >spec.yaml <<'SPEC'
data: data.csv
truth: truth.csv
loss: {kind: quantile, tau: 0.3, box: 0.8}
link:
  client: {penalty: mcp, weight: 2, lambda: 0.7, gamma: 1.5}
  edge: {penalty: scad, weight: 3, lambda: 0.5, gamma: 2.2}
prior:
  edge: {penalty: mcp, weight: 0.5, lambda: 0.3, gamma: 3}
  cloud: {penalty: l1, weight: 0.25, lambda: 1}
run: {edge_rounds: 1, participation: {client: 0.6, edge: 0.7, at_least_every: 3}}
SPEC
recompute personal 40
sed -i 's/edge: 0.7, //; s/edge_rounds: 1/edge_rounds: 3, local_steps: 2/' spec.yaml
expect 0 run spec.yaml --out rounds --set run.iterations=9
python3 check.py rounds || fail "the figures of rounds"
expect 0 run spec.yaml --out rounds --set run.iterations=9 --set output.clients=false
python3 check.py rounds || fail "the figures with output.clients=false"
[ "$(wc -l <rounds/model.csv)" = 4 ] || fail "output.clients=false writes the clients' models"

python3 make_data.py sign 5 3 north/edge1:3 north/edge2:2 south/edge3:4
for kind in logistic hinge; do
    printf 'data: data.csv\nloss: {kind: %s}\nlink: {edge: {weight: 7}}\nschedule: {edge: {c: 3, alpha: 2}}
run: {edge_rounds: 1}\n' $kind >spec.yaml
    recompute deep-$kind 12
done
python3 make_data.py line 5 4 :6
for kind in huber,\ delta:\ 0.2 absolute squared; do
    printf 'data: data.csv\nloss: {kind: %s}\nrun: {edge_rounds: 1}\n' "$kind" >spec.yaml
    recompute "flat-${kind%%,*}" 12
done

python3 make_data.py line 5 5 edge1:3 edge2:4
cat >spec.yaml <<'SPEC'
data: data.csv
loss: {kind: absolute}
prior: {edge: {penalty: l1, weight: 0.1, lambda: 1}}
run: {edge_rounds: 1}
overrides:
  - {node: edge2, prior: {penalty: mcp, weight: 1, lambda: 0.2, gamma: 3}}
  - {node: edge1/c2, loss: {kind: squared}, link: {penalty: scad, weight: 2, lambda: 0.4, gamma: 3}, schedule: {c: 9, alpha: 2}}
SPEC
expect 0 run spec.yaml --out plain --set run.iterations=1
python3 - <<'PYTHON' || fail "the summary does not show what the overrides mix"
import json
s = json.load(open("plain/summary.json"))["settings"]
assert [o["node"] for o in s["overrides"]] == ["edge2", "edge1/c2"], s
assert s["overrides"][1]["schedule"] == {"c": 9, "alpha": 2}, s
assert s["prior"]["edge"]["penalty"] == ["l1", "mcp"], s
assert s["prior"]["edge"]["weight"] == [0.1, 1], s
PYTHON
# One tier's numbers stand as [least, most] where overrides mix them; the check needs those of the other nodes.
cat >unmix.py <<'PYTHON'
import json, sys
for folder in sys.argv[1:]:
    s = json.load(open(folder + "/summary.json"))
    p = json.load(open("uniform/summary.json"))["settings"]
    for key in ("link", "prior", "schedule"):
        for which, values in s["settings"][key].items():
            for name, value in values.items():
                if isinstance(value, list):
                    values[name] = p[key][which][name]
    json.dump(s, open(folder + "/summary.json", "w"))
PYTHON
expect 0 run spec.yaml --out mixed --set run.iterations=15
expect 0 run spec.yaml --out mixed-before --set run.iterations=14
expect 0 run spec.yaml --out uniform --set run.iterations=1 --set 'overrides=[]'
python3 unmix.py mixed mixed-before
python3 check.py mixed mixed-before '[{"node": "edge2", "prior": {"penalty": "mcp", "weight": 1, "lambda": 0.2, "gamma": 3}},
    {"node": "edge1/c2", "loss": {"kind": "squared"}, "link": {"penalty": "scad", "weight": 2, "lambda": 0.4, "gamma": 3},
     "schedule": {"c": 9, "alpha": 2}}]' || fail "the figures with overrides"

echo "-- folder, table, options"
python3 make_data.py square 6 1 edge1:4 edge2:1 edge3:7
cp phase.yaml spec.yaml
rm -rf spec-out
expect 0 run spec.yaml
[ -s stderr.txt ] && fail "a short run writes to stderr"
grep -q '^written to  *spec-out$' stdout.txt || fail "the table does not say where the output is"
awk 'length > 80 { exit 1 }' stdout.txt || fail "the table is wider than 80 columns"
all="checkpoint.bin coefficients.csv model.csv state.csv summary.json trace.csv "
[ "$(names spec-out)" = "$all" ] || fail "wrong files: $(names spec-out)"
[ "$(wc -l <spec-out/trace.csv)" = 302 ] || fail "the trace has $(wc -l <spec-out/trace.csv) lines"
expect 0 run --quiet --out=a/b/c --set run.iterations=20 spec.yaml --set=run.trace_every=7 --threads=1
[ -s stdout.txt ] || [ -s stderr.txt ] && fail "--quiet prints"
[ "$(tail -n +2 a/b/c/trace.csv | cut -d, -f1 | tr '\n' ' ')" = "0 7 14 20 " ] || fail "trace_every: wrong rows"
expect 0 run spec.yaml --out a --set run.iterations=0
[ "$(wc -l <a/trace.csv)" = 2 ] || fail "no iterations: wrong trace"
expect 0 run spec.yaml --out a --set output.state=false --set run.iterations=3
[ -e a/state.csv ] && fail "state.csv of the earlier run stayed"
expect 0 run spec.yaml --out a --set run.stop.absolute=100
grep -q '"stopped":.*"tolerance"' a/summary.json || fail "the stop rule does not show in the summary"
grep -q '^stopped  *tolerances met' stdout.txt || fail "the stop rule does not show in the table"
"$HFSAD" run spec.yaml --out a >/dev/full 2>stderr.txt
[ $? = 1 ] || fail "a full stdout is not noticed"
for command in "" run settings; do
    "$HFSAD" $command --help >stdout.txt 2>stderr.txt || fail "hfsad $command --help fails"
    grep -q '^usage: hfsad' stdout.txt || [ "$command" = settings ] || fail "hfsad $command --help has no usage"
    [ -n "$command" ] && { "$HFSAD" help "$command" | cmp -s - stdout.txt || fail "hfsad help $command differs"; }
done
expect 0 --version
grep -qx 'hfsad [0-9]*\.[0-9]*\.[0-9]*' stdout.txt || fail "--version"
grep -q '^built with .* libyaml [0-9.]*, .*OpenSSL [0-9.]*' stdout.txt || fail "--version does not say with what it was built"
expect 2
[ -s stdout.txt ] && fail "no command: usage belongs on stderr"

echo "-- diverged"
printf 'edge,client,y,x1\ne,a,1,1\ne,b,1,1\n' >two.csv
echo 1e200 >start.txt
expect_line 1 run spec.yaml --out diverged --set data=two.csv --set truth=none --set 'loss={kind: squared}' \
    --set run.start=start.txt
grep -q 'schedule' stderr.txt || fail "diverged: no remedy"
python3 -c 'import json; s = json.load(open("diverged/summary.json")); assert s["stopped"] == "diverged", s
assert s["figures"]["objective"] is None' || fail "diverged: wrong summary"

echo "-- bad input"
# refuse WORD ARGUMENTS…: exit status 2, one line with WORD in it, nothing written.
refuse() {
    local word=$1
    shift
    rm -rf refused spec-out
    expect 2 run "$@"
    [ "$(wc -l <stderr.txt)" = 1 ] || fail "not one line on stderr: hfsad run $*"
    grep -qF -- "$word" stderr.txt || fail "no '$word' in: $(cat stderr.txt)"
    [ -s stdout.txt ] && fail "output on stdout: hfsad run $*"
    [ -e refused ] || [ -e spec-out ] && fail "an output folder was made: hfsad run $*"
}
refuse 'spec' --out refused
refuse 'known: --set, --out, --resume, --warm-start, --replay, --threads, --history' spec.yaml --out refused --xyzzy
refuse 'did you mean --quiet?' spec.yaml --out refused --QUIET
refuse '--threads' spec.yaml --out refused --treads 2
refuse '--threads' spec.yaml --out refused --threads two
refuse '--threads' spec.yaml --out refused --threads -1
refuse '--threads' spec.yaml --out refused --threads
refuse 'other' spec.yaml other --out refused
refuse 'KEY=VALUE' spec.yaml --out refused --set run.iterations
long=$(printf 'x%.0s' {1..300})
refuse 'key' spec.yaml --out refused --set "$long=1"
refuse '300 bytes' spec.yaml --out refused --set "$long=1"
for words in "--set $long=1" "--set $long" "--$long" "--threads $long" "$long"; do
    refuse '...' spec.yaml --out refused $words
    [ "$(wc -c <stderr.txt)" -lt 300 ] || fail "an argument is not cut: $(cat stderr.txt)"
done
refuse 'run.iterations' spec.yaml --out refused --set run.iteration=5
refuse 'iterations' spec.yaml --out refused --set run.iterations=-1
refuse 'iterations' spec.yaml --out refused --set run.iterations=.nan
refuse 'alpha' spec.yaml --out refused --set schedule.client.alpha=.inf
refuse 'box' spec.yaml --out refused --set loss.box=nan
refuse 'gamma' spec.yaml --out refused --set 'link.client={penalty: scad, weight: 1, lambda: 1, gamma: 1.5}'
refuse 'quantile' spec.yaml --out refused --set loss.kind=quantil
refuse 'missing.csv' spec.yaml --out refused --set data=missing.csv
refuse 'missing.yaml' missing.yaml --out refused
refuse 'missing.txt' spec.yaml --out refused --set run.start=missing.txt
refuse "did you mean 'spectral'" spec.yaml --out refused --set run.start=spectrl
refuse 'missing.txt' spec.yaml --out refused --set truth=missing.txt
printf 'data: data.csv\nloss: {kind: absolute}\nrun: {iterations: 5\n' >bad.yaml
refuse 'bad.yaml' bad.yaml --out refused
# refuse_data LINES WORD: a CSV with these lines is refused.
refuse_data() {
    printf '%b' "$1" >bad.csv
    refuse "$2" spec.yaml --out refused --set data=bad.csv --set truth=none
}
refuse_data '' 'bad.csv'
refuse_data 'edge,client,y,x1\n' 'bad.csv'
refuse_data 'edge,client,y,x1,x2\ne,a,1,1,1\ne,b,1,1\n' ':3'
refuse_data 'edge,client,y,x1,x2\ne,a,1,1,1\ne,b,1,1,1,1\n' ':3'
refuse_data 'edge,client,y,x1,x2\ne,a,1,1,1\ne,b,1,one,1\n' ':3'
refuse_data 'edge,client,y,x1,x2\ne,a,1,1,1\ne,b,1,nan,1\n' ':3'
refuse_data 'edge,client,y,x1,x2\ne,a,1,1,1\ne,b,1,1e999,1\n' ':3'
refuse_data 'edge,client,y,x1,x1\ne,a,1,1,1\n' 'x1'
printf x >file
refuse 'give another output folder (--out)' spec.yaml --out file
refuse 'file/a' spec.yaml --out file/a
[ "$(cat file)" = x ] || fail "a file in the place of the folder was changed"
for word in runn RUN; do
    expect 2 "$word"
    says 'did you mean run?'
done
expect 2 xyzzy
says 'known: run, .*settings'
expect 0 run spec.yaml --out blanks --quiet --set ' run.iterations = 3 '
[ "$(wc -l <blanks/trace.csv)" = 5 ] || fail "blanks around a key and a value change it"

echo "-- what it reads stays"
mkdir -p input/out
for name in checkpoint.bin coefficients.csv model.csv state.csv trace.csv summary.json; do
    cp data.csv input/out/data.csv
    ln -f input/out/data.csv "input/out/$name"
    refuse 'is data' spec.yaml --out input/out --set data=input/out/data.csv
    refuse 'is data' spec.yaml --out input/out --set data="input/out/$name" --set output.state=false
    cp truth.csv "input/out/$name.new" && mv "input/out/$name.new" "input/out/$name"
    refuse 'is truth' spec.yaml --out input/out --set truth="input/out/$name"
    refuse 'is run.start' spec.yaml --out input/../input/out --set run.start="input/out/$name"
    cmp -s truth.csv "input/out/$name" || fail "$name was changed"
    cp spec.yaml "input/out/$name"
    refuse 'is the spec' "input/out/$name" --out input/out
    rm "input/out/$name"
done
[ "$(names input/out)" = "data.csv " ] || fail "a refused run left $(names input/out)"
echo state,capital >input/out/state.csv
expect 0 run spec.yaml --out input/out --set output.state=false --set run.iterations=2
[ "$(cat input/out/state.csv)" = state,capital ] || fail "a state.csv of the person's own is gone"

echo "-- full disk"
expect 0 run spec.yaml --out kept --set run.iterations=10
cp -a kept kept-copy
(ulimit -f 1 && exec "$HFSAD" run spec.yaml --out kept --quiet) >stdout.txt 2>stderr.txt
[ $? = 1 ] || fail "file size limit: wrong exit status"
[ "$(wc -l <stderr.txt)" = 1 ] || fail "file size limit: not one line"
grep -q 'kept/.*could not be written: File too large' stderr.txt || fail "file size limit: $(cat stderr.txt)"
diff -r kept kept-copy >&2 || fail "file size limit: the earlier output changed"
says 'ulimit -f'
# Room for the start, none for the trace at the end: what there was stays.
(ulimit -f 8 && exec "$HFSAD" run spec.yaml --out kept --quiet) >stdout.txt 2>stderr.txt
[ $? = 1 ] || fail "file size limit at the end: wrong exit status"
diff -r kept kept-copy >&2 || fail "file size limit at the end: the earlier output changed"
(ulimit -f 1 && exec "$HFSAD" run spec.yaml --out none/of/these --quiet) >stdout.txt 2>stderr.txt
[ $? = 1 ] || fail "file size limit in a new folder: wrong exit status"
[ -e none ] && fail "a failed run left an empty folder"
# In a new folder the start is there at once; what there was, here that start, stays when the end does not fit.
rm -r kept
(ulimit -f 8 && exec "$HFSAD" run spec.yaml --out kept --quiet) >stdout.txt 2>stderr.txt
[ $? = 1 ] || fail "file size limit at the end: wrong exit status"
python3 - <<'PYTHON' || fail "file size limit at the end: the folder is not that of the start"
import json
assert json.load(open("kept/summary.json"))["stopped"] == "running"
assert len(open("kept/trace.csv").readlines()) == 2
PYTHON
[ "$(names kept)" = "$all" ] || fail "temporaries are left: $(names kept)"

# A run that is killed leaves temporaries; the next one removes them, and nothing else.
true &
dead=$!
wait $dead
touch "kept/.model.csv.$dead.tmp" "kept/.summary.json.$dead.tmp" "kept/.model.csv.$$.tmp" "kept/.notes.$dead.tmp"
expect 0 run spec.yaml --out kept --quiet --set run.iterations=2
[ "$(names kept)" = ".model.csv.$$.tmp .notes.$dead.tmp $all" ] || fail "swept to $(names kept)"

echo "-- stdout that nobody reads"
python3 - <<'PYTHON' || fail "a closed stdout"
import os, subprocess
for words in (["settings"], ["run", "spec.yaml", "--out", "kept"], ["--help"]):
    read, write = os.pipe()
    os.close(read)
    p = subprocess.run([os.environ["HFSAD"], *words], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert p.returncode in (0, 141) and p.stderr == "", (words, p)
PYTHON

echo "-- a spec whose name is no text"
odd=$(printf 'odd\377.yaml')
cp spec.yaml "$odd"
expect 0 run "$odd" --out odd --quiet --set run.iterations=1
python3 -c 'import json; assert json.load(open("odd/summary.json", encoding="utf-8"))["spec"] == "odd?.yaml"' ||
    fail "summary.json is not UTF-8"

echo "-- threads"
python3 make_data.py square 20 6 edge1:400 edge2:300 edge3:250
for threads in 1 2 5; do
    expect 0 run spec.yaml --out threads$threads --threads $threads --set run.iterations=12 --set run.edge_rounds=3 \
        --set run.participation.client=0.7
    cut_seconds threads$threads/trace.csv >threads$threads/trace-cut.csv
    for file in model.csv state.csv trace-cut.csv; do
        cmp threads1/$file threads$threads/$file || fail "$file depends on the number of threads"
    done
done

echo "-- interrupts"
python3 - <<'PYTHON' || fail "interrupts"
import csv, json, os, signal, subprocess

def read_all(out):
    """Every file parses at every moment, and no row is short."""
    for name in ("model.csv", "state.csv", "trace.csv"):
        lines = list(csv.reader(open(f"{out}/{name}", newline="")))
        assert len(lines) > 1 and all(len(l) == len(lines[0]) for l in lines), name
    return json.load(open(f"{out}/summary.json"))

for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
    out = f"interrupted{status}"
    p = subprocess.Popen(
        [os.environ["HFSAD"], "run", "spec.yaml", "--out", out, "--set", "run.iterations=50000000",
         "--set", "run.trace_every=100", "--set", "output.every_seconds=0.01"],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    line = p.stderr.readline()  # the first progress line, after a second
    assert line.startswith("iteration ") and "left" in line, line
    for _ in range(50):
        assert read_all(out)["stopped"] == "running"
    # A folder that cannot be written for a while does not end the run.
    os.rename(out, out + "-away")
    while "tries again" not in line:
        line = p.stderr.readline()
        assert line, "the run ended"
    os.rename(out + "-away", out)
    p.send_signal(number)
    stdout, stderr = p.communicate()
    assert p.returncode == status, (p.returncode, stderr)
    last = stderr.splitlines()[-1]
    summary = read_all(out)
    assert last == f"hfsad: interrupted after iteration {summary['iterations']}: wrote {out}", last
    assert summary["stopped"] == "interrupted" and summary["iterations"] > 0
    assert "interrupted" in stdout
    assert len(os.listdir(out)) == 6, os.listdir(out)
    assert "finishing" not in stderr, stderr

# An iteration that takes long: after half a second it is said what a second Ctrl-C does, which then ends the run.
for quiet in (False, True):
    p = subprocess.Popen(
        [os.environ["HFSAD"], "run", "spec.yaml", "--out", f"slow{quiet}", "--set", "run.edge_rounds=1000000",
         "--set", "run.local_steps=1000", "--set", "run.iterations=2"] + ["--quiet"] * quiet,
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    while not os.path.exists(f"slow{quiet}/summary.json"):
        assert p.poll() is None
    p.send_signal(signal.SIGINT)
    if quiet:
        try:
            p.wait(1)
            assert False, "the iteration was too short for this test"
        except subprocess.TimeoutExpired:
            pass
    else:
        line = p.stderr.readline()
        assert line == "hfsad: finishing the iteration; Ctrl-C again ends at once\n", line
    p.send_signal(signal.SIGINT)
    stdout, stderr = p.communicate()
    assert p.returncode == -signal.SIGINT and stderr == "", (p.returncode, stderr)
PYTHON

finish
