"""Frames of a federation as `mosquitto_sub -F '%t %x'` writes them, a line each: topic and payload in hex."""
import struct


class Frame:
    def __init__(self, topic, payload):
        (_, _, self.kind, self.encoding, _, self.run, self.phase, self.round, self.k, self.sigma, count,
         length) = struct.unpack_from("<4sBBBBQQQQdII", payload)
        self.topic = topic
        self.path = "/".join(topic.split("/")[2:-1])
        self.bytes = payload
        self.body = payload[56:56 + length]
        self.numbers = struct.unpack("<%d%s" % (count, "dfdQ"[self.encoding]), self.body) if self.encoding != 2 else ()


def read(path):
    frames = []
    for line in open(path):
        topic, _, hexadecimal = line.strip().rpartition(" ")
        if topic and hexadecimal.startswith("68667364"):  # hfsd
            frames.append(Frame(topic, bytes.fromhex(hexadecimal)))
    return frames


DOWN, UP, ACK, STATUS, ASK, ANSWER, MODEL = range(7)
DOUBLE, FLOAT, DELTA, FIXED = range(4)
