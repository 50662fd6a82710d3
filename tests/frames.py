"""Frames of docs/protocol.md, for the attackers among the tests. foreign_client.py has its own: it needs only that page."""
import hashlib, hmac, struct

HEAD = "<4sBBBBQQQQdII"
TABLE = []
for s in range(256):
    for _ in range(8):
        s = s >> 1 ^ (0x82F63B78 if s & 1 else 0)
    TABLE.append(s)


def crc32c(data):
    s = 0xFFFFFFFF
    for byte in data:
        s = TABLE[(s ^ byte) & 255] ^ s >> 8
    return s ^ 0xFFFFFFFF


def checked(body):
    return bytes(body) + struct.pack("<I", crc32c(body))


def frame(kind, run, phase, round_, values, k=0, sigma=0.0):
    """A frame of plain numbers."""
    body = struct.pack(HEAD, b"hfsd", 1, kind, 0, 0, run, phase, round_, k, sigma, len(values), 8 * len(values))
    return checked(body + struct.pack("<%dd" % len(values), *values))


def numbers(frame):
    """(kind, run, phase, round, k, sigma, values) of a frame of plain numbers."""
    _, _, kind, _, _, run, phase, round_, k, sigma, count, _ = struct.unpack_from(HEAD, frame)
    return kind, run, phase, round_, k, sigma, list(struct.unpack_from("<%dd" % count, frame, 56))


def mac(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


def tag(key, topic, frame):
    """The blocks of 16 bytes are a polynomial in r (Poly1305)."""
    if len(frame) <= 512:
        return mac(key, frame + topic.encode())[:8]
    r = int.from_bytes(mac(key, b"poly1305")[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for i in range(56, len(frame), 16):
        total = (total + int.from_bytes(frame[i:i + 16] + b"\1", "little")) * r % ((1 << 130) - 5)
    return mac(key, frame[:56] + topic.encode() + (total % (1 << 128)).to_bytes(16, "little") + b"\1")[:8]
