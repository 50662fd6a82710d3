#!/usr/bin/env python3
"""Random specs over random data, each run by `hfsad run` and by `hfsad up`, which must end alike and leave the same files.

What is drawn: a tree of depth 1 to 4 with odd names among the plain ones, the form of the data, the loss and most other
settings. A spec that is refused must be refused by both, in the same words. Modes:

  plain  nobody is disturbed
  kill   processes of the federation are killed with -9 or frozen at drawn moments, and the wall clock jumps
  stop   `up` itself gets SIGINT, SIGTERM or SIGKILL up to four times and is started again; where it has left a
         checkpoint, `run --resume` must go on from there to the same end as well
  lose   state folders of clients and edges are removed with their process, and the nodes are readmitted; `run --replay`
         must leave the same files
  async  the federation is asynchronous, and processes are killed or frozen; `run --replay` of its record must leave the
         same model and trace
  fleet  the same, clients leave, join late and join again, and clients and edges lose their state folders and are readmitted; rows and
         the end go without the absent
  diverge  as kill, with steps and data under which runs diverge
  damage   all processes are killed, and a file of a state folder is spoiled: the same files or a refusal that names the folder
  old      the same with old copies of state folders
  liar     a party with the secret of the federation sends messages of a client that no rows can give: the same files, or the client is named

A seed fixes data, spec and, as far as processes allow it, what is done to them. The cases of one call have the seeds SEED, SEED + 1, ….
A failure is printed with its seed, and its folder is kept. Exit status: 0, 1 after a failure or where too few of the
specs were trained, 2 for wrong arguments. Needs mosquitto.
"""
import argparse, glob, json, os, random, select, shutil, signal, subprocess, sys, tempfile, time

import random_attacks as attacks

os.environ.setdefault("HFSAD_HISTORY", "none")  # these runs are nobody's

TESTS = os.path.dirname(os.path.realpath(__file__))
ODD_NAMES = ["a b", "édge", "x" * 120, "日本", "a_b", "a", "a-clients", "%s", "$HOME", "a;b", "-x", "..x", "a*b", "run", "e\\"]
ENDED = (0, 1)  # a run that is over, well or not
STOPS, KILLS = 4, 25  # of one case at most
MODES = ["plain", "kill", "stop", "lose", "async", "fleet", "diverge", "damage", "old", "liar"]


class Failure(Exception):
    pass


# ---- what is drawn ----


def draw_clients(draw, one_edge_each):
    """Paths of clients, all as deep; where each has one edge only, no name of a client is there twice."""
    depth = draw.choice([1, 2, 2, 2, 3, 4])

    def name(plain):
        return draw.choice(ODD_NAMES) if draw.random() < 0.15 else plain

    def fits(paths):
        return len(paths) <= 14 and not (one_edge_each and len({path[-1] for path in paths}) < len(paths))

    def below(path, tiers):
        paths = set()
        for i in range(draw.choice([1, 1, 2, 3])):
            if tiers > 1:
                paths |= below(path + (name(f"n{tiers}_{i}"),), tiers - 1)
            else:
                paths.add(path + (name(f"c{draw.randrange(1000) if one_edge_each else i}"),))
        return paths

    clients = sorted(below((), depth))
    while not fits(clients):
        clients = sorted(below((), depth))
    draw.shuffle(clients)
    return clients


def draw_rows(draw, classes, sparse):
    """A function that draws the rows of a client, (y, weight or None, x), and the truth behind them."""
    truth = [draw.gauss(0, 1) for _ in range(draw.choice([1, 1, 2, 3, 5, 9]))]
    weighted, least = not sparse and draw.random() < 0.2, draw.choice([1, 1, 3, 8])

    def row():
        x = [0.0 if sparse and draw.random() < 0.5 else draw.gauss(0, 1) for _ in truth]
        y = sum(a * b for a, b in zip(x, truth)) + draw.gauss(0, 0.3)
        return (1 if y > 0 else -1) if classes else abs(y), draw.uniform(0.5, 2) if weighted else None, x

    def rows():
        return [row() for _ in range(least + (draw.randrange(3) if least > 1 else 0))]

    return rows, truth


def csv_line(*fields):
    return ",".join(str(f) for f in fields if f is not None) + "\n"


def csv_head(truth, rows):
    return "y", "weight" if rows[0][1] is not None else None, *(f"x{m}" for m in range(len(truth)))


def write_csv(path, clients, rows_of, truth):
    deep = len(clients[0]) > 1
    with open(path, "w") as file:
        file.write(csv_line("edge" if deep else None, "client", *csv_head(truth, rows_of[clients[0]])))
        for client in clients:
            for y, weight, x in rows_of[client]:
                file.write(csv_line("/".join(client[:-1]) if deep else None, client[-1], y, weight, *x))


def write_svm(path, clients, rows_of, truth):
    with open(path, "w") as file:
        for client in clients:
            for y, _, x in rows_of[client]:
                # the last feature is always there, so that all files have as many
                kept = [f"{m + 1}:{v}" for m, v in enumerate(x) if v or m == len(truth) - 1]
                file.write(" ".join([str(y), *kept, "#", "/".join(client)]) + "\n")


def write_folder(path, clients, rows_of, truth):
    for client in clients:
        own = os.path.join(path, *client) + ".csv"
        os.makedirs(os.path.dirname(own), exist_ok=True)
        with open(own, "w") as file:
            file.write(csv_line(*csv_head(truth, rows_of[client])))
            for y, weight, x in rows_of[client]:
                file.write(csv_line(y, weight, *x))


def draw_data(draw, folder, classes):
    """Its name in the folder, and the clients; the truth goes to truth.csv."""
    forms = {"data.csv": write_csv, "data.svm": write_svm, "data": write_folder}
    name = draw.choice(["data.csv", "data.csv", "data.svm", "data"])
    clients = draw_clients(draw, name == "data.csv")
    while name == "data" and any(part.startswith(".") for client in clients for part in client):
        clients = draw_clients(draw, False)  # a folder's hidden files are nobody's
    rows, truth = draw_rows(draw, classes, name == "data.svm")
    forms[name](os.path.join(folder, name), clients, {client: rows() for client in clients}, truth)
    with open(os.path.join(folder, "truth.csv"), "w") as file:
        file.writelines(f"{v}\n" for v in truth)
    return name, clients


def draw_overrides(draw, clients):
    changes = [{"local_steps": 3}, {"participation": 0.5}, {"loss": {"box": 2}}, {"schedule": {"c": 0.5}},
               {"link": {"penalty": "mcp"}}, {"loss": {"scale": "mean"}}]
    return [{"node": "/".join(draw.choice(clients)), **draw.choice(changes)}]


def draw_run(draw, longer):
    run = {"iterations": draw.choice([20, 40] if longer else [1, 2, 4, 7, 25]), "edge_rounds": draw.choice([1, 2, 5]),
           "seed": draw.randrange(100), "trace_every": draw.choice([1, 1, 1, 2, 3])}
    if draw.random() < 0.2:
        run["tries"] = draw.choice([2, 3])
    if draw.random() < 0.2:
        run["polish"] = True
    if draw.random() < 0.3:
        run["participation"] = {"client": draw.choice([0.2, 0.7, 0]), "edge": draw.choice([0.4, 1]),
                                "at_least_every": draw.choice([1, 3, 20])}
    if draw.random() < 0.15:
        run["start"] = draw.choice(["consensus", "normal", "zero"])
    if draw.random() < 0.2:
        run["local_steps"] = draw.choice([2, 5])
    if draw.random() < 0.2:
        run["stop"] = {"absolute": draw.choice([0.05, 1e-3]), "relative": draw.choice([0, 0.05])}
    return run


def draw_spec(draw, folder, longer):
    """Writes spec.yaml and its data, and returns the name of these."""
    classes = draw.random() < 0.3
    loss = draw.choice(["logistic", "hinge", "quantile", "squared"] if classes
                       else ["phase-retrieval", "quantile", "absolute", "squared", "huber"])
    data, clients = draw_data(draw, folder, classes)
    spec = {"data": data, "loss": {"kind": loss}, "preset": draw.choice(["tuned", "tuned", "paper"]),
            "run": draw_run(draw, longer), "federation": {"wire": draw.choice(["double", "double", "delta", "float"])}}
    if draw.random() < 0.3:
        spec["loss"]["box"] = draw.choice([0.5, 3])
    if draw.random() < 0.3:
        spec["loss"]["scale"] = "mean"
    if draw.random() < 0.2:
        spec["loss"]["solver"] = "linearized"
    if loss != "phase-retrieval":
        spec["features"] = {"intercept": draw.choice(["none", "client", "edge", "global"]),
                            "standardize": len(clients) > 1 and draw.random() < 0.3}  # a single row cannot be
    if draw.random() < 0.3:
        spec["truth"] = "truth.csv"
    if draw.random() < 0.15:
        spec["link"] = {tier: {"penalty": draw.choice(["tv", "mcp", "scad", "none", "group-mcp", "group-scad"])} for tier in ("client", "edge")}
    if draw.random() < 0.2:
        spec["prior"] = {"cloud": {"penalty": draw.choice(["l1", "mcp", "scad"]), "lambda": 0.3}}
    if draw.random() < 0.15:
        spec["output"] = {draw.choice(["clients", "state", "checkpoint"]): False}
    if draw.random() < 0.1:
        spec["schedule"] = {"client": {"c": draw.choice([1e-3, 0.1, 1e30, 1e300])}}
    if draw.random() < 0.15:
        spec["overrides"] = draw_overrides(draw, clients)
    if draw.random() < 0.2:
        spec["algorithm"] = draw.choice(["fedavg", "fedprox"])
        if spec["federation"]["wire"] == "float":  # only links round
            spec["federation"]["wire"] = "double"
    elif not spec["run"].get("polish") and draw.random() < 0.15:
        spec["aggregate"] = draw.choice(["trimmed", "median"])
    if draw.random() < 0.15:
        spec["federation"]["name"] = draw.choice(["a b", "é", "x" * 60, "run1"])
    with open(os.path.join(folder, "spec.yaml"), "w") as file:
        json.dump(spec, file, ensure_ascii=False)
    return data


# ---- processes ----


def tick():
    select.select([], [], [], 0.001)


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def command_line(pid):
    """Its words; none: it is dead, and only its parent does not know yet."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def changed_at(path):
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


class Case:
    """One spec in a folder of its own."""

    def __init__(self, options, mode, seed, folder):
        self.program, self.patience, self.mode, self.folder = options.program, options.patience, mode, folder
        self.draw = random.Random(f"{mode} {seed}")
        self.done = []  # what was done to it
        self.lost = []  # state folders that were removed
        self.temporary = self.path("tmp")
        os.makedirs(self.temporary)
        self.data = draw_spec(self.draw, folder, mode != "plain")
        self.environment = {**os.environ, "TMPDIR": self.temporary}
        if options.clock and mode in ("kill", "async", "fleet"):
            with open(self.path("clock"), "wb") as file:
                file.write(bytes(8))
            self.environment.update(LD_PRELOAD=options.clock, HFSAD_CLOCK=self.path("clock"))
        self.up = ["up", "spec.yaml", "--out", "up", "--state", "state", "--quiet"]
        self.up += ["--processes"] if self.draw.random() < 0.4 else []

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def start(self, arguments, log):
        """It does not outlive this program, however that ends."""
        with open(self.path(log), "a") as file:
            return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", self.program, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL,
                                    stdout=file, stderr=subprocess.STDOUT, env=self.environment)

    def wait(self, process, what):
        try:
            return process.wait(timeout=self.patience)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            raise Failure(f"{what} has not ended after {self.patience} s") from None

    def call(self, *arguments, log):
        return self.wait(self.start(arguments, log), arguments[0])

    def said(self, log):
        with open(self.path(log), errors="replace") as file:
            return file.read().strip()

    def a_moment(self, process):
        """Until the state of a process that is drawn has changed so many times, or has not for some time."""
        end = time.monotonic() + self.draw.choice([0.01, 0.05, 0.2, 1])
        changes, which = self.draw.randint(1, 30), self.draw.random()
        watched = last = None
        while changes and time.monotonic() < end and process.poll() is None:
            tick()
            if watched is None:
                marks = sorted(glob.glob(self.path("state", "*", "mark")))
                watched = marks[int(which * len(marks))] if marks else None
                last = changed_at(watched) if watched else None
            elif (now := changed_at(watched)) != last:
                changes, last = changes - 1, now

    def compare(self, folder):
        """Fails where an output folder is not that of `hfsad run`."""
        wanted, found = (sorted(os.listdir(path)) if os.path.isdir(path) else None for path in (self.path("run"), self.path(folder)))
        if wanted != found:
            raise Failure(f"{folder} has the files {found}, run has {wanted}")
        if wanted is None:
            return
        further = [name for name in wanted if name not in ("model.csv", "trace.csv", "summary.json")]
        told = subprocess.run([sys.executable, os.path.join(TESTS, "same_output.py"), "run", folder, *further], cwd=self.folder,
                              capture_output=True, text=True)
        if told.returncode:
            raise Failure((told.stdout + told.stderr).strip())

    def left_over(self):
        """Processes whose current folder is still ours."""
        mine, found = os.path.realpath(self.folder), []
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            try:
                if os.readlink(f"/proc/{pid}/cwd") == mine:
                    found.append(pid)
            except OSError:
                pass
        return found

    # ---- the modes ----

    def plain(self):
        return self.call(*self.up, log="up.log")

    def alive(self, process):
        """Processes of a federation. One with the words of `up` may be a thread of the leak sanitizer: if that is killed, `up` waits for ever."""
        return [pid for pid in children(process.pid) if command_line(pid) not in (b"", command_line(process.pid))]

    def kill_one(self, process):
        if (alive := self.alive(process)) and process.poll() is None:
            try:
                os.kill(self.draw.choice(alive), signal.SIGKILL)  # it is a child that `up` has not waited for, or none
                self.done.append("kill")
            except ProcessLookupError:
                pass

    def jump(self, _process):
        if "HFSAD_CLOCK" in self.environment:
            attacks.jump(self.draw, self.path("clock"))
            self.done.append("jump")

    def disturb(self, process, *ways):
        """One of the ways after another, until the process ends."""
        end = time.monotonic() + self.patience
        while process.poll() is None and len(self.done) < KILLS and time.monotonic() < end:
            self.a_moment(process)
            self.draw.choice(ways)(process)
        return self.wait(process, f"up, after {self.done},")

    def kill(self):
        return self.disturb(self.start(self.up, "up.log"), self.kill_one, self.kill_one, self.kill_one, self.freeze, self.jump)

    def diverge(self):
        return self.kill()

    def stop(self):
        for _ in range(STOPS):
            process = self.start(self.up, "up.log")
            for _ in range(self.draw.choice([1, 1, 3])):
                self.a_moment(process)
            how = self.draw.choice([signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
            begun = bool(children(process.pid))  # before that it has nothing to bring to an end, and a signal may just end it
            if process.poll() is None:
                process.send_signal(how)
                self.done.append(how.name)
            status = self.wait(process, f"up, after {self.done},")
            at_once = status == -how and (how == signal.SIGKILL or not begun)
            if not at_once and status != 128 + how:
                return status
            if not at_once and os.path.exists(self.path("up", "checkpoint.bin")):
                self.resume()
        return self.call(*self.up, log="up.log")

    def resume(self):
        shutil.copytree(self.path("up"), self.path("resumed"))
        status = self.call("run", "--resume", "resumed", "--quiet", log="resume.log")
        if status != self.wanted:
            raise Failure(f"run --resume: exit status {status}, of run {self.wanted}; after {self.done}: {self.said('resume.log')}")
        self.compare("resumed")
        shutil.rmtree(self.path("resumed"))
        self.done.append("resumed")

    def change_spec(self, change):
        with open(self.path("spec.yaml")) as file:
            spec = json.load(file)
        change(spec)
        with open(self.path("spec.yaml"), "w") as file:
            json.dump(spec, file, ensure_ascii=False)

    def make_async(self, spec):
        """The spec as an asynchronous one that waits for all, so that every row has all nodes; or, of a fleet, for none."""
        spec["run"] = {**{key: v for key, v in spec["run"].items() if key != "participation"}, "polish": False}
        spec["federation"].update(mode="async", quorum=self.draw.choice([0.2, 0.5, 1]), deadline=self.draw.choice([0.05, 1]), stale="wait")
        if self.mode == "fleet":
            spec["federation"].update(stale="go_on", stale_seconds=self.draw.choice([0.05, 1]), join_seconds=self.draw.choice([0.2, 1, 60]))
            spec["run"].update(iterations=self.draw.choice([40, 100, 400]), trace_every=self.draw.choice([1, 10]))
            spec["output"] = {"every_seconds": 0.05}
        for key in ("algorithm", "baseline"):
            spec.pop(key, None)  # hfsad alone is asynchronous
        for override in spec.get("overrides", []):
            override.pop("participation", None)
        spec["overrides"] = [o for o in spec.get("overrides", []) if len(o) > 1]

    def make_divergent(self, spec):
        spec["algorithm"] = "hfsad"
        labels = spec["loss"]["kind"] in ("logistic", "hinge")  # y has two values only
        kind = "schedule" if labels else self.draw.choice(["schedule", "data", "both"])
        if kind != "data":
            spec["schedule"] = {"client": {"c": self.draw.choice([1e-95, 1e-60, 1e-30, 1e-12, 1e30, 1e95])}}
        if spec["loss"]["kind"] in ("squared", "huber", "logistic", "phase-retrieval"):
            spec["loss"]["solver"] = "linearized"
        spec["loss"].pop("box", None)
        spec["run"].pop("polish", None)
        if self.draw.random() < 0.5:  # a start from which squares overflow, soon or at once
            spec["run"]["start"] = "start.txt"
            with open(self.path("truth.csv")) as file:
                features = len(file.read().split())
            with open(self.path("start.txt"), "w") as file:
                file.write(f"{self.draw.choice([1e60, 1e120, 1e152, 1e160, 1e200])}\n" * features)
        if kind != "schedule":
            self.scale_data(self.draw.choice([1e20, 1e100, 1e145]))

    def scale_data(self, factor):
        """Each y of a file with one column y before the features."""
        for path in [self.path("data.csv")] + glob.glob(self.path("data", "**", "*.csv"), recursive=True):
            if not os.path.exists(path):
                continue
            with open(path) as file:
                head, *lines = file.read().splitlines()
            at = head.split(",").index("y")
            rows = [line.split(",") for line in lines]
            with open(path, "w") as file:
                file.write("\n".join([head] + [",".join([*row[:at], repr(float(row[at]) * factor), *row[at + 1:]]) for row in rows]) + "\n")

    def freeze(self, process):
        alive = self.alive(process)
        if not alive:
            return
        victim = self.draw.choice(alive)
        try:
            os.kill(victim, signal.SIGSTOP)
            self.a_moment(process)
            os.kill(victim, signal.SIGCONT)
            self.done.append("freeze")
        except ProcessLookupError:
            pass

    def clients(self):
        with open(self.path("state", "+nodes")) as file:
            return [line.rstrip("\n") for line in file if not line.startswith(("features ", "feature ")) and not line.endswith("/\n")]

    def order(self, process, command, nodes):
        """`hfsad readmit` or `retire`, as long as the run takes."""
        asked = self.start([command, "--state", "state/cloud", "--wait", "20", "--", *nodes], command + ".log")
        while asked.poll() is None and process.poll() is None:
            tick()
        if asked.poll() is None:
            asked.kill()
        if asked.wait() == 0:
            self.done.append(command)

    def change_fleet(self, process):
        """A client leaves, or one that has left is let in again: its process, if it lives, goes on."""
        try:
            clients = self.clients()
        except OSError:
            return
        if self.gone and self.draw.random() < 0.5:
            self.order(process, "readmit", [self.gone.pop(self.draw.randrange(len(self.gone)))])
        elif len(self.gone) + 1 < len(clients):
            self.gone.append(self.draw.choice([client for client in clients if client not in self.gone]))
            self.order(process, "retire", [self.gone[-1]])

    def check_async(self):
        """The exit status, if the replay leaves what the federation has left."""
        self.change_spec(self.make_async)
        self.gone = []
        ways = [self.freeze, self.kill_one, self.jump] + [self.change_fleet, self.lose] * (self.mode == "fleet")
        return self.check_replay(self.disturb(self.start(self.up, "up.log"), *ways))

    def check_replay(self, found):
        if found not in ENDED or not os.path.exists(self.path("up", "record")):
            return found
        if self.is_unrepeatable(self.path("up", "record")):
            self.done.append("unrepeatable")
            return found
        again = self.call("run", "spec.yaml", "--replay", "up/record", "--out", "run", "--quiet", log="run.log")
        if again != found:
            raise Failure(f"exit status {found} of up, {again} of run --replay: {self.said('run.log')}; after {self.done}")
        told = subprocess.run([sys.executable, os.path.join(TESTS, "same_output.py"), "--models", "run", "up"], cwd=self.folder,
                              capture_output=True, text=True)
        if told.returncode:
            raise Failure((told.stdout + told.stderr).strip())
        return found

    # ---- states and lies ----

    def cut_off(self, log="up.log"):
        """An `up` that is killed with all its processes at a drawn moment; its exit status if it was faster."""
        process = self.start(self.up, log)
        for _ in range(self.draw.choice([1, 3, 6])):
            self.a_moment(process)
        process.kill()
        status = process.wait()
        end = time.monotonic() + 20
        while self.left_over() and time.monotonic() < end:
            tick()
        return None if status == -signal.SIGKILL else status

    def spoil(self):
        if self.mode == "damage":
            what = attacks.damage(self.draw, self.path("state")) if attacks.folders_of(self.path("state")) else None
            return what and [what[1]]
        shutil.copytree(self.path("state"), self.path("old"), ignore=shutil.ignore_patterns("+*"))
        if self.cut_off() is not None or not os.path.isdir(self.path("state")):
            return None
        return attacks.old_copy(self.draw, self.path("state"), self.path("old"))

    def check_spoiled(self):
        """After a damage or with an old copy: the end of a run as if nothing had been, or a refusal that names the folder."""
        asynchronous = self.draw.random() < 0.4
        if asynchronous:
            self.change_spec(self.make_async)
        else:
            self.wanted = self.call("run", "spec.yaml", "--out", "run", "--quiet", log="run.log")
            if self.wanted not in ENDED:
                return self.wanted
        early = self.cut_off()
        if early is not None or not os.path.isdir(self.path("state")):
            self.done.append("too early")
            return 0 if early is None else early
        spoiled = self.spoil()
        begun = time.monotonic()
        found = self.call(*self.up, log="last.log")
        self.done.append(self.mode if spoiled else "too late")
        said = self.said("last.log")
        if spoiled and found == 2:
            # a folder of clients is named by its path, or by one of its clients
            if not any(word in said for name in spoiled for word in (name, name.replace("+", "/"), name.replace("++clients", "/").replace("+", "/"))):
                raise Failure(f"{spoiled} is not named: {said}")
            if time.monotonic() - begun > max(45, self.patience / 2):
                raise Failure(f"refused after {time.monotonic() - begun:.0f} s")
            self.done.append("refused")
            return 0
        if asynchronous:
            return self.check_replay(found)
        if found != self.wanted:
            raise Failure(f"exit status {found} of up, {self.wanted} of run; after {self.mode} of {spoiled}: {said[-300:]}")
        self.leave_state_out(said, spoiled or [])
        self.compare("up")
        return found

    def leave_state_out(self, said, folders):
        """A folder that was lost or replaced when its node had ended: the output has no state of it, and a line names the folder."""
        if "has no state.csv" not in said:
            return
        if not any(f"the state folder state/{folder} " in said for folder in folders):
            raise Failure(f"{folders} is not named: {said[-300:]}")
        for name in ("state.csv", "checkpoint.bin"):
            if os.path.exists(self.path("run", name)):
                os.remove(self.path("run", name))

    def check_liar(self):
        """In lock step the bytes of `run`, or an end that names the client; asynchronous: an end, and the replay has the same bytes."""
        asynchronous, patient = self.draw.random() < 0.5, self.draw.random() < 0.7

        def change(spec):
            for key in ("algorithm", "schedule"):
                spec.pop(key, None)  # links have bounds, if the steps are tame
            spec["algorithm"] = "hfsad"
            spec["federation"]["wire"] = "double"
            spec["run"]["iterations"] = self.draw.choice([40, 100])
            if asynchronous:
                self.make_async(spec)
            spec["federation"]["exclude_after"] = 1000000 if patient else 3
        self.change_spec(change)
        with open(self.path("spec.yaml")) as file:
            run = json.load(file)["federation"].get("name", "run")
        self.wanted = self.call("run", "spec.yaml", "--out", "run", "--quiet", log="run.log") if not asynchronous else 0
        if self.wanted not in ENDED:
            return self.wanted
        process = self.start(self.up, "up.log")
        while process.poll() is None and not os.path.exists(self.path("state", "+broker.conf")):
            tick()
        if process.poll() is None:
            client = self.draw.choice(self.clients())
            liar = attacks.Liar(self.draw, self.path("state"), run, client.split("/"))
            liar.start()
        found = self.wait(process, "up, beside a liar,")
        liar.over.set()
        liar.join()
        self.done += ["lie"] * liar.lies
        if asynchronous:
            shutil.rmtree(self.path("run"), ignore_errors=True)
            return self.check_replay(found)
        if found != self.wanted and not patient:
            if client not in self.said("up.log"):
                raise Failure(f"the liar {client} is not named: {self.said('up.log')}")
            self.done.append("named")
            return 0
        if found != self.wanted:
            raise Failure(f"exit status {found} of up, {self.wanted} of run; a liar for {client}: {self.said('up.log')[-300:]}")
        self.compare("up")
        return found

    def lose(self, process):
        """Ends a process with its state folder, while `up` does not look, and readmits its nodes."""
        def words(pid):
            return [word.decode() for word in command_line(pid).split(b"\0")]

        alive = [pid for pid in children(process.pid) if words(pid)[1:2] in (["client"], ["edge"])]
        if not alive:
            return
        victim = self.draw.choice(alive)
        options = words(victim)
        state = options[options.index("--state") + 1]
        name = next(word.split("=", 1)[1] for word in options if word.startswith(("--name=", "--all-of=")))
        nodes = [name]
        if self.mode == "fleet" and any(path.startswith(name + "/") and path.count("/") > name.count("/") + 1 for path in self.clients()):
            return  # asynchronous: only clients and their edges begin anew
        if f"--all-of={name}" in options:
            nodes = [path for path in self.clients() if ("/" in path and path.rsplit("/", 1)[0] == name) or (name == "cloud" and "/" not in path)]
        try:
            process.send_signal(signal.SIGSTOP)
            os.kill(victim, signal.SIGKILL)
            while words(victim) != [""]:
                tick()
            shutil.rmtree(self.path(state), ignore_errors=True)
        except ProcessLookupError:
            return
        finally:
            process.send_signal(signal.SIGCONT)
        self.done.append("lose")
        self.lost.append(os.path.basename(state))
        self.order(process, "readmit", nodes)

    def check_lose(self):
        process, end = self.start(self.up, "up.log"), time.monotonic() + self.patience
        while process.poll() is None and self.done.count("lose") < 4 and time.monotonic() < end:
            self.a_moment(process)
            self.lose(process)
        found = self.wait(process, f"up, after {self.done},")
        if found not in ENDED:
            if self.call("run", "spec.yaml", "--out", "run", "--quiet", log="run.log") == found:
                return found
            raise Failure(f"exit status {found} of up after {self.done}: {self.said('up.log')[-300:]}")
        replay = []
        if os.path.exists(self.path("up", "record")):
            os.rename(self.path("up", "record"), self.path("record"))
            if not self.is_unrepeatable(self.path("record")):
                replay = ["--replay", "record"]
            else:
                self.done.append("unrepeatable")
                return found
        self.wanted = self.call("run", "spec.yaml", *replay, "--out", "run", "--quiet", log="run.log")
        if found != self.wanted:
            raise Failure(f"exit status {found} of up, {self.wanted} of run; after {self.done}")
        self.leave_state_out(self.said("up.log"), self.lost)
        self.compare("up")
        return found

    def is_unrepeatable(self, record):
        """A node was readmitted in a stage before the run."""
        with open(record, errors="replace") as file:
            return any(line.startswith("cloud admitted ") and line.split()[4] == "2" for line in file)

    def check_refusal(self):
        """In one line, by both the same, and nothing is written. The cloud of a federation has no file of data to name."""
        run, up = self.said("run.log"), self.said("up.log")
        if self.wanted != 2 or "\n" in run or up not in (run, run.replace(self.data, "the clients' data", 1)):
            raise Failure(f"exit status {self.wanted}, run says '{run}', up says '{up}'")
        if os.path.exists(self.path("run")):
            raise Failure("a spec that is refused has an output folder")

    def check(self):
        """The exit status of both, if they are alike."""
        if self.mode in ("async", "fleet"):
            return self.check_async()
        if self.mode in ("damage", "old"):
            return self.check_spoiled()
        if self.mode == "liar":
            return self.check_liar()
        if self.mode == "lose":
            self.change_spec(lambda spec: spec.pop("algorithm", None))  # fedavg and fedprox have no links that could start anew
            return self.check_lose()
        if self.mode == "diverge":
            self.change_spec(self.make_divergent)
        self.wanted = self.call("run", "spec.yaml", "--out", "run", "--quiet", log="run.log")
        trained = self.wanted in ENDED
        found = getattr(self, self.mode)() if trained else self.plain()
        if found != self.wanted:
            raise Failure(f"exit status {found} of up, {self.wanted} of run; after {self.done}")
        self.compare("up")
        if not trained:
            self.check_refusal()
        if found != 1 and os.path.exists(self.path("state")):
            raise Failure("the state is still there")
        logs = "".join(self.said(os.path.basename(path)) for path in glob.glob(self.path("*.log")))
        if "Sanitizer" in logs or "runtime error" in logs:  # of a process that was then started again
            raise Failure("a sanitizer's report")
        if self.mode == "plain" and self.wanted == 0 and logs:
            raise Failure(f"nobody was disturbed, and yet: {logs}")
        end = time.monotonic() + 10
        while (pids := self.left_over()) and time.monotonic() < end:  # orphans are dying
            tick()
        if pids:
            raise Failure(f"processes are left: {pids}")
        if os.listdir(self.temporary):
            raise Failure(f"files are left: {os.listdir(self.temporary)}")
        return found


# ---- many of them ----


def one(options, mode, seed, work):
    """The exit status of a case, None where it failed, and what was done to it."""
    folder = os.path.join(work, f"{mode}-{seed}")
    os.makedirs(folder)
    case = Case(options, mode, seed, folder)
    try:
        status = case.check()
    except Failure as failure:
        os.makedirs(options.keep, exist_ok=True)
        kept = os.path.join(options.keep, f"{mode}-{seed}")
        shutil.rmtree(kept, ignore_errors=True)
        shutil.move(folder, kept)
        print(f"FAIL: --mode {mode} --seed {seed} --count 1: {failure}; see {kept}", flush=True)
        return None, case.done
    if options.verbose:
        print(f"{mode} {seed}: exit status {status} {' '.join(case.done)} {case.said('run.log' if os.path.exists(case.path('run.log')) else 'up.log')}", flush=True)
    shutil.rmtree(folder)
    return status, case.done


def many(options, mode, work):
    """Whether all cases of a mode are well, and enough of them were trained."""
    statuses, done, end = [], {}, time.monotonic() + options.seconds
    while len(statuses) < options.count and time.monotonic() < end:
        status, events = one(options, mode, options.seed + len(statuses), work)
        statuses.append(status)
        for event in events:
            done[event] = done.get(event, 0) + 1
    failed, trained = statuses.count(None), statuses.count(0)
    print(f"{mode}: {len(statuses)} from seed {options.seed}, {trained} trained, {statuses.count(1)} ended with 1, "
          f"{statuses.count(2)} refused, {failed} failed{''.join(f', {event} {n}' for event, n in sorted(done.items()))}", flush=True)
    others = len(statuses) - failed - trained
    if mode != "diverge" and others > min(3 + len(statuses) / 10, len(statuses) - 1) and others > 1:  # about one in thirty is refused
        print(f"FAIL: {mode}, seed {options.seed}: {others} of {len(statuses)} were not trained: this tests too little", flush=True)
        return False
    if mode != "plain" and trained > 2 and not done:
        print(f"FAIL: {mode}, seed {options.seed}: nobody was disturbed", flush=True)
        return False
    return not failed


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=[*MODES, "all"], default="all", help="(all: one after another)")
    parser.add_argument("--seed", type=int, help="of the first case (drawn)")
    parser.add_argument("--count", type=int, help="cases of each mode (10; any number where --seconds is given)")
    parser.add_argument("--seconds", type=float, help="begin no other case of a mode after this time")
    parser.add_argument("--patience", type=float, default=60, help="seconds that a process may take (60)")
    parser.add_argument("--program", default=os.environ.get("HFSAD", os.path.join(TESTS, "..", "build", "hfsad")),
                        help="($HFSAD, or build/hfsad)")
    parser.add_argument("--keep", help="folder for those of failures (random-failures beside the program)")
    parser.add_argument("--no-clock", action="store_true", help="the wall clock does not jump (a sanitizer allows no library before its own)")
    parser.add_argument("--verbose", action="store_true", help="a line for every case")
    options = parser.parse_args()
    options.program = os.path.realpath(options.program)
    if not os.access(options.program, os.X_OK):
        parser.error(f"{options.program} is no program; --program or $HFSAD names it")
    if options.count is None:
        options.count = sys.maxsize if options.seconds else 10
    options.seconds = options.seconds or float("inf")
    options.seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    options.keep = os.path.realpath(options.keep or os.path.join(os.path.dirname(options.program), "random-failures"))
    return options


def main():
    options = arguments()
    os.environ["PATH"] += ":/usr/sbin"  # mosquitto is there
    signal.signal(signal.SIGINT, signal.default_int_handler)  # else what a shell starts with & would hand on that it ignores it
    modes = MODES if options.mode == "all" else [options.mode]
    with tempfile.TemporaryDirectory() as work:
        options.clock = None if options.no_clock else attacks.clock_library(work)
        return 0 if all([many(options, mode, work) for mode in modes]) else 1


if __name__ == "__main__":
    sys.exit(main())
