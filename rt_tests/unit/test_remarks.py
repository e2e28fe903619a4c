"""What a run's steps did not resolve is said in one line with the element and the remedy, and nothing else is."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic_run import write_run

import torqueloop as tl
from torqueloop.core.components import Brake, Clutch, Inertia, SpringDamper, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Pulse, Sine, Step
from torqueloop.core.simulate.remarks import ringing
from torqueloop.core.simulate.resolution import unresolved
from torqueloop.hil.monitors.catalogue import BY_NAME
from torqueloop.hil.report.report import analyse
from torqueloop.hil.results.files import read_run_info, write_run_info
from torqueloop.hil.results.monitors import MonitorSpec
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.scenario.offline import simulate
from torqueloop.hil.scenario.scenario_tables import load_scenario

CONFIGS = Path(tl.__file__).parent / "configs"


def pair(c: float, d: float = 0.0, order: int = 4) -> Driveline:
    """A torque on an inertia of 0.01 behind a spring and one of 1 kg m2."""
    line = Driveline("pair", order=order)
    line.add("tau", Torque())
    line.add("light", Inertia(J=0.01))
    line.add("shaft", SpringDamper(c=c, d=d))
    line.add("heavy", Inertia(J=1.0))
    line.connect("tau.flange", "light.flange_a")
    line.connect("light.flange_b", "shaft.flange_a")
    line.connect("shaft.flange_b", "heavy.flange_a")
    return line


def remarks(line: Driveline, tau: tl.Signal | float, seconds: float = 0.1, h: float = 1e-3) -> list[tuple[str, ...]]:
    result = tl.Simulation(line, h=h).run(seconds, inputs={"tau.tau": tau})
    return [(r.kind, *r.elements) for r in result.remarks]


def test_a_resolved_run_has_no_remark() -> None:
    assert remarks(pair(c=1e3, d=1.0), Sine(amplitude=10.0, f=5.0)) == []
    assert tl.Simulation(CONFIGS / "powertrains" / "car_4hp22.toml").run(3.0).remarks == ()


def test_a_spring_that_oscillates_within_four_steps_is_named_with_the_substeps_it_takes() -> None:
    """w = sqrt(c (1/J1 + 1/J2)), without damping."""
    c = 1e6
    w = math.sqrt(c * (1 / 0.01 + 1 / 1.0))
    line = pair(c)
    with pytest.warns(RuntimeWarning, match=f"pair: shaft: oscillates at {w / (2 * math.pi):.0f} Hz"):
        assert ("oscillation", "shaft") in remarks(line, 1.0)
    (found,) = unresolved(tl.Simulation(line).model, 1e-3)
    assert found.frequency_Hz == pytest.approx(w / (2 * math.pi), rel=1e-9)
    assert found.substeps == math.ceil(w * 1e-3 / (math.pi / 2))
    assert unresolved(tl.Simulation(line).model, 1e-3 / found.substeps) == []


def test_springs_in_series_without_inertia_between_oscillate_as_one() -> None:
    """Both have the same d/c, so the pair is one spring c = c1 c2/(c1 + c2) with d = 1e-6 s * c."""
    c1, c2 = 1e6, 3e6
    line = pair(c1, d=1e-6 * c1)
    line.disconnect("heavy.flange_a")
    line.add("second", SpringDamper(c=c2, d=1e-6 * c2))
    line.connect("shaft.flange_b", "second.flange_a")
    line.connect("second.flange_b", "heavy.flange_a")
    (found,) = unresolved(tl.Simulation(line).model, 1e-3)
    w2 = c1 * c2 / (c1 + c2) * (1.0 / 0.01 + 1.0)
    assert found.frequency_Hz == pytest.approx(math.sqrt(w2 - (0.5e-6 * w2) ** 2) / (2.0 * math.pi), rel=1e-9)
    assert found.element == "shaft"
    remarks(line, 1.0)


def test_a_damper_that_leaves_no_oscillation_is_no_remark() -> None:
    assert unresolved(tl.Simulation(pair(1e6, d=1e4)).model, 1e-3) == []


def test_a_torque_that_turns_round_at_every_sample_rings() -> None:
    k = np.arange(200)
    ((_, count),) = [(r.kind, r.count) for r in ringing({"shaft": 10.0 + 0.1 * (-1.0) ** k})]
    assert count == 198
    resolved = {"four steps a period": np.sin(math.pi / 2 * k), "rounding": 1.0 + 1e-6 * (-1.0) ** k,
                "a jump": np.where(k < 100, 0.0, 5.0)}  # fmt: skip
    assert ringing(resolved) == []


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_trapezoidal_rule_rings_on_a_spring_far_too_stiff_for_it() -> None:
    """Order 2 turns an undamped spring's torque round at every step when w h is large."""
    assert ("ringing", "shaft") in remarks(pair(c=1e10, order=2), 10.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("f, turns", [(2_200.0, True), (200.0, False)])
def test_an_input_that_turns_round_within_a_step_is_named(f: float, turns: bool) -> None:
    assert (("reversals", "input tau.tau") in remarks(pair(1e3, d=1.0), Sine(amplitude=1.0, f=f))) == turns


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_large_step_of_an_input_does_not_hide_a_small_one_that_turns_round() -> None:
    ripple = Step(height=1e4, startTime=0.05) + Sine(amplitude=1.0, f=2_200.0)
    assert ("reversals", "input tau.tau") in remarks(pair(1e3, d=1.0), ripple)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_pulses_within_a_step_far_from_the_steps_looked_at_are_found_by_their_events() -> None:
    """Two pulses of 0.2 ms in one step of a run of many."""
    pulses = Pulse(amplitude=1.0, width=50.0, period=4e-4, nperiod=2, startTime=0.7431)
    assert ("reversals", "input tau.tau") in remarks(pair(1e3, d=1.0), pulses, seconds=1.5)


def test_a_fallback_names_the_elements_that_changed_most() -> None:
    """20 brakes stop their shafts within one step of 100 ms."""
    line = Driveline("many")
    for k in range(20):
        line.add(f"J{k}", Inertia(J=1.0, w0=1.0 + 0.1 * k))
        line.add(f"b{k}", Brake(fn_max=50.0, mue_pos=1.0))
        line.connect(f"J{k}.flange_b", f"b{k}.flange_a")
    with pytest.warns(RuntimeWarning, match="plain impulse"):
        result = tl.Simulation(line, h=0.1).run(0.5, inputs={f"b{k}.f_normalized": 1.0 for k in range(20)})
    (fallback,) = [r for r in result.remarks if r.kind == "fallbacks"]
    assert fallback.count == result.counters["fallbacks"] >= 1 and "substeps" in fallback.text
    assert fallback.elements and set(fallback.elements) <= {f"b{k}" for k in range(20)}


def test_elements_that_hold_against_each_other_are_not_called_a_fallback() -> None:
    line = Driveline("tie-up")
    for k, w in enumerate((50.0, 0.0)):
        line.add(f"J{k}", Inertia(J=1.0, w0=w))
    for k in range(2):
        line.add(f"c{k}", Clutch(fn_max=100.0, mue_pos=1.0))
        line.connect("J0.flange_b", f"c{k}.flange_a")
        line.connect(f"c{k}.flange_b", "J1.flange_a")
    result = tl.Simulation(line).run(1.0, inputs={f"c{k}.f_normalized": 1.0 for k in range(2)})
    assert result.remarks == ()


def test_the_report_says_what_a_rig_did_not_resolve(tmp_path: Path) -> None:
    """A ringing torque in the recording, counters of the kernel, and what was known of the model."""
    run = write_run(tmp_path / "run")
    info = read_run_info(run)
    assert info is not None and info.stats is not None and info.stats.solver is not None
    solver = replace(info.stats.solver, fallbacks=3)
    write_run_info(run, replace(info, stats=replace(info.stats, solver=solver, remarks=["shaft: oscillates"])))
    (check,) = [c for c in analyse(run).checks if c.name == "every step resolved"]
    assert not check.passed and not check.counts
    assert check.text.startswith("shaft: oscillates; ") and "finished 3 steps" in check.text
    (clean,) = [c for c in analyse(write_run(tmp_path / "clean")).checks if c.name == "every step resolved"]
    assert clean.passed and clean.text == ""


def held_to_no_fallback(spec: MonitorSpec) -> bool:
    """The monitor of fallbacks counts, and its limit is the catalogue's, which is 0."""
    return "fallbacks" not in spec.waived and spec.limits.get("fallbacks", BY_NAME["fallbacks"].limit) == 0.0


RIGS = sorted((CONFIGS / "rigs").glob("*.toml"))
OFFLINE = [file for file in sorted((CONFIGS / "scenarios").glob("*.toml")) if load_scenario(file).rig is None]


@pytest.mark.parametrize("file", RIGS, ids=lambda p: p.stem)
def test_every_shipped_rig_is_held_to_no_fallback_and_its_steps_resolve_its_springs(file: Path) -> None:
    """The scenarios of rigs run on these rigs with the same monitors."""
    plan = load_plan(file)
    assert held_to_no_fallback(plan.monitors)
    clock = plan.config.clock
    assert unresolved(plan.compiled, clock.tick_s / clock.substeps) == []


@pytest.mark.parametrize("file", OFFLINE, ids=lambda p: p.stem)
def test_every_shipped_scenario_is_held_to_no_fallback(file: Path, tmp_path: Path) -> None:
    info = read_run_info(simulate(file, out=tmp_path / "run"))
    assert info is not None and info.monitors is not None and info.stats is not None and info.stats.solver is not None
    assert held_to_no_fallback(info.monitors) and info.stats.solver.fallbacks == 0 and info.stats.remarks == []
