"""Notebooks of examples/: their cells run, and print what the notebook shows."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
if not FOLDER.is_dir():
    pytest.skip("the notebooks are in the repository only", allow_module_level=True)
pytest.importorskip("matplotlib", reason="notebooks draw: matplotlib is not installed")
pytest.importorskip("pandas", reason="notebooks show frames: pandas is not installed")
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def differences(notebook: dict[str, Any], names: dict[str, Any]) -> list[str]:
    """Run all cells of code; cells that print something else than is stored with them."""
    wrong = []
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        # lines for Jupyter alone
        text = "".join(line for line in cell["source"] if not line.startswith("%"))
        shown = "".join(t for o in cell["outputs"] if o["output_type"] == "stream" for t in o["text"])
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            exec(compile(text, f"cell {number}", "exec"), names)
        if told.getvalue() != shown:
            wrong.append(f"cell {number} prints\n{told.getvalue()}\nand shows\n{shown}")
    return wrong


@pytest.mark.proof
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert sum(bool(cell.get("outputs")) for cell in notebook["cells"]) >= 3, "stored as it was run"
    assert differences(notebook, {"__name__": "__main__"}) == []


def test_another_output_is_seen() -> None:
    cell = {"cell_type": "code", "source": ["%magic\n", "print(1 + 1)"],
            "outputs": [{"output_type": "stream", "text": ["3\n"]}]}  # fmt: skip
    assert len(differences({"cells": [cell]}, {})) == 1
    cell["outputs"][0]["text"] = ["2\n"]  # type: ignore[index]
    assert differences({"cells": [cell]}, {}) == []


def test_there_are_some() -> None:
    assert len(NOTEBOOKS) >= 2
