"""attack_rows.py TRANSCRIPT DATA WEIGHT C ALPHA: what an edge learns of its clients' rows from their first UPs.

The clients have one row each, tv links of this weight, sigma = C sqrt(k), mu = ALPHA / sqrt(k), and begin at the model of the
first DOWN, v. The edge knows all of that. In u = sigma q - Gamma only the client's w is unknown, and every coordinate of u grows
with that of w: it is found by bisection. w - v is a multiple of the client's row. Prints for each client the cosine between
w - v and its row, and exits with 0 if all rows were found, 1 if none was, 2 otherwise.
"""
import csv, math, sys
import transcript as t


def message(w, down, weight, c, alpha):
    """A coordinate of u after the first step, from the client's w and the parent's; z = q = down before it."""
    mu, sigma, following = alpha, c, c * math.sqrt(2)
    apart = down - w
    e = math.copysign(max(abs(apart) * mu / (mu + 2 * weight / sigma), abs(apart) - 2 * weight / sigma), apart)
    return following * (w + down + e) / 2 - weight * max(-1.0, min(1.0, e / mu))


def solve(u, down, *link):
    low, high = down - 1e6, down + 1e6
    for _ in range(200):
        middle = (low + high) / 2
        if message(middle, down, *link) < u:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def shown(frame, fraction):
    """An UP in fixed point, as if it were not masked."""
    if frame.encoding != t.FIXED:
        return frame.numbers
    factor = 2.0 ** (fraction - math.frexp(frame.sigma)[1] + 1)
    return [(n - (1 << 64) if n >> 63 else n) / factor for n in frame.numbers]


def main():
    frames, link = t.read(sys.argv[1]), [float(a) for a in sys.argv[3:6]]
    fraction = 40  # the cosine hardly depends on it
    rows = {}
    for row in csv.DictReader(open(sys.argv[2])):
        rows[row["edge"] + "/" + row["client"]] = [float(v) for k, v in row.items() if k.startswith("x")]
    down = next(f.numbers for f in frames if f.kind == t.DOWN and f.round == 1 and f.path == "e")
    found = 0
    for path, x in sorted(rows.items()):
        up = next((f for f in frames if f.kind == t.UP and f.path == path and f.round == 1), None)
        if up is None:
            sys.exit("no UP of " + path)
        step = [solve(u, v, *link) - v for u, v in zip(shown(up, fraction), down)]
        size = math.sqrt(sum(s * s for s in step) * sum(v * v for v in x))
        cosine = abs(sum(s * v for s, v in zip(step, x))) / size if size else 0.0
        found += cosine > 1 - 1e-6
        print("%s %.12f" % (path, cosine))
    sys.exit(0 if found == len(rows) else 1 if found == 0 else 2)


main()
