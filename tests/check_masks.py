"""check_masks.py MASKED PLAIN: two transcripts of the same run, with masks and without.

No client's message in fixed point has a word of the plain run in its place; the sums over all clients of a parent are the same, to
the bit; the masked words look uniform; and no node has said two different things of one kind, phase and round.
"""
import math, sys
import transcript as t

KEPT = (t.UP, t.ANSWER)


def messages(path):
    said = {}
    for f in t.read(path):
        if f.kind not in KEPT or f.encoding != t.FIXED:
            continue
        key = (f.path, f.kind, f.phase, f.round)
        if said.setdefault(key, f.body) != f.body:
            sys.exit("%s has said two different things: kind %d, phase %x, round %d" % key)
    return said


def words(body):
    return [int.from_bytes(body[i:i + 8], "little") for i in range(0, len(body), 8)]


def total(bodies, width):
    """Sums of numbers of `width` words."""
    size, modulus = 8 * width, 1 << 64 * width
    return [sum(int.from_bytes(b[i:i + size], "little") for b in bodies) % modulus for i in range(0, len(bodies[0]), size)]


def check_sums(masked, plain):
    groups = {}
    for key in masked:
        if key[0].count("/"):
            groups.setdefault((key[0].rsplit("/", 1)[0],) + key[1:], []).append(key)
    compared = 0
    for group, keys in groups.items():
        ours = [masked[k] for k in keys]
        theirs = [plain[k] for k in keys if k in plain]
        if len(theirs) != len(ours):
            continue
        width = 1 if group[1] == t.UP else 3
        if total(ours, width) != total(theirs, width):
            sys.exit("the masks of %s, kind %d, phase %x, round %d do not cancel" % group)
        compared += 1
    return compared


def check_uniform(bodies):
    data = b"".join(bodies)
    counts = [0] * 256
    for byte in data:
        counts[byte] += 1
    expected = len(data) / 256
    chi = sum((c - expected) ** 2 / expected for c in counts)
    if abs(chi - 255) > 6 * math.sqrt(2 * 255):
        sys.exit("bytes are not uniform: chi squared %.1f with 255 degrees of freedom" % chi)
    ones = sum(bin(byte).count("1") for byte in data)
    if abs(ones - 4 * len(data)) > 6 * math.sqrt(2 * len(data)):
        sys.exit("bits are not uniform: %d of %d are 1" % (ones, 8 * len(data)))
    return chi


def main():
    masked, plain = messages(sys.argv[1]), messages(sys.argv[2])
    clients = {k: v for k, v in masked.items() if "/" in k[0]}
    if len(clients) < 100:
        sys.exit("only %d messages of clients" % len(clients))
    for key, body in clients.items():
        if key in plain and any(a == b for a, b in zip(words(body), words(plain[key]))):
            sys.exit("%s says a plain word: kind %d, phase %x, round %d" % key)
    sums = check_sums(masked, plain)
    if sums < 20:
        sys.exit("only %d sums compared" % sums)
    print("%d messages, %d sums, chi squared %.1f" % (len(clients), sums, check_uniform(clients.values())))


main()
