#!/usr/bin/env bash
# README.md and the pages of examples/ as printed (scripts/examples), and that a page which is wrong is found. Needs HFSAD,
# the path of the program, gnuplot and mosquitto.
# shellcheck source=tests/shell.sh
SOURCE_DIR=$(realpath "${SOURCE_DIR:-$(dirname "$0")/..}")
# The federation of README.md syncs thousands of times; in memory that takes no time.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
export PATH=$PATH:/usr/sbin:/sbin

if ! command -v gnuplot >/dev/null; then
    echo "no gnuplot: the pages were not run"
    finish
    exit
fi

pages() { "$SOURCE_DIR/scripts/examples" "$HFSAD" "$@" >stdout.txt 2>stderr.txt; }

pages || { fail "README.md or a page of examples/ (make examples refreshes them)"; cat stderr.txt >&2; }
grep -q "^README.md: as printed$" stdout.txt || fail "README.md was not run"
for folder in "$SOURCE_DIR"/examples/*/; do
    grep -q "^$(basename "$folder"): as printed$" stdout.txt || fail "$folder was not run"
done

# ---- a page that is wrong is found: a digit, a word, a command, the data, a picture ----
mkdir page
cat >page/README.md <<'PAGE'
```console
$ hfsad generate quantile --edges 2 --clients 2 --features 3 --nonzero 1 --rows 5 --digits 3 --out made
wrote made: data.csv, truth.csv, spec.yaml
2 edges with 2 clients each, 3 features (1 of the model not zero), 5 rows per client, student noise, seed 1
next: hfsad run made/spec.yaml --out made/run
$ hfsad run made/spec.yaml --out out --set algorithm=hfsad --set run.iterations=5 | grep '^relative\|^iterations'
iterations           5 in 0.1 s, 77 per second, 1 thread
relative error       0.1
$ for word in one two; do
>     echo $word
> done
one
two
```
PAGE
pages --refresh page || fail "--refresh"
grep -q "^page: 2 not as printed, now refreshed$" stdout.txt || { fail "refreshed otherwise"; cat stdout.txt stderr.txt >&2; }
pages page || { fail "a page that was refreshed"; cat stderr.txt >&2; }
[ -e page/out ] && fail "the page was run in its own folder"
found() {
    local what=$1
    cp -r page wrong
    shift
    "$@"
    pages wrong && fail "not found: $what"
    rm -rf wrong
}
edit() {
    sed -i "$1" wrong/README.md
    cmp -s wrong/README.md page/README.md && fail "no edit: $1"
}
found "a digit" edit '/^relative error/s/\(0\.[0-9]\{2\}\).*/\19/'
found "a count" edit 's/^2 edges/3 edges/'
found "a word" edit 's/^two$/too/'
found "a line less" edit '/^two$/d'
found "a line more" edit 's/^two$/two\n/'
found "a command that fails" edit 's/^\$ for word/$ false; exit 3; for word/'
found "a picture that is not made" edit '1i ![picture](none.png)'
data() { sed -i '2s/1/2/' wrong/made/data.csv; }
found "data that are not those of the command" data

finish
