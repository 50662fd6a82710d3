# Sourced by the cli_*.sh tests: an empty work folder, a count of failures, running the program. Needs HFSAD, the path
# of the program. A test ends with `finish`.
# shellcheck shell=bash disable=SC2034
set -u
: "${HFSAD:?the path of the program}"
HFSAD=$(realpath "$HFSAD")
export HFSAD HFSAD_HISTORY=none # no test writes into a home folder
tests=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

failures=0
fail() {
    echo "FAIL: $*" >&2
    failures=$((failures + 1))
}
finish() {
    [ "$failures" = 0 ] || { echo "$failures failed" >&2; exit 1; }
    echo "all passed"
}

# expect STATUS ARGUMENTS…: runs the program; its output is in stdout.txt and stderr.txt.
expect() {
    local wanted=$1 status
    shift
    "$HFSAD" "$@" >stdout.txt 2>stderr.txt </dev/null
    status=$?
    [ "$status" = "$wanted" ] && return
    fail "exit status $status instead of $wanted: hfsad $*"
    cat stderr.txt >&2
}
# expect_line STATUS ARGUMENTS…: expect, and exactly one line on stderr.
expect_line() {
    expect "$@"
    [ "$(wc -l <stderr.txt)" = 1 ] || { fail "not one line on stderr: hfsad ${*:2}"; cat stderr.txt >&2; }
}
# says WORDS: stderr.txt holds them (a basic regular expression).
says() { grep -q -- "$1" stderr.txt || { fail "stderr does not say '$1':"; cat stderr.txt >&2; }; }
# The names in a folder, hidden ones too.
names() { find "$1" -mindepth 1 -printf '%f\n' | sort | tr '\n' ' '; }
# same_output A B [FILE…]: whether two output folders have the same model, trace and summary, and the same of the files
# named, all that the clock, the threads and output.every_seconds decide aside.
same_output() { python3 "$tests/same_output.py" "$@"; }
