"""What becomes source, a cell or a file to bind: no name or text of a file is code, a formula, or takes a file away."""

from __future__ import annotations

import ast
import csv
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import torqueloop as tl
from torqueloop.core.compile import user_steps
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.compile.specialise import specialised_source
from torqueloop.core.components import Inertia
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import CompileError, ConfigError
from torqueloop.core.describe.naming import FORMULA, cell, csv_row, identifier
from torqueloop.core.describe.reading import NESTING, parse_toml
from torqueloop.hil.link.endpoints import PeerError, check_endpoint
from torqueloop.hil.record.run_data import ModeChange, read_modes, write_modes

EVIL = ('x"""\nimport os\nos.system("touch /tmp/owned")\n"""', "a\\", "b'''", 'c"""+d', "é" * 500)


@pytest.mark.parametrize("name", EVIL)
def test_a_file_name_in_generated_source_stays_in_its_docstring(name: str) -> None:
    line = Driveline("one")
    line.add("a", Inertia(J=1.0))
    source = specialised_source(compile_driveline(line), identifier(name), name)
    first = source.split("\n", 1)[0]
    (statement,) = ast.parse(first).body
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    assert not any(text.startswith(("import os", "os.")) for text in source.splitlines())
    assert identifier(name).isidentifier()


def test_what_others_leave_beside_scratch_files_is_not_compiled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The source includes ../step_imports.pxi: above it is a folder of its own, not that of all temporary files."""
    build = pytest.importorskip("Cython.Build", reason="Cython is not installed: pip install cython")
    (tmp_path / "step_imports.pxi").write_text("poison")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("torqueloop.core.compile.user_steps.folder", lambda: tmp_path / "cache")
    seen: list[Path] = []

    def cythonize(extensions: list[Any], **_: object) -> None:
        source = Path(extensions[0].sources[0])
        assert "../step_imports.pxi" in source.read_text()
        seen.append(source)
        assert not (source.parent.parent / "step_imports.pxi").exists()
        raise RuntimeError("seen")

    monkeypatch.setattr(build, "cythonize", cythonize)
    line = Driveline("one")
    line.add("a", Inertia(J=1.0))
    with pytest.raises(CompileError, match="seen"):
        user_steps.build(compile_driveline(line), "one")
    assert seen


@pytest.mark.parametrize("name", ["=1+1", "+cmd", "-x", "@sum", "a,b", "a\x07"])
def test_a_component_has_no_name_that_a_spreadsheet_takes_for_a_formula(name: str) -> None:
    with pytest.raises(ConfigError, match="not usable"):
        Driveline("one").add(name, Inertia(J=1.0))


def test_cells_are_texts_whatever_they_hold(tmp_path: Path) -> None:
    names = [f"{sign}1+1" for sign in FORMULA] + ["a,b", 'say "hi"', "two\nlines", "engine.w"]
    (row,) = csv.reader([csv_row(names)]) if "\n" not in "".join(names) else csv.reader(csv_row(names).splitlines(True))
    assert len(row) == len(names) and not any(text.startswith(tuple(FORMULA)) for text in row)
    assert row[-1] == "engine.w" and cell("C4") == "C4"
    write_modes(tmp_path / "modes.csv", [ModeChange(1, 0.5, "=1+1", 0)])
    assert "'=1+1" in (tmp_path / "modes.csv").read_text() and ",=1" not in (tmp_path / "modes.csv").read_text()
    assert read_modes(tmp_path / "modes.csv")[0].step == 1


def test_an_ipc_endpoint_that_is_a_file_is_refused_and_the_file_stays(tmp_path: Path) -> None:
    precious = tmp_path / "thesis.txt"
    precious.write_text("years of work")
    with pytest.raises(PeerError, match="no socket"):
        check_endpoint(f"ipc://{precious}")
    (tmp_path / "link").symlink_to(precious)
    with pytest.raises(PeerError, match="no socket"):
        check_endpoint(f"ipc://{tmp_path / 'link'}")
    assert precious.read_text() == "years of work"
    assert check_endpoint(f"ipc://{tmp_path / 'new'}") and check_endpoint("ipc://@abstract")


@pytest.mark.parametrize("text", ["{0} = 1", "[{0}]", "x = {{ {0} = 1 }}", '"a"."b".{0} = 1', "[[ {0} ]]"])
def test_a_key_of_many_parts_is_refused_before_it_is_read(text: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ConfigError, match="too many parts in line 2"):
            parse_toml("a = 1\n" + text.format(".".join("k" * 20000)))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 40e6


def test_keys_that_are_not_too_long_and_numbers_and_texts_are_read() -> None:
    text = f"{'.'.join('k' * NESTING)} = 1\nx = [{', '.join(['0.5'] * 100)}]\ny = '{'.'.join('k' * 100)}'\n"
    assert len(parse_toml(text)["x"]) == 100
    assert tl.load("car_4hp22").components
