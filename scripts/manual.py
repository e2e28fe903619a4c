#!/usr/bin/env python
"""The manual: a site that works from files, its links looked at, its code run.

    python scripts/manual.py pages                  write docs/cli.md and docs/api.md from the program itself
    python scripts/manual.py build                  build/manual (extra [docs]), then every link and anchor of it
    python scripts/manual.py code [PAGE...] [--cheap]   run every code block; --cheap: those that take no simulation
    python scripts/manual.py numbers [PAGE...]      hold every number that a command prints against the command

Code: fenced blocks of a page are run in their order in one empty folder: `bash` by bash (with `torqueloop` on the
path), `python` with what earlier blocks of the page said. A `toml` block that is a whole file (its first line is
"# file: NAME" or `extends = ...`) must pass `torqueloop check`; a part of a rig file stands after a comment
"<!-- in a rig: extends = ... -->" with the lines that make it one, and is checked with them; other parts are parsed.
Every run that a block leaves must have passed, and the lines behind a `print` that begin with "# " must be what it
prints. A block after a comment "<!-- not run: WHY -->" is not run, and counted as such; one after "<!-- fails: WHY -->"
leaves a run that fails.

Numbers: a paragraph, list or table after a comment "<!-- numbers of: COMMAND -->" has only numbers that the command
prints (run in the checkout), to the digits that are shown. In a table after "<!-- numbers of each row -->" each row
has its commands in its last cell, and its other cells but the first have only numbers that they print. Run before a
release.
"""

from __future__ import annotations

import argparse
import html.parser
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
DOCS, SITE = ROOT / "docs", ROOT / "build" / "manual"
BLOCK = re.compile(r"^(?P<before>[^\n]*)\n```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->")
#: lines before a block that is a part of a rig file
IN_A_RIG = re.compile(r"<!-- in a rig: (.+?) -->")
FAILS = re.compile(r"<!-- fails: (.+?) -->")
#: first line of a block that is a whole file
WHOLE = re.compile(r"# file: (?P<name>\S+)\n|extends = |# file of ")
#: what is printed below this is rounding: it may be larger or smaller by a factor of ten [1]
ROUNDING = 1e-8
#: kinds that are looked at; others are prose
KINDS = ("bash", "python", "toml")
#: longest block [s]
LIMIT_S = 600


@dataclass(frozen=True)
class Block:
    """A code block of a page."""

    page: Path
    line: int
    kind: str
    text: str
    #: why it is not run; empty: it is
    why_not: str = ""
    #: lines that make a whole rig file of a part; empty: it is none
    rig: str = ""
    #: the run it leaves fails, as the page says
    fails: bool = False

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """Blocks of the kinds that are looked at, in their order."""
    text = "\n" + page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        why = NOT_RUN.search(match["before"])
        if match["kind"] in KINDS or why:
            line = text.count("\n", 0, match.start("kind"))
            rig, fails = IN_A_RIG.search(match["before"]), FAILS.search(match["before"])
            yield Block(
                page, line, match["kind"], match["text"], why[1] if why else "", rig[1] if rig else "", bool(fails)
            )


def run_page(page: Path, found: list[Block], cheap: bool) -> list[str]:
    """Failures of a page's blocks, each with its place."""
    failures = []
    with tempfile.TemporaryDirectory(prefix="torqueloop-manual-") as folder:
        tools = Path(folder) / ".tools"
        tools.mkdir()
        shim = tools / "torqueloop"
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m torqueloop.hil.cli "$@"\n', encoding="utf-8")
        shim.chmod(0o755)
        path = f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        env = {**os.environ, "PATH": path, "PYTHONPATH": search, "MPLBACKEND": "Agg", "COLUMNS": "120"}
        before: list[str] = []
        for block in found:
            if block.why_not or (cheap and block.kind != "toml"):
                continue
            begun = time.perf_counter()
            failure = _run(block, before, Path(folder), env, cheap)
            took = time.perf_counter() - begun
            print(f"{'FAILED' if failure else 'ok':6s} {took:6.1f} s  {block.kind:6s} {block.place}", flush=True)
            if failure:
                failures.append(f"{block.place}: {failure}")
    return failures


def _run(block: Block, before: list[str], folder: Path, env: dict[str, str], cheap: bool) -> str:
    """Why a block failed; empty: it did not."""
    if block.kind == "toml":
        try:
            tomllib.loads(block.text)
        except tomllib.TOMLDecodeError as error:
            return str(error)
        whole = WHOLE.match(block.text)
        name = whole["name"] if whole and whole["name"] else f"block{block.line}.toml"
        if not whole and not block.rig:
            return ""
        (folder / name).write_text(
            block.rig.replace("; ", "\n") + "\n" * bool(block.rig) + block.text, encoding="utf-8"
        )
        # a sketch is read by the command that follows it
        if cheap or name.endswith(".sketch.toml"):
            return ""
        command = ["torqueloop", "check", name]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT_S)
        return "" if done.returncode == 0 else f"torqueloop check: {(done.stdout + done.stderr)[-2000:]}"
    if block.kind == "bash":
        command = ["bash", "-euo", "pipefail", "-c", block.text]
    else:
        # what came before on the page counts: names of earlier blocks are known
        # in a folder of its own, because earlier blocks leave the same files again; modules that a command has
        # written are beside it
        env = {**env, "PYTHONPATH": os.pathsep.join(filter(None, (str(folder), env.get("PYTHONPATH"))))}
        folder = folder / f"python{len(before)}"
        folder.mkdir()
        script = folder / "page.py"
        script.write_text("\n".join([*before, block.text]), encoding="utf-8")
        before.append(block.text)
        command = [sys.executable, str(script)]
    there = set(folder.rglob("run.json"))
    try:
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"took longer than {LIMIT_S} s"
    if done.returncode:
        return f"status {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}"
    return _shown(block, done.stdout) or _judged(set(folder.rglob("run.json")) - there, block.fails, env)


def _judged(runs: set[Path], fails: bool, env: dict[str, str]) -> str:
    """Why the runs of a block are not what the page says: each passes, or fails where it says so."""
    for run in sorted(runs):
        done = subprocess.run(["torqueloop", "report", str(run.parent)], env=env, capture_output=True, text=True)
        if (done.returncode == 0) == fails:
            verdict = "did not fail as the page says" if fails else "did not pass"
            return f"the run {run.parent.name} {verdict}: {(done.stdout + done.stderr)[-1500:]}"
    return ""


def _shown(block: Block, printed: str) -> str:
    """Why what a page shows behind `print` is not what was printed; only the last lines are the block's own."""
    lines = block.text.splitlines()
    shown = [b[2:] for a, b in zip(lines, lines[1:], strict=False) if "print(" in a and b.startswith("# ")]
    if block.kind != "python" or not shown:
        return ""
    told = printed.splitlines()[-len(shown) :]
    wrong = [f"{a!r}, printed {b!r}" for a, b in zip(shown, told, strict=False) if not _alike(a, b)]
    return "" if not wrong and len(told) == len(shown) else f"shown {'; '.join(wrong) or shown}"


def _alike(shown: str, printed: str) -> bool:
    """The same text; numbers to the digits that are shown, rounding by its order of magnitude."""
    number = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
    if number.sub("#", shown) != number.sub("#", printed):
        return False
    for a, b in zip(number.findall(shown), number.findall(printed), strict=True):
        small = max(abs(float(a)), abs(float(b))) < ROUNDING
        if a != b and not (small and 0.1 <= abs(float(b) / (float(a) or 1e-300)) <= 10.0):
            return False
    return True


def code(pages: list[Path], cheap: bool) -> int:
    """Run all code; how many blocks there are, and what failed."""
    found = {page: list(blocks(page)) for page in pages}
    failures = [failure for page, some in found.items() for failure in run_page(page, some, cheap)]
    every = [block for some in found.values() for block in some]
    skipped = [block for block in every if block.why_not]
    for block in skipped:
        print(f"not run: {block.place}: {block.why_not}")
    cheap_count = sum(block.kind != "toml" and not block.why_not for block in every) if cheap else 0
    print(f"{len(every)} code blocks in {len([p for p, s in found.items() if s])} pages: "
          f"{len(every) - len(skipped) - cheap_count - len(failures)} ran and passed, {len(failures)} failed, "
          f"{len(skipped)} are not run (with their reason), {cheap_count} left out by --cheap")  # fmt: skip
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


# --- numbers ---------------------------------------------------------------------------------------------------------

NUMBERS_OF = re.compile(r"<!-- numbers of: (?P<command>.+?) -->\n(?P<text>.+?)(?=\n\n|\Z)", re.DOTALL)
NUMBERS_OF_ROWS = re.compile(r"<!-- numbers of each row -->\n(?P<text>(?:\|.+\n)+)")
#: a number by itself: not the 4 of "4HP22" or of a name, nor the exponent of a unit
NUMBER = re.compile(r"(?<![\w./^-])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w^]|\.\d|/\w)")


def unprinted(text: str, printed: str) -> list[str]:
    """The numbers of a text that are not among those printed, rounded to the digits of the text; a blank may stand
    between thousands."""
    text, printed = (re.sub(r"(?<=\d)[ \u202f](?=\d{3}\b)", "", part) for part in (text, printed))
    known = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", printed)]
    missing = []
    for shown in NUMBER.findall(re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)):
        digits, _, exponent = shown.partition("e")
        step = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
        if not any(abs(float(shown) - n) <= 0.501 * step for n in known):
            missing.append(shown)
    return missing


def held(text: str) -> Iterator[tuple[list[str], str]]:
    """(commands, text that has only their numbers) of a page."""
    for match in NUMBERS_OF.finditer(text):
        yield [match["command"]], match["text"]
    for match in NUMBERS_OF_ROWS.finditer(text):
        for row in match["text"].splitlines()[2:]:
            _, *cells, commands = (cell.strip() for cell in row.strip("|").split("|"))
            yield re.findall(r"`([^`]+)`", commands), " ".join(cells)


def numbers(pages: list[Path]) -> int:
    """Run the commands of the pages, hold their numbers against what they print."""
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "200"}
    printed: dict[str, str] = {}
    status = 0
    for page in pages:
        for commands, text in held(page.read_text(encoding="utf-8")):
            for command in commands:
                if command not in printed:
                    env = {
                        **os.environ,
                        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                        "COLUMNS": "200",
                    }
                    done = subprocess.run(command, shell=True, cwd=ROOT, env=env, capture_output=True, text=True)
                    printed[command] = done.stdout + done.stderr
            missing = unprinted(text, "\n".join(printed[command] for command in commands))
            status |= bool(missing)
            print(f"{'FAILED' if missing else 'ok':6s} {page.relative_to(ROOT)}: {'; '.join(commands)}")
            print("".join(f"       {n} is not printed by it\n" for n in missing), end="")
    print(f"{len(printed)} commands")
    return status


# --- links ----------------------------------------------------------------------------------------------------------


class _Links(html.parser.HTMLParser):
    """Targets and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        #: what the page itself loads
        self.loaded: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value or tag == "a" and name == "name" and value:
                self.anchors.add(str(value))
            elif name in ("href", "src") and value:
                self.targets.append(value)
                if name == "src" or tag == "link" and dict(attrs).get("rel") in ("stylesheet", "icon"):
                    self.loaded.append(value)


def broken_links(site: Path) -> tuple[int, list[str]]:
    """(local links looked at, those that lead nowhere)."""
    read: dict[Path, _Links] = {}
    for page in sorted(site.rglob("*.html")):
        parser = _Links()
        parser.feed(page.read_text(encoding="utf-8"))
        read[page] = parser
    count, broken = 0, []
    for page, links in read.items():
        if page.name == "404.html":  # is served anywhere: its links are absolute
            continue
        name = page.relative_to(site)
        broken += [f"{name}: {target}: loaded from the network" for target in links.loaded if urlsplit(target).netloc]
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc or target.startswith("javascript:"):
                continue
            count += 1
            goal = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if goal.is_dir():
                goal = goal / "index.html"
            if not goal.exists():
                broken.append(f"{page.relative_to(site)}: {target}: no such file")
            elif parts.fragment and goal in read and unquote(parts.fragment) not in read[goal].anchors:
                if not parts.fragment.startswith("__"):
                    broken.append(f"{page.relative_to(site)}: {target}: no such anchor")
    return count, broken


def build() -> int:
    """Build the site; 1 when anything is wrong in it."""
    made = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"], cwd=ROOT)
    if made.returncode:
        return 1
    count, broken = broken_links(SITE)
    for line in broken:
        print(line, file=sys.stderr)
    pages = len(list(SITE.rglob("*.html")))
    print(f"{SITE.relative_to(ROOT)}: {pages} pages, {count} local links, {len(broken)} broken")
    return 1 if broken else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["pages", "build", "code", "numbers"])
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--cheap", action="store_true", help="TOML only")
    options = parser.parse_args()
    if options.what == "pages":
        from manual_pages import written

        for name, text in written().items():
            (DOCS / name).write_text(text, encoding="utf-8")
        return
    if options.what == "build":
        raise SystemExit(build())
    pages = [p.resolve() for p in options.pages] or [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"]
    raise SystemExit(numbers(pages) if options.what == "numbers" else code(pages, options.cheap))


if __name__ == "__main__":
    main()
