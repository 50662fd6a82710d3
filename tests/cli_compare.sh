#!/usr/bin/env bash
# The baselines through `hfsad run`, and hfsad compare: its files against the traces that they come from, folders in place
# of specs, bad input. Needs HFSAD, the path of the program.
. "$(dirname "$0")/shell.sh"

"$HFSAD" generate phase-retrieval --edges 2 --clients 6 --features 4 --out data >/dev/null || fail "no data"
cat >spec.yaml <<'YAML'
data: data/data.csv
truth: data/truth.csv
loss: {kind: phase-retrieval, box: 5}
prior: {edge: {penalty: l1, lambda: 0.01, weight: 1}, cloud: {penalty: scad, lambda: 0.1, weight: 1}}
run: {iterations: 20, edge_rounds: 3, local_steps: 2, participation: {client: 0.7}}
YAML

# ---- a run by a baseline ----
expect 0 run spec.yaml --out run-out
[ -e run-out/state.csv ] || fail "hfsad wrote no state.csv"
expect 0 run spec.yaml --set algorithm=fedavg --out run-out --threads 1
[ "$(names run-out)" = "coefficients.csv model.csv summary.json trace.csv " ] || fail "files of a baseline: $(names run-out)"
grep -q "^algorithm *fedavg" stdout.txt || fail "the table does not say fedavg"
grep -q "residual\|Theorem" stdout.txt && fail "the table has residuals or a theorem"
python3 - <<'PYTHON' || fail "summary.json, trace.csv or model.csv of a baseline"
import csv, json, math
s = json.load(open("run-out/summary.json"))
assert s["algorithm"] == s["settings"]["algorithm"] == "fedavg" and s["stopped"] == "iterations", s
assert "theorem_1" not in s and "link" not in s["settings"] and "schedule" not in s["settings"]
rule = s["settings"]["baseline"]
assert rule["step"] > 0 and rule["rule"] == "power" and rule["decay"] == 0.5 and rule["rho"] == 0, rule
rows = list(csv.DictReader(open("run-out/trace.csv")))
assert len(rows) == 21 and list(rows[0])[:4] == ["iteration", "objective", "consensus_objective", "primal_residual"]
for row in rows:
    for name, text in row.items():
        value = float(text)
        none = name in ("smoothing_gap", "gap_bound") or "_residual" in name
        assert math.isnan(value) == none, (name, text)
    assert row["objective"] == row["consensus_objective"]
# the last row from model.csv and the data
models = {r["node"]: [float(r[f"w{m}"]) for m in range(1, 5)] for r in csv.DictReader(open("run-out/model.csv"))}
w = models["cloud"]
objective = 0
for r in csv.DictReader(open("data/data.csv")):
    values = list(r.values())
    objective += abs(float(values[2]) - sum(float(x) * v for x, v in zip(values[3:], w)) ** 2)
def scad(t, l=0.1, g=3.7):
    t = abs(t)
    return l * t if t <= l else (2 * g * l * t - t * t - l * l) / (2 * (g - 1)) if t <= g * l else l * l * (g + 1) / 2
objective += sum(2 * 0.01 * abs(v) + scad(v) for v in w)
assert abs(objective - float(rows[-1]["objective"])) < 1e-9 * objective, (objective, rows[-1])
assert abs(max(abs(a - b) for m in models.values() for a, b in zip(m, w)) - float(rows[-1]["consensus_gap"])) < 1e-12
truth = [float(line) for line in open("data/truth.csv")]
error = min(sum((a - s * b) ** 2 for a, b in zip(w, truth)) for s in (1, -1)) / sum(b * b for b in truth)
assert abs(error - float(rows[-1]["relative_error"])) < 1e-12
assert float(rows[-1]["objective"]) < float(rows[0]["objective"])
PYTHON
expect 0 run spec.yaml --set algorithm=fedavg --out threads-out --threads 3
cmp -s run-out/model.csv threads-out/model.csv || fail "threads change the model"
without_seconds() { cut -d, -f1-7,9- "$1"; }
[ "$(without_seconds run-out/trace.csv)" = "$(without_seconds threads-out/trace.csv)" ] || fail "threads change the trace"

# ---- three algorithms from one spec, and a folder ----
expect 0 compare spec.yaml run-out --algorithms hfsad,fedavg,fedprox --out cmp --accuracies 0.5,1e-2,0
[ "$(names cmp | tr ' ' '\n' | grep -c .)" = 19 ] || fail "files: $(names cmp)"
[ -e cmp/spec-hfsad/state.csv ] || fail "no state.csv of hfsad"
cmp -s cmp/spec-fedavg/model.csv run-out/model.csv || fail "compare and run differ"
cp stdout.txt table.txt
python3 - <<'PYTHON' || fail "compare.csv or the table is not what the traces say"
import csv, re
runs = {"spec-hfsad": "cmp/spec-hfsad", "spec-fedavg": "cmp/spec-fedavg", "spec-fedprox": "cmp/spec-fedprox",
        "run-out": "run-out"}
rows = list(csv.DictReader(open("cmp/compare.csv")))
traces = {name: list(csv.DictReader(open(folder + "/trace.csv"))) for name, folder in runs.items()}
assert len(rows) == sum(map(len, traces.values())) == 84
best = min(float(r["consensus_objective"]) for t in traces.values() for r in t)
position = 0
for name, trace in traces.items():
    for wanted in trace:
        row = rows[position]
        position += 1
        assert row["run"] == name and int(row["rounds"]) == 3 * int(row["iteration"])
        assert row["algorithm"] == ("fedavg" if name == "run-out" else name[5:])
        for column in ("iteration", "seconds", "bytes_up", "bytes_down", "objective", "consensus_objective",
                       "relative_error", "consensus_gap", "primal_residual"):
            assert row[column] == wanted[column], (column, row[column], wanted[column])
        above = (float(wanted["consensus_objective"]) - best) / best
        assert abs(float(row["above_best"]) - above) <= 1e-12 * max(above, 1e-3)
table = open("table.txt").read()
assert open("cmp/compare.md").read() in table
for title, unit in (("global iterations until", lambda r: float(r["iteration"])),
                    ("megabytes sent", lambda r: (int(r["bytes_up"]) + int(r["bytes_down"])) / 1e6)):
    part = table.split("\n" + title)[1]
    for name, trace in traces.items():
        cells = [c.strip() for c in re.search(rf"^\| {name} +\|(.*)\|$", part, re.M).group(1).split("|")]
        for cell, accuracy in zip(cells, (0.5, 1e-2, 0)):
            reached = [r for r in trace if (float(r["consensus_objective"]) - best) / best <= accuracy]
            assert cell == ("%.4g" % unit(reached[0]) if reached else "-"), (title, name, cell)
PYTHON

# ---- other metrics; names that meet; the spec's own algorithm ----
mkdir -p other
sed 's|data/|../data/|; s|^run:.*|algorithm: fedprox\nbaseline: {rho: 3, rule: geometric}\nrun: {iterations: 5}|' spec.yaml >other/spec.yaml
expect 0 compare other/spec.yaml other/spec.yaml run-out/ --metric relative_error --against rounds --out two --quiet
[ ! -s stdout.txt ] || fail "--quiet prints"
[ ! -s stderr.txt ] || fail "--quiet says something"
[ "$(cut -d, -f1,2 two/compare.csv | sort -u | tr '\n' ' ')" = "run,algorithm run-out,fedavg spec-fedprox,fedprox spec-fedprox-2,fedprox " ] ||
    fail "names: $(cut -d, -f1,2 two/compare.csv | sort -u)"
head -n 1 two/compare.csv | grep -q above_best && fail "above_best of an error"
grep -q "edge rounds until relative_error is at most" two/compare.md || fail "no table of rounds"
grep -q '"rho":	3$' two/spec-fedprox/summary.json || fail "baseline.rho is not in force"

# ---- the plot ----
if command -v gnuplot >/dev/null; then
    expect 0 compare cmp/spec-hfsad cmp/spec-fedavg run-out --plot --against bytes --out drawn
    [ "$(names drawn)" = "compare.csv compare.md compare.png compare.svg " ] || fail "plots: $(names drawn)"
    [ "$(head -c 4 drawn/compare.png | tail -c 3)" = PNG ] || fail "no PNG"
    grep -q "spec-fedavg" drawn/compare.svg || fail "the SVG does not name its curves"
    grep -q "megabytes" drawn/compare.svg || fail "the SVG does not say what lies below"
    expect_line 2 compare cmp/spec-* cmp/spec-* run-out --plot --out seven
    says "a plot can show at most 6"
    mkdir empty
    PATH=$work/empty expect 2 compare spec.yaml --plot --out plotless
    says "omit --plot"
    [ ! -e seven ] && [ ! -e plotless ] || fail "written although there is no plot"
fi

# ---- a run that diverges is shown, and the status says so ----
sed 's/kind: phase-retrieval, box: 5/kind: squared/' spec.yaml >squared.yaml
expect 1 compare squared.yaml --algorithms fedavg,hfsad --set baseline.step=1e9 --set baseline.rule=constant --set run.iterations=100 --out wild
says "smaller baseline.step"
[ -e wild/compare.csv ] && grep -q '"diverged"' wild/squared-fedavg/summary.json || fail "a run that diverged is not shown"

# ---- wrong input: one line, status 2, nothing written ----
refused() {
    local words=$1
    shift
    expect_line 2 "$@" --out refused
    says "$words"
    [ ! -e refused ] || fail "written: hfsad $*"
}
printf 'data: nothing.csv\nloss: {kind: squared}\n' >missing.yaml
mkdir -p hollow running cut
sed 's/"stopped":.*/"stopped": "running",/' run-out/summary.json >running/summary.json
cp run-out/trace.csv running
cp run-out/summary.json cut
head -c 700 run-out/trace.csv >cut/trace.csv
refused "did you mean fedavg" compare spec.yaml --algorithms hfsad,fedavgg
refused "unknown algorithm ''" compare spec.yaml --algorithms hfsad,
refused "nothing.csv" compare spec.yaml missing.yaml
refused "no-such.yaml" compare no-such.yaml
refused "hollow/summary.json" compare spec.yaml hollow
refused "has not ended" compare spec.yaml running
refused "cut/trace.csv:" compare spec.yaml cut
refused "relative_error?" compare spec.yaml --metric relative_eror
refused "is not a number" compare spec.yaml --accuracies 0.1,x
refused "is missing" compare
refused "run.iteration" compare spec.yaml --set run.iteration=3
refused "algorithm" run spec.yaml --set algorithm=fedsgd
refused "baseline.step" run spec.yaml --set algorithm=fedavg --set baseline.step=0
refused "baseline.decay" run spec.yaml --set algorithm=fedavg --set baseline.decay=1.5
refused "baseline.rho" run spec.yaml --set algorithm=fedprox --set baseline.rho=-1
cp -r cmp before
expect_line 2 compare spec.yaml cmp/spec-hfsad --set algorithm=hfsad --out cmp
says "give another --out"
diff -r cmp before >/dev/null || fail "a folder that was given has changed"
finish
