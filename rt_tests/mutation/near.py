"""Which test files may see an error of a module."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path


def near(root: Path, module: Path) -> list[list[str]]:
    """Test files that may see an error of a module, those first that are asked first: the unit tests that import it, of
    a control unit its own tests, which run whole units; the golden runs; the tests of rigs that import it; all tests of
    modules that import it; those of the interface of the package."""
    own = {_dotted(module)}
    users = {_dotted(p.relative_to(root)) for p in (root / "hil").rglob("*.py") if _imports(p, own)}
    unit, rigs = (sorted((root / "rt_tests" / part).glob("test_*.py")) for part in ("unit", "hil"))
    ecu = module.parts[:2] == ("hil", "ecu")
    ranks = [
        [p for p in unit if _imports(p, own)] + [p for p in rigs if ecu and p.name.startswith("test_tcu_")],
        [p for p in rigs if p.name.startswith("test_golden_")],
        [p for p in rigs if _imports(p, own)],
        [p for p in (*unit, *rigs) if _imports(p, users)],
        # through the package's own interface, whichever module stands behind it
        [p for p in (*unit, *rigs) if "import torqueloop as tl" in _text(p)],
    ]
    seen: set[Path] = set()
    made = []
    for rank in ranks:
        made.append([str(p.relative_to(root / "rt_tests")) for p in dict.fromkeys(rank) if p not in seen])
        seen |= set(rank)
    return made


def _dotted(module: Path) -> str:
    return "torqueloop." + ".".join(module.with_suffix("").parts)


def _imports(file: Path, modules: set[str]) -> bool:
    """A file imports one of these modules."""
    text = _text(file)
    folders = [name.rsplit(".", 1) for name in modules]
    return any(f"from {name} import" in text for name in modules) or any(
        re.search(rf"from {re.escape(folder)} import [^\n]*\b{name}\b", text) for folder, name in folders
    )


@cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")
