"""The report's page tells how many numbers of the rig are assumed; --weigh adds which of them matter most."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from test_new_files import call

import torqueloop as tl
from torqueloop.hil.cli import facts
from torqueloop.hil.common.locate import locate
from torqueloop.hil.report.assumed import WEIGHTS


def numbers_of(run_dir: Path) -> list[tuple[str, str, float, str]]:
    """File, table.key, value and the first word of what is said of each number, read from the files anew."""
    files = (run_dir / "config").rglob("*.toml")
    return [(file.name, *row) for file in files for row in _said(tomllib.loads(file.read_text(encoding="utf-8")))]


def _said(body: Mapping[str, Any], above: str | None = None, path: str = "") -> Iterator[tuple[str, float, str]]:
    source = body.get("source")
    for key, value in body.items():
        text = source.get(key, above) if isinstance(source, dict) else source if source is not None else above
        if isinstance(value, dict) and key != "source":
            yield from _said(value, text, f"{path}{key}.")
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and key != "source" and text:
            yield f"{path}{key}", float(value), re.match(r"\W*(\w+)", text)[1].lower()  # type: ignore[index]


def page_of(run_dir: Path) -> str:
    return unescape(re.sub(r"\s+", " ", (run_dir / "report.html").read_text(encoding="utf-8")))


@pytest.mark.parametrize("rig", ["desk_4hp22", "desk_6hp26"])
def test_the_page_counts_the_assumed_numbers_of_all_files(rig: str, tmp_path: Path) -> None:
    tl.run(rig, clock="virtual", duration=0.5, out=tmp_path / "run", html=True)
    said = [word for *_, word in numbers_of(tmp_path / "run")]
    assumed = said.count("assumed")
    page = page_of(tmp_path / "run")
    assert f"{assumed} of the {len(said)} numbers of this configuration that have a source are assumed." in page
    assert assumed > 20 and "torqueloop report DIR --weigh" in page


def test_weights_in_the_run_directory_are_shown_the_largest_first(tmp_path: Path) -> None:
    tl.run("desk_4hp22", clock="virtual", duration=0.5, out=tmp_path / "run")
    weights = {"components.car.m_kg": {"t_0_100_kmh_s": 0.08}, "components.engine.J_kgm2": {"t_0_100_kmh_s": -0.11}}
    (tmp_path / "run" / WEIGHTS).write_text(json.dumps(weights))
    call("report", tmp_path / "run")
    page = page_of(tmp_path / "run")
    assert page.index("components.engine.J_kgm2 0.31 -11.00 %".split()[0]) < page.index("components.car.m_kg")
    assert "-11.00 %" in page and "+8.00 %" in page


def test_the_weightiest_number_is_the_one_that_changes_a_metric_most_up_or_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With results given by number: 10 % more of the mass costs 8 %, of the engine's inertia it gives 11 %."""
    rig = locate("desk_4hp22", "rigs")
    given = {"components.car.m_kg": 10.8, "components.engine.J_kgm2": 8.9}
    asked: dict[str, Any] = {}
    masses: set[float] = set()

    def result(job: tuple[str, dict[str, Any]]) -> dict[str, float]:
        changed = job[1].get("plant.set", {})
        asked.update(changed)
        masses.update({job[1]["vehicle.options.set"]["body.mass_kg"]} if "vehicle.options.set" in job[1] else set())
        return {"t_0_100_kmh_s": next((given[key] for key in changed if key in given), 10.0 + len(changed) * 0.01)}

    monkeypatch.setattr(facts, "_measure", result)
    monkeypatch.setattr(facts, "ProcessPoolExecutor", ThreadPoolExecutor)
    weights = facts.weigh(rig)
    names = [f"{w.statement.table}.{w.statement.key}" for w in weights]
    for w, name in zip(weights, names, strict=True):
        assert asked[name] == pytest.approx(1.1 * w.statement.value), name
    assert masses == {asked["components.car.m_kg"]}, "the vehicle has the mass of the car"
    assert names[:2] == ["components.engine.J_kgm2", "components.car.m_kg"] and len(names) > 20
    changes = [w.changes["t_0_100_kmh_s"] for w in weights]
    assert changes[:2] == pytest.approx([-0.11, 0.08]) and changes[2:] == pytest.approx([0.001] * len(changes[2:]))


@pytest.mark.parametrize("broken", ["[1, 2]", "{", '{"components.car.m_kg": 3}'])
def test_weights_that_are_none_are_not_shown(broken: str, tmp_path: Path) -> None:
    tl.run("desk_4hp22", clock="virtual", duration=0.2, out=tmp_path / "run")
    (tmp_path / "run" / WEIGHTS).write_text(broken)
    call("report", tmp_path / "run")
    assert "torqueloop report DIR --weigh" in page_of(tmp_path / "run")


@pytest.mark.proof
def test_weighing_is_one_command(tmp_path: Path) -> None:
    tl.run("desk_4hp22", clock="virtual", out=tmp_path / "run", html=False)
    call("report", tmp_path / "run", "--weigh")
    weights = json.loads((tmp_path / "run" / WEIGHTS).read_text())
    # a tenth more mass of a car that its power limits: a tenth more time, less what does not grow with it
    assert 0.05 < weights["components.car.m_kg"]["t_0_100_kmh_s"] < 0.15
    assert "Those that matter most" in page_of(tmp_path / "run")
