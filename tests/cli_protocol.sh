#!/usr/bin/env bash
# docs/protocol.md: its program reads the frame that it prints, which is the library's (test_message has the same one).
. "$(dirname "$0")/shell.sh"
page=$SOURCE_DIR/docs/protocol.md

awk '/^```/ { inside = !inside; next } inside && /^68 66/ { found = 1 } inside && found' "$page" | sed '/^[^0-9a-f]/,$d' >frame.txt
sed -n '/^```python$/,/^```$/p' "$page" | sed '/^```/d' >decode.py
[ "$(wc -w <frame.txt)" = 76 ] || fail "the frame of the page has $(wc -w <frame.txt) bytes"
python3 decode.py <frame.txt >out.txt || fail "the program of the page does not take its frame"
[ "$(cat out.txt)" = "(1, $((0x0123456789abcdef)), 2, 7, 3, 65.0, (1.5, -2.0))" ] || fail "it reads $(cat out.txt)"
sed '1s/68/69/' frame.txt | python3 decode.py >/dev/null 2>&1 && fail "the program takes another mark"
finish
