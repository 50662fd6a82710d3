#!/usr/bin/env bash
# docs/protocol.md: its program reads the frame that it prints, which is the library's (test_message has the same one), and its tables
# of states are those of the code.
. "$(dirname "$0")/shell.sh"
page=$SOURCE_DIR/docs/protocol.md

awk '/^```/ { inside = !inside; next } inside && /^68 66/ { found = 1 } inside && found' "$page" | sed '/^[^0-9a-f]/,$d' >frame.txt
sed -n '/^```python$/,/^```$/p' "$page" | sed '/^```/d' >decode.py
[ "$(wc -w <frame.txt)" = 76 ] || fail "the frame of the page has $(wc -w <frame.txt) bytes"
python3 decode.py <frame.txt >out.txt || fail "the program of the page does not take its frame"
[ "$(cat out.txt)" = "(1, $((0x0123456789abcdef)), 2, 7, 3, 65.0, (1.5, -2.0))" ] || fail "it reads $(cat out.txt)"
sed '1s/68/69/' frame.txt | python3 decode.py >/dev/null 2>&1 && fail "the program takes another mark"

python3 - "$SOURCE_DIR" >states.txt <<'EOF' || fail "states: $(cat states.txt)"
import re, sys
code = "".join(open(sys.argv[1] + "/src/net/" + name).read() for name in ("node.h", "node_parts.h"))
page = open(sys.argv[1] + "/docs/protocol.md").read()
page = page[page.index("### States"):page.index("### Acknowledgement")]
wanted = []
for name in ("NODE_STATE_LIST", "NODE_MOVE_LIST", "QUESTION_STATE_LIST", "QUESTION_MOVE_LIST"):
    body = code[code.index("#define %s(" % name):]
    rows = re.findall(r'X\((\w+), (?:(\w+), )?"([^"]*)"\)', body[:body.index("\n\n")])
    assert len(rows) > 2, name
    wanted += ["| %s | %s |" % (" | ".join("`%s`" % v for v in row[:2] if v), row[2]) for row in rows]
found = [line for line in page.splitlines() if line.startswith("| `")]
if wanted != found:
    print("the code has", [w for w in wanted if w not in found], "the page", [f for f in found if f not in wanted])
    sys.exit(1)
EOF
finish
