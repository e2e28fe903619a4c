"""Every registered kind: TOML and Python give equal objects, and the catalogue describes it."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from torqueloop.core.analyse.analysis import elements
from torqueloop.core.analyse.catalogue import example, page, parts_of
from torqueloop.core.components import FAMILIES, KINDS, Component, params_of
from torqueloop.core.components.files import component_from_config
from torqueloop.core.describe.errors import ConfigError, MissingValueError, RangeError, TableError, UnknownKeyError
from torqueloop.core.describe.kernel_numbers import OUT_FRICTION
from torqueloop.core.describe.params import REQUIRED
from torqueloop.core.describe.parts import port_number
from torqueloop.core.describe.tables import Columns, Table1D, Table2D
from torqueloop.core.describe.units import keys_of, scaled

DOCS = Path(__file__).parents[2] / "docs" / "components.md"


def in_python(kind: type[Component]) -> Component:
    """The example of a kind, built from SI values without units."""
    body = example(kind)
    values = {}
    for name, p in params_of(kind).items():
        for key, factor in {name: 1, **keys_of(name, p.dimension)}.items():
            if key not in body:
                continue
            value = body[key]
            if isinstance(value, dict):
                made = {"curve": Table1D, "map": Table2D, "columns": Columns}[p.form]
                values[name] = made.of(value["columns"], value["rows"])
            else:
                values[name] = value if isinstance(value, str) else float(scaled(value, factor))
    return kind(**values)


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_in_toml_equals_the_same_in_python(name: str) -> None:
    kind = KINDS[name]
    made = component_from_config(example(kind), Path())
    assert type(made) is kind and made.kind == name
    assert made == in_python(kind)


@pytest.mark.parametrize("name", KINDS)
def test_names_of_inputs_and_outputs_are_unique_and_defaults_belong_to_inputs(name: str) -> None:
    parts = parts_of(KINDS[name])
    outputs = [o.name for o in parts.outputs]
    assert len(set(outputs)) == len(outputs) and len(set(parts.inputs)) == len(parts.inputs)
    made = component_from_config(example(KINDS[name]), Path())
    assert {f"x.{short}" for short in made.default_inputs()} <= set(parts.inputs)


@pytest.mark.parametrize("name", KINDS)
def test_a_required_parameter_that_is_missing_or_without_unit_is_an_error(name: str) -> None:
    body = example(KINDS[name])
    for param, p in params_of(KINDS[name]).items():
        if p.default is not REQUIRED or p.form not in ("number", "exact"):
            continue
        key = next(iter(keys_of(param, p.dimension)))
        with pytest.raises(MissingValueError, match=key):
            component_from_config({k: v for k, v in body.items() if k != key}, Path())
        if key != param:
            with pytest.raises(UnknownKeyError, match="has no unit"):
                component_from_config({**{k: v for k, v in body.items() if k != key}, param: body[key]}, Path())


@pytest.mark.parametrize("name", KINDS)
def test_a_value_outside_its_range_is_refused(name: str) -> None:
    body = example(KINDS[name])
    for param, p in params_of(KINDS[name]).items():
        if p.form != "number" or p.low is None:
            continue
        key = next(iter(keys_of(param, p.dimension)))
        value = Decimal(repr(p.low)) if p.above else Decimal(repr(p.low)) - 1
        with pytest.raises(RangeError) as caught:
            component_from_config({**body, key: value}, Path())
        assert caught.value.key == key and caught.value.allowed


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_says_what_it_does(name: str) -> None:
    kind = KINDS[name]
    assert kind.__doc__ and not kind.__doc__.startswith(f"{name}("), "dataclass would make one up"
    assert all(p.doc for p in params_of(kind).values())


def test_kinds_are_registered_once() -> None:
    listed = [kind.__name__ for family in FAMILIES.values() for kind in family]
    assert len(listed) == len(set(listed)) == len(KINDS)


def test_the_catalogue_in_docs_is_the_one_of_the_code() -> None:
    if not DOCS.parent.exists():
        pytest.skip("docs/ is not part of an installed package")
    assert DOCS.read_text(encoding="utf-8") == page(), "python -m torqueloop.core.analyse.catalogue >docs/components.md"


def test_heat_ports_are_there_where_something_is_dissipated() -> None:
    for name, kind in KINDS.items():
        has_heat = any(o.name.partition(".")[2].startswith("lossPower") for o in parts_of(kind).outputs)
        assert not has_heat or "heatPort" in kind.flanges, name


@pytest.mark.parametrize("name", KINDS)
def test_the_force_of_every_element_is_an_output(name: str) -> None:
    """Else the torques on the flanges of the component could not be told after a run."""
    parts = parts_of(KINDS[name])
    shown = {(o.kind, o.index if o.group is None else port_number(parts, o.group, o.index)) for o in parts.outputs}
    for _, what, form, places in elements(parts):
        assert any((kind, index) in shown for kind, index, _ in places), f"{what} along {form}"
    for gear in parts.variable_gears:
        assert (OUT_FRICTION, gear.friction) in shown


LOSSES = {"columns": ["w_rpm", "e1", "e2", "t1_Nm", "t2_Nm"]}


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([[0, 0, 1, 0, 0]], "row 1 of lossTable: eta1 = 0 is out of range"),
        ([[0, 1.5, 1, 0, 0]], "eta1 = 1.5"),
        ([[0, 0.9, 0.9, 0, 0], [100, 0.9, 1.01, 0, 0]], "row 2 of lossTable: eta2 = 1.01"),
        ([[0, 1, 1, 1, 2]], "tbf1 = 1 and tbf2 = 2 differ"),
        ([[-1, 0.9, 0.9, 0, 0]], "is out of range"),
        ([[5, 0.9, 0.9, 0, 0], [5, 0.8, 0.8, 0, 0]], "not strictly increasing at row 2"),
    ],
)
def test_a_wrong_loss_table_is_refused_with_its_row(rows: list[list[float]], problem: str) -> None:
    rows = [[Decimal(repr(v)) for v in row] for row in rows]
    for kind in ("LossyGear", "Gearbox"):
        body = {**example(KINDS[kind]), "lossTable": {**LOSSES, "rows": rows}}
        with pytest.raises(TableError) as caught:
            component_from_config(body, Path())
        assert problem in str(caught.value) and caught.value.key == "lossTable"


def test_a_loss_table_needs_units_and_five_columns() -> None:
    body = example(KINDS["LossyGear"])
    with pytest.raises(TableError, match="without units"):
        component_from_config({**body, "lossTable": [[0, 1, 1, 0, 0]]}, Path())
    with pytest.raises(TableError, match="columns"):
        component_from_config({**body, "lossTable": {"columns": ["w_rpm", "e"], "rows": [[0, 1]]}}, Path())


@pytest.mark.parametrize(
    ("kind", "values", "problem"),
    [
        ("ElastoGap", {"c": 1.0, "d": 1.0, "n": 0.9}, "n = 0.9 is out of range"),
        ("AngleToTorqueAdaptor", {"use_w": False}, "use_a needs use_w"),
        ("GeneralTorqueToAngleAdaptor", {"use_pder": False}, "use_pder2 needs use_pder"),
        ("EddyCurrentTorque", {"tau_nominal": 1, "w_nominal": 1, "alpha20": -0.1, "TRef": 400}, "negative at TRef"),
        ("IdealGearR2T", {"ratio": 0}, "not 0"),
        ("SignTorque", {"tau_nominal": 1.0, "reg": "exp"}, "did you mean 'Exp'"),
    ],
)
def test_rules_between_parameters(kind: str, values: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        KINDS[kind](**values)


def test_exact_parameters_stay_exact() -> None:
    disc = component_from_config({"kind": "Disc", "deltaPhi_rad": Decimal("0.1")}, Path())
    assert disc.deltaPhi == Fraction(1, 10)  # type: ignore[attr-defined]
