"""hostile_broker.py PORT RUN SEED: a party that reads and writes every topic of a run, as a broker can.

Of every frame that it hears it makes others and sends them in the name of the sender: altered with a right checksum, with
the tags of another frame, without tags, with drawn tags, of another round; old frames again, frames of one node on the
topic of another, hellos of other nodes, STATUS frames of a second process, and empty messages that clear what the broker
remembers. On SIGTERM it prints the number of frames of each kind of attack.
"""
import random, signal, struct, sys, time

import paho.mqtt.client as mqtt
from paho.mqtt.subscribeoptions import SubscribeOptions

from frames import checked

port, run, draw = int(sys.argv[1]), sys.argv[2], random.Random(int(sys.argv[3]))
PACE = 400  # frames a second: more would only slow the broker down


def split(payload):
    """A frame and its tags."""
    if len(payload) < 60 or payload[:4] != b"hfsd":
        return payload, b""
    end = 60 + struct.unpack_from("<I", payload, 52)[0]
    return payload[:end], payload[end:]


def altered(frame, change):
    body = bytearray(frame[:-4])
    change(body)
    return checked(body)


def nudge(body):
    """A number a little larger: within every bound."""
    count = struct.unpack_from("<I", body, 48)[0]
    if count and len(body) == 56 + 8 * count:
        at = 56 + 8 * draw.randrange(count)
        struct.pack_into("<d", body, at, struct.unpack_from("<d", body, at)[0] * 1.001 + 1e-4)


def later(body):
    struct.pack_into("<Q", body, 24, struct.unpack_from("<Q", body, 24)[0] + 1)


def second_process(body):
    """Of a STATUS: another process that has come further and has met this one."""
    count = struct.unpack_from("<I", body, 48)[0]
    if count > 20:
        own = struct.unpack_from("<d", body, 56 + 8 * 9)[0]
        struct.pack_into("<d", body, 56, 1e9)
        struct.pack_into("<d", body, 56 + 8 * 9, 4711.0)
        struct.pack_into("<d", body, 56 + 8 * 20, own)


heard, counts = {}, {}


def attacks(topic, payload):
    frame, tags = split(payload)
    before = [p for t, ps in heard.items() for p in ps]
    others = [t for t in heard if t.rpartition("/")[2] == topic.rpartition("/")[2] and t != topic]
    yield "replayed", topic, draw.choice(heard[topic])
    if others:
        yield "of another node", draw.choice(others), payload
    if frame[:4] != b"hfsd":
        body = bytearray(payload)
        body[draw.randrange(len(body))] ^= 1 << draw.randrange(8)
        yield "altered hello", topic, bytes(body)
        return
    changes = {"altered": nudge, "of a later round": later}
    if topic.endswith("/status"):
        changes = {"second process": second_process}
    for name, change in changes.items():
        forged = altered(frame, change)
        if forged != frame:
            yield name, topic, forged + tags
            yield name + ", without tags", topic, forged
            yield name + ", drawn tags", topic, forged + draw.randbytes(8 * draw.randrange(1, 9))
            yield name + ", tags of another frame", topic, forged + split(draw.choice(before))[1]
    if draw.random() < 0.02:
        yield "cleared", topic, b""


def on_message(client, _, packet):
    global allowance, last
    payload = packet.payload
    if not payload:
        return
    kept = heard.setdefault(packet.topic, [])
    kept.append(payload)
    del kept[: len(kept) - 20]
    now = time.monotonic()
    allowance, last = min(allowance + PACE * (now - last), PACE), now
    planned = list(attacks(packet.topic, payload))
    draw.shuffle(planned)
    for name, topic, forged in planned:
        if allowance < 1:
            return
        allowance -= 1
        counts[name] = counts.get(name, 0) + 1
        client.publish(topic, forged, qos=0, retain=draw.random() < 0.5)


def stop(*_):
    print(", ".join(f"{n} {name}" for name, n in sorted(counts.items())), flush=True)
    sys.exit(0)


allowance, last = PACE, time.monotonic()
signal.signal(signal.SIGTERM, stop)
try:
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION1, "hostile", protocol=mqtt.MQTTv5)
except AttributeError:
    client = mqtt.Client("hostile", protocol=mqtt.MQTTv5)
client.on_message = on_message
client.on_connect = lambda c, *_: (c.subscribe(f"hfsad/{run}/#", options=SubscribeOptions(noLocal=True)), print("ready", flush=True))
client.connect("127.0.0.1", port)
client.loop_forever()
