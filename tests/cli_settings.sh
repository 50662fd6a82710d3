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

finish
