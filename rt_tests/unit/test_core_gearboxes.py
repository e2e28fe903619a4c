"""Exact elimination: ratios from tooth numbers, null space, order independence."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from core_examples import GEARS_4HP22, GEARS_6HP26, zf_4hp22, zf_6hp26
from hypothesis import given, settings
from hypothesis import strategies as st

from torqueloop.core.analyse.analysis import gear_state, ratio
from torqueloop.core.compile.compiler import analyse, compile_driveline
from torqueloop.core.compile.exact import null_direction, reduce, solve_least_norm
from torqueloop.core.components import IdealPlanetary, Inertia
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import OverconstrainedError

#: exact ratios by hand: Simpson pair with z = 35/73, overdrive 31/83
R = Fraction(73, 35)
EXACT_4HP22 = {
    "1": (2 * R + 1) / R,
    "2": (1 + R) / R,
    "3": Fraction(1),
    "4": Fraction(83, 114),
    "R": -R,
}


@pytest.mark.parametrize("gear", EXACT_4HP22)
def test_ratios_of_the_4hp22_are_the_exact_fractions_of_its_tooth_numbers(gear: str) -> None:
    engaged, published = GEARS_4HP22[gear]
    found = ratio(zf_4hp22(), engaged)
    assert found == EXACT_4HP22[gear]
    assert float(found) == pytest.approx(published, abs=5e-6)


@pytest.mark.parametrize("gear", GEARS_6HP26)
def test_ratios_of_the_lepelletier_set_follow_from_its_plus_set(gear: str) -> None:
    engaged, published = GEARS_6HP26[gear]
    found = ratio(zf_6hp26(), engaged)
    assert isinstance(found, Fraction)
    assert float(found) == pytest.approx(published, abs=5e-6)


def test_a_plus_set_given_by_its_negative_ratio_is_the_same_gear() -> None:
    d = zf_6hp26()
    d.components["small"] = IdealPlanetary(ratio=Fraction(-85, 31))
    assert ratio(d, ("A", "D")) == ratio(zf_6hp26(), ("A", "D"))


@pytest.mark.parametrize("make", [zf_4hp22, zf_6hp26])
def test_rows_of_all_shafts_fulfil_every_gear_equation_exactly(make) -> None:
    parts, topology = analyse(make())
    assert len(topology.independent) == len(topology.nodes) - len(parts.constraints)
    for constraint in parts.constraints:
        assert topology.over_independent(constraint.form) == ({}, 0)


@pytest.mark.parametrize("make", [zf_4hp22, zf_6hp26])
def test_reduced_inertia_is_n_transposed_j_n(make) -> None:
    model = compile_driveline(make())
    position = {name: k for k, name in enumerate(model.coordinates)}
    rows = []
    for part in model.parts.inertias:
        row = np.zeros(model.n)
        for name, value in model.topology.over_independent(part.form)[0].items():
            row[position[name]] = float(value)
        rows.append(row)
    N = np.array(rows)
    J = np.diag([part.J for part in model.parts.inertias])
    np.testing.assert_allclose(model.arrays.M, N.T @ J @ N, rtol=1e-15)
    assert np.all(np.linalg.eigvalsh(model.arrays.M) > 0.0)
    assert np.array_equal(model.arrays.M, model.arrays.M.T)


def test_most_friction_rows_of_the_4hp22_are_single_entries_of_plus_or_minus_one() -> None:
    arrays = compile_driveline(zf_4hp22()).arrays
    single = 0
    for row in arrays.fr["row"]:
        begin, end = arrays.row_ptr[row], arrays.row_ptr[row + 1]
        single += bool(np.all(np.abs(arrays.row_val[begin:end]) == 1.0))
    assert single >= 6


@pytest.mark.parametrize("seed", range(5))
def test_arrays_do_not_depend_on_the_order_of_listing(seed: int) -> None:
    source = zf_4hp22()
    shuffled = Driveline("4hp22")
    rng = random.Random(seed)
    names = list(source.components)
    rng.shuffle(names)
    for name in names:
        shuffled.add(name, source.components[name])
    groups = [list(group) for group in source.connections]
    rng.shuffle(groups)
    for group in groups:
        rng.shuffle(group)
        shuffled.connect(*group)
    shuffled.set_gearbox("in", "out")
    for gear, (engaged, _) in GEARS_4HP22.items():
        shuffled.add_gear(gear, engaged)
    assert shuffled == source
    a, b = compile_driveline(shuffled), compile_driveline(source)
    assert a.digest() == b.digest()
    assert a.output_names == b.output_names


def test_torque_per_input_torque_of_second_gear_is_known_from_statics() -> None:
    state = gear_state(zf_4hp22(), GEARS_4HP22["2"][0])
    assert float(state.torques["C4"]) == pytest.approx(-1.0, abs=1e-6)
    assert float(state.torques["C6"]) == pytest.approx(0.47945, abs=5e-6)
    assert float(state.torques["C11"]) == pytest.approx(1.479452 * 31 / 83, abs=5e-6)
    assert float(state.slips["C5"]) == pytest.approx(1.0, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.permutations(range(5)), st.integers(12, 60), st.integers(61, 140), st.booleans()),
        min_size=1, max_size=3,
    )
)  # fmt: skip
def test_random_planetary_trains_conserve_power_in_every_gear_row(sets) -> None:
    d = Driveline("random")
    used = set()
    for k, (shafts, z_sun, z_ring, plus) in enumerate(sets):
        d.add(f"P{k}", IdealPlanetary(z_sun=z_sun, z_ring=z_ring, plus_set=plus))
        for member, shaft in zip(("sun", "carrier", "ring"), shafts, strict=False):
            if shaft not in used:
                d.add(f"s{shaft}", Inertia(J=0.01))
                used.add(shaft)
            d.connect(f"P{k}.{member}", f"s{shaft}.flange_a")
    try:
        parts, topology = analyse(d)
    except OverconstrainedError as error:
        # two identical sets in parallel, or ratios that block each other: named, never silently wrong
        assert set(error.components) <= set(d.components) and error.components
        return
    for constraint in parts.constraints:
        assert topology.over_independent(constraint.form) == ({}, 0)
        assert sum(constraint.form.terms.values()) == 0  # a set turning as a block slips nowhere


def test_least_norm_solution_splits_equal_paths_equally() -> None:
    one = Fraction(1)
    assert solve_least_norm([{"a": one, "b": one}], [one], ["a", "b"]) == {"a": one / 2, "b": one / 2}
    assert solve_least_norm([{"a": one}, {"a": one}], [one, 2 * one], ["a"]) is None


def test_free_columns_are_the_last_ones_of_the_order() -> None:
    rows = [{"a": Fraction(1), "b": Fraction(-2)}, {"b": Fraction(1), "c": Fraction(3)}]
    assert set(reduce(rows, [Fraction(0)] * 2, ["a", "b", "c"]).pivots) == {"a", "b"}
    assert set(reduce(rows, [Fraction(0)] * 2, ["c", "b", "a"]).pivots) == {"c", "b"}
    direction = null_direction(rows, ["a", "b", "c"])
    assert direction is not None and direction["a"] == 2 * direction["b"] and direction["b"] == -3 * direction["c"]
