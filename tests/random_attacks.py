"""What random_federations.py does to a federation beside killing its processes: lies in the name of a client, damages of state folders, and
jumps of the wall clock."""
import glob, os, random, shutil, socket, struct, subprocess, sys, threading

from frames import checked, mac, tag

HERE = os.path.dirname(os.path.realpath(__file__))


# ---- the clock ----


def clock_library(folder):
    """A library that shifts the wall clock of a process by the seconds that the file $HFSAD_CLOCK has; None: no compiler."""
    path = os.path.join(folder, "clock.so")
    made = subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", path, os.path.join(HERE, "clock_jump.c"), "-ldl"], capture_output=True)
    return path if made.returncode == 0 else None


def jump(draw, path):
    with open(path, "r+b") as file:
        file.write(struct.pack("<q", draw.choice([-400000000, -86400, -300, -1, 0, 1, 300, 86400, 400000000])))


# ---- damages ----


def folders_of(state):
    return sorted(name for name in os.listdir(state) if name[0] != "+" and os.path.exists(os.path.join(state, name, "state")))


def damage(draw, state):
    """Spoils one file of one folder; what it did."""
    which = draw.choice(folders_of(state))
    name = draw.choice(["state", "state", "state", "mark"])
    path = os.path.join(state, which, name)
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        data = bytearray(file.read())
    end = len(data.rstrip(b"\0"))
    if not end:
        return None
    what = draw.choice(["flip", "flip", "cut", "zero", "insert", "swap", "delete"])
    at, some = draw.randrange(end), draw.randrange(1, 2000)
    if what == "flip":
        data[at] ^= 1 << draw.randrange(8)
    elif what == "cut":
        del data[at:]
    elif what == "zero":
        data[at:at + some] = bytes(len(data[at:at + some]))
    elif what == "insert":
        data[at:at] = draw.randbytes(some)
    elif what == "swap":
        other = os.path.join(state, draw.choice(folders_of(state)), name)
        data = open(other, "rb").read() if os.path.exists(other) else data
    if what == "delete":
        os.remove(path)
    else:
        with open(path, "wb") as file:
            file.write(data)
    return what, which


def old_copy(draw, state, copy):
    """Puts folders of the copy in the place of the newer ones."""
    common = [name for name in folders_of(copy) if os.path.isdir(os.path.join(state, name))]
    chosen = draw.sample(common, min(len(common), draw.choice([1, 1, 1, 2])))
    for name in chosen:
        shutil.rmtree(os.path.join(state, name))
        shutil.copytree(os.path.join(copy, name), os.path.join(state, name))
    return chosen


# ---- lies ----


def packet(kind, body):
    length, head = len(body), bytes([kind])
    while True:
        length, low = length >> 7, length & 127
        head += bytes([low | (128 if length else 0)])
        if not length:
            return head + body


def text(words):
    data = words.encode()
    return struct.pack(">H", len(data)) + data


class Liar(threading.Thread):
    """Speaks in the name of a client with the secret of its federation, beside the client itself: messages that no rows can give."""

    def __init__(self, draw, state, run, client):
        super().__init__(daemon=True)
        self.draw, self.run_name, self.client = random.Random(draw.random()), run, "/".join(client)
        self.parent = "/".join(client[:-1]) or "cloud"
        self.state, self.lies, self.over, self.last = state, 0, threading.Event(), None

    def connect(self):
        with open(glob.glob(os.path.join(self.state, "+secret"))[0], "rb") as file:
            secret = mac(b"hfsad 2", file.read())
        with open(os.path.join(self.state, "+broker.conf")) as file:
            path = file.readline().split(" ", 2)[2].rstrip("\n")
        self.key = mac(secret, "\n".join(("up", self.run_name, self.parent, self.client, "")).encode() + b"\1")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(0.2)
        self.socket.connect(path)
        self.socket.sendall(packet(0x10, text("MQTT") + bytes([4, 2, 0, 0]) + text(f"liar{self.draw.random()}")))
        topics = (f"hfsad/{self.run_name}/{self.parent}/down", f"hfsad/{self.run_name}/{self.client}/up",
                  f"hfsad/{self.run_name}/{self.client}/answer")
        self.socket.sendall(packet(0x82, struct.pack(">H", 1) + b"".join(text(t) + b"\0" for t in topics)))

    def packets(self):
        data = b""
        while not self.over.is_set():
            try:
                more = self.socket.recv(65536)
            except TimeoutError:
                continue
            if not more:
                return
            data += more
            while len(data) >= 2:
                length = shift = at = 0
                while at + 1 < len(data):
                    at += 1
                    length |= (data[at] & 127) << shift
                    shift += 7
                    if data[at] < 128:
                        break
                if len(data) < at + 1 + length or data[at] >= 128:
                    break
                if data[0] >> 4 == 3:
                    body = data[at + 1:at + 1 + length]
                    end = 2 + struct.unpack_from(">H", body)[0]
                    yield body[2:end].decode(), body[end:]
                data = data[at + 1 + length:]

    def lie(self, frame):
        """An UP or an ANSWER with a number that none can have."""
        body = bytearray(frame)
        count = struct.unpack_from("<I", body, 48)[0]
        kind = self.draw.choice(["sigma", "sigma", "counter", "numbers"])
        if kind == "sigma" or body[5] == 5:
            struct.pack_into("<d", body, 40, self.draw.choice([1e12, 1e300, 1.7e308, -1.0, 0.0, 1e-300]))
        elif kind == "counter":
            struct.pack_into("<Q", body, 32, self.draw.choice([1 << 40, (1 << 64) - 1]))
        if (kind == "numbers" or body[5] == 5) and body[6] == 0 and len(body) == 56 + 8 * count:
            struct.pack_into("<%dd" % count, body, 56, *[self.draw.choice([-1e300, -1.7e308, -1e30])] * count)
        return checked(body)

    def say(self, topic, frame):
        name = topic.rpartition("/")[2]
        payload = frame + tag(self.key, name, frame)
        self.socket.sendall(packet(0x30 | self.draw.choice([0, 1]), text(topic) + payload))
        self.lies += 1

    def answer(self, topic, payload):
        if len(payload) < 60 or payload[:4] != b"hfsd":
            return
        body = payload[:56 + struct.unpack_from("<I", payload, 52)[0]]
        kind, phase = body[5], struct.unpack_from("<Q", body, 16)[0] & 255
        if phase != 2:
            return
        if kind == 0 and self.last:  # a new round begins: the last UP as if it were of that
            up = bytearray(self.last)
            up[16:32] = body[16:32]
            self.say(f"hfsad/{self.run_name}/{self.client}/up", self.lie(up))
        elif kind == 1 and struct.unpack_from("<Q", body, 32)[0] < 1 << 39 and 1e-6 < struct.unpack_from("<d", body, 40)[0] < 1e9:
            self.last = body
        elif kind == 5 and struct.unpack_from("<d", body, 40)[0] == 0 and self.draw.random() < 0.5:
            self.say(topic, self.lie(body))

    def run(self):
        while not self.over.wait(0.005):
            try:
                self.connect()
                for topic, payload in self.packets():
                    self.answer(topic, payload)
            except (OSError, IndexError, ValueError):
                pass  # the broker is not there yet, or not any more
