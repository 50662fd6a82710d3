#!/usr/bin/env bash
# hfsad paper from end to end: its files recomputed from single trials and from hfsad run, threads, plots, refusals,
# Ctrl-C. Needs HFSAD, the path of the program.
# shellcheck source=tests/shell.sh
. "$(dirname "$0")/shell.sh"

# ---- the files, and that they do not depend on the threads ----

expect 0 paper --trials 4 --iterations 7 --seed 3 --no-plot --threads 1 --out one
[ "$(names one)" = "report.md scenario-1-snr-minus-20.csv scenario-1.csv scenario-2-snr-minus-20.csv scenario-2.csv \
scenario-3-snr-minus-20.csv scenario-3.csv " ] || fail "files: $(names one)"
cp stdout.txt report.txt
expect 0 paper --trials 4 --iterations 7 --seed 3 --no-plot --threads 3 --out three
diff -r one three >/dev/null || fail "3 threads gave other bytes than 1"
head -c "$(wc -c <one/report.md)" report.txt | cmp -s - one/report.md || fail "stdout is not report.md"
awk 'length > 100 { exit 1 }' report.txt || fail "the report is wider than 100 columns"
for words in "ten passes" "spectral" "SNR -20 dB" "at +20 dB" "at -20 dB" "faster than" "K_m = 20" "p_c from 0.3" \
    "claims are about the paper's constants"; do
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
    "1": ["hfsad K_m=10"] + ["sub-gradient " + r for r in ("geometric", "power", "Polyak", "constant")]
    + ["hfsad tuned"],
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
    starts = {}
    for i, row in enumerate(rows):
        values = [float(s[i][2]) for s in singles]
        for s in singles:
            assert s[i][2] == s[i][3] == s[i][4] == s[i][5], s[i]  # one trial: all the same
        wanted = [statistics.fmean(values), quantile(values, 0.5), quantile(values, 0.25), quantile(values, 0.75)]
        for have, want in zip(map(float, row[2:]), wanted):
            assert abs(have - want) <= 1e-13 * want, (name, row, wanted)
        if row[0] == "0":
            starts.setdefault(row[2], set()).add(row[1])
    tuned = {"hfsad tuned"} & set(series[name[9]])  # begins from a start of its own
    apart = [set(series[name[9]]) - tuned] + ([tuned] if tuned else [])
    assert sorted(map(sorted, starts.values())) == sorted(map(sorted, apart)), (name, starts)
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
    # the tuned series: the same spec without its preset, with the paper's priors
    grep -v '^preset' "data$snr/spec.yaml" >"data$snr/tuned.yaml"
    expect 0 run "data$snr/tuned.yaml" --set run.iterations=7 --out "tuned$snr" --quiet \
        --set 'prior={edge: {penalty: scad, lambda: 0.1, gamma: 2.4}, cloud: {penalty: scad, lambda: 0.1, gamma: 2.4}}'
    tail -n +2 "tuned$snr/trace.csv" | cut -d, -f"$column" >a
    grep "hfsad tuned" "${file/scenario-2/scenario-1}" | cut -d, -f3 >b
    cmp -s a b || fail "at $snr dB hfsad run with nothing set gives other errors than the series hfsad tuned"
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
touch file
PATH=$work/empty expect 2 paper --trials 1 --iterations 1 --out file # the folder is looked at first
says "output folder"

# ---- refusals: exit status 2, one line, nothing written ----

refused() {
    local message=$1
    shift
    expect_line 2 paper --no-plot --out refused "$@"
    says "$message"
    [ ! -e refused ] || { fail "written although refused: $*"; rm -rf refused; }
}
refused "--scenario" --scenario 4
refused "--trials" --trials 0
refused "--iterations" --iterations 0
refused "--snr-db" --snr-db nan
refused "--seed" --seed x
refused "from 0 to 4503599627370496, not '4503599627370497'" --seed 4503599627370497
refused "--start" --start spectrum
refused "--threads" --threads -1
refused "trails" --trails 3
refused "unexpected" word
refused "file" --out file

# ---- a disk that is full, while tables or plots are written: exit status 1, the folder as it was ----

(
    failures=0
    ulimit -f 1
    expect_line 1 paper --quiet --trials 1 --iterations 30 --no-plot --out one
    expect_line 1 paper --quiet --trials 1 --iterations 30 --no-plot --out new/folder
    exit "$failures"
) || fail "a full disk"
diff -r one three >/dev/null || fail "a full disk changed earlier output"
[ ! -e new ] || fail "a full disk left a new folder"
if command -v gnuplot >/dev/null; then
    cp -r plots intact
    (
        failures=0
        ulimit -f 24 # kilobytes or half of them: room for the tables and the scripts, not for a PNG
        expect_line 1 paper --quiet --scenario 3 --trials 2 --iterations 12 --seed 9 --out plots
        says "plot"
        exit "$failures"
    ) || fail "a disk that is too full for the plots"
    diff -r plots intact >/dev/null || fail "a disk that is too full for the plots changed earlier output"
fi

# ---- Ctrl-C: nothing written, and said so ----

python3 - <<'PYTHON' || fail "interrupts"
import os, signal, subprocess

for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
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

# ---- the same while a plot is drawn: a gnuplot that waits at its third call (the first is the check that it is there)
# until the signal has been sent, to the program alone or, as a terminal does, to its whole group ----

if command -v gnuplot >/dev/null; then
    mkdir slow
    GNUPLOT=$(command -v gnuplot)
    export GNUPLOT
    cat >slow/gnuplot <<'SCRIPT'
#!/usr/bin/env bash
echo call >>"$CALLS"
if [ "$(wc -l <"$CALLS")" = 3 ]; then
    echo waiting >"$READY"
    read -r <"$GO"
fi
exec "$GNUPLOT" "$@"
SCRIPT
    chmod +x slow/gnuplot
    python3 - <<'PYTHON' || fail "interrupts of a plot"
import os, signal, subprocess

os.mkfifo("ready")
os.mkfifo("go")
work = os.getcwd()
environment = dict(os.environ, CALLS=work + "/calls", READY=work + "/ready", GO=work + "/go",
                   PATH=work + "/slow:" + os.environ["PATH"])


def contents(folder):
    return {name: open(os.path.join(folder, name), "rb").read() for name in os.listdir(folder)}


before = contents("plots")
for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
    for to_group in (False, True):
        for out in ("plots", "interrupted/plots"):
            if os.path.exists("calls"):
                os.remove("calls")
            p = subprocess.Popen(
                [os.environ["HFSAD"], "paper", "--quiet", "--scenario", "3", "--trials", "2", "--iterations", "12",
                 "--seed", "9", "--out", out],
                env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
            try:
                with open("ready") as f:
                    f.readline()
                assert os.path.isdir(out)
                (os.killpg if to_group else os.kill)(p.pid, number)
                with open("go", "w") as f:
                    f.write("go\n")
                text, err = p.communicate(timeout=60)
            finally:
                p.kill()
            case = (number, to_group, out)
            assert p.returncode == status, (case, p.returncode, err)
            assert err.count("\n") == 1 and "interrupted" in err, (case, err)
            assert text == "", case
            assert contents("plots") == before, (case, os.listdir("plots"))
            assert not os.path.exists("interrupted"), case
PYTHON
fi

finish
