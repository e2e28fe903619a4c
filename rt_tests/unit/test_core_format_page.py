"""The pages that describe driveline files and components mention everything there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torqueloop.core.components import KINDS, params_of
from torqueloop.core.components.files import load
from torqueloop.core.describe.toml_front import TOP_KEYS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "driveline_format.md"


@pytest.fixture(scope="module")
def text() -> str:
    if not PAGE.exists():
        pytest.skip("docs/ is not part of an installed package")
    return PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pages(text: str) -> str:
    return text + (DOCS / "components.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_and_parameter_is_on_a_page(kind: str, pages: str) -> None:
    words = set(re.findall(r"\w+", pages))
    assert kind in words
    stems = words | {w.rsplit("_", n)[0] for w in words for n in (1, 2, 3)}
    for name in params_of(KINDS[kind]):
        assert name in stems, f"{kind}.{name}"
    for flange in KINDS[kind].flanges:
        assert flange in words


def test_every_top_level_table_is_on_the_page(text: str) -> None:
    for key in TOP_KEYS:
        assert key in text


def test_the_example_of_the_page_is_read(tmp_path: Path, text: str) -> None:
    example = re.search(r"```toml\n(.*?)```", text, re.S)
    assert example is not None
    for name in ("gearboxes", "engines", "powertrains"):
        (tmp_path / name).mkdir()
    (tmp_path / "engines/engine.csv").write_text("speed_rpm,wot_Nm\n1000,100\n5000,150\n")
    inner = (
        '[components.converter]\nkind = "LockUpTC"\nmu = 1.0\n'
        'mp = { columns = ["nu", "mp_Nms2_per_rad2"], rows = [[0, 0.01], [1, 0]] }\n'
        '[components.in]\nkind = "Inertia"\nJ_kgm2 = 1\n[components.car]\nkind = "Mass"\nm_kg = 1\n'
        '[components.out]\nkind = "Inertia"\nJ_kgm2 = 1\n'
        + "".join(f'[components.{n}]\nkind = "FreeWheel"\n' for n in ("C4", "C11", "F15"))
    )
    (tmp_path / "gearboxes/zf_4hp22.toml").write_text(inner)
    (tmp_path / "powertrains/car.toml").write_text(example.group(1))
    d = load(tmp_path / "powertrains/car.toml")
    assert d.gears["1"].engaged == ("C4", "C11", "F15")
    assert d.start["car.v"] == pytest.approx(50 / 3.6)


def test_the_architecture_page_names_every_folder_of_core_and_no_file_that_is_gone(text: str) -> None:
    root = DOCS.parent
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", page))
    modules = {p.parent.name for p in (root / "core").glob("*/*.py")}
    assert modules - {"__init__"} - words == set()
    kernels = {p.name for p in (root / "cython_kernels").rglob("*.p[xy][xdi]")}
    named = set(re.findall(r"\w+\.p(?:xi|xd|yx)", page))
    assert len(named) > 10 and named <= kernels
