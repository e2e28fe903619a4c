"""Mutations of files and messages: bytes as bytes, and text as text that somebody wrote."""

from __future__ import annotations

import random
import re

#: what breaks readers: sizes, signs, borders of types, letters with a meaning elsewhere
WORDS = (
    "0", "-1", "1", "0.0", "nan", "inf", "-inf", "1e400", "-1e308", "1e-320", "9" * 30, "1" + "0" * 4400, "0x7fffffff",
    "-9223372036854775808", "18446744073709551616", "true", "1979-05-27", "[]", "[[]]", "[nan]", "{}", "{ kind = 1 }",
    "[" * 60 + "]" * 60, '""', '"x"', '"\\u0000"', '"../../x"', '"/dev/zero"', '"[/x]"', '"<script>"',
    '"' + "a" * 5000 + '"', '"\ud7ff"',
)  # fmt: skip
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
BYTES = (b"\0", b"\xff", b"\x7f", b"\x80", b"\n", b"\xff" * 4, b"\xff" * 8, b"\0" * 8, b"\xc0\x80", b"TLCK")


def binary(data: bytes, rng: random.Random) -> bytes:
    """Some bytes changed, put in, taken out, doubled or cut off."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(7)
        if kind == 0 and out:
            out[at % len(out)] ^= 1 << rng.randrange(8)
        elif kind == 1 and out:
            out[at % len(out)] = rng.randrange(256)
        elif kind == 2:
            out[at:at] = rng.choice(BYTES)
        elif kind == 3:
            del out[at : at + rng.choice((1, 2, 8, 64, 1024))]
        elif kind == 4:
            end = min(len(out), at + rng.choice((1, 4, 32, 512)))
            out[at:at] = out[at:end]
        elif kind == 5 and len(out) > 8:
            at = rng.randrange(len(out) - 8)
            out[at : at + 8] = rng.choice((0, 1, -1, 2**31, 2**53, -(2**63))).to_bytes(8, "little", signed=True)
        elif kind == 6 and rng.random() < 0.3:
            del out[at:]
    return bytes(out)


def text(data: bytes, rng: random.Random) -> bytes:
    """A configuration with a value, a line or a letter changed; now and then one that is bytes."""
    if rng.random() < 0.1:
        return binary(data, rng)
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(lines))
        line, kind = lines[at], rng.randrange(8)
        if kind <= 2 and (found := list(NUMBER.finditer(line))):
            m = rng.choice(found)
            lines[at] = line[: m.start()] + rng.choice(WORDS) + line[m.end() :]
        elif kind == 3 and "=" in line:
            lines[at] = line.split("=", 1)[0] + "= " + rng.choice(WORDS)
        elif kind == 4:
            del lines[at]
            lines = lines or [""]
        elif kind == 5:
            lines.insert(rng.randrange(len(lines)), line)
        elif kind == 6 and (found := list(re.finditer(r"\w+", line))):
            m = rng.choice(found)
            others = re.findall(r"\w+", rng.choice(lines)) or ["x"]
            lines[at] = line[: m.start()] + rng.choice(others) + line[m.end() :]
        elif kind == 7 and line:
            k = rng.randrange(len(line))
            lines[at] = line[:k] + rng.choice("[]{}\"'=#.,\\\t\x7fé☃") + line[k + 1 :]
    return "\n".join(lines).encode("utf-8", "surrogateescape")
