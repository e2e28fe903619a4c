"""Pages and messages do not use phrases that the glossary or a plainer word has replaced (single words: codespell)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: phrase -> what to write instead
INSTEAD = {
    r"(go|goes|went|going) on\b": "continue, or: has not ended",
    r"(is|are|was|were) told": "receives, is sent, is reported",
    r"hand(s|ed)? on\b": "pass, forward",
    r"(no|some)body": "no node, no process, a user",
    r"speaks? (ZeroMQ|CAN|TCP|msgpack)": "uses",
    r"hear(s|d)": "receive",
    r"for want of": "because",
    r"cannot be told": "is not known",
    r"tells?": "say, report, decide",
    r"as above": "what is meant, in words",
    r"all the same": "nevertheless",
}
#: names of checks, which stay
NAMES = {"nobody else sends our CAN messages"}
#: made from the comments of the kernel
OF_KERNEL = {"kernel_records.md", "step_files.md"}
PAGES = sorted(
    path
    for folder in (ROOT, ROOT / "docs", ROOT / "docs/howto")
    for path in folder.glob("*.md")
    if path.name not in OF_KERNEL
)
MODULES = sorted(path for room in ("hil", "core") for path in (ROOT / room).rglob("*.py"))


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of the texts of a module with more than one word; docstrings are not messages."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            if " " in node.value and node.value not in NAMES:
                yield node.lineno, node.value


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of a page without its code."""
    code = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        code ^= line.startswith("```")
        if not code and not line.startswith("    "):
            yield number, re.sub(r"`[^`]*`", "", line)


@cache
def everything() -> list[tuple[str, str]]:
    """(file and line, text) of all pages and messages."""
    read = [(prose, PAGES), (messages, MODULES)]
    return [
        (f"{path.relative_to(ROOT)}:{line}", text)
        for function, paths in read
        for path in paths
        for line, text in function(path)
    ]


@pytest.mark.parametrize(("phrase", "instead"), INSTEAD.items())
def test_a_phrase_that_has_a_plain_word_is_not_used(phrase: str, instead: str) -> None:
    pattern = re.compile(rf"\b{phrase}\b")
    found = [f"{where}: {text.strip()[:160]}" for where, text in everything() if pattern.search(text)]
    assert not found, f"write: {instead}\n" + "\n".join(found)
