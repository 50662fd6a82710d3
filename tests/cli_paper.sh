#!/usr/bin/env bash
# hfsad paper from end to end: its files recomputed from single trials and from hfsad run, threads, plots, refusals,
# Ctrl-C. Needs HFSAD, the path of the program.
set -u
: "${HFSAD:?the path of the program}"
HFSAD=$(realpath "$HFSAD")
export HFSAD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

failures=0
fail() {
    echo "FAIL: $*" >&2
    failures=$((failures + 1))
}

# expect STATUS ARGUMENTS…: runs the program; its output is in stdout.txt and stderr.txt.
expect() {
    local wanted=$1 status
    shift
    "$HFSAD" "$@" >stdout.txt 2>stderr.txt </dev/null
    status=$?
    [ "$status" = "$wanted" ] || { fail "exit status $status instead of $wanted: hfsad $*"; cat stderr.txt >&2; }
}
says() { grep -q -- "$1" stderr.txt || { fail "stderr does not say '$1':"; cat stderr.txt >&2; }; }
names() { find "$1" -mindepth 1 -printf '%f\n' | sort | tr '\n' ' '; }

# ---- the files, and that they do not depend on the threads ----

expect 0 paper --trials 4 --iterations 7 --seed 3 --no-plot --threads 1 --out one
[ "$(names one)" = "report.md scenario-1-snr-minus-20.csv scenario-1.csv scenario-2-snr-minus-20.csv scenario-2.csv \
scenario-3-snr-minus-20.csv scenario-3.csv " ] || fail "files: $(names one)"
cp stdout.txt report.txt
expect 0 paper --trials 4 --iterations 7 --seed 3 --no-plot --threads 3 --out three
diff -r one three >/dev/null || fail "3 threads gave other bytes than 1"
head -c "$(wc -c <one/report.md)" report.txt | cmp -s - one/report.md || fail "stdout is not report.md"
awk 'length > 100 { exit 1 }' report.txt || fail "the report is wider than 100 columns"
for words in "ten passes" "spectral" "SNR -20 dB" "at +20 dB" "at -20 dB" "faster than" "K_m = 20" "p_c from 0.3"; do
    grep -q -- "$words" one/report.md || fail "the report does not say '$words'"
done

# ---- the statistics, from single trials ----

for seed in 3 4 5 6; do
    expect 0 paper --trials 1 --iterations 7 --seed "$seed" --no-plot --quiet --out "trial-$seed"
    [ ! -s stdout.txt ] && [ ! -s stderr.txt ] || fail "--quiet is not quiet"
done
cat >spread.py <<'PYTHON'
import csv, glob, os, statistics


def quantile(values, p):
    values = sorted(values)
    place = p * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


series = {
    "1": ["hfsad K_m=10"] + ["sub-gradient " + r for r in ("geometric", "power", "Polyak", "constant")],
    "2": [f"hfsad K_m={k}" for k in (1, 5, 10, 20)],
    "3": [f"hfsad p_c={p}" for p in ("0.3", "0.5", "0.7", "1")],
}
for path in sorted(glob.glob("one/*.csv")):
    name = os.path.basename(path)
    with open(path) as f:
        assert f.readline() == "iteration,series,relative_error,median,lower_quartile,upper_quartile\n"
    rows = list(csv.reader(open(path)))[1:]
    expected = [(str(i), s) for s in series[name[9]] for i in range(8)]
    assert [(r[0], r[1]) for r in rows] == expected, name
    singles = [list(csv.reader(open(f"trial-{seed}/{name}")))[1:] for seed in (3, 4, 5, 6)]
    starts = set()
    for i, row in enumerate(rows):
        values = [float(s[i][2]) for s in singles]
        for s in singles:
            assert s[i][2] == s[i][3] == s[i][4] == s[i][5], s[i]  # one trial: all the same
        wanted = [statistics.fmean(values), quantile(values, 0.5), quantile(values, 0.25), quantile(values, 0.75)]
        for have, want in zip(map(float, row[2:]), wanted):
            assert abs(have - want) <= 1e-13 * want, (name, row, wanted)
        if row[0] == "0":
            starts.add(row[2])
    assert len(starts) == 1, "the methods start apart"
PYTHON
python3 spread.py || fail "the statistics are not those of the trials"
grep -h "hfsad K_m=10" one/scenario-1.csv >a && grep -h "hfsad K_m=10" one/scenario-2.csv >b
cmp -s a b || fail "K_m=10 differs between scenarios 1 and 2"

# ---- a trial is a data set and a run of its own ----

for snr in 20 -20; do
    file=trial-5/scenario-2.csv
    [ "$snr" = 20 ] || file=trial-5/scenario-2-snr-minus-20.csv
    expect 0 generate phase-retrieval --seed 5 --snr-db "$snr" --out "data$snr"
    expect 0 run "data$snr/spec.yaml" --set run.iterations=7 --out "run$snr" --quiet
    column=$(head -1 "run$snr/trace.csv" | tr ',' '\n' | grep -n '^relative_error$' | cut -d: -f1)
    tail -n +2 "run$snr/trace.csv" | cut -d, -f"$column" >a
    grep "hfsad K_m=10" "$file" | cut -d, -f3 >b
    cmp -s a b || fail "at $snr dB hfsad run gives other errors than hfsad paper"
done

# ---- choices ----

expect 0 paper --scenario 2 --one-snr --trials 1 --iterations 2 --no-plot --out second
[ "$(names second)" = "report.md scenario-2.csv " ] || fail "files of --scenario 2 --one-snr: $(names second)"
expect 0 paper --scenario 3 --snr-db -12.5 --start zero --trials 1 --iterations 1 --no-plot --out third
[ "$(names third)" = "report.md scenario-3-snr-plus-12.5.csv scenario-3.csv " ] || fail "files: $(names third)"
grep -q "^0,hfsad p_c=1,1," third/scenario-3.csv || fail "a start of zero has not the error 1"
expect 0 paper --tune --trials 1 --iterations 4 --one-snr
grep -q "Polyak" stdout.txt || fail "--tune prints no rules"
[ ! -e paper-out ] || fail "--tune wrote files"
expect 0 paper --help
grep -q -- "--scenario" stdout.txt || fail "the help does not list --scenario"

# ---- plots ----

mkdir empty
if command -v gnuplot >/dev/null; then
    expect 0 paper --scenario 3 --trials 2 --iterations 12 --out plots
    [ "$(names plots)" = "report.md scenario-3-snr-minus-20.csv scenario-3-snr-minus-20.png \
scenario-3-snr-minus-20.svg scenario-3.csv scenario-3.png scenario-3.svg " ] || fail "files: $(names plots)"
    [ "$(head -c 4 plots/scenario-3.png | tail -c 3)" = PNG ] || fail "scenario-3.png is no PNG"
    python3 -c 'import xml.dom.minidom as x; x.parse("plots/scenario-3.svg")' || fail "scenario-3.svg is no XML"
fi
PATH=$work/empty expect 2 paper --trials 1 --iterations 1 --out plotless
says "gnuplot-nox"
[ ! -e plotless ] || fail "written without gnuplot"

# ---- refusals: exit status 2, one line, nothing written ----

refused() {
    local message=$1
    shift
    expect 2 paper --no-plot --out refused "$@"
    says "$message"
    [ "$(wc -l <stderr.txt)" = 1 ] || fail "not one line: $*"
    [ ! -e refused ] || { fail "written although refused: $*"; rm -rf refused; }
}
refused "--scenario" --scenario 4
refused "--trials" --trials 0
refused "--iterations" --iterations 0
refused "--snr-db" --snr-db nan
refused "--seed" --seed x
refused "--start" --start spectrum
refused "--threads" --threads -1
refused "trails" --trails 3
refused "unexpected" word
touch file
refused "file" --out file

# ---- a disk that is full: exit status 1 ----

(
    failures=0
    ulimit -f 1
    expect 1 paper --trials 1 --iterations 30 --no-plot --out one
    exit "$failures"
) || fail "a full disk"
diff -r one three >/dev/null || fail "a full disk changed earlier output"

# ---- Ctrl-C: nothing written, and said so ----

python3 - <<'PYTHON' || fail "interrupts"
import os, signal, subprocess

for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
    p = subprocess.Popen(
        [os.environ["HFSAD"], "paper", "--trials", "2000", "--no-plot", "--out", "interrupted"],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        assert "trial" in p.stderr.readline()
        p.send_signal(number)
        out, err = p.communicate(timeout=60)
    finally:
        p.kill()
    assert p.returncode == status, (p.returncode, err)
    assert "nothing was written" in err.splitlines()[-1], err
    assert out == "" and not os.path.exists("interrupted")
PYTHON

[ "$failures" = 0 ] && echo "all passed"
exit "$((failures > 0))"
