"""curious_edge.py PORT RUN EDGE CLIENT FEATURES [CLOUD]: asks a client questions of its own choosing, in the name of its edge.

It hears one question of the real edge, and then asks for sums of residuals at models of its choice, counts below
thresholds, products, losses, slopes and second derivatives, once for every kind of question: with new numbers, and with
those of questions that were answered. Prints which of them the client has answered, and ends after the last one.

With the process CLOUD it waits for the star's first question, stops that process, and asks questions that the star has, in
an order that it has not. Then the cloud goes on.
"""
import os, signal, struct, sys, time

import paho.mqtt.client as mqtt
from paho.mqtt.subscribeoptions import SubscribeOptions

from frames import frame, numbers

port, run, edge, client, M = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5])
cloud = int(sys.argv[6]) if len(sys.argv) > 6 else 0
ASK, SETUP, ATTEMPT_BIT = 4, 1, 24


def disorder(last, before):
    """In another attempt, so that the real edge's numbers stay free: kinds that never come right after the kind `before`."""
    attempt = (last >> ATTEMPT_BIT) + 1
    follows = {107: (105, 111), 108: (105, 111, 125), 109: (107, 109), 114: (112, 113), 115: (114,), 116: (114,)}
    down = {107: 0, 108: 0}
    sums = {107: M, 108: M * (M + 1) // 2, 109: M, 114: 64}
    for kind in follows:
        if before not in (kind, *follows[kind]):
            yield (attempt << ATTEMPT_BIT) + kind, kind, 1, sums.get(kind, 1), [float(attempt), float(kind), 1.0, 1.0, 1.0] + [1.0] * down.get(kind, M)


def questions():
    """(round, kind, most, sums, arguments): kinds of docs/protocol.md."""
    unit = lambda i, v=1.0: [v if m == i else 0.0 for m in range(M)]
    late = 1 << 45
    for i in range(88):
        yield 100 + i, 10, 0, 2, unit(i % M, 1.0 + i)  # sums of residuals
    yield 300, 5, 0, 33, [float(t) for t in range(32)]  # rows below thresholds
    yield 301, 16, 0, 1, unit(0)  # loss
    yield 302, 8, 0, M, [1.0] + unit(0)
    yield 303, 1, 1, 5, [0.5]  # the scale, once more
    yield 1, 1, 1, 5, [0.25]  # ... in the place of one that was answered
    for kind in list(range(19)) + [100] + list(range(103, 126)) + list(range(135, 142)):  # every number of docs/audit.md
        sizes = {1: (1, 5, [0.5]), 12: (0, 1 + 2 * M, [0.0] * (1 + M)), 100: (2, 1, [])}
        polish = (1, {108: M * (M + 1) // 2, 105: M + 5, 117: M + 4}.get(kind, 1), [1.0, 1.0, 1.0, 0.0, 0.0] + unit(0))
        most, sums, values = sizes.get(kind, polish if 103 <= kind < 135 else (0, M + 1, unit(0)))
        yield (late if kind >= 103 else 400) + kind, kind, most, sums, values


heard = {"run": None, "answers": set(), "kind": 0}


def on_message(_client, _, packet):
    if len(packet.payload) < 60:
        return
    run_id, _phase, round_ = struct.unpack_from("<QQQ", packet.payload, 8)
    if packet.topic.endswith("/ask"):
        heard["run"] = run_id
        heard["kind"] = int(numbers(packet.payload)[-1][0])
    else:
        heard["answers"].add(round_)


try:
    c = mqtt.Client(mqtt.CallbackAPIVersion.VERSION1, "curious", protocol=mqtt.MQTTv5)
except AttributeError:
    c = mqtt.Client("curious", protocol=mqtt.MQTTv5)
c.on_message = on_message
c.connect("127.0.0.1", port)
root = f"hfsad/{run}/"
for topic in (root + edge + "/ask", root + client + "/answer"):
    c.subscribe(topic, options=SubscribeOptions(noLocal=True))
c.on_subscribe = lambda *_: print("listening", flush=True)
c.loop_start()
end = time.monotonic() + 40
first = 1 << ATTEMPT_BIT if cloud else 1
while time.monotonic() < end and (heard["run"] is None or max(heard["answers"], default=0) < first):  # the real one has begun
    time.sleep(0.0005 if cloud else 0.005)
if cloud:
    os.kill(cloud, signal.SIGSTOP)
    time.sleep(0.1)  # what is on its way arrives

asked = list(disorder(max(heard["answers"], default=0), heard["kind"]) if cloud else questions())
for round_, kind, most, sums, values in asked:
    c.publish(root + edge + "/ask", frame(ASK, heard["run"], SETUP, round_, [float(kind), float(most), float(sums), 0.0, 0.0] + values))
    time.sleep(0.005)
time.sleep(0.5)
if cloud:
    os.kill(cloud, signal.SIGCONT)
c.loop_stop()
rounds = {round_ for round_, *_ in asked if round_ > 50}
print(f"asked {len(asked)} questions, {len(rounds & heard['answers'])} answered")
