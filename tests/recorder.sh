#!/usr/bin/env bash
# tests/record.py itself: one build recorded twice is the same, and a change is found. Needs HFSAD, the path of the program.
. "$(dirname "$0")/shell.sh"
three='^(one-quantile|path-heldout|async-float)$'

python3 "$tests/record.py" --only "$three" --record before.json >out.txt || { fail "recording"; cat out.txt >&2; }
python3 "$tests/record.py" --only "$three" --compare before.json >out.txt || { fail "the same build differs"; cat out.txt >&2; }

# changed WORDS ARGUMENTS…: a comparison fails and says them.
changed() {
    python3 "$tests/record.py" "${@:2}" >out.txt
    [ $? = 1 ] || fail "no difference is seen: $1"
    grep -q -- "$1" out.txt || { fail "no word about $1:"; cat out.txt >&2; }
}
changed "one-quantile: up: model.csv" --only one-quantile --compare before.json --set loss.tau=0.7
changed "path-heldout: path: path.csv" --only path-heldout --compare before.json --set run.edge_rounds=2
sed 's/"async-float/"async/' before.json >renamed.json
changed "async: replay: " --only '^async$' --compare renamed.json
python3 "$tests/record.py" --only one-quantile --compare before.json --set loss.tau=0.7 --ignore . >out.txt ||
    { fail "--ignore"; cat out.txt >&2; }
finish
