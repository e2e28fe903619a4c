"""The list of mutations fits the sources: each text stands once in its file, each test exists."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def _listed() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutations", ROOT / "scripts" / "mutations.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutations"] = module
    spec.loader.exec_module(module)
    return module


def test_every_mutation_can_be_made_and_is_one() -> None:
    mutations = _listed().MUTATIONS
    assert len(mutations) >= 60
    for m in mutations:
        text = (ROOT / m.file).read_text(encoding="utf-8")
        assert text.count(m.old) == 1, m.name
        assert m.old != m.new and m.tests, m.name
        for test in m.tests:
            assert (ROOT / "rt_tests" / test).is_file(), f"{m.name}: {test}"
    assert max(Counter(m.name for m in mutations).values()) == 1
