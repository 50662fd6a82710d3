"""same_output.py A B [FILE...]: see same_output in shell.sh; exits with 1 and a line where they differ."""
import csv, json, os, struct, sys


def checkpoint(folder):
    """The state in it: it stands before the checksum, before it stands how many words it has, and it begins with the
    iteration and the round. What is not compared is what the clock decides (seconds, the trace's among them) and what a
    reader of the folder sees anyway."""
    data = open(os.path.join(folder, "checkpoint.bin"), "rb").read()
    words = struct.unpack(f"<{len(data) // 8}Q", data)
    iteration = int(list(csv.reader(open(os.path.join(folder, "trace.csv"), newline="")))[-1][0])
    summary = json.load(open(os.path.join(folder, "summary.json")))
    rounds = summary["settings"]["run"]["edge_rounds"]
    if summary["algorithm"] == "star":
        iteration = 0  # its rows are no iterations: a star that is resumed begins anew
    places = [i for i, word in enumerate(words)
              if word == len(words) - i - 2 and words[i + 1 : i + 3] == (iteration, iteration * rounds)]
    assert places
    return words[places[0] + 1 : -1]  # counters within the state may look like its beginning, by chance


def content(folder, name):
    path = os.path.join(folder, name)
    if name == "trace.csv":
        rows = list(csv.reader(open(path, newline="")))
        at = rows[0].index("seconds")
        return [r[:at] + r[at + 1 :] for r in rows]
    if name == "summary.json":
        summary = json.load(open(path))
        for key in ("seconds", "iterations_per_second", "threads"):
            del summary[key]
        del summary["settings"]["output"]["every_seconds"]
        summary.get("polish", {}).pop("seconds", None)
        summary.get("personal", {}).pop("seconds", None)
        return list(summary.items())  # with its order
    if name == "checkpoint.bin":
        return checkpoint(folder)
    return open(path, "rb").read()


def main():
    words = [word for word in sys.argv[1:] if word != "--models"]
    first, second, *further = words
    # --models: of an asynchronous federation and its replay, whose summaries differ in how the run came about
    names = ("model.csv", "trace.csv") if len(words) < len(sys.argv) - 1 else ("model.csv", "trace.csv", "summary.json")
    for name in (*names, *further):
        if content(first, name) != content(second, name):
            sys.exit(f"{first} and {second} differ in {name}")


if __name__ == "__main__":
    main()
