#!/bin/sh
# hfsad settings: fits a terminal, names every key, and docs/settings.md is what it prints.
set -eu

fail() {
    echo "cli_settings: $1" >&2
    exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$HFSAD" settings >"$work/text"
[ -z "$(awk 'length($0) > 100' "$work/text")" ] || fail "a line of 'hfsad settings' has more than 100 columns"
grep -q '^  run.participation.at_least_every  20 ' "$work/text" || fail "a key lacks its default"

"$HFSAD" settings --markdown >"$work/settings.md"
diff -u "$SOURCE_DIR/docs/settings.md" "$work/settings.md" ||
    fail "docs/settings.md is out of date: build/hfsad settings --markdown >docs/settings.md"

"$HFSAD" settings --help | grep -q 'hfsad settings' || fail "no help"
status=0
"$HFSAD" settings --mardown >"$work/out" 2>"$work/err" || status=$?
[ "$status" -eq 2 ] || fail "an unknown option gave exit status $status"
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "an unknown option did not give one line"
[ ! -s "$work/out" ] || fail "an unknown option printed something"

# A full disk is a failure, not a success with half the text.
if [ -w /dev/full ]; then
    status=0
    "$HFSAD" settings >/dev/full 2>"$work/err" || status=$?
    [ "$status" -eq 1 ] || fail "a full disk gave exit status $status"
fi
