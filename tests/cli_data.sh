#!/usr/bin/env bash
# hfsad run on a folder of clients' files: the same model as from one CSV file, whatever the format; bad data is one line,
# status 2, and nothing written. Needs HFSAD, the path of the program.
. "$(dirname "$0")/shell.sh"

cat >split.py <<'PYTHON'
"""split.py FORMAT FOLDER: data.csv as a folder with a file for every client."""
import csv, os, struct, sys, zipfile


def array(shape, numbers, kind="<f8"):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + struct.pack(f"<{len(numbers)}d", *numbers)


form, folder = sys.argv[1:]
with open("data.csv", newline="") as f:
    head, *rows = csv.reader(f)
for edge, client, y, *x in rows:
    name = f"{folder}/{edge}/{client}.{form}"
    os.makedirs(os.path.dirname(name), exist_ok=True)
    if form == "csv":
        with open(name, "w") as f:
            f.write(",".join(head[2:]) + "\n" + ",".join([y] + x) + "\n")
    elif form == "npy":
        with open(name, "wb") as f:
            f.write(array((1, 1 + len(x)), [float(v) for v in [y] + x]))
    else:
        with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as f:
            f.writestr("X.npy", array((1, len(x)), [float(v) for v in x]))
            f.writestr("y.npy", array("(1,)", [float(y)]))
PYTHON

expect 0 generate phase-retrieval --edges 3 --clients 12 --features 6 --out .
expect 0 run spec.yaml --set run.iterations=20 --out from-csv --quiet
for form in csv npy npz; do
    python3 split.py $form tree-$form || fail "split.py $form"
    expect 0 run spec.yaml --set data=tree-$form --set run.iterations=20 --out from-$form-tree --quiet
    cmp -s from-csv/model.csv from-$form-tree/model.csv || fail "another model from the folder of $form"
    cmp -s from-csv/state.csv from-$form-tree/state.csv || fail "another state from the folder of $form"
done

# An output within the data would be a client of the next run; names with a dot are none.
ln -s tree-csv/edge1 beside
before=$(names tree-csv)
for out in tree-csv tree-csv/ tree-csv/edge1 tree-csv/new/deep beside/new "$PWD/tree-csv/../tree-csv"; do
    expect_line 2 run spec.yaml --set data=tree-csv --out "$out"
    says "is in the data folder"
    expect_line 2 path spec.yaml --set data=tree-csv --set prior.cloud.penalty=l1 --no-plot --out "$out"
    says "is in the data folder"
    expect_line 2 evaluate --model from-csv --data tree-csv --out "$out"
    says "is in the data folder"
done
expect_line 2 compare spec.yaml --set data=tree-csv --out tree-csv
says "is in the data folder"
expect_line 2 predict --model from-csv --data tree-csv --out tree-csv/edge1/p.csv
says "is in the data folder"
[ "$(names tree-csv)" = "$before" ] || fail "a refused command wrote to its data: $(names tree-csv)"
expect 0 run spec.yaml --set data=tree-csv --set run.iterations=1 --out tree-csv/.out/a --quiet
rm -r tree-csv/.out

# refused FOLDER WORDS…: status 2, one line that says them, and no output folder.
refused() {
    local words
    expect_line 2 run spec.yaml --set "data=$1" --out refused --quiet
    for words in "${@:2}"; do says "$words"; done
    [ ! -e refused ] || { fail "a refused run left: $(names refused)"; rm -rf refused; }
}
head -c 100 tree-npy/edge1/client1.npy >cut && mv cut tree-npy/edge1/client1.npy
refused tree-npy "tree-npy/edge1/client1.npy: cut short"
refused tree-npy/edge2/client13.npy "an array has the rows of one client"
cp tree-csv/edge1/client1.csv tree-npz/edge1/client1.npz
refused tree-npz "tree-npz/edge1/client1.npz: cannot be read"
touch tree-csv/edge2/README
refused tree-csv "tree-csv/edge2/README: not a data file" "\.libsvm"
mkdir -p mixed/e && printf '1 1:2\n' >mixed/e/a.svm && printf 'y,x1\n1,2\n' >mixed/e/b.csv
refused mixed "mixed/e/b.csv: dense rows, but sparse rows in .*mixed/e/a.svm"
printf '1 1:2 # e/a\n1 0:3 # e/a\n' >zero.svm
refused zero.svm "zero.svm:2: column 3: index 0; indices are counted from 1"
printf '1 1:2\n' >nobody.svm
refused nobody.svm "nobody.svm:1: column 6: no client" "# edge1/client7"
printf 'data: labels.csv\nloss: {kind: logistic}\n' >labels.yaml
printf 'client,y,x1\na,1,2\na,0,3\nb,-1,3\n' >labels.csv
for kind in logistic hinge; do
    expect_line 2 run labels.yaml --set loss.kind=$kind --out refused
    says "y is 0 in row 2 of a and -1 in row 1 of b; two classes are 0 and 1, or -1 and 1"
done
mkdir nothing
refused nothing "nothing: an empty folder"

finish
