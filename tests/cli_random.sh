#!/usr/bin/env bash
# hfsad run and hfsad up of random specs, undisturbed, killed, stopped, with lost state folders, and asynchronous: see tests/random_federations.py. Needs HFSAD.
# SPECS: how many in each mode (8), SEED: which (1: so that what lands does not depend on luck; the program itself draws one).
# States are synced at every round; in memory that takes no time.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
. "$(dirname "$0")/shell.sh"
# The folders of failures stay beside the program.
TMPDIR=$work python3 "$tests/random_federations.py" --seed "${SEED:-1}" --count "${SPECS:-8}" || fail "random specs: seeds and folders are named above"
finish
