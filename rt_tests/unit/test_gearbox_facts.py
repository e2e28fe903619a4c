"""What the monitors know of a gearbox, against statics of the core, published data and the arithmetic of plates."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import compress

import pytest

from torqueloop.core.analyse.gear_statics import GearTrain, solve_gear
from torqueloop.core.analyse.gearbox_report import train_of
from torqueloop.core.components.files import load
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.tables import Table1D
from torqueloop.cython_kernels.tick.monitors import CLOSED
from torqueloop.hil.monitors.gearbox import gearbox_facts

CARS = ["car_4hp22_rig", "car_6hp26_rig", "car_mb_7226_rig", "car_gm_4l60e_rig", "car_zf_8hp45_rig"]


def rank(rows: list[list[Fraction]]) -> int:
    """By elimination in fractions."""
    rows, found = [list(row) for row in rows], 0
    for column in range(len(rows[0])):
        pivot = next((k for k in range(found, len(rows)) if rows[k][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        for k in range(found + 1, len(rows)):
            factor = rows[k][column] / rows[found][column]
            rows[k] = [x - factor * y for x, y in zip(rows[k], rows[found], strict=True)]
        found += 1
    return found


def blocked(train: GearTrain, closed: list[str]) -> bool:
    """With these elements stuck, neither input nor output can turn."""

    def row(terms: Iterable[tuple[str | None, Fraction | int]]) -> list[Fraction]:
        return [sum((Fraction(k) for name, k in terms if name == shaft), Fraction(0)) for shaft in train.shafts]

    rows = [row([(shaft, k) for _, shaft, k in gear.members]) for gear in train.rows]
    rows += [row([(e.first, 1), (e.second, -1)]) for e in train.elements if e.name in closed]
    return rank(rows) == rank([*rows, row([(train.input, 1)]), row([(train.output, 1)])])


@pytest.mark.parametrize("name", CARS)
def test_closed_elements_are_the_gear_whose_ratio_the_statics_give(name: str) -> None:
    """Every set of closed elements that alone gives one ratio, by the exact equilibrium of the core."""
    driveline = load(name)
    train, facts = train_of(driveline), gearbox_facts(driveline)
    names = [e.name for e in facts.elements]
    one_way = {e.name for e in train.elements if e.one_way}
    sets = {tuple(e for e in names if e in g.elements): k for k, g in enumerate(facts.gears)}
    overrun = 0
    for mask, found in enumerate(facts.closed_as):
        closed = list(compress(names, [mask >> k & 1 for k in range(len(names))]))
        if tuple(closed) in sets:
            assert found == sets[tuple(closed)], closed
            continue
        if one_way & set(closed):
            without = sum(1 << k for k, e in enumerate(names) if mask >> k & 1 and e not in one_way)
            two_way = facts.closed_as[without]
            if two_way >= 0 and not facts.overruns[without]:
                # where the others fix the ratio, a brake behind a free wheel is overrun
                assert found >= 0 and facts.gears[found].ratio == facts.gears[two_way].ratio, closed
                assert not (facts.overruns[mask] and blocked(train, closed)), closed
                overrun += 1
            continue
        try:
            state = solve_gear(train, "-", closed)
        except ConfigError:
            continue
        ratio = float(state.ratio or 0.0)
        if not ratio:
            continue
        same = [k for k, g in enumerate(facts.gears) if abs(ratio / g.ratio - 1.0) < 1e-3]
        if found >= 0 and not facts.overruns[mask]:
            assert found in same, (closed, ratio)
        elif found == CLOSED["other"]:
            assert not same, (closed, ratio)
    assert len(sets) == len(facts.gears) and len(facts.closed_as) == 1 << len(names)
    assert overrun or not one_way & set(names)


@pytest.mark.parametrize("name", CARS)
def test_an_element_has_the_area_and_torque_of_its_plates(name: str) -> None:
    """Lining: faces rings. Torque: faces, mean radius by area, friction at rest, piston less its spring."""
    driveline = load(name)
    for e in gearbox_facts(driveline).elements:
        c = driveline.components[e.name]
        area = c.faces * math.pi * (c.r_o**2 - c.r_i**2)
        mue = driveline.tables[c.mue_pos].y[0]
        radius = 2.0 / 3.0 * (c.r_o**3 - c.r_i**3) / (c.r_o**2 - c.r_i**2)
        full = c.faces * radius * mue * c.area * (c.p_max - c.p_return) * c.peak
        assert e.area_mm2 == pytest.approx(area * 1e6) and e.full_Nm == pytest.approx(full, rel=0.02), e.name
        assert e.plate_mm == pytest.approx(c.plate * 1e3)
        assert e.closed_Nm == pytest.approx(0.03 * full / c.peak, rel=0.02)  # the share that the page of monitors tells


@pytest.mark.parametrize("name", CARS)
def test_elements_of_a_gear_carry_what_balances_the_torques_of_its_shafts(name: str) -> None:
    """The housing takes i - 1 of the input's torque; through one brake, if nothing else stands on it."""
    driveline = load(name)
    train, facts = train_of(driveline), gearbox_facts(driveline)
    fixed = any(shaft is None for row in train.rows for _, shaft, _ in row.members)
    assert facts.mass_kg == driveline.components["car"].m
    for gear in facts.gears:
        state = solve_gear(train, gear.name, driveline.gears[gear.name].engaged)
        assert gear.ratio == pytest.approx(float(state.ratio or 0.0), rel=2e-3), gear.name
        assert (gear.number > 0) == (gear.ratio > 0)
        engaged = [e for e in train.elements if e.name in driveline.gears[gear.name].engaged]
        held = [e.name for e in engaged if None in (e.first, e.second)]
        if len(held) == 1 and held[0] in gear.torque and not fixed:
            assert gear.torque[held[0]] == pytest.approx(abs(gear.ratio - 1.0), abs=1e-3), gear.name
        assert set(gear.torque) <= set(gear.elements) and all(x >= 0.0 for x in gear.torque.values())


@pytest.mark.parametrize(("x", "y", "most", "cut"), [
    ([0.0, 300.0, 600.0], [0.0, 300.0, 150.0], 600.0, 600.0),  # the curve ends with torque
    ([0.0, 50.0, 500.0, 520.0, 540.0], [0.0, 0.0, 200.0, 0.0, -10.0], 520.0, 520.0),  # nor is the fuel cut
    ([0.0, 50.0, 500.0, 520.0, 540.0], [0.0, 0.0, 200.0, 0.0, -20.0], 520.0, 540.0),
    ([0.0, 50.0, 500.0, 520.0, 540.0], [0.0, 0.0, 200.0, 0.0, -40.0], 520.0, 530.0),
])  # fmt: skip
def test_the_engine_has_no_torque_beyond_its_highest_speed(
    x: list[float], y: list[float], most: float, cut: float
) -> None:
    """Its governor has cut the fuel where full load is closed throttle, here -20 Nm."""
    driveline = load(CARS[0])
    name, engine = next((n, c) for n, c in driveline.components.items() if c.kind == "Engine")
    driveline.components[name] = replace(engine, wot=Table1D(x, y), drag=Table1D([0.0, 900.0], [-20.0, -20.0]))
    facts = gearbox_facts(driveline)
    assert facts.engine_max_radps == most and facts.engine_cut_radps == pytest.approx(cut)
