#!/usr/bin/env bash
# The history of runs: what is recorded, two processes at once, a killed run, names, tags, deletion, exports, compare
# by number; files that are damaged, of another version, of an older version, or cannot be written. Needs HFSAD.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
export HFSAD_HISTORY=$work/h.db
# field ID NAME: of hfsad show --json, or of its summary
field() { "$HFSAD" show "$1" --json | python3 -c "
import json, sys
r = json.load(sys.stdin)
for k in '$2'.split('/'): r = r[k]
print(r)"; }
# is ID NAME VALUE
is() { local v; v=$(field "$1" "$2"); [ "$v" = "$3" ] || fail "run $1: $2 is '$v' instead of '$3'"; }
# sql TEXT: of the file, by another reader
sql() { python3 -c "
import sqlite3, sys
for row in sqlite3.connect('${2:-h.db}').execute(sys.argv[1]): print(*row, sep='|')" "$1"; }

expect 0 generate quantile --edges 2 --clients 3 --features 4 --rows 20 --out . --quiet
echo "-- a run"
expect_line 2 runs
says "there is no history .* yet"
expect 0 run spec.yaml --quiet --out out --set run.seed=7
is last kind run
is last status done
is last seed 7
is last given/run.seed 7
is last out "$work/out"
is last out_exists True
is last spec_hash "$(sha256sum spec.yaml | cut -d' ' -f1)"
is last data_hash "$(sha256sum data.csv | cut -d' ' -f1)"
is last summary/stopped "$(python3 -c 'import json; print(json.load(open("out/summary.json"))["stopped"])')"
"$HFSAD" show 1 --spec | cmp -s - spec.yaml || fail "the spec is another"
# the trace, number by number
"$HFSAD" show 1 --trace >trace.csv
python3 - <<'P' || fail "the trace of the history is not that of the folder"
import csv
a, b = (list(csv.DictReader(open(f))) for f in ("trace.csv", "out/trace.csv"))
assert len(a) == len(b) > 3
for x, y in zip(a, b):
    for k in x:
        if k in y and k != "seconds":
            p, q = float(x[k]), float(y[k] or "nan")
            assert p == q or (p != p and (q != q or q == float("inf"))), (k, p, q)
P
[ "$(sql 'SELECT count(*) > 3 AND max(nonzero) > 0 FROM model')" = 1 ] || fail "no models over time"
expect 0 run spec.yaml --quiet --out silent --no-history
HFSAD_HISTORY=none "$HFSAD" run spec.yaml --quiet --out silent || fail "HFSAD_HISTORY=none"
[ "$(sql 'SELECT count(*) FROM run')" = 1 ] || fail "a run was recorded that was not to be"
env -u HFSAD_HISTORY XDG_DATA_HOME="$work/xdg" "$HFSAD" run spec.yaml --quiet --out silent
[ -s xdg/hfsad/runs.db ] || fail "XDG_DATA_HOME is not honoured"
env -u HFSAD_HISTORY -u XDG_DATA_HOME HOME="$work/home" "$HFSAD" run spec.yaml --quiet --out silent
[ -s home/.local/share/hfsad/runs.db ] || fail "the history is not below HOME"

echo "-- ways to end"
expect 0 run spec.yaml --quiet --out out2 --set loss.tau=0.9
"$HFSAD" run spec.yaml --quiet --out slow --set algorithm=hfsad --set run.iterations=10000000 &
pid=$!
running() { [ "$(sql "SELECT count(*) FROM run WHERE pid = $pid AND rows > 0")" = 1 ]; }
for _ in $(seq 600); do running && break; sleep 0.05; done
is last status running
kill -9 $pid
wait $pid 2>/dev/null
is last status killed
"$HFSAD" runs --status killed | grep -q killed || fail "runs --status killed"
"$HFSAD" run spec.yaml --quiet --out slow --set algorithm=hfsad --set run.iterations=10000000 2>/dev/null &
pid=$!
for _ in $(seq 600); do running && break; sleep 0.05; done
kill -TERM $pid
wait $pid
is last status interrupted
printf 'edge,client,y,x1\ne,a,1,1\ne,b,1,1\n' >two.csv
echo 1e200 >start.txt
expect_line 1 run spec.yaml --quiet --out wild --set data=two.csv --set truth=none --set 'loss={kind: squared}' --set run.start=start.txt
is last status diverged

echo "-- path, compare, up"
expect 0 path spec.yaml --lambdas 3 --no-plot --quiet --out path
is last kind path
is last rows 3
[ "$(field last settings/schedule.client.c)" != auto ] || fail "the settings of a path are not resolved"
expect 0 compare 1 2 --out cmp
grep -q '1-' cmp/compare.csv && grep -q '2-' cmp/compare.csv || fail "compare by number: $(head -3 cmp/compare.csv)"
rm -rf out # the folder may be gone
expect 0 compare 1 last --out cmp --quiet
is 1 out_exists False
expect_line 2 compare 1 99 --out cmp
says "has no run '99'"
expect 0 compare spec.yaml --algorithms hfsad,fedavg --set run.iterations=5 --quiet --out cmp2
is last kind compare
expect 0 up spec.yaml --quiet --out federated --set run.iterations=20
is last kind up
is last status done
is last settings/run.seed 1
[ "$(field last settings/schedule.client.c)" != auto ] || fail "the settings of up are not resolved"
is last federation 1
[ "$(sql "SELECT count(*) FROM node WHERE run = (SELECT max(id) FROM run)")" = 9 ] ||
    fail "not nine nodes: $(sql 'SELECT path, state FROM node')"
[ "$(field last rows)" = "$(($(wc -l <federated/trace.csv) - 1))" ] || fail "rows of up: $(field last rows)"

echo "-- names, tags, lists"
expect 0 runs name 1 'first "run", with all'
expect 0 runs tag 1 base good
expect 0 runs untag 1 good
[ "$("$HFSAD" runs --tag base | wc -l)" = 2 ] || fail "runs --tag"
[ "$("$HFSAD" runs --match 'first "run"' | wc -l)" = 2 ] || fail "runs --match"
"$HFSAD" runs --sort objective --rising --json | python3 -c "
import json, sys
v = [r['objective'] for r in json.load(sys.stdin) if r['objective'] is not None]
assert v == sorted(v) and len(v) > 5" || fail "runs --sort"
expect_line 2 runs --sort size
says "unknown column"
expect_line 2 runs name 99 x
says "has no run '99'"
expect_line 2 runs remove 1
expect 0 runs export --out csv
python3 - <<'P' || fail "the CSV of an export"
import csv
runs, rows = (list(csv.DictReader(open(f"csv/{n}.csv"))) for n in ("runs", "traces"))
assert any(r["name"] == 'first "run", with all' and r["tags"] == "base" for r in runs)
assert sum(r["run"] == "1" for r in rows) > 3
P
expect 0 runs export --format mlflow --out 'ml runs: #1'
# as MLflow's FileStore reads it: experiments/0/meta.yaml, a folder for each run, a file for each metric, parameter and tag
/usr/bin/python3 - 'ml runs: #1' "$work" <<'P' || fail "MLflow's layout: $(find ml* | head -30)"
import os, pathlib, re, sqlite3, sys, urllib.parse
import yaml
root, db = pathlib.Path(sys.argv[1]).resolve(), sqlite3.connect("h.db")
place = lambda uri: pathlib.Path(urllib.parse.unquote(urllib.parse.urlparse(uri).path))
whole = yaml.safe_load((root / "0/meta.yaml").read_text())
assert whole["experiment_id"] == "0" and whole["name"] == "Default" and whole["lifecycle_stage"] == "active", whole
assert place(whole["artifact_location"]) == root / "0" and 0 < whole["creation_time"] <= whole["last_update_time"]
folders = [f for f in (root / "0").iterdir() if f.is_dir()]
assert len(folders) == db.execute("SELECT count(*) FROM run").fetchone()[0] > 5
names = set()
for folder in folders:
    meta = yaml.safe_load((folder / "meta.yaml").read_text())
    assert {"run_uuid", "run_id", "run_name", "experiment_id", "user_id", "status", "start_time", "end_time", "lifecycle_stage", "artifact_uri", "tags",
            "source_type", "source_name", "source_version", "entry_point_name", "deleted_time"} == set(meta), meta
    assert meta["run_id"] == meta["run_uuid"] == folder.name and re.fullmatch(r"[0-9a-f]{32}", folder.name), meta
    assert meta["experiment_id"] == "0" and meta["status"] in (1, 2, 3, 4, 5) and type(meta["start_time"]) is int and meta["tags"] == [], meta
    assert meta["end_time"] is None or meta["end_time"] >= meta["start_time"], meta
    assert place(meta["artifact_uri"]) == folder / "artifacts" and (folder / "artifacts/spec.yaml").is_file()
    read = {part: {f.name: f.read_text() for f in (folder / part).iterdir()} for part in ("metrics", "params", "tags")}
    for name in [n for part in read.values() for n in part]:
        assert re.fullmatch(r"[/\w.\- :]+", name) and os.path.normpath(name) == name, name
    for name, text in read["metrics"].items():
        assert text.endswith("\n") and text.strip(), name
        for line in text.splitlines():
            at, value, step = line.split(" ")
            int(at), float(value), int(step)
    assert read["tags"]["mlflow.runName"] == meta["run_name"]
    names.add(meta["run_name"])
    if meta["run_name"] == 'first "run", with all':
        assert meta["status"] == 3 and read["params"]["loss.tau"] == "0.5" and read["tags"]["tag.base"] == "true"
        want = db.execute("SELECT iteration, objective FROM trace WHERE run = 1 ORDER BY iteration").fetchall()
        assert [(int(s), float(v)) for _, v, s in map(str.split, read["metrics"]["objective"].splitlines())] == want and len(want) > 3
assert 'first "run", with all' in names
states = {yaml.safe_load((f / "meta.yaml").read_text())["status"] for f in folders}
assert states == {3, 4, 5}, states  # done, diverged, killed and interrupted
P
before=$(sql 'SELECT count(*) FROM run')
expect_line 2 runs delete 1 99
expect 0 runs delete 1
[ "$(sql 'SELECT count(*) FROM run'):$(sql 'SELECT count(*) FROM trace WHERE run = 1')" = "$((before - 1)):0" ] || fail "delete"

echo "-- eight at once, on a new file"
export HFSAD_HISTORY=$work/many.db
for i in 1 2 3 4 5 6 7 8; do "$HFSAD" run spec.yaml --quiet --out "many$i" 2>>many.txt & done
wait
[ "$(sql "SELECT count(*), count(DISTINCT id), sum(status = 'done') FROM run" many.db)" = "8|8|8" ] || fail "eight at once: $(sql 'SELECT id, status FROM run' many.db; cat many.txt)"
[ -s many.txt ] && fail "eight at once: $(cat many.txt)"
[ "$(sql 'PRAGMA integrity_check' many.db)" = ok ] || fail "integrity"

echo "-- a million rows"
python3 - <<'P'
import sqlite3
d = sqlite3.connect("many.db")
d.execute("WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 1001000) INSERT INTO trace (run, iteration, objective) SELECT 1, i, 1.0 / i FROM n")
d.commit()
P
expect 0 show 1
timeout 20 "$HFSAD" dash --listen 127.0.0.1:0 >address.txt &
dash=$!
for _ in $(seq 200); do [ -s address.txt ] && break; sleep 0.05; done
python3 - "$(cat address.txt)" <<'P' || fail "the trace of a million rows"
import json, sys, urllib.request
t = json.load(urllib.request.urlopen(sys.argv[1] + "api/trace/1"))
assert len(t["iteration"]) == 2000 and t["iteration"][0] == 0 and t["iteration"][-1] == 1001000, len(t["iteration"])
P
kill $dash

echo "-- a socket that is handed over: its own address counts"
python3 - "$HFSAD" <<'P' || fail "a socket beyond this machine, without keys"
import os, socket, subprocess, sys
def dash(host):
    s = socket.create_server((host, 0))
    words = ["sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" dash', sys.argv[1]]
    def give():  # it may be number 3 already, and closed by exec then
        os.dup2(s.fileno(), 3)
        os.set_inheritable(3, True)
    return subprocess.Popen(words, preexec_fn=give, close_fds=False, stdout=-1, stderr=-1, text=True), s.getsockname()[1]
process, port = dash("127.0.0.1")
line = process.stdout.readline()
process.kill()
assert line == "http://127.0.0.1:%d/\n" % port, line
process, port = dash("0.0.0.0")
said = process.communicate(timeout=20)[1]
assert process.returncode == 2 and "beyond this machine" in said, said
P

echo "-- bad files"
# still runs, with one line
refused() { # WORDS
    expect 0 run spec.yaml --quiet --out bad
    [ "$(wc -l <stderr.txt)" = 1 ] || fail "not one line: $(cat stderr.txt)"
    says "$1"
    says "the run itself is not affected"
    expect_line 2 runs
    says "$1"
}
export HFSAD_HISTORY=$work/bad.db
head -c 5000 /dev/urandom >bad.db
cp bad.db kept.db
refused "damaged or no SQLite file"
cmp -s bad.db kept.db || fail "a damaged file was changed"
cp h.db bad.db
python3 -c "
f = open('bad.db', 'r+b'); f.seek(4096)
f.write(b'\xff' * 3 * 4096)"
expect 0 run spec.yaml --quiet --out bad
says "the run itself is not affected"
rm bad.db*
sqlite() { python3 -c "import sqlite3, sys; d = sqlite3.connect('bad.db'); d.executescript(sys.argv[1])" "$1"; }
sqlite "CREATE TABLE x (y)"
refused "is not a history of hfsad"
rm bad.db*
cp h.db bad.db
sqlite "PRAGMA user_version = 99"
refused "of version 99, written by a newer hfsad"
export HFSAD_HISTORY=/proc/nowhere/runs.db
expect 0 run spec.yaml --quiet --out bad
says "the run itself is not affected"
[ "$(wc -l <stderr.txt)" = 1 ] || fail "not one line: $(cat stderr.txt)"

echo "-- an older history"
export HFSAD_HISTORY=$work/old.db
python3 - h.db old.db <<'P'
import sqlite3, sys
old = sqlite3.connect(sys.argv[1])
old.backup(new := sqlite3.connect(sys.argv[2]))
new.executescript("DROP TABLE model; DROP TABLE node; PRAGMA user_version = 1")
P
rows=$(sql 'SELECT count(*) FROM trace' old.db)
expect 0 runs
[ "$(sql 'PRAGMA user_version' old.db):$(sql 'SELECT count(*) FROM trace' old.db)" = "2:$rows" ] || fail "not migrated"
[ "$(sql 'PRAGMA user_version' old.db.v1):$(sql 'SELECT count(*) FROM trace' old.db.v1)" = "1:$rows" ] || fail "no copy of the old history"
expect 0 run spec.yaml --quiet --out out
is last status done
finish
