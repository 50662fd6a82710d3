"""same_output.py A B [FILE...]: see same_output in shell.sh; exits with 1 and a line where they differ."""
import csv, json, os, sys


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
        return list(summary.items())  # with its order
    return open(path, "rb").read()


first, second, *further = sys.argv[1:]
for name in ("model.csv", "trace.csv", "summary.json", *further):
    if content(first, name) != content(second, name):
        sys.exit(f"{first} and {second} differ in {name}")
