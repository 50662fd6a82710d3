#!/usr/bin/env bash
# mpirun -n N hfsad run: any number of ranks gives the bits of one process; a checkpoint is resumed by any number; ranks
# with other inputs, a missing module and a rank that dies. Skipped (77) without mpirun or the module.
. "$(dirname "$0")/shell.sh"
command -v mpirun >/dev/null && [ -e "$(dirname "$HFSAD")/hfsad-mpi.so" ] || {
    echo "skipped: no mpirun, or built without MPI"
    exit 77
}
# root may run it in a container; more ranks than cores give way to each other
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none

# together RANKS ARGUMENTS…: the exit status is in $status.
together() {
    local ranks=$1
    shift
    mpirun -n "$ranks" "$HFSAD" "$@" >stdout.txt 2>stderr.txt </dev/null
    status=$?
}

"$HFSAD" generate quantile --edges 5 --clients 6 --features 5 --rows 8 --quiet --out data
"$HFSAD" generate phase-retrieval --edges 3 --clients 9 --features 6 --quiet --out phase
# depth three, two, and clients of the cloud's own
awk -F, 'BEGIN { OFS = "," } $1 == "edge1" || $1 == "edge2" { $1 = "north/" $1 }
         $1 == "edge3" { $2 = $1 "-" $2; $1 = "" } { print }' data/data.csv >deep.csv
short='run: {iterations: 12, edge_rounds: 2}'
cat >star.yaml <<<'{data: data/data.csv, loss: {kind: quantile, tau: 0.7}}'
cat >tree.yaml <<<"{data: deep.csv, loss: {kind: quantile}, algorithm: hfsad, features: {intercept: client},
 run: {iterations: 12, edge_rounds: 2, participation: {client: 0.6, edge: 0.7}}, output: {every_seconds: 0.01}}"
cat >apart.yaml <<<"{data: deep.csv, loss: {kind: huber}, link: {client: {penalty: mcp}}, $short}"
cat >phase.yaml <<<"{data: phase/data.csv, truth: phase/truth.csv, loss: {kind: phase-retrieval, box: 5}, preset: paper, $short}"
cat >average.yaml <<<"{data: data/data.csv, loss: {kind: absolute}, algorithm: fedavg, $short}"
cat >groups.yaml <<<"{data: data/data.csv, loss: {kind: squared}, personal: groups, $short}"

# a folder with a file for every client, arrays and text; clients of the cloud alone, whose rows come in no order; columns to
# standardise, for which every rank reads everything
python3 - <<'END'
import csv, os, struct
clients = {}
for row in csv.reader(open("deep.csv")):
    if row[0] != "edge":
        clients.setdefault("files/" + row[0] + "/" + row[1], []).append(row[2:])
for i, (name, rows) in enumerate(clients.items()):
    os.makedirs(os.path.dirname(name), exist_ok=True)
    if i % 3:
        lines = [",".join(row) for row in [["y", "x1", "x2", "x3", "x4", "x5"]] + rows]
        open(name + ".csv", "w").write("\n".join(lines) + "\n")
        continue
    head = "{'descr': '<f8', 'fortran_order': False, 'shape': (%d, %d), }" % (len(rows), len(rows[0]))
    head = head.ljust(117) + "\n"
    numbers = [float(v) for row in rows for v in row]
    open(name + ".npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.encode() + struct.pack("<%dd" % len(numbers), *numbers))
END
awk -F, 'BEGIN { OFS = "," } NR == 1 { print "client,y,x1,x2" } NR > 1 { print "c" (NR * 7 % 150), ($3 > 0 ? 1 : 0), $4, $5 }' data/data.csv >flat.csv
for i in $(seq 2000); do echo "d$i,$((i % 2)),$i.5,-$i"; done >>flat.csv
cat >files.yaml <<<"{data: files, loss: {kind: quantile}, algorithm: hfsad, features: {intercept: global}, $short}"
cat >flat.yaml <<<"{data: flat.csv, loss: {kind: hinge}, features: {intercept: global}, run: {iterations: 12}}"
cat >scaled.yaml <<<"{data: data/data.csv, loss: {kind: absolute}, features: {standardize: true}, $short}"

ranks=(2 3 4 7 2 3 4 3 2)
i=0
for spec in star tree apart phase average groups files flat scaled; do
    expect 0 run $spec.yaml --quiet --threads 1 --out $spec.1
    n=${ranks[i++]}
    together "$n" run $spec.yaml --quiet --threads 1 --out $spec.$n
    [ "$status" = 0 ] || { fail "$spec: $n ranks: exit status $status"; cat stderr.txt >&2; }
    same_output $spec.1 $spec.$n || fail "$spec: $n ranks differ from one process"
    if [ -e $spec.1/checkpoint.bin ] && ! cmp -s $spec.1/state.csv $spec.$n/state.csv; then
        fail "$spec: $n ranks have another state"
    fi
done

# one rank more or less goes on where the others ended
cp -r tree.3 more
together 2 run --resume more tree.yaml --set run.iterations=20 --quiet --threads 1
[ "$status" = 0 ] || { fail "resumed by two ranks: exit status $status"; cat stderr.txt >&2; }
expect 0 run tree.yaml --set run.iterations=20 --quiet --threads 1 --out whole
same_output whole more || fail "resumed by two ranks: another result"
cmp -s whole/state.csv more/state.csv || fail "resumed by two ranks: another state"

# other inputs on one rank: one line, nothing written
sed '2s/[0-9]\./&1/' data/data.csv >other.csv
cat >pick.sh <<'END'
[ "$OMPI_COMM_WORLD_RANK" = 1 ] && set -- "${@:1:1}" "$PICKED" "${@:3}"
exec "$HFSAD" "$@"
END
sed 's,data/data.csv,other.csv,' star.yaml >data2.yaml
sed 's/0.7/0.6/' star.yaml >tau2.yaml
for pick in data2:'another spec than rank 0 (data)' tau2:'another spec than rank 0 (loss.tau)' none:'none.yaml'; do
    PICKED=${pick%%:*}.yaml mpirun -n 3 bash pick.sh run star.yaml --quiet --out never >stdout.txt 2>stderr.txt
    [ $? = 2 ] || fail "$pick: not exit status 2"
    says "${pick#*:}"
    [ "$(grep -c '^hfsad' stderr.txt)" = 1 ] || { fail "$pick: not one line"; cat stderr.txt >&2; }
    [ ! -e never ] || fail "$pick: wrote a folder"
done
# the same spec and the same path, but another number in the file; a row that only one rank reads and that is wrong
mkdir -p elsewhere/data && cp other.csv elsewhere/data/data.csv && cp star.yaml elsewhere/
PICKED=elsewhere/star.yaml mpirun -n 3 bash pick.sh run star.yaml --quiet --out never >stdout.txt 2>stderr.txt
[ $? = 2 ] || fail "other data: not exit status 2"
says 'rank 1 reads other data than rank 0'
(cat data/data.csv; echo 'edge1,client1,x,1,2,3,4,5') >wrong.csv
together 3 run star.yaml --set data=wrong.csv --quiet --out never
[ "$status" = 2 ] || fail "a wrong row: $status"
says 'wrong.csv:242: column 3 (y)'
[ "$(grep -c '^hfsad' stderr.txt)" = 1 ] && [ ! -e never ] || { fail "a wrong row: not one line"; cat stderr.txt >&2; }
together 3 run missing.yaml
[ "$status" = 2 ] && [ "$(grep -c '^hfsad' stderr.txt)" = 1 ] || { fail "a missing spec: $status"; cat stderr.txt >&2; }

# without the module
mkdir alone && cp "$HFSAD" alone/
mpirun -n 2 alone/hfsad run star.yaml --out never >/dev/null 2>stderr.txt
[ $? = 2 ] || fail "no module: not exit status 2"
says 'hfsad-mpi.so is missing'

# a rank dies: the others end, and the checkpoint is whole
cat >long.yaml <<<"{data: deep.csv, loss: {kind: quantile}, algorithm: hfsad, run: {iterations: 100000000, trace_every: 1000000}, output: {every_seconds: 0.05}}"
cat >die.sh <<'END'
echo $$ >pid.$OMPI_COMM_WORLD_RANK
exec "$HFSAD" run long.yaml --threads 1 --out long
END
mpirun -n 3 bash die.sh >/dev/null 2>stderr.txt &
for _ in $(seq 600); do
    [ -s long/checkpoint.bin ] && [ -s pid.1 ] && break
    sleep 0.05
done
kill -9 "$(cat pid.1)"
wait $! && fail "a rank died: exit status 0"
says 'hfsad run --resume long'
done=$(python3 -c 'import json; print(json.load(open("long/summary.json"))["iterations"])')
expect 0 run --resume long long.yaml --set run.iterations=$((done + 5)) --quiet
expect 0 run long.yaml --set run.iterations=$((done + 5)) --quiet --out straight
cmp -s long/state.csv straight/state.csv || fail "a rank died: the checkpoint leads elsewhere"

finish
