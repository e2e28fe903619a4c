#!/usr/bin/env python
"""The manual: a site that works from files, its links looked at, its code run.

    python scripts/manual.py pages                  write docs/cli.md and docs/api.md from the program itself
    python scripts/manual.py build                  build/manual (extra [docs]), then every link and anchor of it
    python scripts/manual.py code [PAGE...] [--cheap]   run every code block; --cheap: those that take no simulation

Code: fenced blocks of a page are run in their order in one empty folder: `bash` by bash (with `torqueloop` on the
path), `python` with what earlier blocks of the page said, `toml` is parsed (and written, where its first line is
"# file: NAME"). A block after a comment "<!-- not run: WHY -->" is not run, and counted as such.
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
            yield Block(page, line, match["kind"], match["text"], why[1] if why else "")


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
            failure = _run(block, before, Path(folder), env)
            took = time.perf_counter() - begun
            print(f"{'FAILED' if failure else 'ok':6s} {took:6.1f} s  {block.kind:6s} {block.place}", flush=True)
            if failure:
                failures.append(f"{block.place}: {failure}")
    return failures


def _run(block: Block, before: list[str], folder: Path, env: dict[str, str]) -> str:
    """Why a block failed; empty: it did not."""
    if block.kind == "toml":
        try:
            tomllib.loads(block.text)
        except tomllib.TOMLDecodeError as error:
            return str(error)
        name = re.match(r"# file: (\S+)\n", block.text)
        if name:
            (folder / name[1]).write_text(block.text, encoding="utf-8")
        return ""
    if block.kind == "bash":
        command = ["bash", "-euo", "pipefail", "-c", block.text]
    else:
        # what came before on the page counts: names of earlier blocks are known
        # in a folder of its own: earlier blocks leave the same files again
        folder = folder / f"python{len(before)}"
        folder.mkdir()
        script = folder / "page.py"
        script.write_text("\n".join([*before, block.text]), encoding="utf-8")
        before.append(block.text)
        command = [sys.executable, str(script)]
    try:
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"took longer than {LIMIT_S} s"
    return "" if done.returncode == 0 else f"status {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}"


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
    parser.add_argument("what", choices=["pages", "build", "code"])
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
    raise SystemExit(code(pages, options.cheap))


if __name__ == "__main__":
    main()
