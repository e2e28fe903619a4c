"""What a report says of a run whose columns are written by hand: summary, metrics, checks, samples for the page."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from told_report import recorded, report

sys.path.append(str(Path(__file__).resolve().parents[1] / "hil"))
from page_figures import PageFigures

from torqueloop.hil.record.recording import ChunkWriter
from torqueloop.hil.record.run_data import signal_header
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report.report import analyse
from torqueloop.hil.report.serve import NAMES_MAX, samples
from torqueloop.hil.report.write import report_json
from torqueloop.hil.results.clock import ClockStats
from torqueloop.hil.results.files import plain, write_run_info
from torqueloop.hil.results.monitors import ElementFacts, GearboxFacts, GearFacts, MonitorSpec
from torqueloop.hil.results.run import EnergyStats, RunInfo, RunStats, SafeState
from torqueloop.hil.results.scenario import CheckSpec, ScenarioInfo

TICK_S = 5e-3
T = (np.arange(1000) + 1) * TICK_S
#: a box with one gear, 2:1, closed by A; at a steady 100 rad/s; the car's way jumps in the last sample
BOX = GearboxFacts("box", [ElementFacts("A", 20.0)], [GearFacts("1", 1, 2.0, ["A"])], [-1, 0], [False] * 2)
SPEC = MonitorSpec(BOX, {"w_in": "turbine.w", "w_out": "out.w"}, waived={"no_drive": "there is no engine"})
STATS = RunStats(ClockStats(len(T)), energy=EnergyStats({"engine": 1000.0}, {"heat": 1010.0}))
INFO = RunInfo(
    "box", state="ended", started="2026-01-01T12:00:00+00:00", ended="2026-01-01T12:00:05+00:00", clock="virtual",
    duration_s=5.0, tick_s=TICK_S, monitors=SPEC, stats=STATS, scenario=ScenarioInfo("s", checks=[
        CheckSpec("it turns", "always", "turbine.w > 90"), CheckSpec("it stands", "at_end", "turbine.w < 1")]),
)  # fmt: skip


def driven(way_m: np.ndarray) -> Signals:
    return recorded({"turbine.w": ("rad/s", np.full(len(T), 200.0)), "out.w": ("rad/s", np.full(len(T), 100.0)),
                     "A.capacity": ("Nm", np.full(len(T), 300.0)), "car.s": ("m", way_m)}, TICK_S)  # fmt: skip


def written(folder: Path, stats: RunStats = STATS) -> Path:
    """The run directory."""
    signals = driven(np.where(np.arange(len(T)) < len(T) - 1, 1000.0 + T, 1250.0))
    writer = ChunkWriter(folder / "signals", signal_header(signals.names, list(signals.units.values()), TICK_S))
    writer.write(signals.columns.records.tobytes())  # type: ignore[attr-defined]
    writer.close()
    (folder / "config").mkdir()
    (folder / "config" / "box.toml").write_text("[gears.1]\nengaged = ['A']\nratio = 2.0\n")
    write_run_info(folder, replace(INFO, stats=stats))
    return folder


def test_the_summary_has_gear_and_way_from_first_to_last_sample(tmp_path: Path) -> None:
    made = analyse(written(tmp_path))
    assert made.summary == "The gearbox stayed in 1 over 250 m.", [v for v in made.monitors if not v.passed]
    assert [b.value for b in made.bands] == ["1"] and made.strip is not None
    assert {v.name for v in made.monitors} >= {"direction", "tie_up"} and len(made.quality) == 0


def test_the_residual_of_the_energy_is_an_amount_and_checks_of_the_scenario_have_their_verdict(tmp_path: Path) -> None:
    made = analyse(written(tmp_path))
    assert made.energy is not None and made.energy.residual_J == pytest.approx(-10.0)
    assert made.metrics["energy_residual_rel"] == pytest.approx(10.0 / 1010.0)
    assert made.metrics["energy_turned_over_J"] == pytest.approx(1010.0)
    checks = {c.name: c for c in made.checks}
    assert checks["check 'it turns'"].passed is True and checks["check 'it stands'"].passed is False
    assert [v.name for v in made.verdicts] == ["it turns", "it stands"]
    assert made.failures["check 'it stands'"] == checks["check 'it stands'"].text != ""
    data = plain(report_json(made))
    assert (data["passed"], data["exit_status"], data["inconclusive"]) == (False, 1, "")
    assert data["passed"] is False and data["exit_status"] is not True
    assert data["energy"]["supplied_J"] == {"engine": 1000.0} and data["energy"]["lost_J"] == {"heat": 1010.0}


@pytest.mark.parametrize(("step", "time"), [(499, "2.50 s"), (0, "0.01 s")])
def test_the_safe_state_is_told_with_the_end_of_its_tick(step: int, time: str, tmp_path: Path) -> None:
    """Ticks of 5 ms are counted from 0; a sample of a tick stands at its end."""
    safe = SafeState(True, "too hot", "limit", step)
    made = analyse(written(tmp_path, replace(STATS, safe_state=safe)))
    assert made.summary == f"The rig went to its safe state at {time}: too hot."


# --- samples a served page asks for -----------------------------------------------------------------------------------


def page_of(answer: dict[str, object]) -> PageFigures:
    text = json.dumps({"blocks": answer["blocks"], "figures": {}, "gears": []})
    return PageFigures(f'<script type="a" id="figures">{text}</script>'
                       f'<script type="b" id="numbers">{answer["numbers"]}</script>')  # fmt: skip


def test_a_served_page_gets_every_sample_of_the_time_and_the_names_it_asks_for(tmp_path: Path) -> None:
    signals = driven(1000.0 + T * T)
    made = report(tmp_path, signals=signals)
    page = page_of(samples(made, "from=1.0&to=2.0&name=car.s&name=out.w"))
    inside = (T > 1.0 - 1e-9) & (T < 2.0 + 1e-9)
    for name, wanted in (("t", T), ("car.s", signals["car.s"]), ("out.w", signals["out.w"])):
        found, exact = page.by_name(name)
        assert found == pytest.approx(wanted[inside], abs=exact + 1e-9), name
    assert [c[:2] for c in page.blocks[0]["columns"]] == [["t", "s"], ["car.s", "m"], ["out.w", "rad/s"]]


WRONG = ["from=2&to=1", "from=1&to=1", "from=1", "to=1", "from=nan&to=2", "from=1&to=inf", "from=1&to=2&name=car.q",
         "from=1&to=2" + "&name=car.s" * (NAMES_MAX + 1)]  # fmt: skip


@pytest.mark.parametrize("query", WRONG)
def test_a_stretch_that_is_none_or_a_signal_that_is_not_there_is_refused(query: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"from|name"):
        samples(report(tmp_path, signals=driven(T)), query)
    with pytest.raises(ValueError, match="name"):
        samples(report(tmp_path), "from=1&to=2")
