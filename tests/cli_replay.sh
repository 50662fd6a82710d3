#!/usr/bin/env bash
# hfsad run --replay: the record of a federation in which everybody was always in time gives the bytes of `hfsad run`;
# what is no whole record is refused and leaves nothing behind. Needs HFSAD, the path of the program.
. "$(dirname "$0")/shell.sh"

# refused WORDS ARGUMENTS…: exit status 2 and one line that says them.
refused() {
    expect_line 2 "${@:2}"
    says "$1"
}

python3 - <<'END'
import random
random.seed(5)
with open("data.csv", "w") as f:
    f.write("edge,client,y,x1,x2,x3\n")
    for client in range(13):
        x = [random.gauss(0, 1) for _ in range(3)]
        f.write(f"{'abc'[client % 3]},c{client},{(x[0] - x[2]) ** 2},{','.join(map(repr, x))}\n")
END
cat >spec.yaml <<'END'
data: data.csv
loss: {kind: phase-retrieval, box: 5}
run: {iterations: 7, edge_rounds: 3, local_steps: 2}
END

# A line for every step; client c is in slot c // 3 of its edge. Lines of the nodes are mixed.
python3 - <<'END' >record
T, K = 7, 3
clients = {"a": 5, "b": 4, "c": 4}
for t in range(1, T + 1):
    for edge in "cab":
        for n in range((t - 1) * K + 1, t * K + 1):
            print(edge, n, t, *(f"{slot}:{n}:{2 * n}" for slot in range(clients[edge])))
    print("cloud", t, 0, *(f"{slot}:{t}:{t * K}" for slot in range(3)))
for edge in "abc":
    print(edge, "end", T)
print("cloud end 0")
END

expect 0 run spec.yaml --quiet --out plain
expect 0 run spec.yaml --quiet --out again --replay record
cmp plain/model.csv again/model.csv || fail "models differ"
cmp plain/state.csv again/state.csv || fail "states differ"
python3 - <<'END' || fail "traces differ"
import csv
plain, again = (list(csv.DictReader(open(f"{d}/trace.csv"))) for d in ("plain", "again"))
assert len(again) == 2, len(again)
for a, b in ((plain[0], again[0]), (plain[-1], again[-1])):
    for key in a:
        assert key == "seconds" or a[key] == b[key], (key, a[key], b[key])
END

# A late client: it works with a model that is old, and its edge goes on without it.
sed -e 's/^\(b 5 2\) 0:5:10 /\1 /' -e 's/^\(b 6 2\) 0:6:12 /\1 0:5:12 /' record >late
expect 0 run spec.yaml --quiet --out late-out --replay late
cmp -s plain/model.csv late-out/model.csv && fail "a late client changes nothing"

# bad_record WORDS: what is on stdin is refused with them.
bad_record() {
    cat >bad
    refused "$1" run spec.yaml --quiet --out nothing --replay bad
    [ ! -e nothing ] || fail "something was written for a record that is refused"
}
bad_record "lines of its node are not consecutive" < <(grep -v '^b 4 ' record)
bad_record "the end of b is missing" < <(grep -v '^b end' record)
bad_record "it is cut off" < <(head -c 500 record)
bad_record "is missing" < <(head -20 record)
bad_record "version or a counter cannot be" < <(sed 's/^a 3 1 0:3:6/a 3 1 0:9:6/' record)
bad_record "version or a counter cannot be" < <(sed 's/^a 3 1 0:3:6/a 3 1 0:3:4/' record)
bad_record "no such slot" < <(sed 's/^a 3 1 0:3:6/a 3 1 17:3:6/' record)
bad_record "expected slot:version:k" < <(sed 's/^a 3 1 0:3:6/a 3 1 0:3/' record)
bad_record "parent's version cannot be" < <(sed 's/^a 3 1 /a 3 4 /' record)
bad_record "names no edge" < <(sed 's/^a 3 /z 3 /' record)
bad_record "how the polish failed" < <(cat record; echo "cloud unpolished 9")
bad_record "text after" < <(sed 's/^a 3 1/a 3 1x/' record)
bad_record "is missing" < <(:)
refused "missing" run spec.yaml --quiet --out nothing --replay missing
refused "replay repeats a whole run" run spec.yaml --quiet --out nothing --replay record --warm-start plain
refused "only hfsad has records" run spec.yaml --quiet --out nothing --replay record --set algorithm=fedavg
finish
