#!/usr/bin/env bash
# hfsad run and hfsad up of random specs, undisturbed, killed, stopped, with lost and damaged state folders, asynchronous, and with liars: see
# tests/random_federations.py, which has more ways (make chaos). Needs HFSAD.
# SPECS: how many in each mode (5), SEED: which (1: so that what lands does not depend on luck; the program itself draws one).
# States are synced at every round; in memory that takes no time.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
# The folders of failures stay beside the program.
for mode in plain kill stop lose async damage liar; do
    TMPDIR=$work python3 "$tests/random_federations.py" --no-clock --mode $mode --seed "${SEED:-1}" --count "${SPECS:-5}" ||
        fail "random specs: seeds and folders are named above"
done
finish
