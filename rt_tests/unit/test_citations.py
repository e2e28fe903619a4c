"""What the draw of citations takes for one: works and sources, not dates and not what says that it is assumed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "reference" / "citations.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("citations", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["citations"] = module
    spec.loader.exec_module(module)
    return module


def test_works_and_sources_are_found_with_what_to_look_up(script: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(
        '# The shift of Otter, Dempsey, Schlegel 2000, fig. 12: C12 closes\n'
        'source = "Land Rover workshop manual"\n'
        'source = "assumed: a guess"\n'
        'source = "derived: from teeth"\n'
        "# measured on 2026-11-22\n"
        "# Copyright (C) Heywood 1988\n"
        "x = 5 # (Strobl et al. 2023, doi 10.1007/s10010-023-00669-4)\n"
        "class Table1D: # section 9 of this page, table2 of a builder\n"
    )  # fmt: skip
    assert [(c.line, c.looked_up) for c in script.citations(file)] == [
        (1, ("Otter, Dempsey, Schlegel 2000", "fig. 12")),
        (2, ("Land Rover workshop manual",)),
        (7, ("Strobl et al. 2023", "doi 10.1007/s10010-023-00669-4")),
    ]


def test_the_same_seed_draws_the_same(script: ModuleType, monkeypatch: pytest.MonkeyPatch,
                                      capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    drawn = []
    for seed in ("7", "7", "8"):
        monkeypatch.setattr(sys, "argv", ["citations.py", "-n", "5", "--seed", seed])
        script.main()
        drawn.append(capsys.readouterr().out)
    assert drawn[0] == drawn[1] != drawn[2]
