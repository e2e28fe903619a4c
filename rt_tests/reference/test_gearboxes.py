"""The gearbox files: ratios and element torques in every gear, exact and by simulation; all lock patterns of the 4HP22.

Numbers to compare with: gearboxes/static_check.csv (an independent computation, see its header) and published ratios.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from torqueloop.core.analyse.gearbox_report import find_gearbox, gearbox_report
from torqueloop.core.compile.compiler import CompiledModel, compile_driveline
from torqueloop.core.components.compliances import Damper
from torqueloop.core.components.files import load
from torqueloop.core.components.sources import Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.simulate.offline import Simulation
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState

#: name of the file -> name in static_check.csv
BOXES = {"zf_4hp22": "4HP22 large engines", "lepelletier_6hp26": "6HP26"}
RATIOS = {
    "zf_4hp22": {
        "1": Fraction(2) + Fraction(35, 73), "1_engine_braking": Fraction(2) + Fraction(35, 73),
        "2": 1 + Fraction(35, 73), "3": Fraction(1), "4": Fraction(83, 114), "R": -Fraction(73, 35),
    },
    "lepelletier_6hp26": {  # Lepelletier with i = (z_r + z_s)/z_r of the front set and k = z_ring/z_sun of the others
        "1": Fraction(108, 71) * Fraction(85, 31), "3": Fraction(108, 71), "R": -Fraction(108, 71) * Fraction(85, 38),
        "6": Fraction(85, 85 + 38),
    },
}  # fmt: skip
PUBLISHED = {
    "zf_4hp22": {"1": 2.47945, "2": 1.47945, "3": 1.0, "4": 0.72807, "R": -2.08571},
    "lepelletier_6hp26": {
        "1": 4.17083, "2": 2.33973, "3": 1.52113, "4": 1.14279, "5": 0.86718, "6": 0.69106, "R": -3.40252,
    },
}  # fmt: skip
#: elements that hold the same two shafts: only their sum is determined, the kernel splits it evenly
PARALLEL = {"F14": "C11", "F15": "C8", "C7": "C6"}
CONTROLLED = ("C4", "C5", "C6", "C7", "C8", "C11", "C12")
LINE_PRESSURE = 17e5


def static_rows(box: str) -> list[dict[str, str]]:
    text = (Path(__file__).parent / "gearboxes" / "static_check.csv").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [row for row in csv.DictReader(lines) if row["gearbox"] == BOXES[box]]


def gears() -> Iterator[tuple[str, str]]:
    for box in BOXES:
        for gear in load(find_gearbox(box)).gears:
            yield box, gear


# --- statics ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("box", BOXES)
def test_ratios_follow_exactly_from_the_tooth_numbers(box: str) -> None:
    report = gearbox_report(box)
    for gear, ratio in RATIOS[box].items():
        assert report.gears[gear].ratio == ratio
    for gear, number in PUBLISHED[box].items():
        assert float(report.gears[gear].ratio or 0) == pytest.approx(number, abs=5.1e-6)
    for state in report.gears.values():
        assert state.ratio is not None and state.published is not None
        assert float(state.ratio) == pytest.approx(state.published, abs=5.1e-4)
        assert state.determinate and not state.remarks


@pytest.mark.parametrize("box", BOXES)
def test_element_torques_and_slips_equal_the_independent_computation(box: str) -> None:
    report = gearbox_report(box)
    seen = 0
    for row in static_rows(box):
        state, name = report.gears[row["gear"]], row["element"]
        element = next(e for e in report.train.elements if e.name == name)
        # a free wheel may be listed with its shafts the other way round
        sign = 1.0 if (element.first or "housing") == row["shaft_first"] else -1.0
        assert {element.first or "housing", element.second or "housing"} == {row["shaft_first"], row["shaft_second"]}
        if row["engaged"] == "1":
            assert sign * float(state.torques[name]) == pytest.approx(float(row["torque_on_first_per_Nm"]), abs=1e-6)
        else:
            assert sign * float(state.slips[name]) == pytest.approx(float(row["slip_per_rad_s"]), abs=1e-6)
        seen += 1
    assert seen == len(report.gears) * len(report.train.elements)


@pytest.mark.parametrize("box", BOXES)
def test_power_and_torques_balance(box: str) -> None:
    for state in gearbox_report(box).gears.values():
        assert state.ratio is not None
        assert 1 + state.output_torque / state.ratio == 0
        by_set: dict[str, Fraction] = {}
        for (component, _), torque in state.member_torques.items():
            by_set[component] = by_set.get(component, Fraction(0)) + torque
        assert all(total == 0 for total in by_set.values())


def test_impossible_gears_are_refused_by_name() -> None:
    driveline = load(find_gearbox("zf_4hp22"))
    driveline.add_gear("loose", ["C4"])
    with pytest.raises(ConfigError, match=r"gear loose.*output is not driven"):
        gearbox_report(driveline)
    del driveline.gears["loose"]
    driveline.add_gear("tied", ["C4", "C5", "C6", "C11"])
    with pytest.raises(ConfigError, match=r"gear tied.*block the input"):
        gearbox_report(driveline)
    with pytest.raises(ConfigError, match="zf_4hp22"):
        find_gearbox("zf_4hp2")


def test_a_free_wheel_that_would_have_to_pull_is_remarked() -> None:
    driveline = load(find_gearbox("zf_4hp22"))
    driveline.add_gear("R by F15", ["C5", "F15", "C11"])
    state = gearbox_report(driveline).gears["R by F15"]
    assert any("F15" in remark for remark in state.remarks)


# --- simulation ------------------------------------------------------------------------------------------------------
def bench(box: str, drop: tuple[str, ...] = ()) -> Driveline:
    """The gearbox on a bench: torque at the input, damper to the ground at the output; some elements taken out."""
    driveline = load(find_gearbox(box))
    kept = [tuple(f for f in group if f.rpartition(".")[0] not in drop) for group in driveline.connections]
    cut = Driveline(driveline.name)
    cut.gearbox, cut.gears = driveline.gearbox, driveline.gears
    for name, component in driveline.components.items():
        if name not in drop:
            cut.add(name, component)
    for name, table in driveline.tables.items():
        cut.add_table(name, table)
    for group in kept:
        if len(group) > 1:
            cut.connect(*group)
    cut.add("motor", Torque())
    cut.add("load", Damper(d=1.0))
    assert cut.gearbox is not None
    cut.connect("motor.flange", f"{cut.gearbox.input}.flange_a")
    cut.connect("load.flange_a", f"{cut.gearbox.output}.flange_b")
    cut.connect("load.flange_b", "housing.flange")
    return cut


@pytest.mark.parametrize(("box", "gear"), list(gears()))
def test_steady_state_of_the_simulation_has_the_ratio_and_torques_of_the_gear(box: str, gear: str) -> None:
    state = gearbox_report(box).gears[gear]
    assert state.ratio is not None
    # without the free wheels that double an engaged clutch every torque is determined
    twins = {f: twin for f, twin in PARALLEL.items() if f.startswith("F")}
    drop = tuple(f for f, twin in twins.items() if twin in state.engaged) if box == "zf_4hp22" else ()
    sim = Simulation(bench(box, drop), h=1e-3)
    inputs: dict[str, float] = {"motor.tau": 100.0}
    for name in sim.model.actuator_names:
        inputs[f"{name}.p"] = LINE_PRESSURE if name in state.engaged else 0.0
    result = sim.run(16.0, inputs=inputs)  # the slowest gear settles with 0.6 s
    w_in, w_out = result["in.w"][-1], result["out.w"][-1]
    assert abs(w_out) > 10.0
    assert w_in / w_out == pytest.approx(float(state.ratio), abs=1e-9)
    report = gearbox_report(box)
    for element in report.train.elements:
        if element.name in drop:
            continue
        # .tau of a brake opposes its shaft; that of a clutch acts on its first shaft
        brake = element.second is None and element.kind != "FreeWheel"
        tau = result[f"{element.name}.tau"][-1] * (-1.0 if brake else 1.0) / 100.0
        assert tau == pytest.approx(float(state.torques.get(element.name, 0)), abs=1e-6), element.name
    for shaft, speed in state.speeds.items():
        assert result[f"{shaft}.w"][-1] == pytest.approx(float(speed) * w_in, abs=1e-8)


@pytest.mark.parametrize("gear", ["1", "2", "3"])
def test_parallel_elements_share_their_torque_evenly(gear: str) -> None:
    state = gearbox_report("zf_4hp22").gears[gear]
    sim = Simulation(bench("zf_4hp22"), h=1e-3)
    inputs = {f"{n}.p": LINE_PRESSURE if n in state.engaged else 0.0 for n in sim.model.actuator_names}
    result = sim.run(5.0, inputs={"motor.tau": 100.0, **inputs})
    c11, f14 = result["C11.tau"][-1] / 100.0, result["F14.tau"][-1] / 100.0
    # F14 has its shafts the other way round: its torque on the carrier is -tau
    assert c11 - f14 == pytest.approx(float(state.torques["C11"]), abs=1e-6)
    assert c11 == pytest.approx(-f14, abs=1e-6)


def test_free_wheels_overrun_and_hold_as_the_gears_need() -> None:
    report = gearbox_report("zf_4hp22")
    sim = Simulation(bench("zf_4hp22"), h=1e-3)
    modes = {}
    for gear, extra in (("1", ()), ("2", ("C7",)), ("3", ("C7",)), ("4", ("C7",))):
        inputs = {f"{n}.p": 0.0 for n in sim.model.actuator_names}
        inputs |= {f"{n}.p": LINE_PRESSURE for n in (*report.gears[gear].engaged, *extra) if f"{n}.p" in inputs}
        result = sim.run(3.0, inputs={"motor.tau": 100.0, **inputs})
        modes[gear] = {n: int(result[f"{n}.mode"][-1]) for n in ("F14", "F15", "C7")}
        assert result["in.w"][-1] / result["out.w"][-1] == pytest.approx(float(report.gears[gear].ratio or 0), abs=1e-9)
    assert [modes[g]["F15"] for g in "1234"] == [0, 1, 1, 1]
    assert [modes[g]["F14"] for g in "1234"] == [0, 0, 0, 1]
    # C7 carries in 2nd; in 3rd and 4th its series free wheel F16 overruns
    assert [modes[g]["C7"] for g in "234"] == [0, 1, 1]


# --- all lock patterns of the seven controlled elements --------------------------------------------------------------
def released(
    compiled: CompiledModel, pressed: tuple[bool, ...], h: float = 1e-3
) -> tuple[KernelModel, KernelState, np.ndarray]:
    """Kernel, fresh state and held inputs with the given elements under line pressure."""
    model = KernelModel(compiled.arrays, h)
    inputs = np.zeros(int(compiled.arrays.nin))
    for name, on in zip(CONTROLLED, pressed, strict=True):
        inputs[compiled.input_index(f"{name}.p")] = LINE_PRESSURE if on else 0.0
    return model, KernelState(model), inputs


# the heat is integrated over each step: its error falls with h
@pytest.mark.parametrize(("h", "gap"), [(1e-3, 2e-4), (2.5e-4, 1e-5)])
def test_every_lock_pattern_is_finite_creates_no_energy_and_repeats(h: float, gap: float) -> None:
    compiled = compile_driveline(bench("zf_4hp22"))
    rng = np.random.default_rng(7)
    kinetic = compiled.output_index("energy.kinetic")
    sinks = [k for k, n in enumerate(compiled.output_names) if n.endswith((".heat", ".loss"))]
    steps = round(0.4 / h)
    for pressed in product((False, True), repeat=7):
        model, state, inputs = released(compiled, pressed, h)
        state.u = rng.uniform(-300.0, 300.0, len(compiled.arrays.u0))
        again = state.copy()
        out, out2 = np.zeros((steps, len(compiled.output_names))), np.zeros((steps, len(compiled.output_names)))
        start = model.outputs(state)[kinetic]
        held = np.tile(inputs, (steps, 1))
        assert model.run(state, held, out) == steps and np.isfinite(out).all(), pressed
        energy = np.concatenate([[start], out[:, kinetic]])
        assert np.all(np.diff(energy) <= 1e-12 * start), pressed
        # what the shafts lose is heat in the friction elements and in the damper
        assert out[-1, sinks].sum() == pytest.approx(start - energy[-1], abs=gap * start), pressed
        assert model.run(again, held, out2) == steps
        assert again.hash() == state.hash() and np.array_equal(out, out2), pressed


def test_books_of_every_lock_pattern_close_to_rounding() -> None:
    """Two-point step without springs: mean force times mean speed is the exact change of the kinetic energy."""
    compiled = compile_driveline(load(find_gearbox("zf_4hp22")))
    rng = np.random.default_rng(3)
    for pressed in product((False, True), repeat=7):
        model = KernelModel(replace(compiled.arrays, order=2), 1e-3)
        state = KernelState(model)
        state.u = rng.uniform(-300.0, 300.0, len(compiled.arrays.u0))
        start = state.energies["kinetic"]
        inputs = np.zeros((400, int(compiled.arrays.nin)))
        for name, on in zip(CONTROLLED, pressed, strict=True):
            inputs[:, compiled.input_index(f"{name}.p")] = LINE_PRESSURE if on else 0.0
        assert model.run(state, inputs) == len(inputs)
        books = state.energies
        assert books["kinetic"] + books["friction"].sum() == pytest.approx(start, rel=1e-12), pressed


def test_tied_up_torques_are_the_least_norm_split_whatever_came_before() -> None:
    compiled = compile_driveline(bench("zf_4hp22"))
    a = compiled.arrays
    n, rows = len(a.u0), len(a.row_off)
    R = np.zeros((rows, n))
    for r in range(rows):
        for q in range(int(a.row_ptr[r]), int(a.row_ptr[r + 1])):
            R[r, int(a.row_idx[q])] += float(a.row_val[q])
    motor = compiled.input_index("motor.tau")
    rng = np.random.default_rng(11)
    compared = redundant = 0
    for pressed in product((False, True), repeat=7):
        splits = []
        for _ in range(2):
            model, state, inputs = released(compiled, pressed)
            inputs[motor] = 50.0
            state.u = rng.uniform(-200.0, 200.0, n)
            model.run(state, np.tile(inputs, (12000, 1)))
            splits.append((np.array(state.modes), np.array(state.tau)))
        (modes, tau), (modes2, tau2) = splits
        if not np.array_equal(modes, modes2):
            continue  # a pattern with a shaft that spins freely for ever: it remembers its start
        compared += 1
        assert np.allclose(tau, tau2, rtol=0.0, atol=1e-6), pressed
        stuck = np.flatnonzero(modes == 0)
        B = R[a.fr["row"][stuck]]
        u, s, _ = np.linalg.svd(B, full_matrices=True)
        idle = u[:, np.sum(s > 1e-9) :]  # combinations of locks that do nothing: no part of a least-norm split
        if idle.shape[1]:
            redundant += 1
            assert np.abs(idle.T @ tau[stuck]).max() < 1e-6, pressed
    assert compared > 90 and redundant > 40
