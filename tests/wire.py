"""wire.py SEED SECONDS A B: the wire between two network namespaces, in which anything may happen to a packet.

It makes a device `wire` in either namespace (10.78.0.1 and 10.78.0.2) and carries packets between them. Every packet is
late by 1 to 4 ms, so that packets overtake each other. At drawn moments and for drawn times the wire is cut in both
directions or in one, loses a fifth of the packets and doubles a fifth, is slow, or one of its devices is taken down; once
it is dead for longer than a broker believes in a silent connection of 5 s keepalive. Nobody is told of any of this. Each
happens once at least, and more of it until SECONDS have gone by. Then the weather is calm. On SIGTERM a line says what happened, and how long it took from the end of every kind of
trouble until frames went both ways again. Exit status 1: something of it did not happen.
"""
import fcntl, heapq, os, random, select, signal, struct, subprocess, sys, time

seed, seconds, names = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:5]
draw = random.Random(seed)
FRAME = 120  # bytes of a packet with something in it
DEAD = 8.2  # a broker gives a client up after one and a half keepalives
BOTH, UP, DOWN = (True, True), (True, False), (False, True)  # which ways are cut


def device(number, name):
    """A tun device of its own in the namespace; read and written here."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    made = fcntl.ioctl(fd, 0x400454CA, struct.pack("16sH22x", b"hfw%d" % (os.getpid() * 2 + number), 0x1001))
    old = made[:16].rstrip(b"\0").decode()
    subprocess.run(["ip", "link", "set", old, "netns", name], check=True)
    for words in (["link", "set", old, "name", "wire"], ["addr", "add", f"10.78.0.{number + 1}/24", "dev", "wire"],
                  ["link", "set", "wire", "up"], ["link", "set", "lo", "up"]):
        subprocess.run(["ip", "-n", name] + words, check=True)
    return fd


def plan():
    """(start, end, kind, cut ways, loss, doubles, delay in ms)"""
    events, now = [], 0.5
    kinds = ["cut", "one way", "lossy", "slow", "device down", "dead"]
    draw.shuffle(kinds)
    while kinds or now < seconds:
        kind = kinds.pop() if kinds else draw.choice(["cut", "one way", "lossy", "slow", "device down"])
        length = DEAD if kind == "dead" else draw.uniform(0.3, 0.8)
        cut = BOTH if kind in ("cut", "dead") else draw.choice((UP, DOWN)) if kind == "one way" else (False, False)
        lossy = kind == "lossy"
        events.append((now, now + length, kind, cut, 0.2 * lossy, 0.2 * lossy, 30 if kind == "slow" else 3))
        now += length + draw.uniform(0.1, 0.5)
    return events + [(now, float("inf"), "calm", (False, False), 0, 0, 3)]


def carry(fds, events):
    counts = {"carried": 0, "lost": 0, "doubled": 0, "overtaken": 0, "troubles": 0}
    back, waits = {}, None  # seconds by kind; (kind, since, ways that have not been gone yet)
    flying, order, newest = [], 0, [0.0, 0.0]
    start, at, down = time.monotonic(), 0, None
    calm = (0, 0, "calm", (False, False), 0, 0, 3)
    while not stopped:
        now = time.monotonic() - start
        while events[at][1] <= now:
            if down is not None:
                subprocess.run(["ip", "-n", names[down], "link", "set", "wire", "up"], check=True)
                down = None
            counts["troubles"] += 1
            if events[at][2] not in ("lossy", "slow"):
                waits = (events[at][2], now, {0, 1})
            at += 1
        event = events[at] if events[at][0] <= now else calm
        if event[2] == "device down" and down is None:
            down = draw.randrange(2)
            subprocess.run(["ip", "-n", names[down], "link", "set", "wire", "down"], check=True)
        until = min([events[at][0] if event is calm else events[at][1]] + [f[0] for f in flying[:1]])
        readable, _, _ = select.select(fds, [], [], min(max(until - now, 0), 0.5))
        now = time.monotonic() - start
        for fd in readable:
            way = fds.index(fd)
            try:
                packet = os.read(fd, 65536)
            except OSError:  # the device is down
                continue
            if event[3][way] or down is not None or draw.random() < event[4]:
                counts["lost"] += 1
                continue
            twice = draw.random() < event[5]
            counts["doubled"] += twice
            for _ in range(1 + twice):
                due = now + draw.uniform(1, event[6] + 1) / 1000
                counts["overtaken"] += due < newest[way]
                newest[way] = max(newest[way], due)
                order += 1
                heapq.heappush(flying, (due, order, way, packet))
        while flying and flying[0][0] <= now:
            _, _, way, packet = heapq.heappop(flying)
            try:
                os.write(fds[1 - way], packet)
            except OSError:
                counts["lost"] += 1
                continue
            counts["carried"] += 1
            if waits and len(packet) > FRAME:
                waits[2].discard(way)
                if not waits[2]:
                    back.setdefault(waits[0], []).append(now - waits[1])
                    waits = None
    return counts, back, at


stopped = False


def stop(*_):
    global stopped
    stopped = True


signal.signal(signal.SIGTERM, stop)
fds = [device(i, name) for i, name in enumerate(names)]
print("ready", flush=True)
events = plan()
counts, back, done = carry(fds, events)
print(", ".join(f"{v} {k}" for k, v in counts.items()))
for kind, times in sorted(back.items()):
    times.sort()
    print(f"back after '{kind}': {len(times)} times, median {times[len(times) // 2]:.2f} s, at most {times[-1]:.2f} s")
if done < len(events) - 1:
    sys.exit(f"only {done} of {len(events) - 1} troubles: the run was over before them")
if not counts["lost"] or not counts["overtaken"]:  # doubles need packets in the short time of losses
    sys.exit("no packet was lost, or none has overtaken another")
