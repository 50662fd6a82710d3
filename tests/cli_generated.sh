#!/usr/bin/env bash
# data: generate …: the rows of the file that `hfsad generate` writes, without the file; for what it cannot do, one line and exit status 2.
. "$(dirname "$0")/shell.sh"

# same WORDS LOSS SETTINGS ARGUMENTS…: a run on the written files and one on the words
number=0
same() {
    local words=$1 loss=$2 settings=$3
    shift 3
    number=$((number + 1))
    # shellcheck disable=SC2086 # words
    expect 0 generate $words --quiet --out $number.data
    echo "{data: $number.data/data.csv, truth: $number.data/truth.csv, loss: $loss, $settings}" >$number.file.yaml
    local drawn
    drawn=$(sed -E 's/--heteroscedastic/heteroscedastic=true/; s/--([a-z]+)-([a-z]+) /\1_\2=/g; s/--([a-z]+) /\1=/g' <<<"$words")
    echo "{data: generate $drawn, truth: generate $drawn, loss: $loss, $settings}" >$number.words.yaml
    expect 0 run $number.file.yaml --quiet --out $number.file "$@"
    expect 0 run $number.words.yaml --quiet --out $number.words "$@"
    sed -i '/"\(spec\|data\|truth\)":\t["n]/d' $number.file/summary.json $number.words/summary.json # these names differ
    # shellcheck disable=SC2046 # baselines have no links
    same_output $number.file $number.words $(ls $number.file | grep state.csv) || fail "$words, $*: other rows than those of the file"
}
phase='phase-retrieval --edges 3 --clients 19 --features 6'
paper='{kind: phase-retrieval, box: 5}'
short='preset: paper, run: {iterations: 20, edge_rounds: 2}'
same "$phase" "$paper" "$short"
same "$phase --seed 7 --keep-x 0.5 --keep-w 0.9 --snr-db 3" "$paper" "$short" --set run.participation.client=0.5
same "$phase --rows 3" "$paper" "$short"
same 'phase-retrieval --edges 2 --clients 5 --features 400' "$paper" "$short" # plain rows instead of blocks
same phase-retrieval "$paper" "$short" --set run.iterations=3
same "$phase" "$paper" "$short" --set run.polish=true --set run.iterations=5
plain='algorithm: hfsad, run: {iterations: 20, edge_rounds: 2, polish: false}'
quantile='quantile --edges 3 --clients 20 --features 6'
same "$quantile --rows 1" '{kind: absolute}' "$plain"
same "$quantile --rows 1 --seed 9 --shift 0.3 --intercepts 1 --rho -0.4 --noise laplace --noise-scale 2 --tau 0.3 --heteroscedastic" '{kind: quantile, tau: 0.3}' "$plain"
same "$quantile --rows 1 --noise mixture --outliers 0.2 --outlier-factor 5 --nonzero 2" '{kind: huber}' "$plain" --set features.intercept=global
same "$quantile --rows 4 --noise student --df 1.5" '{kind: absolute}' 'features: {standardize: true}'
same "$quantile --rows 1" '{kind: absolute}' 'run: {iterations: 50}' # star
same "$quantile --rows 1" '{kind: squared}' 'algorithm: fedavg, run: {iterations: 20}'

# a checkpoint goes on; a federation and its list of nodes
expect 0 run 1.words.yaml --quiet --set run.iterations=9 --out resumed
expect 0 run --resume resumed --set run.iterations=20 --quiet
expect 0 run 1.words.yaml --quiet --out whole
same_output whole resumed state.csv || fail "a resumed run has other bytes"
expect 0 nodes 1.file.yaml
mv stdout.txt nodes.txt
expect 0 nodes 1.words.yaml
cmp nodes.txt stdout.txt || fail "another list of nodes"
expect 0 up 1.words.yaml --quiet --out together
cmp whole/model.csv together/model.csv || fail "a federation of drawn rows has another model"

refused() { # WORDS TEXT ARGUMENTS…
    local words=$1
    shift
    expect_line 2 run 1.words.yaml --set "data=$1" "${@:2}" --quiet --out never
    says "$words"
    [ ! -e never ] || fail "$words: wrote a folder"
}
refused 'expected generate phase-retrieval or generate quantile' 'generate clustered edges=2'
refused 'rows=0; expected a whole number from 1' 'generate quantile rows=0'
refused 'expected a whole number from 1' 'generate quantile edges=2.5'
refused 'expected a number from -1 to 1' 'generate quantile rho=1'
refused 'snr_db=3 is not known here' 'generate quantile snr_db=3'
refused 'force=yes is not known here' 'generate quantile force=yes'
refused 'expected NAME=VALUE' 'generate quantile edges'
refused 'expected NAME=VALUE' 'generate quantile --edges 5'
refused 'expected gaussian, student' 'generate quantile noise=white'
refused 'nonzero=40 is more than' 'generate quantile nonzero=40'
refused 'more than 4294967294 rows' 'generate phase-retrieval edges=100000 clients=100000'
refused 'no columns to choose' 'generate quantile' --set columns.y=x1
refused 'truth: generate has features=6' 'generate phase-retrieval features=7'
[ $number -ge 12 ] || fail "only $number runs were compared"
finish
