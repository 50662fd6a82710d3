"""The real federation through a broker: one edge and its clients, beside the bare ping-pong with the same payload.

    federate.py HFSAD PINGPONG FOLDER [--features 25] [--clients 50] [--seconds 3] [--recover] [--wire double] [--bytes] [--tags] [--secure] [--masks]

Prints `name value unit`: rounds per second with the clients in one process and in one each, synced to the disk in every
round (power) or not (process); the ratio to the bare limit; bytes of a client's round over those of one vector of doubles
each way, as MQTT packs them, and the least that is possible; with --recover, the time from a kill -9, with a new start at
once, until the edge makes rounds again. --bytes: only the bytes. --wire: how the vectors travel. --tags: only what tags of frames cost, by a
secret and by certificates: rounds per second in turns with and without, so that a busy machine slows both. --secure: the same for secure aggregation in cohorts of 16, and for
noise. --masks: the same for secure aggregation only. A ratio is the median of those of the turns.
FOLDER is an empty one; the states are there, so the disk that is measured is its disk. `sync` is what that disk takes for
a small write and its sync, on its own: a round has two of them one after the other, a client's before its UP and the
edge's before its DOWN, so `_bound` is what the bare limit and the disk leave to one client. `_synced` is the ratio to
the limit of all who keep what they say: the bare ping-pong in which every process writes and syncs as many bytes in a
round as those of the federation did.
"""
import argparse
import os
import re
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time
import urllib.request

os.environ.setdefault("HFSAD_HISTORY", "none")  # these runs are nobody's

parser = argparse.ArgumentParser()
parser.add_argument("hfsad")
parser.add_argument("pingpong")
parser.add_argument("folder")
parser.add_argument("--features", type=int, default=25)
parser.add_argument("--clients", type=int, default=50)
parser.add_argument("--seconds", type=float, default=3)
parser.add_argument("--recover", action="store_true")
parser.add_argument("--wire", default="double", choices=("double", "float", "delta"))
parser.add_argument("--bytes", action="store_true")
parser.add_argument("--tags", action="store_true")
parser.add_argument("--secure", action="store_true")
parser.add_argument("--masks", action="store_true")
a = parser.parse_args()
hfsad, pingpong = os.path.abspath(a.hfsad), os.path.abspath(a.pingpong)
os.chdir(a.folder)


def say(name, value, unit):
    print(f"{name:<52} {value:12.5g}  {unit}", flush=True)


class Process:
    """A command that goes with this one, its stderr in a file."""

    def __init__(self, name, *words):
        self.name, self.words = name, words
        self.start()

    def start(self):
        self.log = f"{self.name.replace('/', '_')}.log"
        with open(self.log, "w") as log:
            self.child = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *self.words], stderr=log,
                                          stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.port = None

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()

    def metrics(self):
        """None while it serves none."""
        if self.port is None:
            found = re.search(r"serves metrics: port (\d+)", open(self.log).read())
            if not found:
                if self.child.poll() is not None:
                    sys.exit(f"{self.name} ended: {open(self.log).read()}")
                return None
            self.port = int(found[1])
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as r:
                lines = r.read().decode().splitlines()
        except OSError:
            return None
        return {k: float(v) for k, v in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


def await_that(what, get, limit=120):
    end = time.monotonic() + limit
    while True:
        value = get()
        if value is not None and value is not False:
            return value
        if time.monotonic() > end:
            sys.exit(f"{what}: not within {limit} s")
        time.sleep(0.005)


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def start_broker():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with open("broker.conf", "w") as f:
        f.write(f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\n"
                "max_queued_messages 10000\nlog_type none\n" + ("user root\n" if os.geteuid() == 0 else ""))
    broker = Process("broker", "mosquitto", "-c", "broker.conf")
    await_that("the broker", lambda: answers(port))
    return broker, port


def make_data():
    subprocess.run([hfsad, "generate", "quantile", "--edges", "1", "--clients", str(a.clients), "--features",
                    str(a.features), "--rows", "1", "--digits", "4", "--tree", "--out", ".", "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)
    with open("nodes", "w") as f:
        subprocess.run([hfsad, "nodes", "spec.yaml"], check=True, stdout=f)


class Federation:
    count = 0

    def __init__(self, name, port, each, durability, tags=()):
        # what others have left with the broker is theirs; a name as long as the default's, since topics travel
        Federation.count += 1
        run = f"r{Federation.count:02}"
        # questions of the set-up and measured iterations are no part of a round
        common = ["--broker", f"mqtt://127.0.0.1:{port}", "--durability", durability, "--metrics", "127.0.0.1:0", *tags]
        for key, value in (("federation.nodes", "nodes"), ("federation.name", run), ("federation.wire", a.wire),
                           ("run.start", "zero"), ("run.iterations", 1000000), ("run.trace_every", 1000000)):
            common += ["--set", f"{key}={value}"]
        os.mkdir(name)
        self.folders = [f"{name}/cloud", f"{name}/edge", f"{name}/c1" if each else f"{name}/clients"]
        self.cloud = Process(f"{name}/cloud", hfsad, "cloud", "spec.yaml", "--state", f"{name}/cloud", "--out",
                             f"{name}-out", "--quiet", *common)
        self.edge = Process(f"{name}/edge", hfsad, "edge", "spec.yaml", "--name", "edge1", "--state",
                            f"{name}/edge", *common)
        if each:
            self.clients = [Process(f"{name}/c{i}", hfsad, "client", "spec.yaml", "--name", f"edge1/client{i}",
                                    "--state", f"{name}/c{i}", "--data", f"data/edge1/client{i}.csv", *common)
                            for i in range(1, a.clients + 1)]
        else:
            self.clients = [Process(f"{name}/clients", hfsad, "client", "spec.yaml", "--all-of", "edge1", "--state",
                                    f"{name}/clients", *common)]

    def all(self):
        return [self.cloud, self.edge, *self.clients]

    def round(self):
        m = self.edge.metrics()
        return m and m['hfsad_round{node="edge1"}']

    def await_round(self, least):
        await_that(f"round {least}", lambda: (self.round() or 0) >= least)

    def stop(self):
        for p in self.all():
            p.kill()


def sample(f):
    client = await_that("metrics of a client", f.clients[0].metrics)
    edge = await_that("metrics of the edge", f.edge.metrics)
    return time.monotonic(), edge, client


def measure(f):
    """Rounds per second, bytes per client and round, both ways and up; of the edge and of a client process: milliseconds
    in commits, and how many of these, in a round."""
    f.await_round(3)
    t0, e0, c0 = sample(f)
    time.sleep(a.seconds)
    key = 'hfsad_round{node="edge1"}'
    await_that("five rounds", lambda: (f.round() or 0) >= e0[key] + 5)
    client = 'hfsad_round{node="edge1/client1"}'
    await_that("a round of a client", lambda: (f.clients[0].metrics() or c0)[client] > c0[client])
    t1, e1, c1 = sample(f)
    here = a.clients if len(f.clients) == 1 else 1
    up, down = (c1[k] - c0[k] for k in ("hfsad_sent_bytes_total", "hfsad_received_bytes_total"))
    rounds = e1[key] - e0[key]
    commit = [(1000 * (y["hfsad_commit_seconds_total"] - x["hfsad_commit_seconds_total"]) / rounds,
               (y["hfsad_commits_total"] - x["hfsad_commits_total"]) / rounds)
              for x, y in ((e0, e1), (c0, c1))]
    each = here * (c1[client] - c0[client])
    return rounds / (t1 - t0), ((up + down) / each, up / each), commit


def bare(port, processes, *more):
    out = subprocess.run([pingpong, "--port", str(port), "--features", str(a.features), "--clients", str(a.clients),
                          "--processes", str(processes), "--seconds", str(a.seconds), *map(str, more)], check=True,
                         capture_output=True, text=True).stdout
    return float(out.split()[1])


def committed(folder):
    """Bytes of a commit of those who have this state folder: the middle one of the last in their log. Nothing if the
    last commit was a snapshot."""
    sizes, at = [], 0
    with open(f"{folder}/state", "rb") as f:
        while True:
            f.seek(at)
            head = f.read(40)
            if len(head) < 40 or head[:3] != b"hfs":
                return sizes[1:] and int(statistics.median(sizes[1:][-50:]))  # the first one is the snapshot
            sizes.append(40 + struct.unpack_from("<Q", head, 24)[0] + 4)
            at += (sizes[-1] + 511) // 512 * 512


def packet(topic, frame):
    """Bytes of a PUBLISH of MQTT 3.1.1, which has a byte less than that of MQTT 5."""
    rest = 2 + topic + frame
    return 1 + (1 if rest < 1 << 7 else 2 if rest < 1 << 14 else 3 if rest < 1 << 21 else 4) + rest


def least_bytes():
    """Of a round of doubles: topics of one letter, one byte for the version, four each for round, k, length and
    checksum, and sigma as a double; k and sigma only on the way up."""
    vector = 8 * a.features
    return packet(1, vector + 1 + 4 + 4 + 4) + packet(1, vector + 1 + 4 + 4 + 4 + 4 + 8)


def sync_ms(times=100):
    """The mean of small writes into room that has been written before, each with its sync."""
    fd = os.open("sync", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, bytes(1 << 20), 0)
    os.fsync(fd)
    begun = time.monotonic()
    for i in range(times):
        os.pwrite(fd, bytes(600), 600 * i)
        os.fdatasync(fd)
    took = time.monotonic() - begun
    os.close(fd)
    os.remove("sync")
    return 1000 * took / times


def recover(f, broker):
    def time_of(what, victim, rounds=4):
        f.await_round((f.round() or 0) + 5)
        before = await_that("a round", f.round)
        begun = time.monotonic()
        victim.kill()
        victim.start()
        # the edge makes some rounds more before it misses the victim: two of them, or those of a global iteration
        f.await_round(before + rounds)
        say(f"recover_{what}_{a.clients}x{a.features}", time.monotonic() - begun,
            f"seconds from kill -9 and a new start at once until the edge has made {rounds} rounds")

    time_of("client", f.clients[-1])
    time_of("edge", f.edge)
    time_of("cloud", f.cloud, 14)
    time_of("broker", broker)


def say_bytes(name, moved):
    say(name + "_bytes", moved[0] / (16 * a.features), "bytes of a client's round over one vector each way")
    if a.wire == "double":
        say(name + "_bytes_least", least_bytes() / (16 * a.features), "the least that MQTT and the fields of a message need")


def measure_speed(port, broker, processes):
    limit = bare(port, processes)
    sync = sync_ms()
    say(f"federation_{shape}_processes{processes}_sync", sync, "ms, a small write and its sync")
    for durability in ("power", "process"):
        name = f"federation_{shape}_processes{processes}_{durability}"
        f = Federation(name, port, processes > 1, durability)
        rate, moved, commit = measure(f)
        say(name, rate, "rounds per second")
        say(name + "_ratio", rate / limit, f"of the bare limit, {limit:.5g} rounds per second")
        if durability == "power":
            sync = (sync + sync_ms()) / 2
            bound = 1000 / (1000 / limit + 2 * sync)
            say(name + "_bound", rate / bound, f"of the bare limit with two syncs of {sync:.3g} ms in a round, {bound:.5g}")
        say_bytes(name, moved)
        for who, (spent, count) in zip(("edge", "clients"), commit):
            say(f"{name}_commit_{who}", spent, f"ms of a process in commits in a round of {1000 / rate:.4g} ms, "
                f"{count:.3g} commits")
        if a.recover and processes > 1 and durability == "power":
            recover(f, broker)
        if durability == "power":
            ours, edge = (await_that("a commit to the log", lambda: committed(folder) or None)
                          for folder in (f.folders[2], f.folders[1]))
        f.stop()
        if durability == "power":
            synced = bare(port, processes, "--sync", ours, "--sync-edge", edge)
            say(name + "_synced", rate / synced, f"of the bare limit where a process of clients syncs {ours} bytes and "
                f"the edge {edge} in a round, {synced:.5g}")


def make_tags():
    """Options by the name of the way."""
    with open(os.open("secret", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
        f.write(os.urandom(32))
    names = ["cloud", "edge1"] + [f"edge1/client{i}" for i in range(1, a.clients + 1)]
    for words in (["init"], ["issue", *names]):
        subprocess.run([hfsad, "keys", *words, "--dir", "keys"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return {"none": (), "secret": ("--secret", "secret"), "certificates": ("--keys", "keys")}


def cpu_ms(f):
    """CPU time of the edge and the clients so far."""
    ticks = 0
    for p in [f.edge, *f.clients]:
        fields = open(f"/proc/{p.child.pid}/stat").read().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return 1000 * ticks / os.sysconf("SC_CLK_TCK")


def measure_ways(port, processes, ways, what, turns=5):
    """In turns; the first way is what the others are held against."""
    base = next(iter(ways))
    found = {way: [] for way in ways}
    for turn in range(turns):
        for way, options in ways.items():
            f = Federation(f"{way}{processes}-{turn}", port, processes > 1, "process", options)
            f.await_round(3)
            cpu, first = cpu_ms(f), f.round()
            rate, moved, _ = measure(f)
            found[way].append((rate, (cpu_ms(f) - cpu) / (f.round() - first), moved[0] / (16 * a.features), moved[1]))
            f.stop()
    for way, rows in found.items():
        name = f"federation_{shape}_processes{processes}_{what}_{way}"
        rate, cpu, moved, up = (statistics.median(column) for column in zip(*rows))
        say(name, rate, "rounds per second")
        say(name + "_cpu", cpu, "ms of the edge and the clients in a round")
        say(name + "_bytes", moved, "bytes of a client's round over one vector each way")
        say(name + "_up", up, "bytes of a client's round on the way up")
        if way != base:  # turn by turn: others that keep the machine busy slow both
            pace, time_spent = (statistics.median(x[i] / y[i] for x, y in zip(rows, found[base])) for i in (0, 1))
            say(name + "_ratio", pace, f"of the pace of {base}; of the CPU time: {time_spent:.4g}")


make_data()
broker, port = start_broker()
shape = f"{a.clients}x{a.features}" + ("" if a.wire == "double" else f"_{a.wire}")
if a.bytes:
    f = Federation("bytes", port, True, "process")
    say_bytes(f"federation_{shape}", measure(f)[1])
    f.stop()
elif a.tags:
    ways = make_tags()
    for processes in (1, a.clients):
        measure_ways(port, processes, ways, "tags")
elif a.secure or a.masks:
    secure = ("--set", "privacy.aggregation=secure", "--set", "privacy.cohort=16")
    noise = ("--set", "privacy.rho=100", "--set", "privacy.clip=1", "--set", "privacy.noise=secret")
    ways = {"plain": (), "secure": secure} | ({"noise": noise, "both": secure + noise} if a.secure else {})
    for processes in (1, a.clients):
        measure_ways(port, processes, ways, "private", 3 if a.secure else 5)
else:
    for processes in (1, a.clients):
        measure_speed(port, broker, processes)
broker.kill()
