"""foreign_client.py PORT NODES PATH ROW STATE [KEY=VALUE]…: a client of a federation in another language.

Written from docs/protocol.md and docs/algorithm.md: a client of one row (y, then the features, separated by commas), absolute
or squared loss, a tv link, in lock step. NODES is the text of `hfsad nodes`, STATE the file that outlasts a crash, KEY=VALUE
the spec's settings, in full where they are not the default. DIE=ROUND in the environment: it kills itself when what it did in that round is on disk and
the UP is not sent yet; 0: when it has the result of the set-up and has not said so. SECRET=FILE: frames have tags.
"""
import hashlib, hmac, json, math, os, random, signal, struct, sys, time
from fractions import Fraction

import paho.mqtt.client as mqtt

DOWN, UP, ACK, STATUS, ASK, ANSWER, MODEL = range(7)
SETUP, TRAIN, FINAL, ANEW, STAGE, LOOK = range(1, 7)
TOPICS = {"down": DOWN, "ask": ASK, "up-ack": ACK, "answer-ack": ACK}
LARGEST = sys.float_info.max
U64 = (1 << 64) - 1


# ---- frames ----

def table_of_crc():
    table = []
    for s in range(256):
        for _ in range(8):
            s = s >> 1 ^ (0x82F63B78 if s & 1 else 0)
        table.append(s)
    return table


CRC = table_of_crc()


def crc32c(data):
    s = 0xFFFFFFFF
    for byte in data:
        s = CRC[(s ^ byte) & 255] ^ s >> 8
    return s ^ 0xFFFFFFFF


class Message:
    def __init__(self, kind, run, phase, round_, k=0, sigma=0.0, values=()):
        self.kind, self.run, self.phase, self.round, self.k, self.sigma, self.values = kind, run, phase, round_, k, sigma, values

    def encode(self):
        n = len(self.values)
        body = struct.pack("<4sBBBBQQQQdII", b"hfsd", 1, self.kind, 0, 0, self.run, self.phase, self.round, self.k,
                           self.sigma, n, 8 * n) + struct.pack("<%dd" % n, *self.values)
        return body + struct.pack("<I", crc32c(body))


def decode(frame):
    """None: it is refused."""
    if len(frame) < 60:
        return None
    mark, version, kind, encoding, zero, run, phase, round_, k, sigma, count, length = \
        struct.unpack_from("<4sBBBBQQQQdII", frame)
    if (mark, version, zero) != (b"hfsd", 1, 0) or encoding > 1 or len(frame) != 60 + length \
            or length != count * (8, 4)[encoding] or struct.unpack_from("<I", frame, 56 + length)[0] != crc32c(frame[:-4]):
        return None
    values = struct.unpack_from("<%d%s" % (count, "df"[encoding]), frame, 56)
    if not all(map(math.isfinite, values + (sigma,))):
        return None
    return Message(kind, run, phase, round_, k, sigma, values)


# ---- tags ----

def mac(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


def poly1305(r, data):
    """The polynomial in r of the blocks of 16 bytes, each with a bit behind it (RFC 8439, with s = 0)."""
    r, total = int.from_bytes(r, "little") & 0x0ffffffc0ffffffc0ffffffc0fffffff, 0
    for i in range(0, len(data), 16):
        total = (total + int.from_bytes(data[i:i + 16] + b"\1", "little")) * r % ((1 << 130) - 5)
    return (total % (1 << 128)).to_bytes(16, "little")


def tag(key, topic, frame):
    if len(frame) > 512:
        return mac(key, frame[:56] + topic.encode() + poly1305(mac(key, b"poly1305")[:16], frame[56:]) + b"\1")[:8]
    return mac(key, frame + topic.encode())[:8]


class Seal:
    """By a secret of all nodes; without one nothing has tags."""

    def __init__(self, run, parent, path):
        self.on = "SECRET" in os.environ
        if self.on:
            with open(os.environ["SECRET"], "rb") as f:
                secret = mac(b"hfsad 2", f.read())
            self.own, self.up, self.down = (mac(secret, "\n".join((purpose, run, above, below, "")).encode() + b"\1")
                                            for purpose, above, below in
                                            (("own", "", path), ("up", parent, path), ("down", parent, "")))


    def seal(self, topic, frame):
        if not self.on or not frame:
            return frame
        keys = [self.own, self.up] if topic == "status" else [self.up]
        return frame + b"".join(tag(key, topic, frame) for key in keys)

    def unseal(self, topic, payload):
        """The frame; None: it is refused."""
        if not self.on or len(payload) < 60:
            return payload
        size = 60 + struct.unpack_from("<I", payload, 52)[0]
        frame, tags = payload[:size], payload[size:]
        right = tag(self.down, topic, frame)
        return frame if any(tags[i:i + 8] == right for i in range(0, len(tags), 8)) else None


# ---- arithmetic: in the order, and fused where, the other nodes do ----

def fma(a, b, c):
    """a b + c, rounded once."""
    try:
        return float(Fraction(a) * Fraction(b) + Fraction(c)) if a and b else a * b + c
    except (OverflowError, ValueError):  # what is not finite
        return a * b + c


def sum8(terms):
    """Number m in partial sum m mod 8; then the eight."""
    p = [0.0] * 8
    for m, t in enumerate(terms):
        p[m % 8] += t
    return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]))


def dot(a, b):
    p = [0.0] * 8
    for m in range(len(a)):
        p[m % 8] = fma(a[m], b[m], p[m % 8])
    return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]))


def clip(v, low, high):
    return min(max(v, low), high)


# ---- who takes part ----

def mix(h):
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 & U64
    h = (h ^ h >> 27) * 0x94D049BB133111EB & U64
    return h ^ h >> 31


def run_of(prints):
    r = 1
    for p in prints:
        r = mix((r ^ int(p)) + 0x9E3779B97F4A7C15 & U64)
    return r


def key_of(seed, path):
    h = 0xCBF29CE484222325
    for byte in path.encode():
        h = (h ^ byte) * 0x100000001B3 & U64
    return mix(mix(seed + 0x9E3779B97F4A7C15 & U64) + h & U64)


def uniform(key, g):
    return (mix(key + g * 0x9E3779B97F4A7C15 & U64) >> 11) * 2.0 ** -53


class Place:
    """What the list of nodes says of a client: the number of features, the depth of the tree, its slot."""

    def __init__(self, text, path):
        lines = [line.strip() for line in text.splitlines()]
        self.M = next(int(line.split()[1]) for line in lines if line.startswith("features "))
        paths = [line for line in lines if line and not line.startswith(("#", "features ", "feature "))]
        clients = [p for p in paths if not p.endswith("/")]
        self.tiers = max(p.count("/") + 1 for p in clients)
        self.star = self.tiers == 1 and clients == paths
        self.depth = path.count("/") + 1
        self.parent = path.rpartition("/")[0] or "cloud"
        above = path.rpartition("/")[0]
        inner, leaves = [], []
        for p in paths:
            if above and not p.startswith(above + "/"):
                continue
            name, deeper, _ = p[len(above) + 1 if above else 0:].partition("/")
            siblings = inner if deeper else leaves
            if name and name not in siblings:
                siblings.append(name)
        self.slot = len(inner) + leaves.index(path.rpartition("/")[2])


class Settings:
    def __init__(self, words):
        given = dict(word.split("=", 1) for word in words)
        self.loss = given.pop("loss.kind")
        self.tuned = given.pop("preset", "tuned") == "tuned"
        self.iterations = int(given.pop("run.iterations", 300))
        self.K = int(given.pop("run.edge_rounds", 10))
        self.local_steps = int(given.pop("run.local_steps", 1))
        self.seed = int(given.pop("run.seed", 1))
        self.trace_every = int(given.pop("run.trace_every", 1))
        self.participation = float(given.pop("run.participation.client", 1))
        self.at_least_every = int(given.pop("run.participation.at_least_every", 20))
        self.name = given.pop("federation.name", "run")
        self.c = float(given.pop("schedule.client.c", "nan"))
        given.pop("schedule.edge.c", None)  # the edges' own
        if given.pop("run.polish", "auto") != "false" and self.tuned:
            sys.exit("not for this client: a polish; set run.polish=false")
        if given or self.loss not in ("absolute", "squared"):
            sys.exit("not for this client: %s" % (given or self.loss))


class Client:
    """The link and the loss. Everything that must outlast a crash is in `s`."""

    def __init__(self, settings, place, path, row, file):
        self.set, self.place, self.file = settings, place, file
        self.y, self.x = row[0], row[1:]
        self.n = sum8(v * v for v in self.x)
        self.key = key_of(settings.seed, path)
        self.period = settings.K if place.depth == 1 else 1
        self.die = int(os.environ.get("DIE", -1))
        self.s = {"run": None, "result": None}
        if os.path.exists(file):
            with open(file) as f:
                self.s = json.load(f)

    def commit(self):
        with open(self.file + ".new", "w") as f:
            json.dump(self.s, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(self.file + ".new", self.file)
        folder = os.open(os.path.dirname(self.file) or ".", os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        if self.s["up_round"] == self.die:
            os.kill(os.getpid(), signal.SIGKILL)

    # ---- set-up ----

    def slope(self):
        return abs(self.y) if self.set.loss == "squared" else 1.0

    def answer(self, kind, most, sums, values):
        """None: a question that this client does not know."""
        pull = self.slope() * math.sqrt(self.n)
        answers = {
            0: (0, [1.0, self.y]),
            1: (1, [pull, self.n, math.sqrt(self.n), 1.0, abs(self.y - values[0]) if values else 0, 1.0]),
            3: (1, [LARGEST if self.set.loss == "squared" and self.n > 0 else pull]),
            100: (2, [0.0, 0.0, 1.0]),
        }
        if kind == 13 and len(values) == 32 + self.place.M:
            left = abs(self.y - sum(a * b for a, b in zip(self.x, values[32:])))
            answers[13] = (0, [1.0] + [float(left <= threshold) for threshold in values[:32]])
        expected, numbers = answers.get(kind, (0, []))
        return numbers if (expected, len(numbers)) == (most, most + sums) and numbers else None

    def take_result(self, result):
        """False: another one was taken before."""
        if self.s["result"] is not None:
            return self.s["result"] == result
        start = result[12:]
        assert len(start) == self.place.M and result[1] == 0 and result[3] == 0
        self.s.update(result=result, z=start, q=start, w=start, k=0, last=0, round=0, down=0, up_round=0, parent_begun=0,
                      answered=-1, answer_phase=TRAIN, figures=[], dual=0.0, sent_up=0, repairs=0, finished=False)
        self.commit()
        return True

    def rule(self):
        """c, alpha and the weight of the tv link."""
        omega, bend, _, length = self.s["result"][4:8]
        usual, alpha = omega, math.sqrt(20)
        if self.set.tuned:
            usual, alpha = {"absolute": 0.5, "squared": 0.25}[self.set.loss] * bend, length / 100
        c = usual if math.isnan(self.set.c) else self.set.c
        for _ in range(self.s["repairs"]):
            if self.place.star and c < usual:
                c = min(10 * c, usual)
        return c, alpha, omega

    # ---- training ----

    def draw(self, g, last):
        """Whether it takes part in round g."""
        t = (g - 1) // self.set.K + 1
        overdue = g % self.set.K == 0 and t - last >= self.set.at_least_every
        return self.set.participation >= 1 or overdue or uniform(self.key, g) < self.set.participation

    def sits_out_until(self, g):
        return not any(self.draw(r, self.s["last"]) for r in range(self.s["round"] + 1, g + 1))

    def skip_to(self, g):
        if g > self.s["round"]:
            self.s["dual"] = 0.0
        self.s["round"] = g

    def next_question(self):
        """The round of the next question for figures, or None."""
        every, end, K = self.set.trace_every, self.set.iterations, self.set.K
        if self.s["answered"] < 0:
            return 0
        done = self.s["answered"] // K
        return None if done >= end else min((done // every + 1) * every, end) * K

    def coefficient(self, s0, inv_sigma):
        """Of x in the prox of the loss."""
        if self.n == 0:
            return 0.0
        kappa, r = self.n * inv_sigma, self.y - s0
        d = clip(r, -kappa, kappa) if self.set.loss == "absolute" else r * (kappa / (1 + kappa))
        return d / self.n

    def step(self, w_parent):
        c, alpha, omega = self.rule()
        s = self.s
        s["k"] += 1
        root = math.sqrt(s["k"])
        sigma, mu, inv_mu_before = c * root, alpha / root, math.sqrt(s["k"] - 1) / alpha
        inv_sigma = 1 / sigma
        pull = (inv_sigma + inv_sigma) * omega
        ratio = mu / (mu + pull)
        v = [fma(omega * clip((q - z) * inv_mu_before, -1.0, 1.0), inv_sigma, z) for z, q in zip(s["z"], s["q"])]
        a = self.coefficient(dot(self.x, v), inv_sigma)
        w = [fma(a, x, at) for x, at in zip(self.x, v)]
        z, q = [], []
        for m in range(self.place.M):
            t = (w_parent[m] - w[m]) - 2 * (s["z"][m] - v[m])
            e = math.copysign(max(abs(t) * ratio, abs(t) - pull), t)
            middle = 0.5 * (w[m] + w_parent[m])
            z.append(middle - 0.5 * e)
            q.append(middle + 0.5 * e)
        change = []
        for m in range(self.place.M):
            dz, dq = z[m] - s["z"][m], q[m] - s["q"][m]
            change.append(fma(dz, dz, dq * dq))
        s.update(w=w, z=z, q=q, dual=sigma * sigma * sum8(change))

    def play(self, first, w_parent):
        """The rounds of one DOWN; whether it took part in any."""
        s, any_ = self.s, False
        for g in range(first, first + self.period):
            s["dual"] = 0.0
            if not self.draw(g, s["last"]):
                continue
            t = (g - 1) // self.set.K + 1
            for _ in range(self.set.local_steps):
                self.step(w_parent)
            s["sent_up"] += self.period == 1 or s["last"] < t
            s["last"], any_ = t, True
        s["round"] = first + self.period - 1
        if any_:
            s["up_round"] = s["round"]
        return any_

    def up(self):
        """sigma(k+1) and u; 0 and nothing where they are not finite."""
        c, alpha, omega = self.rule()
        s = self.s
        sigma, inv_mu = c * math.sqrt(s["k"] + 1), math.sqrt(s["k"]) / alpha
        u = [fma(-omega, clip((q - z) * inv_mu, -1.0, 1.0), sigma * q) for z, q in zip(s["z"], s["q"])]
        return (sigma, u) if all(map(math.isfinite, u + [sigma])) else (0.0, [])

    def loss_at(self, w):
        r = self.y - dot(self.x, w)
        return abs(r) if self.set.loss == "absolute" else 0.5 * (r * r)

    def measure(self, w0, w_parent):
        c, alpha, omega = self.rule()
        s = self.s
        root = math.sqrt(s["k"])
        mu, inv_mu = alpha / root if root else 0.0, root / alpha
        links = list(zip(s["w"], s["z"], s["q"], w_parent))
        below = [max(mu - abs(w - b), 0.0) for w, _, _, b in links]
        lam = [omega * clip((q - z) * inv_mu, -1.0, 1.0) for _, z, q, _ in links]
        own = [self.loss_at(s["w"]), self.loss_at(w0), sum8(omega * abs(w - b) for w, _, _, b in links),
               sum8(omega * (b * b * 0.5 * inv_mu) for b in below),
               sum8((w - z) * (w - z) + (b - q) * (b - q) for w, z, q, b in links),
               max(abs(w - r) for w, r in zip(s["w"], w0)),
               sum8(w * w + b * b for w, _, _, b in links), sum8(z * z + q * q for _, z, q, _ in links),
               2 * sum8(v * v for v in lam), s["dual"]]
        tiers = [0.0] * 10 * self.place.tiers
        tiers[10 * (self.place.depth - 1):10 * self.place.depth] = own
        figures = [0.0, 0.0, float(s["sent_up"]), 0.0, 0.0, 1.0, 0.0] + tiers
        if not all(map(math.isfinite, figures)):
            figures = [0.0] * 6 + [1.0] + [0.0] * len(tiers)
        s["figures"] = figures

    def begin_anew(self, w):
        self.s.update(w=w, z=w, q=w, k=0)
        self.s["repairs"] += 1


class Channel:
    """A last value that is repeated until it is acknowledged."""
    FIRST, MOST = 0.25, 5.0

    def __init__(self):
        self.live, self.due, self.wait = False, 0.0, self.FIRST

    def start(self):
        self.live, self.due, self.wait = True, 0.0, self.FIRST

    def stop(self):
        self.live = False

    def is_due(self, now):
        if not self.live or now < self.due:
            return False
        self.due = now + self.wait
        self.wait = min(2 * self.wait, self.MOST)
        return True


class Member:
    """The conversation: what comes in, what is said."""

    def __init__(self, client, path, port):
        self.c, self.s, self.path, self.port = client, client.s, path, port
        self.root = "hfsad/%s/" % client.set.name
        self.seal = Seal(client.set.name, client.place.parent, path)
        self.up, self.model = Channel(), Channel()
        self.granted, self.ends, self.over, self.status_due = False, 0, None, 0.0
        self.process = random.getrandbits(52)
        self.counts = [0] * 6  # refused: run, kind, size, value, future, old
        if self.s["result"] is not None and not self.s["finished"]:
            if self.s["up_round"] > 0:
                self.up.start()
            if self.s["answer_phase"] == FINAL:
                self.model.start()

    def phase(self, plain):
        return plain + (self.s.get("repairs", 0) << 8)

    def publish(self, topic, frame):
        self.mqtt.publish(self.root + self.path + "/" + topic, self.seal.seal(topic, frame), qos=0, retain=True)

    def say(self, topic, kind, phase, round_, k=0, sigma=0.0, values=()):
        lie = os.environ.get("LIE") if round_ > 9 else None  # for a test of what its parent believes
        if lie and kind == UP:
            sigma = {"sigma": 1e12, "frozen": 1.7e308}.get(lie, sigma)
            values = [1e300] * len(values) if lie == "huge" else [1.7976931348623157e308] * len(values) if lie == "infinite" else values
        if lie == "answer" and kind == ANSWER and phase & 255 == TRAIN:
            values = [-1e300] * len(values)
        self.publish(topic, Message(kind, self.s["run"], phase, round_, k, sigma, list(values)).encode())

    # ---- connection ----

    def connect(self):
        self.mqtt = mqtt.Client("%s@%d" % (self.path, random.SystemRandom().getrandbits(63)), protocol=mqtt.MQTTv311)
        self.mqtt.on_connect, self.mqtt.on_subscribe, self.mqtt.on_message = self.connected, self.subscribed, self.heard
        will = self.seal.seal("status", Message(STATUS, self.s["run"] or 0, SETUP, 0).encode())
        self.mqtt.will_set(self.root + self.path + "/status", will, 0, True)
        self.mqtt.connect("127.0.0.1", self.port, keepalive=30)

    def connected(self, mqttc, _, flags, code):
        if code == 0:
            mqttc.subscribe([(self.root + self.c.place.parent + "/" + topic, 0) for topic in TOPICS])

    def subscribed(self, *_):
        self.granted, self.ends = True, 0
        if self.s["result"] is None:
            for topic in ("up", "answer", "model", "down-ack"):
                self.publish(topic, None)
        self.up.due = self.model.due = self.status_due = 0.0

    # ---- what comes in ----

    def heard(self, _mqttc, _, packet):
        topic = packet.topic.rpartition("/")[2]
        frame = self.seal.unseal(topic, packet.payload)
        m = decode(frame) if frame else None
        if m is None or TOPICS.get(topic) != m.kind:
            return
        if m.phase == SETUP and m.kind == ASK:
            return self.set_up(m)
        if m.run != self.s["run"] or self.s["result"] is None or m.phase >> 32:
            return
        plain, repairs = m.phase & 255, m.phase >> 8
        if plain == LOOK and m.kind == ASK:
            return self.say("model", MODEL, LOOK, m.round, 0, 0.0, self.s["w"])
        if plain == ANEW and m.kind == ASK:
            return self.begin_anew(m, repairs)
        if repairs != self.s["repairs"]:
            return
        if m.kind == ACK:
            self.acknowledged(m)
        elif self.s["finished"]:
            return
        elif m.kind == DOWN and plain == TRAIN:
            self.take_down(m)
        elif m.kind == ASK and plain in (TRAIN, FINAL):
            self.take_question(m, plain)

    def set_up(self, m):
        kind, most, sums, _constant, columns = map(int, m.values[:5])
        if kind == 100 and self.s["result"] is None and m.run == run_of(m.values[5:]):  # whichever run this parent is of
            self.s["run"] = m.run
        if m.run != self.s["run"] or columns:
            return
        values = list(m.values[5:])
        self.ends = self.ends + 1 if kind == 102 else 0
        if kind == 101 and not self.c.take_result(values):
            self.over = "the set-up had another result than the one kept here"
            return
        if kind == 102 and self.ends < 2:
            return
        numbers = [1.0] if kind in (101, 102) else self.c.answer(kind, most, sums, values)
        if numbers is not None:
            self.say("answer", ANSWER, SETUP, m.round, 0, 0.0, numbers)
        if kind == 102:
            self.over = "the cloud has ended the run: " + "".join(map(chr, map(int, values)))

    def begin_anew(self, m, repairs):
        if repairs == self.s["repairs"] + 1 and len(m.values) == self.c.place.M:
            self.c.begin_anew(list(m.values))
            self.c.commit()
            self.up.stop()
        if repairs == self.s["repairs"]:
            self.say("answer", ANSWER, self.phase(ANEW), self.s["round"])

    def greet(self, begun):
        """A new life of the parent has lost what it was told."""
        if begun > self.s["parent_begun"]:
            self.s["parent_begun"] = begun
            self.up.start()

    def take_down(self, m):
        s, question = self.s, self.c.next_question()
        if len(m.values) != self.c.place.M:
            return
        if m.round <= max(s["down"], s["round"]):
            if m.round == s["down"]:
                self.greet(m.k)
            return
        before = m.round - 1
        if question is None or before >= question or before % self.c.period or not self.c.sits_out_until(before):
            return
        self.c.skip_to(before)
        s["down"] = m.round
        self.up.stop()
        self.greet(m.k)
        if self.c.play(m.round, m.values):
            self.up.start()
        self.c.commit()

    def take_question(self, m, plain):
        s, M = self.s, self.c.place.M
        if len(m.values) != (0 if plain == FINAL else M if self.c.place.depth == 1 else 2 * M):
            return
        if (plain, m.round) == (s["answer_phase"], s["answered"]):
            return self.say_answer()
        if plain < s["answer_phase"] or (plain == FINAL and m.round != s["answered"]):
            return
        if plain == TRAIN:
            if m.round != self.c.next_question() or m.round < s["round"] or not self.c.sits_out_until(m.round):
                return
            self.c.skip_to(m.round)
            self.c.measure(m.values[:M], m.values[-M:])
            s["answered"] = m.round
        s["answer_phase"] = plain
        self.c.commit()
        self.up.stop()
        if plain == FINAL:
            self.model.start()
        else:
            self.say_answer()

    def say_answer(self):
        s = self.s
        if s["answer_phase"] == FINAL:
            self.say("model", MODEL, self.phase(FINAL), s["answered"], 0, 0.0, s["w"])
        else:
            self.say("answer", ANSWER, self.phase(TRAIN), s["answered"], 0, 0.0, s["figures"])

    def acknowledged(self, m):
        s = self.s
        rounds = [r for slot, r in zip(m.values[1::2], m.values[2::2]) if slot == self.c.place.slot]
        if not rounds:
            return
        plain = m.phase & 255
        if plain == FINAL and m.k == 1:
            s["finished"] = True
            self.c.commit()
            self.over = ""
        elif plain == TRAIN and m.k == 0 and m.values[0] >= s["parent_begun"] and rounds[-1] >= s["up_round"]:
            self.up.stop()

    # ---- what goes out ----

    def speak(self):
        now, s = time.monotonic(), self.s
        if not self.granted or s["run"] is None:
            return
        if self.up.is_due(now):
            sigma, u = self.c.up()
            self.say("up", UP, self.phase(TRAIN), s["up_round"], s["k"], sigma, u)
        if self.model.is_due(now):
            self.say_answer()
        if now >= self.status_due:
            self.status_due = now + 2
            self.status()

    def status(self):
        s = self.s
        phase = SETUP if s["result"] is None else FINAL if s["finished"] else TRAIN
        self.say("status", STATUS, phase, s.get("round", 0), 1, 0.0,
                 [float(s.get("k", 0)), 0.0] + [0.0] * 7 + [float(self.process), float(s["result"] is not None),
                                                           float(int(time.time() * 1000))] + [0.0] * 8)

    def run(self):
        if self.s.get("finished"):
            return ""
        self.connect()
        while self.over is None:
            if self.mqtt.loop(0.05):
                self.granted = False
                time.sleep(0.1 + 0.05 * random.random())
                try:
                    self.mqtt.reconnect()
                except OSError:
                    pass
            self.speak()
        self.status()
        end = time.monotonic() + 1
        while self.mqtt.want_write() and time.monotonic() < end:
            self.mqtt.loop(0.01)
        self.mqtt.disconnect()
        return self.over


def main():
    port, nodes, path, row, state, *words = sys.argv[1:]
    with open(nodes) as f:
        place = Place(f.read(), path)
    numbers = [float(v) for v in row.split(",")]
    if len(numbers) != 1 + place.M:
        sys.exit("a row of %d numbers; y and %d features are wanted" % (len(numbers), place.M))
    client = Client(Settings(words), place, path, numbers, state)
    sys.exit(Member(client, path, int(port)).run() or 0)


main()
