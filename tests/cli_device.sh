#!/usr/bin/env bash
# hfsad run --device cuda: with a device the bytes of the processor, for every loss that it has; without one, and for what it
# cannot do, one line and exit status 2, and nothing is written.
. "$(dirname "$0")/shell.sh"
"$HFSAD" generate quantile --edges 3 --clients 20 --features 6 --rows 1 --quiet --out data
"$HFSAD" generate quantile --edges 2 --clients 3 --features 6 --rows 5 --quiet --out many
"$HFSAD" generate phase-retrieval --edges 3 --clients 19 --features 6 --quiet --out phase
short='algorithm: hfsad, run: {iterations: 20, edge_rounds: 2, polish: false}'
cat >phase.yaml <<<"{data: phase/data.csv, loss: {kind: phase-retrieval, box: 5}, preset: paper, run: {iterations: 20, edge_rounds: 2}}"

refused() { # WORDS ARGUMENTS…
    local words=$1
    shift
    expect_line 2 run "$@" --device cuda --out never --quiet
    says "$words"
    [ ! -e never ] || fail "$words: wrote a folder"
}
cat >many.yaml <<<"{data: many/data.csv, loss: {kind: absolute}, features: {intercept: global}, $short}"
cat >factored.yaml <<<"{data: many/data.csv, loss: {kind: squared}, $short}"
cat >majorised.yaml <<<"{data: many/data.csv, loss: {kind: phase-retrieval}, $short}"
cat >star.yaml <<<"{data: data/data.csv, loss: {kind: absolute}}"
cat >logistic.yaml <<<"{data: data/data.csv, loss: {kind: absolute, box: 1}, $short}"
refused 'without an intercept' many.yaml
refused 'the squared loss is not supported with many rows' factored.yaml
refused 'phase-retrieval, loss.box' majorised.yaml --set run.start=zero
refused 'algorithm: hfsad' star.yaml
refused 'loss.box' logistic.yaml
refused 'aggregate: trimmed' phase.yaml --set aggregate=median
refused 'run.participation' phase.yaml --set run.participation.client=0.5
refused 'group-mcp and group-scad' phase.yaml --set link.edge.penalty=group-mcp

if "$HFSAD" run phase.yaml --device cuda --out there --quiet 2>stderr.txt; then
    for loss in absolute quantile squared huber expectile smoothed-quantile; do
        cat >loss.yaml <<<"{data: data/data.csv, loss: {kind: $loss}, prior: {edge: {penalty: mcp, lambda: 0.05}}, $short}"
        expect 0 run loss.yaml --quiet --out $loss.cpu
        expect 0 run loss.yaml --quiet --device cuda --out $loss.cuda
        same_output $loss.cpu $loss.cuda state.csv || fail "$loss: the device has other bits"
    done
    # many rows per client: 1 to 9 of 6 features, weights, all links; then 100 features, and 300
    "$HFSAD" generate quantile --edges 3 --clients 7 --features 100 --rows 40 --quiet --out wide
    "$HFSAD" generate quantile --edges 2 --clients 3 --features 300 --rows 20 --quiet --out wider
    awk -F, 'NR == 1 || NR % 5 != 3 || NR < 12' many/data.csv >uneven.csv
    number=0
    for data in uneven.csv wide/data.csv wider/data.csv; do
        for kind in absolute quantile huber expectile smoothed-quantile; do
            link=$([ $((number++ % 3)) = 0 ] && echo mcp || echo tv)
            cat >loss.yaml <<<"{data: $data, loss: {kind: $kind}, link: {client: {penalty: $link}}, prior: {edge: {penalty: l1, lambda: 0.05}}, $short}"
            expect 0 run loss.yaml --quiet --out $number.cpu
            expect 0 run loss.yaml --quiet --device cuda --out $number.cuda
            same_output $number.cpu $number.cuda state.csv || fail "$kind with many rows of $data: the device has other bits"
        done
    done
    awk -F, 'BEGIN { OFS = "," } NR > 1 { $3 = $3 > 0 ? 1 : -1 } { print }' uneven.csv >classes.csv
    awk -F, 'BEGIN { OFS = "," } NR > 1 { $3 = $3 > 0 ? int(2 * $3) : 0 } { print }' uneven.csv >counts.csv
    awk -F, 'BEGIN { OFS = "," } NR > 1 { $3 = $3 > 0 ? 1 : -1 } { print }' data/data.csv >classes1.csv
    awk -F, 'BEGIN { OFS = "," } NR > 1 { $3 = $3 > 0 ? int(2 * $3) : 0 } { print }' data/data.csv >counts1.csv
    for kind in hinge:classes squared-hinge:classes logistic:classes poisson:counts hinge:classes1 logistic:classes1 poisson:counts1; do
        cat >loss.yaml <<<"{data: ${kind#*:}.csv, loss: {kind: ${kind%:*}}, $short}"
        expect 0 run loss.yaml --quiet --out $kind.cpu
        expect 0 run loss.yaml --quiet --device cuda --out $kind.cuda
        same_output $kind.cpu $kind.cuda state.csv || fail "$kind: the device has other bits"
    done
    expect 0 run phase.yaml --quiet --out phase.cpu
    same_output phase.cpu there state.csv || fail "phase retrieval: the device has other bits"
    # a box that clients leave in every round
    for box in 0.05 0.5; do
        expect 0 run phase.yaml --quiet --set loss.box=$box --out box.$box.cpu
        expect 0 run phase.yaml --quiet --set loss.box=$box --device cuda --out box.$box.cuda
        same_output box.$box.cpu box.$box.cuda state.csv || fail "phase retrieval, box $box: the device has other bits"
    done
else
    [ "$(wc -l <stderr.txt)" = 1 ] || fail "no device: not one line"
    says 'CUDA\|hfsad-cuda.so'
    echo "no device: its results are not compared"
fi
finish
