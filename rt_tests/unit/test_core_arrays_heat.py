"""Heat ports, and tables with several columns."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import pytest
from core_probe import (
    Conductor,
    Probe,
    Reservoir,
    drive,
    hot_brake,
)

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import (
    Inertia,
)
from torqueloop.core.describe.builder import Builder
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.errors import (
    DomainError,
    InitialValueError,
    NoCapacityError,
    OverconstrainedError,
    TableError,
)
from torqueloop.core.describe.flange import Flange
from torqueloop.core.describe.kernel_numbers import HEAT_FROM_INPUT, HEAT_OF_FRICTION, OUT_TEMPERATURE
from torqueloop.core.describe.params import columns
from torqueloop.core.describe.tables import Columns, Table1D

# --- heat


def test_heat_ports_join_like_shafts() -> None:
    d = hot_brake()
    d.add("disc", Reservoir(C=50.0, T=310.0))
    d.add("hub", Reservoir(C=20.0, T=310.0))
    d.add("air", Reservoir(T=290.0))
    d.add("wall", Conductor(G=5.0))
    d.connect("p.heatPort", "disc.port", "wall.port_a", "hub.port")
    d.connect("wall.port_b", "air.port")
    model = compile_driveline(d)
    a = model.arrays
    assert model.thermal_names == ("air.port", "disc.port")
    assert (a.th["C"].tolist(), a.th["T0"].tolist(), a.th["input"].tolist()) == ([0.0, 70.0], [290.0, 310.0], [-1, -1])
    assert (a.thg["a"][0], a.thg["b"][0], a.thg["G"][0], a.thg["tab"][0]) == (1, 0, 5.0, -1)
    assert (a.ths["kind"].tolist(), a.ths["idx"].tolist()) == ([HEAT_OF_FRICTION, HEAT_FROM_INPUT], [0, 0])
    assert a.ths["node"].tolist() == [1, 1]
    k = model.output_index("hub.T")
    assert (a.out["kind"][k], a.out["idx"][k], model.output_units[k]) == (OUT_TEMPERATURE, 1, "K")
    # heat has no part in the mechanics
    assert model.coordinates == ("j",)


def test_open_heat_port_costs_nothing() -> None:
    a = compile_driveline(hot_brake()).arrays
    assert len(a.th["C"]) == len(a.ths["kind"]) == 0


def test_heat_ports_without_any_temperature_are_named() -> None:
    d = hot_brake()
    d.add("wall", Conductor(G=5.0))
    d.add("air", Reservoir())
    d.connect("p.heatPort", "wall.port_a")
    d.connect("wall.port_b", "air.port")
    with pytest.raises(NoCapacityError, match=r"p\.heatPort = wall\.port_a; join a heat capacity") as caught:
        compile_driveline(d)
    assert caught.value.components == ("p", "wall")


def test_heat_ports_refuse_shafts_and_contradictions() -> None:
    d = hot_brake()
    d.add("air", Reservoir())
    d.connect("air.port", "j.flange_b")
    with pytest.raises(DomainError, match=r"heat port is joined to a flange that moves: air\.port and j\.flange_b"):
        compile_driveline(d)
    d = hot_brake()
    for name in ("air", "water"):
        d.add(name, Reservoir())
    d.connect("p.heatPort", "air.port", "water.port")
    with pytest.raises(OverconstrainedError, match="given twice: air, water"):
        compile_driveline(d)
    d = hot_brake()
    d.add("disc", Reservoir(C=1.0, T=300.0))
    d.add("hub", Reservoir(C=1.0, T=301.0))
    d.connect("p.heatPort", "disc.port", "hub.port")
    with pytest.raises(InitialValueError, match=r"disc\.port 300 K, hub\.port 301 K"):
        compile_driveline(d)


def test_nodes_inside_a_component() -> None:
    def law(b: Builder) -> None:
        b.thermal_node("oil")
        b.heat_capacity("oil", 10.0, 350.0)
        b.heat_capacity("heatPort", 5.0, 300.0)
        b.conductance("oil", "heatPort", 2.0, curve=Table1D((0.0, 400.0), (0.0, 1.0)), curve_port="oil")
        b.temperature_output("T_oil", "oil")

    d = drive(("j.flange_a", "p.a"), j=Inertia(J=1), p=Probe(law))
    model = compile_driveline(d)
    assert model.thermal_names == ("p.oil", "p.heatPort")
    a = model.arrays
    assert (a.thg["a"][0], a.thg["b"][0], a.thg["arg"][0], a.thg["tab"][0]) == (0, 1, 0, 0)


# --- tables with several columns


@dataclass(frozen=True, kw_only=True)
class Tabled(Component):
    """A component with a table of three curves."""

    flanges: ClassVar = {"a": Flange()}
    table: Any = columns("speed, two factors, torque", ("angular_velocity", "1", "1", "torque"))

    def contribute(self, b: Builder) -> None:
        curve = b.columns("table").curve(3)
        b.curve_force(b.w("a"), tab1=curve)


def test_columns_are_given_in_rows_tables_or_by_name(tmp_path: Path) -> None:
    rows = [[0, 1, 1, 2], [10, 0.9, 0.8, 4]]
    inline = Tabled(table=rows)
    assert inline.table.curve(3) == Table1D((0.0, 10.0), (2.0, 4.0), ("angular_velocity", "torque"), "linear")
    d = drive(("t.a", "j.flange_a"), t=Tabled(table="curves"), j=Inertia(J=1))
    d.add_table("curves", Columns.of(["w_radps", "eta1", "eta2", "loss_kNm"], [[0, 1, 1, Fraction(2, 1000)]]))
    assert compile_driveline(d).arrays.tab1_y.tolist() == [2.0, 2.0]
    for wrong, message in (
        ([[0, 1, 1]], "row 1 does not have 4 values"),
        ([[0, 1, 1, 2], [0, 1, 1, 2]], "not strictly increasing at row 2"),
        ([], "no rows"),
        (3.0, "is not a table with the columns wanted"),
    ):
        with pytest.raises(TableError, match=message):
            Tabled(table=wrong)
    with pytest.raises(TableError, match=r"has columns of \(rad/s, 1, 1, Pa\), but \(rad/s, 1, 1, Nm\) are needed"):
        Tabled(table=Columns.of(["w_radps", "eta1", "eta2", "p_bar"], [[0, 1, 1, 2]]))
