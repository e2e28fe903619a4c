"""Configurations that come with the package, found by bare name.

A replay reads the ones its run had, which the run folder keeps: `installed_at` puts another folder in their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

#: endings of files that are used by bare name
SUFFIXES = (".toml", ".dbc", ".csv")
#: folder -> other ones
SUFFIXES_OF = {"examples/io": (".c",)}
_ELSEWHERE: ContextVar[Path | None] = ContextVar("installed configurations", default=None)


def package_root() -> Path:
    """Folder of the configurations that came with the package."""
    return Path(next(iter(__path__))).resolve()


def installed(folder: str) -> dict[str, Path]:
    """{name without suffix: path} of the installed files of one folder."""
    found: dict[str, Path] = {}
    elsewhere = _ELSEWHERE.get()
    suffixes = SUFFIXES_OF.get(folder, SUFFIXES)
    for root in (package_root(), *([elsewhere] if elsewhere is not None else [])):
        files = [p for p in (root / folder).glob("*") if p.suffix in suffixes] if (root / folder).is_dir() else []
        found |= {p.stem: p for p in sorted(files)}
    return found


@contextmanager
def installed_at(root: Path) -> Iterator[None]:
    """Files in the folders of `root` stand for the installed ones of the same names."""
    token = _ELSEWHERE.set(root)
    try:
        yield
    finally:
        _ELSEWHERE.reset(token)
