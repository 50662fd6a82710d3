#!/usr/bin/env bash
# hfsad run --device cuda: the bytes of the processor, for every loss and setting that a device has; for what it cannot do, one
# line and exit status 2, and nothing is written. Without a device the kernels run by the emulator (device_emulator.h).
. "$(dirname "$0")/shell.sh"
"$HFSAD" generate quantile --edges 3 --clients 20 --features 6 --rows 1 --quiet --out data
"$HFSAD" generate quantile --edges 2 --clients 3 --features 6 --rows 5 --quiet --out many
"$HFSAD" generate phase-retrieval --edges 3 --clients 19 --features 6 --quiet --out phase
short='algorithm: hfsad, run: {iterations: 20, edge_rounds: 2, polish: false}'
cat >phase.yaml <<<"{data: phase/data.csv, loss: {kind: phase-retrieval, box: 5}, preset: paper, run: {iterations: 20, edge_rounds: 2}}"
cat >plain.yaml <<<"{data: data/data.csv, loss: {kind: absolute}, $short}"

emulated=
if ! "$HFSAD" run phase.yaml --device cuda --out there --quiet 2>stderr.txt; then
    [ "$(wc -l <stderr.txt)" = 1 ] || fail "no device: not one line"
    says 'CUDA\|hfsad-cuda.so'
    [ -e "${EMULATOR:-}" ] || {
        echo "skipped: no device, and no C++ compiler for its emulator"
        exit 77
    }
    emulated=yes
    echo "no device: the kernels run by the emulator"
    mkdir emulated
    cp "$HFSAD" emulated/hfsad
    cp "$EMULATOR" emulated/hfsad-cuda.so
    cp "$(dirname "$HFSAD")/hfsad-mpi.so" emulated 2>/dev/null
    HFSAD=$PWD/emulated/hfsad
fi

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
awk -F, 'BEGIN { OFS = "," } NR > 1 { $3 = $3 > 0 ? 1 : -1 } { print }' data/data.csv >classes1.csv
awk -F, 'BEGIN { OFS = "," } NR > 1 { $3 = $3 > 0 ? int(2 * $3) : 0 } { print }' data/data.csv >counts1.csv
refused 'without an intercept' many.yaml
refused 'the squared loss is not supported with many rows' factored.yaml
refused 'phase-retrieval, loss.box' majorised.yaml --set run.start=zero
refused 'algorithm: hfsad' star.yaml
refused 'aggregate: trimmed' phase.yaml --set aggregate=median
refused 'group-mcp and group-scad' phase.yaml --set link.edge.penalty=group-mcp
if [ "$emulated" ]; then
    HFSAD_EMULATED_BYTES=3.0001e8 refused 'clients would fit' phase.yaml
    HFSAD_EMULATED_DEVICES=0 refused 'there is no device' phase.yaml
fi

number=0
same() { # WHAT SPEC ARGUMENTS…: a run here and one on the device
    local what=$1 spec=$2
    shift 2
    number=$((number + 1))
    expect 0 run "$spec" --quiet --out $number.cpu "$@"
    expect 0 run "$spec" --quiet --device cuda --out $number.cuda "$@"
    same_output $number.cpu $number.cuda state.csv || fail "$what: the device has other bits"
}
# one row per client
for loss in absolute quantile squared huber expectile smoothed-quantile; do
    cat >loss.yaml <<<"{data: data/data.csv, loss: {kind: $loss}, prior: {edge: {penalty: mcp, lambda: 0.05}}, $short}"
    same $loss loss.yaml
done
same 'phase retrieval' phase.yaml
expect 0 run phase.yaml --quiet --out whole1
for box in 0.05 0.5; do # clients leave it in every round
    same "phase retrieval, box $box" phase.yaml --set loss.box=$box
done
# rows that the device draws itself; without the clients' state, which then stays there
for words in 'phase-retrieval edges=3 clients=19 features=6 seed=3' 'phase-retrieval edges=2 clients=70 features=40'; do
    cat >drawn.yaml <<<"{data: generate $words, truth: generate $words, loss: {kind: phase-retrieval, box: 5}, preset: paper, run: {iterations: 10, edge_rounds: 2}}"
    same "generate $words" drawn.yaml
    same "generate $words, participation" drawn.yaml --set run.participation.client=0.5
done
cat >drawn.yaml <<<"{data: generate quantile edges=3 clients=20 features=6 rows=1 shift=0.5 rho=-0.3, loss: {kind: absolute}, $short}"
same 'generate quantile' drawn.yaml
expect 0 run drawn.yaml --quiet --device cuda --set output.clients=false --set output.state=false --set output.checkpoint=false --out alone.cuda
expect 0 run drawn.yaml --quiet --set output.clients=false --set output.state=false --set output.checkpoint=false --out alone.cpu
same_output alone.cpu alone.cuda || fail "without the clients' state: the device has other bits"
expect 0 run drawn.yaml --quiet --set run.iterations=9 --device cuda --out drawn.resumed
expect 0 run --resume drawn.resumed --set run.iterations=20 --quiet --device cuda
expect 0 run drawn.yaml --quiet --out drawn.whole
same_output drawn.whole drawn.resumed state.csv || fail "a resumed run of drawn rows: the device has other bits"
# 100 clients of an edge, 40 features: other kernels
"$HFSAD" generate quantile --edges 2 --clients 100 --features 20 --rows 1 --quiet --out wide1
"$HFSAD" generate phase-retrieval --edges 2 --clients 70 --features 40 --quiet --out wide2
cat >wide1.yaml <<<"{data: wide1/data.csv, loss: {kind: quantile}, $short}"
cat >wide2.yaml <<<"{data: wide2/data.csv, loss: {kind: phase-retrieval, box: 5}, preset: paper, run: {iterations: 5, edge_rounds: 2}}"
same '100 clients' wide1.yaml
same '40 features' wide2.yaml
# clients and edges that sit out, several local steps, other links, a box, clients that differ
same participation plain.yaml --set run.participation.client=0.6 --set run.participation.edge=0.7 --set run.participation.at_least_every=3
same 'edges that sit out' phase.yaml --set run.participation.edge=0.5
same 'paper, participation' phase.yaml --set run.participation.client=0.3
same 'local steps' plain.yaml --set run.local_steps=3
for link in mcp scad; do
    same "$link links" plain.yaml --set link.client.penalty=$link
done
same relaxed plain.yaml --set schedule.client.relax=1.5
for loss in absolute huber squared expectile quantile smoothed-quantile; do
    cat >boxed.yaml <<<"{data: data/data.csv, loss: {kind: $loss, box: 0.3}, $short}"
    same "$loss in a box" boxed.yaml
done
cat >mixed.yaml <<<"{data: data/data.csv, loss: {kind: absolute}, algorithm: hfsad, run: {iterations: 20, edge_rounds: 2, polish: false, participation: {client: 0.8}},
 overrides: [{node: edge1/client3, loss: {kind: huber}}, {node: edge2/*, loss: {kind: squared}, local_steps: 2},
 {node: edge3/client50, schedule: {c: 3, alpha: 0.2}}, {node: edge2, prior: {penalty: l1, lambda: 0.1}}]}"
same overrides mixed.yaml
# links in shorter numbers: also with w kept, in a box, drawn, resumed, and a link that no step has formed yet
for precision in float bfloat16; do
    short() { same "$precision: $1" "${@:2}" --set run.precision=$precision; }
    short 'phase retrieval' phase.yaml
    short 'a box' phase.yaml --set loss.box=0.05
    short absolute plain.yaml
    short 'no step' plain.yaml --set run.iterations=0 --set run.start=normal
    short 'mcp links' plain.yaml --set link.client.penalty=mcp --set features.standardize=false
    short participation plain.yaml --set run.participation.client=0.6 --set run.local_steps=2
    short overrides mixed.yaml
    short '100 clients' wide1.yaml
    short '40 features' wide2.yaml
    short 'drawn rows' drawn.yaml
    expect 0 run phase.yaml --quiet --set run.iterations=9 --set run.precision=$precision --device cuda --out $precision.resumed
    expect 0 run --resume $precision.resumed --set run.iterations=20 --quiet --device cuda
    expect 0 run phase.yaml --quiet --set run.precision=$precision --out $precision.whole
    same_output $precision.whole $precision.resumed state.csv || fail "$precision: a resumed run has other bits"
    ! cmp -s $precision.whole/model.csv whole1/model.csv || fail "$precision: the bits of double"
done
refused 'one row each' many.yaml --set run.precision=float
refused 'algorithm: hfsad' star.yaml --set run.precision=float
refused 'group-mcp and group-scad' phase.yaml --set link.client.penalty=group-mcp --set run.precision=float
# clients of the cloud's own, with and without edges, three levels
awk -F, 'BEGIN { OFS = "," } $1 == "edge1" { $1 = "" } $1 == "edge2" { $1 = "north/edge2" } { print }' data/data.csv >deep.csv
awk -F, 'BEGIN { OFS = "," } NR > 1 { $2 = $1 $2; $1 = "" } { print }' data/data.csv >flat.csv
for data in deep flat; do
    for client in 1 0.5; do
        cat >loss.yaml <<<"{data: $data.csv, loss: {kind: huber}, $short}"
        same "$data tree, participation $client" loss.yaml --set run.participation.client=$client
    done
done
# many rows per client: 1 to 9 of 6 features, weights, all links; then 100 features, and 300
"$HFSAD" generate quantile --edges 3 --clients 7 --features 100 --rows 40 --quiet --out wide
"$HFSAD" generate quantile --edges 2 --clients 3 --features 300 --rows 20 --quiet --out wider
awk -F, 'NR == 1 || NR % 5 != 3 || NR < 12' many/data.csv >uneven.csv
for data in uneven.csv wide/data.csv wider/data.csv; do
    for kind in absolute quantile huber expectile smoothed-quantile; do
        link=$([ $((number % 3)) = 0 ] && echo mcp || echo tv)
        cat >loss.yaml <<<"{data: $data, loss: {kind: $kind}, link: {client: {penalty: $link}}, prior: {edge: {penalty: l1, lambda: 0.05}}, $short}"
        same "$kind with many rows of $data" loss.yaml
    done
done
cat >mixed.yaml <<<"{data: uneven.csv, loss: {kind: absolute}, overrides: [{node: edge1/*, loss: {kind: huber}, local_steps: 2}], $short}"
same 'many rows, overrides' mixed.yaml --set run.participation.client=0.7 --set run.participation.edge=0.8
awk -F, 'BEGIN { OFS = "," } NR > 1 { $3 = $3 > 0 ? 1 : -1 } { print }' uneven.csv >classes.csv
awk -F, 'BEGIN { OFS = "," } NR > 1 { $3 = $3 > 0 ? int(2 * $3) : 0 } { print }' uneven.csv >counts.csv
for kind in hinge:classes squared-hinge:classes logistic:classes poisson:counts hinge:classes1 logistic:classes1 poisson:counts1; do
    cat >loss.yaml <<<"{data: ${kind#*:}.csv, loss: {kind: ${kind%:*}}, $short}"
    same "$kind" loss.yaml
    case $kind in *1) same "$kind in a box" loss.yaml --set loss.box=0.2 ;; esac
done
# a run that is resumed, rows of the trace that are far apart
same 'few rows' phase.yaml --set run.trace_every=7
expect 0 run phase.yaml --quiet --set run.iterations=9 --device cuda --out resumed
expect 0 run --resume resumed --set run.iterations=20 --quiet --device cuda
expect 0 run phase.yaml --quiet --out whole
same_output whole resumed state.csv || fail "a resumed run: the device has other bits"
# several ranks, each with a device, or all with one
if command -v mpirun >/dev/null && [ -e "$(dirname "$HFSAD")/hfsad-mpi.so" ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none
    cat >rows.yaml <<<"{data: uneven.csv, loss: {kind: absolute}, $short}"
    for spec in phase:2 phase:7 mixed:3 rows:2; do
        name=${spec%:*}
        expect 0 run $name.yaml --quiet --out $name.alone
        mpirun -n ${spec#*:} "$HFSAD" run $name.yaml --quiet --threads 1 --device cuda --out $name.ranks </dev/null >/dev/null 2>stderr.txt ||
            fail "$spec ranks: $(cat stderr.txt)"
        same_output $name.alone $name.ranks state.csv || fail "$spec ranks: the devices have other bits"
    done
fi
# many runs at once
expect 0 paper --trials 3 --iterations 8 --no-plot --quiet --out paper.cpu
expect 0 paper --trials 3 --iterations 8 --no-plot --quiet --device cuda --out paper.cuda
diff -r paper.cpu paper.cuda || fail "paper: the device has other bits"
[ $number -gt 50 ] || fail "only $number runs were compared"
finish
