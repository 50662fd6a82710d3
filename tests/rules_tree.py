#!/usr/bin/env python3
"""rules_tree.py ROOT LIBHFSAD PROGRAM: holds what CONTRIBUTING.md and docs/ say about the tree against the tree.

- a folder includes only what its row of "Where things live" allows, and calls only the libraries of its row
- the shared library and the program link the libraries of that table, and no others
- a file name is there once, no function is longer than FUNCTION_LINES, and no static function's name is in more than NAME_FILES files
- a file, or the header of its name, opens with a comment that says what it is for
- no comment and no message has a word of VAGUE, which names no noun
- files and functions of the tables in docs/algorithm.md and docs/walk.md exist, the function in one of the row's files
- no text of src/ names an option of the program
- sources that a comment names exist
- the lines of CONTRIBUTING's "Size" are those of the tree, to a twentieth
- the recorded interface names sources by their place in the tree, not on a machine
- links between pages, quoted headings, paths in backticks and pages named in comments exist

Then it breaks each rule in a copy of the tree, held in memory, and must notice that. Exit status: 0 or 1.
"""
import fnmatch, functools, os, re, subprocess, sys

FUNCTION_LINES = 80
NAME_FILES = 5
COMMAND_PARTS = ("parse_arguments",)  # static functions that mean the same in every command
SIZE_TOLERANCE = 0.05
SOURCES = ("include", "src", "lab", "dash", "cli")  # what CONTRIBUTING's table is about
ROOT_FOLDERS = (*SOURCES, "web", "python", "mpi", "cuda", "tests", "bench", "docs", "examples", "deploy", "scripts", "cmake", "abi", ".ci")
VAGUE = r"(?i)\b(?:(?<!anyone )who|whoever|whom|whomever|somebody|everybody|nobody|so many)\b"
TEXT = (".c", ".h", ".py", ".sh", ".md", ".txt", ".cmake", ".yaml", ".abi")

# name in the table -> (headers, sonames); LAPACK has no header: its functions are declared where they are called
LIBRARIES = {
    "LAPACK": (r"^$", r"^lib(lapack|blas)"),
    "libzip": (r"^zip\.h$", r"^libzip"),
    "libyaml": (r"^yaml\.h$", r"^libyaml"),
    "cJSON": (r"^cjson/", r"^libcjson"),
    "libmosquitto": (r"^(mosquitto|mqtt_protocol)\.h$", r"^libmosquitto"),
    "zstd": (r"^zstd\.h$", r"^libzstd"),
    "OpenSSL": (r"^openssl/", r"^lib(ssl|crypto)"),
    "libmicrohttpd": (r"^microhttpd\.h$", r"^libmicrohttpd"),
    "SQLite": (r"^sqlite3\.h$", r"^libsqlite3"),
}
LIBC_HEADERS = re.compile(r"^((arpa|linux|net|netinet|sys)/\w+|assert|ctype|dirent|dlfcn|endian|errno|fcntl|float|fnmatch|ftw|getopt|glob|"
                          r"immintrin|inttypes|limits|locale|math|netdb|poll|pthread|pwd|sched|semaphore|setjmp|signal|spawn|std\w+|"
                          r"strings?|sysexits|termios|threads|time|unistd|wchar)\.h$")
NO_LIBRARY = re.compile(r"^(libc|libm|libpthread|librt|libdl|libgcc_s|ld-linux.*|lib[a-z]+san|libclang_rt.*)\.so")  # sanitizers' too


findall = functools.lru_cache(maxsize=None)(re.findall)  # a breach changes one text, and the others are searched once


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


class Tree:
    """The texts below a folder, by path; no build folder, nothing hidden but .ci."""

    def __init__(self, root):
        self.texts = {}
        self.names = set()  # of all files and folders
        tops = [name for name in os.listdir(root) if os.path.isfile(os.path.join(root, name))]
        self.names |= set(tops)
        self.texts.update({name: read(os.path.join(root, name)) for name in tops if name.endswith(TEXT)})
        for top in ROOT_FOLDERS:
            for folder, folders, files in os.walk(os.path.join(root, top)):
                folders[:] = [name for name in folders if name not in ("corpus", "__pycache__")]
                below = os.path.relpath(folder, root)
                self.names.add(below)
                for name in files:
                    path = os.path.join(below, name)
                    self.names.add(path)
                    if name.endswith(TEXT) or "." not in name:
                        self.texts[path] = read(os.path.join(folder, name))

    def changed(self, path, text):
        """A copy with another text of a file, which may be new."""
        copy = object.__new__(Tree)
        copy.texts = {**self.texts, path: text}
        copy.names = self.names | {path, os.path.dirname(path)}
        return copy

    def sources(self, folders=SOURCES):
        return {path: text for path, text in self.texts.items() if path.split("/")[0] in folders and path.endswith((".c", ".h"))}

    def pages(self):
        return {path: text for path, text in self.texts.items() if path.endswith(".md")}


def tables_of(text, heading):
    """The tables below a heading: lists of rows, each a list of cells; without heads and rules."""
    part = re.split(r"^#+ ", text.split(f"\n## {heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]
    tables, rows = [], []
    for line in part.splitlines() + [""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif rows:
            tables.append(rows[2:])
            rows = []
    return tables


def words(cell):
    return [] if cell == "–" else [word.strip() for word in cell.split(",")]


# ---- folders ----


def folder_table(tree):
    """folder -> (folders that it may include, libraries)"""
    rows = tables_of(tree.texts["CONTRIBUTING.md"], "Where things live")[0]
    return {row[0].strip("`/"): (words(row[2]), words(row[3])) for row in rows}


def folder_of(name, table):
    """The row that a name in the column "may include" stands for."""
    return next((folder for folder in table if folder in (name, f"src/{name}", f"include/{name}")), None)


@functools.lru_cache(maxsize=None)
def libraries_of(text):
    """Names of the libraries that a source calls, and headers that belong to none."""
    found, unknown = set(), []
    for header in re.findall(r"^\s*#\s*include\s+<([^>]+)>", text, re.M):
        known = {name for name, (headers, _) in LIBRARIES.items() if re.search(headers, header)}
        found |= known
        unknown += [] if known or LIBC_HEADERS.search(header) else [header]
    if re.search(r"^extern void [sd]\w+_\(", text, re.M):
        found.add("LAPACK")
    return found, unknown


def check_program(name, text):
    """The program uses the public headers, src/base/, dash/ and lab/."""
    folders = "data|math|core|cell|plan|polish|spec|run|out|net|personal"
    takes = findall(rf'^\s*#\s*include\s+"((?:{folders})/[^"]+)"', text, re.M)
    yield from (f"cli/{name}: includes {header}; the program uses public headers" for header in sorted(set(takes)))


def check_includes(tree):
    table = folder_table(tree)
    for name in sorted({name for allowed, _ in table.values() for name in allowed}):
        if not folder_of(name, table):
            yield f"CONTRIBUTING.md: a row may include {name}, which has no row"
    for folder in sorted({os.path.dirname(path) for path in tree.sources()} - table.keys()):
        yield f"CONTRIBUTING.md: {folder}/ has no row in \"Where things live\""
    for folder in sorted(table.keys() - tree.names):
        yield f"CONTRIBUTING.md: there is no {folder}/"
    used = {folder: set() for folder in table}
    for path, text in sorted(tree.sources().items()):
        home = os.path.dirname(path)
        allowed, libraries = table.get(home, ([], []))
        may = {home, "include/hfsad"} | {folder_of(name, table) for name in allowed}
        for header in findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.M):
            places = [place for place in (f"src/{header}", f"include/{header}", header, f"{home}/{header}") if place in tree.names]
            if not places:
                yield f"{path}: includes {header}, which is not there"
            elif os.path.dirname(places[0]) not in may:
                yield f"{path}: includes {header}; the row of {home}/ in CONTRIBUTING.md does not allow it"
        if home == "cli":
            yield from check_program(os.path.basename(path), text)
        found, unknown = libraries_of(text)
        used.setdefault(home, set()).update(found)
        yield from (f"{path}: calls {name}, which the row of {home}/ in CONTRIBUTING.md does not name" for name in sorted(found - set(libraries)))
        yield from (f"{path}: includes <{header}>, which is neither libc's nor of a library that this test knows" for header in unknown)
    for folder, (_, libraries) in table.items():
        yield from (f"CONTRIBUTING.md: {folder}/ does not call {name}" for name in libraries if name not in used[folder])


def needed(binary):
    """Sonames that a binary asks for, libc's and those of sanitizers left out."""
    told = subprocess.run(["objdump", "-p", binary], capture_output=True, text=True, check=True).stdout
    return [name for name in re.findall(r"NEEDED\s+(\S+)", told) if not NO_LIBRARY.search(name)]


def check_libraries(tree, binaries):
    """binaries: name -> sonames, libhfsad first, then the program."""
    table = folder_table(tree)
    core = {folder for folder in table if folder.startswith("src/") and folder != "src/net"}
    for (base, linked), folders in zip(binaries.items(), (core, set(table))):
        listed = {name for folder in folders for name in table[folder][1]}
        patterns = [LIBRARIES[name][1] for name in listed if name in LIBRARIES]
        yield from (f"{base} links {soname}, which CONTRIBUTING.md does not name for it"
                    for soname in linked if not any(re.search(pattern, soname) for pattern in patterns))
        yield from (f"{base} does not link {name}, which CONTRIBUTING.md names for it"
                    for name in sorted(listed) if not any(re.search(LIBRARIES[name][1], soname) for soname in linked))
    head = tree.texts["CONTRIBUTING.md"].split("\n\n|", 1)[0]
    for name in sorted({name for _, libraries in table.values() for name in libraries}):
        if name not in head:
            yield f"CONTRIBUTING.md: \"Build and test\" does not list {name}"


# ---- names and lengths ----


def check_names(tree):
    places = {}
    for path in sorted(tree.sources()):
        places.setdefault(os.path.basename(path), []).append(path)
    yield from (f"the name {name} is there twice: {', '.join(paths)}" for name, paths in places.items() if len(paths) > 1)


def static_names(tree):
    """The files that define a static function, by the function's name."""
    places = {}
    for path, text in sorted(tree.sources().items()):
        if not path.startswith("include"):
            for name in set(findall(r"(?m)^(?:__attribute__\(.*\) )?static (?!inline)[^=;()\n]*\b(\w+)\(", text)):
                places.setdefault(name, []).append(path)
    return places


def check_static_names(tree):
    for name, paths in static_names(tree).items():
        if len(paths) > NAME_FILES and name not in COMMAND_PARTS:
            yield f"{name} is a static function of {len(paths)} files; {NAME_FILES} at most, so say what it is for: {', '.join(paths)}"


def check_openings(tree):
    for path, text in sorted(tree.sources().items()):
        header = tree.texts.get(re.sub(r"\.c$", ".h", path), "")
        if not text.startswith("/*") and not header.startswith("/*"):
            yield f"{path}: no comment at the top says what the file is for"


def check_words(tree):
    for path, text in sorted(tree.sources().items()):
        for part in findall(r"(?s)/\*.*?\*/|\"(?:\\\\.|[^\"\\\\\n])*\"", text):
            for word in findall(VAGUE, part):
                yield f"{path}: \"{word}\" names no noun: {' '.join(part.split())[:100]}"


def check_lengths(tree):
    for path, text in sorted(tree.sources((*SOURCES, "python", "bench")).items()):
        start = None
        for number, line in enumerate(text.splitlines(), 1):
            if line == "{":
                start = number
            elif line == "}" and start:
                if number - start + 1 > FUNCTION_LINES:
                    yield f"{path}:{start}: a function of {number - start + 1} lines; {FUNCTION_LINES} at most"
                start = None


# ---- pages ----


def files_of(cell, tree, before):
    """Sources that a cell of the map names: whole paths, names in the folder of the last one, or the row's before."""
    if "the same" in cell:
        return before, []
    found, missing, folder = [], [], ""
    for name in re.findall(r"`([^`]+)`", cell):
        path = name if "/" in name else f"{folder}/{name}"
        if name.endswith("/"):
            found += [source for source in tree.sources() if source.startswith(name)]
        elif path in tree.texts:
            found.append(path)
        else:
            # a header or a source of another folder: by its name alone, which is there once
            others = [source for source in tree.sources() if os.path.basename(source) == name]
            found += others
            missing += [] if others else [path]
        folder = os.path.dirname(path)
    return found, missing


MAPS = (("docs/algorithm.md", "Equation → function"), ("docs/walk.md", "A row of a CSV file, from the file to model.csv"),
        ("docs/walk.md", "An UP message, from a device to the cloud"))


def check_map(tree):
    """The last two columns of a map are functions and the files that have them."""
    before = []
    for page, heading in MAPS:
        for what, *_, names, places in tables_of(tree.texts[page], heading)[0]:
            functions = re.findall(r"`(\w+)`", names)
            files, missing = files_of(places, tree, before)
            yield from (f"{page}: \"{what}\": there is no {path}" for path in missing)
            if not functions or not files:
                yield f"{page}: \"{what}\" names no function or no file"
            for function in functions:
                if not any(re.search(rf"\b{function}\(", tree.texts[path]) for path in files):
                    yield f"{page}: \"{what}\": {function} is not in {', '.join(files)}"
            before = files


def headings(text):
    """Headings of a page, and their anchors as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return titles, {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def check_links(tree):
    for page, text in sorted(tree.pages().items()):
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"\w+:", target):
                continue
            path, _, anchor = target.partition("#")
            there = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if there not in tree.names:
                yield f"{page}: the link {target} leads nowhere"
            elif anchor and there in tree.texts and anchor not in headings(tree.texts[there])[1]:
                yield f"{page}: {there} has no heading #{anchor}"


def check_paths(tree):
    """`src/…` in backticks is there; what has a * or a < stands for many."""
    tops = "|".join(re.escape(top) for top in ROOT_FOLDERS)
    for page, text in sorted(tree.pages().items()):
        if page == "CHANGELOG.md":  # a history may name what is gone
            continue
        for path in re.findall(rf"`((?:{tops})/[\w./*<>-]+)`", text):
            if not re.search(r"[*<]|/X|_X", path) and os.path.normpath(path) not in tree.names and not is_made(path, tree):
                yield f"{page}: there is no {path}"


def is_made(path, tree):
    """Folders that a command of the page makes, such as examples/X/out, and programs without their ending."""
    return "/out" in path or f"{path}.c" in tree.names


def check_references(tree):
    """Pages and sections that a comment or a page names are there."""
    pages = {os.path.basename(page) for page in tree.pages()}
    made = {"compare.md", "report.md", "notes.md"}  # outputs of the program, and a test's
    for path, text in sorted(tree.texts.items()):
        if path == "LICENSE" or path.startswith("tests/rules_") or not (".md" in text or "ection" in text):
            continue
        for name in sorted(set(findall(r"\b([\w-]+\.md)\b", text)) - pages - made):
            yield f"{path}: names {name}, which is no page of this project"
        for page, heading in findall(r'docs/([\w-]+\.md),[\s*#]+"([^"]+)"', text):
            heading = re.sub(r"\s*\n[\s*#]*", " ", heading)
            if heading not in headings(tree.texts.get(f"docs/{page}", ""))[0]:
                yield f"{path}: docs/{page} has no heading \"{heading}\""
        for page, numbers in findall(r"(?:\b([\w-]+\.md)[`)]*,?\s+)?\b[Ss]ections? (\d+(?:(?:, | and | to )\d+)*)", text):
            where = tree.texts.get(f"docs/{page}" if page else path, "")
            there = set(findall(r"^#+ (\d+)\.", where, re.M)) if page or path.endswith(".md") else set()
            if not set(findall(r"\d+", numbers)) <= there:
                yield f"{path}: names section {numbers}, which {page or 'it'} does not have"


def check_comments(tree):
    """Sources that a comment names are there: folder/file.h from src/ or from the root, file.h anywhere."""
    names = {os.path.basename(path) for path in tree.names}
    for path, text in sorted(tree.sources((*SOURCES, "mpi")).items()):
        for comment in findall(r"(?s)/\*.*?\*/", text):
            for name in findall(r"(?<![\w/<.])((?:[a-z_]+/)*[a-z_0-9]{3,}\.[ch])\b", comment):
                there = [f"{top}{name}" in tree.names for top in ("", "src/", "include/", "tests/")]
                if not (any(there) if "/" in name else name in names or LIBC_HEADERS.search(name)):
                    yield f"{path}: a comment names {name}, which is not there"
            for name in findall(r"(?<![\w/.])(src/[a-z]+)\b(?!/)", comment):
                if name not in tree.names:
                    yield f"{path}: a comment names {name}, which is not there"


def check_options(tree):
    """No text of the libraries names an option of the program, which other callers do not have."""
    for path, text in sorted(tree.texts.items()):
        if path.startswith("src/") and path.endswith((".c", ".h")) and "--" in text:
            for string in re.findall(r'"((?:[^"\\\n]|\\.)*)"', re.sub(r"/\*.*?\*/", "", text, flags=re.S)):
                if re.search(r"(^|[^-\w])--[a-z]", string):
                    yield f"{path}: a text names an option of the program: {string[:60]}"


def check_recorded(tree):
    for path, text in sorted(tree.texts.items()):
        if path.endswith(".abi"):
            for name in findall(r" path='(/[^']*)'", text):
                yield f"{path}: the path of a machine: {name}"


def check_size(tree):
    """The lines of CONTRIBUTING's "Size" are those of the tree, to SIZE_TOLERANCE."""
    part = tree.texts["CONTRIBUTING.md"].split("\n### Size\n", 1)[1].split("\n## ", 1)[0]
    lines = {path: text.count("\n") for path, text in tree.sources().items()}
    total = 0
    for row in re.findall(r"^\|(.+)\|$", part, re.M):
        cells = [cell.strip() for cell in row.split("|")]
        said, names = cells[-1].replace(",", ""), re.findall(r"`([^`]+)`", cells[-2])
        if not said.isdigit():
            continue
        if not names:  # the sum
            found = total
        elif any(name.endswith("/") for name in names):  # a folder, then patterns of names in it; without them all of it
            found, folder, whole = 0, "", False
            for name, after in zip(names, [*names[1:], "/"]):
                if name.endswith("/"):
                    folder, whole = name, after.endswith("/")
                found += sum(count for path, count in lines.items()
                             if os.path.dirname(path) + "/" == folder and (whole or not name.endswith("/")
                             and fnmatch.fnmatch(os.path.basename(path).rsplit(".", 1)[0], name)))
        else:
            folders = [name if name in tree.names else f"src/{name}" for name in names]
            found = sum(count for path, count in lines.items() if os.path.dirname(path) in folders)
            total += found
        if abs(found - int(said)) > SIZE_TOLERANCE * int(said):
            yield f"CONTRIBUTING.md: \"Size\": {cells[-2] or 'the sum'}: {found} lines, not {said}"


RULES = (check_size, check_recorded, check_options, check_comments, check_includes, check_names, check_static_names, check_openings, check_words, check_lengths, check_map, check_links, check_paths, check_references)


def complaints(tree, linked):
    return [line for rule in RULES for line in rule(tree)] + list(check_libraries(tree, linked))


# ---- each rule, broken ----

LONG = "\nstatic void much_too_long(void)\n{\n" + "    ;\n" * FUNCTION_LINES + "}\n"
# file, what is there (None: the end), what takes its place, words of the complaint
BREACHES = [
    ("abi/hfsad.abi", None, "<abi-instr path='/home/me/src/base/error.c'>\n", "abi/hfsad.abi: the path of a machine: /home/me"),
    ("src/base/rng.c", None, 'static const char *const hint = "give another --out";\n', "names an option of the program: give another --out"),
    ("src/math/box.c", None, '#include "plan/plan.h"\n', "src/math/box.c: includes plan/plan.h; the row of src/math/"),
    ("src/run/sim.c", None, '#include "net/topic.h"\n', "src/run/sim.c: includes net/topic.h"),
    ("src/base/rng.c", None, "#include <yaml.h>\n", "src/base/rng.c: calls libyaml"),
    ("src/base/rng.c", None, "#include <curl/curl.h>\n", "includes <curl/curl.h>"),
    ("src/base/rng.c", None, '#include "base/missing.h"\n', "base/missing.h, which is not there"),
    ("cli/progress.c", None, '#include "run/sim.h"\n', "cli/progress.c: includes run/sim.h; the program uses public headers"),
    ("src/new/file.c", None, "int x;\n", "src/new/ has no row"),
    ("lab/rng.c", None, "int x;\n", "the name rng.c is there twice"),
    ("src/base/rng.h", "/*", "#define X\n/*", "src/base/rng.h: no comment at the top"),
    ("src/base/rng.c", None, "/* who asks */\n", "\"who\" names no noun"),
    ("cli/cli.c", None, LONG, f"a function of {FUNCTION_LINES + 2} lines"),
    ("CONTRIBUTING.md", "| made, math, base | libzip, cJSON |", "| made, math, base | libzip, zstd |", "src/data/ does not call zstd"),
    ("CONTRIBUTING.md", "| made, math, base | libzip, cJSON |", "| made, math, base | – |", "links libzip"),
    ("CONTRIBUTING.md", ", zstd, OpenSSL 3", ", OpenSSL 3", "does not list zstd"),
    ("cli/cli.c", None, "/* long */\n" * 2000, "\"Size\": `cli`"),
    ("CONTRIBUTING.md", "| `lab/` |", "| `laboratory/` |", "there is no laboratory/"),
    ("docs/algorithm.md", "`groups_find`", "`groups_seek`", "groups_seek is not in src/out/groups.c"),
    ("docs/algorithm.md", "`src/out/groups.c`", "`src/out/gruppen.c`", "there is no src/out/gruppen.c"),
    ("docs/walk.md", "`cell_sum`", "`cell_total`", "cell_total is not in src/cell/cell.c"),
    ("docs/algorithm.md", "(baselines.md)", "(base.md)", "the link base.md leads nowhere"),
    ("docs/data.md", None, "\n[x](algorithm.md#no-such-thing)\n", "no heading #no-such-thing"),
    ("docs/data.md", None, "\nSee `src/data/none.c`.\n", "docs/data.md: there is no src/data/none.c"),
    ("src/base/rng.c", None, "/* ALGORITHM.md */\n", "names ALGORITHM.md, which is no page"),
    ("src/base/rng.c", None, "/* section 4 */\n", "names section 4"),
    ("docs/protocol.md", None, "\nSee section 77.\n", "names section 77"),
    ("docs/data.md", None, "\nSee [x](protocol.md), section 78.\n", "names section 78"),
    ("src/base/rng.c", None, "/* sim/replay.h */\n", "a comment names sim/replay.h"),
    ("src/base/rng.c", None, "/* the steps of src/admm */\n", "a comment names src/admm"),
    ("src/base/rng.c", None, '/* docs/algorithm.md, "No\n * such heading" */\n', 'no heading "No such heading"'),
]


def breach(tree, binaries, path, old, new, wanted):
    """Whether the rules notice a change of one file."""
    text = tree.texts.get(path, "")
    if old and old not in text:
        return [f"the test itself: {path} has no '{old}'"]
    found = complaints(tree.changed(path, text.replace(old, new, 1) if old else text + new), binaries)
    return [] if any(wanted in line for line in found) else [f"the test itself: nothing says '{wanted}' after a change of {path}: {found[:3]}"]


def main():
    root, *binaries = sys.argv[1:]
    tree = Tree(root)
    linked = {os.path.basename(binary): needed(binary) for binary in binaries}
    lines = complaints(tree, linked)
    if not lines:
        lines = [line for change in BREACHES for line in breach(tree, linked, *change)]
        crowd = tree
        for i in range(NAME_FILES + 1):
            crowd = crowd.changed(f"src/base/crowd{i}.c", "/* x */\nstatic void crowded(void)\n{\n}\n")
        if not any(f"crowded is a static function of {NAME_FILES + 1} files" in line for line in check_static_names(crowd)):
            lines.append("the test itself: a static name in too many files is not noticed")
    print("\n".join(lines) or f"all rules hold, and {len(BREACHES) + 1} breaches were noticed")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
