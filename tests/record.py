#!/usr/bin/env python3
"""Records what a build of hfsad makes of some 60 specs, and compares another build with that record.

  tests/record.py --hfsad OTHER/build/hfsad --record before.json
  tests/record.py --hfsad build/hfsad --compare before.json

Every spec is trained by `hfsad run` and by `hfsad up`; asynchronous ones by `hfsad up` and by `hfsad run --replay` of its
record; a few by `hfsad path`. Recorded are the exit status, stderr and a hash of every file of the output folder. A trace
has a hash for each column; a summary is recorded by key; times are left out. An asynchronous federation never runs twice
alike, so the file keeps its record, and --compare replays that one.

Exit status: 0, 1 if something differs or a run and its federation are not alike, 2 for wrong arguments. Needs mosquitto.
Hashes hold for one machine: the last bits depend on libm and LAPACK.
"""
import argparse, concurrent.futures, hashlib, json, os, random, re, shutil, subprocess, sys, tempfile, threading

os.environ.setdefault("HFSAD_HISTORY", "none")  # these runs are nobody's

TESTS = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, TESTS)
import same_output  # noqa: E402 (its folder is known only now)

SHARED_FILES = "data"  # the folder with the data of all specs

# ---- the data ----


def write_rows(path, seed, kind, rows, features=4, clients=9, edges="abc", weighted=False):
    """A CSV with one line for each row; kind: what y is. Clients have different numbers of rows if there are many."""
    draw = random.Random(seed)
    truth = [(1.5, 0, -2, 0, 0.7, 0)[m % 6] for m in range(features)]
    with open(path, "w") as file:
        weight = ["weight"] if weighted else []
        edge_head = ["edge"] if edges else []
        file.write(",".join([*edge_head, "client", "y", *weight, *(f"x{m + 1}" for m in range(features))]) + "\n")
        for i in range(rows):
            client = i if i < clients else draw.randrange(clients)
            x = [draw.gauss(0, 1) for _ in truth]
            s = sum(a * b for a, b in zip(x, truth)) + 0.5
            noisy = s + draw.gauss(0, 0.4)
            y = {"line": noisy, "label": 1 if noisy > 0 else -1, "square": s * s, "count": int(abs(noisy))}[kind]
            edge = [edges[client % len(edges)]] if edges else []
            file.write(",".join(map(str, [*edge, f"c{client}", y, *([draw.uniform(0.5, 2)] if weighted else []), *x])) + "\n")


def write_sparse(path, seed):
    """LIBSVM lines of two edges; every second number is zero, the last never."""
    draw = random.Random(seed)
    with open(path, "w") as file:
        for i in range(60):
            x = {m: draw.gauss(0, 1) for m in range(1, 13) if m == 12 or draw.random() < 0.4}
            y = x.get(1, 0) - 2 * x.get(3, 0) + draw.gauss(0, 0.2)
            file.write(" ".join([str(y), *(f"{m}:{v}" for m, v in x.items()), "#", f"e{i % 2}/c{i % 8}"]) + "\n")


def write_deep(folder, seed):
    """A folder with clients three tiers below the cloud, and some two."""
    draw = random.Random(seed)
    for edge in ("r/a", "r/b", "s/c", "d"):
        os.makedirs(os.path.join(folder, edge))
        for c in range(3):
            with open(os.path.join(folder, edge, f"c{c}.csv"), "w") as file:
                file.write("y,u,v,w\n")
                for _ in range(draw.randint(2, 9)):
                    x = [draw.gauss(0, 1) for _ in range(3)]
                    file.write(",".join(map(str, [x[0] - x[2] + draw.gauss(0, 0.2) + 1, *x])) + "\n")


def make_data(program, folder):
    """Everything that the specs name. The generator's part belongs to what is recorded."""
    os.makedirs(folder)

    def path(name):
        return os.path.join(folder, name)

    write_rows(path("line.csv"), 1, "line", 90)
    write_rows(path("label.csv"), 2, "label", 90)
    write_rows(path("count.csv"), 8, "count", 90)
    write_rows(path("weights.csv"), 3, "line", 70, weighted=True)
    write_rows(path("one.csv"), 4, "square", 30, clients=30)
    write_rows(path("one-line.csv"), 5, "line", 30, clients=30, features=5)
    write_rows(path("star.csv"), 6, "line", 60, clients=7, edges="")
    write_rows(path("wide.csv"), 7, "line", 40, features=24, clients=10, edges="ab")
    write_rows(path("held.csv"), 8, "line", 50)
    write_sparse(path("sparse.svm"), 9)
    write_deep(path("deep"), 10)
    with open(path("label.csv")) as file, open(path("mislabelled.csv"), "w") as other:
        other.write(file.read().replace(",1,", ",2,", 1))
    with open(path("start.csv"), "w") as file:
        file.write("1\n0.1\n-1\n0.2\n")
    with open(path("far.csv"), "w") as file:
        file.write("1e160\n" * 4)
    kinds = {"phase": ["phase-retrieval", "--edges", "3", "--clients", "8", "--features", "6"],
             "quantile": ["quantile", "--edges", "2", "--clients", "5", "--features", "8", "--rows", "12", "--tau", "0.7"],
             "clusters": ["clustered", "--edges", "2", "--clients", "6", "--features", "4", "--rows", "15", "--minority", "0.3"],
             "classes": ["clustered", "--task", "classification", "--edges", "2", "--clients", "5", "--features", "5", "--rows", "20"]}
    for name, words in kinds.items():
        subprocess.run([program, "generate", *words, "--seed", "7", "--out", path(name), "--quiet"], check=True)


# ---- the specs ----

PHASE = "data: ../data/phase/data.csv\ntruth: ../data/phase/truth.csv\nloss: {kind: phase-retrieval, box: 5}\n"
ONE = "data: ../data/one.csv\nloss: {kind: phase-retrieval}\n"
ONE_LINE = "data: ../data/one-line.csv\nloss: {kind: absolute}\n"
DEEP = "data: ../data/deep\nloss: {kind: quantile, tau: 0.7}\n"
LABEL = "data: ../data/label.csv\n"
LINE = "data: ../data/line.csv\n"
SHORT = "run: {iterations: 12, edge_rounds: 3}\n"

# Trained by `hfsad run` and by `hfsad up`, which must leave the same.
SPECS = {
    "loss-phase": PHASE + "run: {iterations: 20, edge_rounds: 4}\n",
    "loss-phase-rows": LINE + "loss: {kind: phase-retrieval, scale: mean}\n" + SHORT,
    "loss-quantile": LINE + "loss: {kind: quantile, tau: 0.3}\n" + SHORT,
    "loss-absolute": LINE + "loss: {kind: absolute}\n" + SHORT,
    "loss-squared": LINE + "loss: {kind: squared, scale: mean}\n" + SHORT,
    "loss-huber": LINE + "loss: {kind: huber, delta: 0.7}\n" + SHORT,
    "loss-logistic": LABEL + "loss: {kind: logistic}\n" + SHORT,
    "loss-hinge": LABEL + "loss: {kind: hinge}\n" + SHORT,
    "loss-expectile": LINE + "loss: {kind: expectile, tau: 0.8}\n" + SHORT,
    "loss-smoothed-quantile": LINE + "loss: {kind: smoothed-quantile, tau: 0.3, h: 0.4}\n" + SHORT,
    "loss-poisson": "data: ../data/count.csv\nloss: {kind: poisson}\nfeatures: {intercept: global}\n" + SHORT,
    "one-quantile": "data: ../data/one-line.csv\nloss: {kind: quantile, tau: 0.8}\n" + SHORT,
    "one-squared": "data: ../data/one-line.csv\nloss: {kind: squared}\n" + SHORT,
    "one-huber": "data: ../data/one-line.csv\nloss: {kind: huber, box: 1}\n" + SHORT,
    "prior-l1": "data: ../data/wide.csv\nloss: {kind: absolute}\nprior: {cloud: {penalty: l1, lambda: 0.5}}\n" + SHORT,
    "prior-l2": "data: ../data/wide.csv\nloss: {kind: absolute}\nprior: {cloud: {penalty: l2, lambda: 0.5}}\n" + SHORT,
    "prior-elastic-net": "data: ../data/wide.csv\nloss: {kind: squared}\nprior: {edge: {penalty: elastic-net, ratio: 0.3}}\n" + SHORT,
    "prior-mcp": "data: ../data/wide.csv\nloss: {kind: huber}\nprior: {cloud: {penalty: mcp, lambda: 0.8, gamma: 3}}\n" + SHORT,
    "prior-scad": "data: ../data/wide.csv\nloss: {kind: squared}\nprior: {edge: {penalty: scad, lambda: 0.3}, "
                  "cloud: {penalty: scad, lambda: 0.5}}\n" + SHORT,
    "link-tv": ONE_LINE + "link: {client: {penalty: tv, weight: 2}, edge: {penalty: tv, lambda: 0.4}}\n" + SHORT,
    "link-mcp": "data: ../data/clusters/data.csv\nloss: {kind: quantile}\nlink: {client: {penalty: mcp}}\n" + SHORT,
    "link-scad": "data: ../data/classes/data.csv\nloss: {kind: logistic}\nlink: {client: {penalty: scad}, edge: {penalty: mcp}}\n" + SHORT,
    "link-one-row": ONE + "link: {client: {penalty: mcp}, edge: {penalty: scad}}\n" + SHORT,
    "sparse": "data: ../data/sparse.svm\nloss: {kind: absolute}\n" + SHORT,
    "sparse-linearized": "data: ../data/sparse.svm\nloss: {kind: huber, solver: linearized}\n" + SHORT,
    "weights": "data: ../data/weights.csv\nloss: {kind: quantile, tau: 0.6}\nfeatures: {intercept: global}\n" + SHORT,
    "intercept-client": LINE + "loss: {kind: absolute}\nfeatures: {intercept: client}\n" + SHORT,
    "intercept-edge": DEEP + "features: {intercept: edge, standardize: true}\nrun: {iterations: 15, edge_rounds: 3, trace_every: 4}\n",
    "intercept-global": LABEL + "loss: {kind: logistic}\nfeatures: {intercept: global, standardize: true}\n" + SHORT,
    "depth-1": "data: ../data/star.csv\nloss: {kind: huber}\n" + SHORT,
    "depth-3": DEEP + SHORT,
    "absences": ONE_LINE + "run: {iterations: 24, edge_rounds: 2, trace_every: 3, participation: "
                "{client: 0.3, edge: 0.6, at_least_every: 2}}\n",
    "absences-deep": DEEP + "run: {iterations: 16, edge_rounds: 3, participation: {client: 0.5, edge: 0.6}}\nfederation: {wire: delta}\n",
    "local-steps": ONE + "run: {iterations: 10, edge_rounds: 2, local_steps: 3}\n",
    "edge-rounds": PHASE + "run: {iterations: 8, edge_rounds: 20, seed: 5}\n",
    "overrides": LABEL + "loss: {kind: logistic}\nlink: {client: {penalty: mcp}}\n" + SHORT +
                 "overrides:\n  - {node: a/c3, loss: {kind: hinge}, local_steps: 3}\n"
                 "  - {node: b, prior: {penalty: mcp, lambda: 0.2, gamma: 3}}\n  - {node: 'c/*', participation: 0.4}\n",
    "paper": PHASE + "preset: paper\nrun: {iterations: 20, edge_rounds: 4, participation: {client: 0.5}}\n",
    "diverges": LINE + "loss: {kind: squared}\nrun: {iterations: 9, edge_rounds: 3, start: ../data/far.csv}\n",
    "start-consensus": ONE_LINE + "link: {client: {penalty: mcp}}\nrun: {iterations: 8, edge_rounds: 2, start: consensus}\n",
    "start-normal": ONE + "run: {iterations: 8, edge_rounds: 2, start: normal, seed: 3}\n",
    "start-spectral": ONE + "run: {iterations: 8, edge_rounds: 2, start: spectral, tries: 3}\n",
    "start-file": LINE + "loss: {kind: huber}\nrun: {iterations: 8, edge_rounds: 2, start: ../data/start.csv}\n",
    "repairs": ONE_LINE + "link: {edge: {weight: 2}}\nschedule: {edge: {c: 0.3}}\nrun: {iterations: 30, edge_rounds: 5, trace_every: 4}\n",
    "polish": DEEP + "features: {intercept: global, standardize: true}\nrun: {iterations: 10, edge_rounds: 2, polish: true}\n",
    "polish-prior": "data: ../data/quantile/data.csv\nloss: {kind: quantile, tau: 0.7}\nprior: {cloud: {penalty: l1, lambda: 2}}\n"
                    "run: {iterations: 20, edge_rounds: 2, polish: true}\n",
    "polish-phase": ONE + "run: {iterations: 30, edge_rounds: 2, polish: true}\n",
    "stop": LINE + "loss: {kind: squared}\nfeatures: {intercept: global}\nrun: {iterations: 300, edge_rounds: 3, stop: {relative: 0.05}}\n",
    "box": LABEL + "loss: {kind: hinge, box: 0.4}\n" + SHORT,
    "fedavg": LINE + "loss: {kind: absolute}\nalgorithm: fedavg\n" + SHORT,
    "fedprox": ONE + "algorithm: fedprox\nbaseline: {step: 0.05, rule: geometric}\n" + SHORT,
    "wire-float": DEEP + "features: {intercept: edge}\nfederation: {wire: float}\nrun: {iterations: 16, edge_rounds: 3, "
                  "participation: {client: 0.6, edge: 0.7}}\n",
    "refused": LINE + "loss: {kind: quantile, tau: 2}\n",
    "refused-data": "data: ../data/mislabelled.csv\nloss: {kind: hinge}\n",
    "processes": ONE + "run: {iterations: 5, edge_rounds: 2}\noutput: {clients: false}\n",
}
FURTHER = {"processes": ["--processes"]}  # words of `up`
MIXED = ("refused-data",)  # several processes of `up` write the line on stderr, and their letters may mix

# Trained by `hfsad up`, whose record is then replayed.
ASYNC = {
    "async": PHASE + "run: {iterations: 30, edge_rounds: 4}\nfederation: {mode: async, deadline: 0.2}\n",
    "async-float": PHASE + "run: {iterations: 20, edge_rounds: 4}\nfederation: {mode: async, deadline: 0.2, wire: float}\n",
    "async-deep": DEEP + "features: {intercept: client}\nrun: {iterations: 20, edge_rounds: 3, local_steps: 2}\n"
                  "federation: {mode: async, deadline: 0.2}\n",
    "async-links": ONE + "link: {client: {penalty: mcp}}\nrun: {iterations: 20, edge_rounds: 1, tries: 2}\n"
                   "federation: {mode: async, deadline: 0.2}\n",
}

# By `hfsad path`, with these words.
PATH_PRIOR = "prior: {cloud: {penalty: l1, weight: 1}}\n"
PATHS = {
    "path": ("data: ../data/wide.csv\nloss: {kind: quantile, tau: 0.4}\n" + PATH_PRIOR + SHORT, ["--lambdas", "6"]),
    "path-heldout": (LINE + "loss: {kind: huber}\nfeatures: {intercept: global}\n" + PATH_PRIOR + SHORT,
                     ["--lambdas", "4", "--heldout", "../data/held.csv"]),
    "path-polish": (LABEL + "loss: {kind: logistic}\n" + PATH_PRIOR + "run: {iterations: 12, edge_rounds: 3, polish: true}\n",
                    ["--lambdas", "1,0.3,0.1", "--heldout", "0.3"]),
}

# ---- what a command leaves ----


def hash_of(content):
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return hashlib.sha256(text).hexdigest()[:16]


def flat(tree, prefix=""):
    """(dotted key, value) of everything in a summary."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def leaves_of_file(path):
    """(item, hash or value) of one file of an output folder."""
    folder, name = os.path.split(path)
    content = same_output.content(folder, name)
    if name == "trace.csv":
        return [(f"{name}:{column[0]}", hash_of(column)) for column in zip(*content)]
    if name == "summary.json":
        return [(f"{name}:{key}", value) for key, value in flat(dict(content))]
    return [(name, hash_of(content))]


def leaves(folder):
    found = {}
    for where, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            if name != "record":  # differs in each run
                found.update({os.path.normpath(os.path.join(os.path.relpath(where, folder), item)): value
                              for item, value in leaves_of_file(os.path.join(where, name))})
    return found


class Recorder:
    def __init__(self, options, work):
        self.options, self.work, self.lock = options, work, threading.Lock()
        self.unlike = []  # what is not as it should be, whatever the baseline says

    def complain(self, line):
        with self.lock:
            self.unlike.append(line)

    def call(self, folder, out, words):
        """What a command leaves in a folder that is new to it."""
        sets = [word for setting in self.options.set for word in ("--set", setting)]
        temporary = os.path.join(folder, "tmp")
        os.makedirs(temporary, exist_ok=True)
        try:
            done = subprocess.run([self.options.hfsad, *words, *sets, "--out", out, "--quiet"], cwd=folder, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=self.options.seconds, env={**os.environ, "TMPDIR": temporary})
        except subprocess.TimeoutExpired:
            self.complain(f"{os.path.basename(folder)}: `hfsad {' '.join(words)}` has not ended after {self.options.seconds} s")
            return {"status": "none"}
        left = leaves(os.path.join(folder, out))
        if words[0] == "up" and os.path.basename(folder) in MIXED:
            return {"status": done.returncode, **left}
        return {"status": done.returncode, "stderr": done.stderr.decode(errors="replace"), **left}

    def same(self, name, first, second, found):
        """The federation leaves what the simulation leaves. The cloud of a federation has no file of data to name."""
        keys = [key for key in found[first].keys() | found[second].keys() if key not in ("stderr",)]
        different = sorted(key for key in keys if found[first].get(key) != found[second].get(key))
        if different:
            self.complain(f"{name}: `{first}` and `{second}` are not alike in {', '.join(different)}")

    def one(self, name, before):
        """What the commands of a spec leave; before: the same of the baseline, or nothing."""
        folder = os.path.join(self.work, name)
        os.makedirs(folder)
        with open(os.path.join(folder, "spec.yaml"), "w") as file:
            file.write(SPECS.get(name) or ASYNC.get(name) or PATHS[name][0])
        if name in PATHS:
            found = {"path": self.call(folder, "out", ["path", "spec.yaml", *PATHS[name][1], "--no-plot"])}
        elif name in ASYNC:
            found = self.replayed(name, folder, before)
        else:
            found = {"run": self.call(folder, "run", ["run", "spec.yaml"]),
                     "up": self.call(folder, "up", ["up", "spec.yaml", *FURTHER.get(name, [])])}
            if found["run"]["status"] in (0, 1):
                self.same(name, "run", "up", found)
        if not self.options.keep:
            shutil.rmtree(folder)
        return found

    def replayed(self, name, folder, before):
        """The federation and its replay are alike; what is compared with the baseline is the baseline's record replayed."""
        up = self.call(folder, "up", ["up", "spec.yaml"])
        if up["status"] != 0:
            return {"up": up}
        replay = self.call(folder, "replay", ["run", "spec.yaml", "--replay", "up/record"])
        self.same(name, "up", "replay", {"up": up, "replay": replay})
        with open(os.path.join(folder, "up", "record")) as file:
            text = file.read()
        if before and "record" in before:
            text = before["record"]
            with open(os.path.join(folder, "record"), "w") as file:
                file.write(text)
            replay = self.call(folder, "before", ["run", "spec.yaml", "--replay", "record"])
        return {"record": text, "replay": replay}

    def all(self, names, before):
        make_data(self.options.hfsad, os.path.join(self.work, SHARED_FILES))
        found = {SHARED_FILES: {"generate": leaves(os.path.join(self.work, SHARED_FILES))}}
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as threads:
            waiting = {name: threads.submit(self.one, name, before.get(name)) for name in names}
            found.update({name: future.result() for name, future in waiting.items()})
        return found


# ---- the comparison ----


def differences(before, after, ignore):
    """A line for each thing that is not as it was."""
    for name in sorted(before.keys() & after.keys()):
        for command in sorted(before[name].keys() | after[name].keys()):
            old, new = before[name].get(command), after[name].get(command)
            if command == "record":
                continue
            if old is None or new is None:
                yield f"{name}: `{command}` is only in the {'new' if old is None else 'old'} build"
                continue
            for item in sorted(old.keys() | new.keys()):
                line = f"{name}: {command}: {item}"
                if old.get(item) == new.get(item) or (ignore and ignore.search(line)):
                    continue
                values = [f"{value!r}" for value in (old.get(item, "nothing"), new.get(item, "nothing"))]
                yield f"{line}: {values[0]} before, {values[1]} now"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hfsad", default=os.environ.get("HFSAD", os.path.join(TESTS, "..", "build", "hfsad")), metavar="PROGRAM",
                        help="the build ($HFSAD, or build/hfsad)")
    parser.add_argument("--record", metavar="FILE", help="write what it leaves")
    parser.add_argument("--compare", metavar="FILE", help="print where it leaves something else than FILE says")
    parser.add_argument("--only", type=re.compile, metavar="REGEX", help="the specs whose name matches")
    parser.add_argument("--ignore", type=re.compile, metavar="REGEX",
                        help="no word about differences that match, such as 'stderr' or 'summary.json:converged'")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting for all specs, such as run.polish=false")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="specs at the same time (one per core)")
    parser.add_argument("--seconds", type=float, default=120, metavar="S", help="limit of each command (120)")
    parser.add_argument("--keep", metavar="FOLDER", help="work there, and leave everything")
    parser.add_argument("--list", action="store_true", help="print the names of the specs and do nothing")
    options = parser.parse_args()
    options.hfsad = os.path.realpath(options.hfsad)
    options.names = [name for name in [*SPECS, *ASYNC, *PATHS] if not options.only or options.only.search(name)]
    if not options.names:
        parser.error("no spec has a name like that; --list prints them")
    if not options.list and not os.access(options.hfsad, os.X_OK):
        parser.error(f"{options.hfsad} is no program; --hfsad names it")
    return options


def work_folder(options):
    """States are synced at every round; in memory that takes no time."""
    if options.keep:
        os.makedirs(options.keep)
        return options.keep
    return tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


def main():
    options = arguments()
    if options.list:
        print("\n".join(options.names))
        return 0
    os.environ["PATH"] += ":/usr/sbin"  # mosquitto is there
    before = {}
    if options.compare:
        with open(options.compare) as file:
            before = json.load(file)
    work = work_folder(options)
    try:
        recorder = Recorder(options, work)
        found = recorder.all(options.names, before)
    finally:
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)
    if options.record:
        with open(options.record, "w") as file:
            json.dump(found, file, indent=1)
    lines = recorder.unlike + list(differences(before, found, options.ignore))
    print("\n".join(lines + [f"{len(options.names)} specs, {len(lines)} differences"]))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
