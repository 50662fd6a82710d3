#!/usr/bin/env bash
# hfsad settings: fits a terminal, names every key, and docs/settings.md is what it prints. Needs HFSAD and SOURCE_DIR.
. "$(dirname "$0")/shell.sh"

expect 0 settings
awk 'length > 100 { exit 1 }' stdout.txt || fail "a line of 'hfsad settings' has more than 100 columns"
grep -q '^  run.participation.at_least_every  20 ' stdout.txt || fail "a key lacks its default"

expect 0 settings --markdown
diff -u "$SOURCE_DIR/docs/settings.md" stdout.txt ||
    fail "docs/settings.md is out of date: build/hfsad settings --markdown >docs/settings.md"

expect 0 settings --help
grep -q 'hfsad settings' stdout.txt || fail "no help"
expect_line 2 settings --mardown
says 'did you mean --markdown?'
[ ! -s stdout.txt ] || fail "an unknown option printed something"

# A full disk is a failure, not a success with half the text.
if [ -w /dev/full ]; then
    "$HFSAD" settings >/dev/full 2>stderr.txt
    [ $? = 1 ] || fail "a full disk is not noticed"
fi

# run.edge_rounds: auto is the number that the costs come to, and the summary says which.
"$HFSAD" generate quantile --edges 2 --clients 3 --features 3 --rows 8 --out d >/dev/null || fail "no data"
# rounds ROUNDS NUMBER [KEY=VALUE]…: the run with ROUNDS has the models of NUMBER rounds.
rounds() {
    local given=$1 number=$2 sets=(--set algorithm=hfsad --set run.polish=false --set run.iterations=4 --quiet)
    shift 2
    expect 0 run d/spec.yaml "${sets[@]}" --set "run.edge_rounds=$given" "${@/#/--set=}" --out given --force
    expect 0 run d/spec.yaml "${sets[@]}" --set "run.edge_rounds=$number" --out number --force
    cmp given/model.csv number/model.csv || fail "edge_rounds: $given $* is not $number"
    grep -q "\"edge_rounds\":[[:space:]]*$number\b" given/summary.json || fail "the summary does not say $number rounds"
}
rounds auto 4
rounds auto 4 run.cost.edge_round=1 run.cost.cloud_round=50
rounds auto 2 run.cost.edge_round=4 run.cost.cloud_round=1
rounds 3 3 run.cost.cloud_round=50
expect_line 2 run d/spec.yaml --set run.cost.edge_round=0 --out given
says 'run.cost.edge_round'

# Processes share stderr: a message is one write, so that two messages do not mix. A packet of the socket is one write.
python3 - "$HFSAD" <<'PYTHON' || fail "a message is written in pieces"
import socket, subprocess, sys
for arguments in (["run", "missing.yaml"], ["runn"], ["settings", "--mardown"]):
    reader, writer = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    assert subprocess.run([sys.argv[1], *arguments], stderr=writer).returncode == 2
    writer.close()
    packets = list(iter(lambda: reader.recv(1 << 16), b""))
    assert len(packets) == 1 and packets[0].count(b"\n") == 1 and packets[0].endswith(b"\n"), packets
PYTHON

finish
