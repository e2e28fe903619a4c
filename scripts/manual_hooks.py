"""Links of the manual that leave it: to a file of the repository becomes the name of that file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: where pages stand that the navigation does not name
MORE = "More"
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """Called by MkDocs first: a page that nobody has put into the navigation is in it all the same."""
    named = set(_pages(config["nav"]))
    docs = Path(config["docs_dir"])
    others = sorted(p.relative_to(docs).as_posix() for p in docs.rglob("*.md"))
    if left := [name for name in others if name not in named]:
        config["nav"] = [*config["nav"], {MORE: left}]
    return config


def _pages(nav: Any) -> Iterator[str]:
    for item in nav:
        if isinstance(item, str):
            yield item
        else:
            for inner in item.values():
                yield from [inner] if isinstance(inner, str) else _pages(inner)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Called by MkDocs for each page."""
    here = Path(config["docs_dir"]) / page.file.src_uri

    def plain(match: re.Match[str]) -> str:
        text, target = match[1], match[2]
        if "://" in target or target.startswith("/"):
            return match[0]
        goal = (here.parent / target).resolve()
        if goal.exists() and (not goal.is_relative_to(config["docs_dir"]) or "schemas" in goal.parts):
            name = os.path.relpath(goal, ROOT)
            return f"{text} (`{name}`)" if name not in text else f"`{name}`"
        return match[0]

    return _LINK.sub(plain, markdown)


#: what Material loads from the network so that its search works from files; ours is docs/assets/file_worker.js
_SHIM = '<script src="https://unpkg.com/iframe-worker/shim"></script>'


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Called by MkDocs for each page that is made: nothing is loaded from elsewhere."""
    up = "../" * page.file.dest_uri.count("/")
    return output.replace(_SHIM, f'<script src="{up}assets/file_worker.js"></script>')
