#!/usr/bin/env bash
# hfsad generate from end to end: its files against the paper's formulas, refusals, full disks, and that the command
# it suggests works. Needs HFSAD, the path of the program.
# shellcheck source=tests/shell.sh
. "$(dirname "$0")/shell.sh"

# ---- the files ----

expect 0 generate phase-retrieval --edges 3 --clients 20 --features 10 --snr-db 5 --seed 4 --out small
[ "$(names small)" = "data.csv spec.yaml truth.csv " ] || fail "files: $(names small)"
python3 - <<'PYTHON' || fail "small/data.csv is not what the paper says"
import csv, math

rows = list(csv.reader(open("small/data.csv")))
truth = [float(line) for line in open("small/truth.csv")]
assert rows[0] == ["edge", "client", "y"] + [f"x{m}" for m in range(1, 11)], rows[0]
rows = rows[1:]
assert [r[0] for r in rows] == [f"edge{1 + i // 20}" for i in range(60)]
assert [r[1] for r in rows] == [f"client{1 + i}" for i in range(60)]
assert len(truth) == 10 and sum(t != 0 for t in truth) == 3
for l in range(3):
    kept = {tuple(float(v) != 0 for v in r[3:]) for r in rows[20 * l:20 * l + 20]}
    assert len(kept) == 1 and sum(kept.pop()) == 8
signal = [sum(float(v) * t for v, t in zip(r[3:], truth)) ** 2 for r in rows]
noise = [float(r[2]) - s for r, s in zip(rows, signal)]
assert min(noise) > -1e-12
scale = math.sqrt(sum(signal) / (60 * 21.8 * 10 ** 0.5))  # 1/lambda_1
assert 0.1 < sum(n < scale * math.log(2) for n in noise) / 60 < 0.8  # the median of the usual noise
for text in (v for r in rows for v in r[2:]):
    assert float(text) == float("%.17g" % float(text)) and "%.17g" % float(text) == text, text
PYTHON

expect 0 generate phase-retrieval --edges 3 --clients 20 --features 10 --snr-db 5 --seed 4 --out again
cmp -s small/data.csv again/data.csv && cmp -s small/spec.yaml again/spec.yaml || fail "the same seed gave other bytes"
expect 0 generate phase-retrieval --edges 3 --clients 20 --features 10 --snr-db 5 --seed 5 --out other
cmp -s small/data.csv other/data.csv && fail "another seed gave the same bytes"

# ---- the next command, as printed, from a folder with a difficult name ----

expect 0 generate phase-retrieval --edges 2 --clients 5 --features 4 --out "a 'quoted' name"
next=$(sed -n 's/^next: hfsad/hfsad/p' stdout.txt)
[ -n "$next" ] || fail "no next command"
hfsad() { "$HFSAD" "$@" --quiet --set run.iterations=3; }
eval "$next" || fail "the suggested command failed: $next"
[ "$(wc -l <"a 'quoted' name/run/trace.csv")" = 5 ] || fail "the suggested run left no trace of 4 rows"
head -1 "a 'quoted' name/run/trace.csv" | grep -q relative_error || fail "the truth is not used"

# ---- refusals: exit status 2, nothing written ----

cp small/data.csv before.csv
expect_line 2 generate phase-retrieval --out small --seed 9
says "--force"
cmp -s small/data.csv before.csv || fail "a file was replaced without --force"
expect 0 generate phase-retrieval --out small --seed 9 --force
cmp -s small/data.csv before.csv && fail "--force replaced nothing"
mkdir partly && touch partly/spec.yaml
expect_line 2 generate phase-retrieval --out partly
[ "$(names partly)" = "spec.yaml " ] || fail "files beside one that was kept: $(names partly)"

refused() {
    local message=$1
    shift
    expect_line 2 generate "$@" --out refused
    says "$message"
    [ ! -e refused ] || { fail "written although refused: $*"; rm -rf refused; }
}
refused "known: phase-retrieval" phase-reterival
refused "known: phase-retrieval" quantile
refused "kind of data"
refused "--edges" phase-retrieval --edges 0
refused "--clients" phase-retrieval --clients 1.5
refused "--features" phase-retrieval --features -3
refused "--snr-db" phase-retrieval --snr-db nan
refused "--snr-db" phase-retrieval --snr-db inf
refused "--keep-x" phase-retrieval --keep-x 0
refused "--keep-w" phase-retrieval --keep-w 1.2
refused "--seed" phase-retrieval --seed -1
refused "from 0 to 9007199254740992, not '9007199254740993'" phase-retrieval --seed 9007199254740993
refused "from 0 to 9007199254740992," phase-retrieval --seed 99999999999999999999
refused "clients" phase-retrieval --edges 100000 --clients 100000
refused "800000000000000 bytes" phase-retrieval --edges 10000 --clients 10000 --features 1000000
refused "snr" phase-retrieval --snr 20
expect_line 2 generate phase-retrieval
says "--out"
touch file
expect_line 2 generate phase-retrieval --out file/below
expect 0 generate --help
grep -q -- "--keep-x" stdout.txt || fail "the help does not list --keep-x"

# ---- a disk that is full: exit status 1, earlier files intact ----

cp -r small intact
(
    failures=0
    ulimit -f 8
    expect_line 1 generate phase-retrieval --features 200 --out small --force
    expect_line 1 generate phase-retrieval --features 200 --out new/folder
    exit "$failures"
) || fail "a full disk"
for name in data.csv truth.csv spec.yaml; do
    cmp -s "small/$name" "intact/$name" || fail "a full disk changed $name"
done
[ "$(names small)" = "$(names intact)" ] || fail "a full disk left $(names small)"
[ ! -e new ] || fail "a full disk left a new folder"

# ---- Ctrl-C while the files are written: nothing is left, not even the folder ----

python3 - <<'PYTHON' || fail "interrupts"
import os, signal, subprocess

for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
    p = subprocess.Popen(
        [os.environ["HFSAD"], "generate", "phase-retrieval", "--features", "2000", "--clients", "400",
         "--out", "interrupted/run"],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        while p.poll() is None and not os.path.exists("interrupted/run"):
            pass
        p.send_signal(number)
        out, err = p.communicate(timeout=120)
    finally:
        p.kill()
    assert p.returncode == status, (number, p.returncode, err)
    assert err.splitlines() == ["hfsad: interrupted; nothing was written"], err
    assert out == "" and not os.path.exists("interrupted")
PYTHON

finish
