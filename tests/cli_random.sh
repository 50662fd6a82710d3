#!/usr/bin/env bash
# hfsad run and hfsad up of random specs in every mode of tests/random_federations.py, a few of each; make chaos has an hour of it. Needs HFSAD.
# SPECS: how many in each mode (4), SEED: which (fixed, so that what lands does not depend on luck; the program itself draws one).
# States are synced at every round; in memory that takes no time.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
# A sanitizer allows no library before its own, which the jumps of the clock need.
clock=
! grep -qa '__[at]san_init' "$HFSAD" || clock=--no-clock
# The folders of failures stay beside the program.
for mode in plain kill stop lose async fleet diverge damage old liar; do
    seed=1
    [ $mode != diverge ] || seed=5 # two of the next three diverge
    TMPDIR=$work python3 "$tests/random_federations.py" $clock --mode $mode --seed "${SEED:-$seed}" --count "${SPECS:-4}" --patience 180 ||
        fail "random specs: seeds and folders are named above"
done
finish
