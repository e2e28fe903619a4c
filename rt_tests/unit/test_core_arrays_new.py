"""Gears under load, contacts, forced motions, changing ratios: hand-computed forces, clear refusals."""

from __future__ import annotations

import numpy as np
import pytest
from core_probe import (
    Probe,
    Reservoir,
    changing,
    drive,
    forces,
    gear,
    moved,
)

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import (
    Brake,
    Clutch,
    Damper,
    IdealGear,
    IdealPlanetary,
    Inertia,
    Spring,
    Torque,
)
from torqueloop.core.describe.builder import Builder
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import (
    CompileError,
    NoInertiaError,
    OverconstrainedError,
    TableError,
)
from torqueloop.core.describe.kernel_numbers import BILATERAL, BLOCKED, HEAT_OF_PORT, LOSS, OUT_PORT, OUT_REACTION
from torqueloop.core.describe.tables import Table1D, Table2D
from torqueloop.core.describe.vocabulary import Form

# --- forces inside gears


def test_two_gears_with_a_massless_shaft_between_them() -> None:
    # J1*a1 = T + l1, 0 = -i1*l1 + l2, J2*a2 = -i2*l2, a1 = i1*i2*a2 -> a2 = i1*i2*T/(J1*(i1*i2)^2 + J2)
    model = compile_driveline(drive(
        ("t.flange", "j1.flange_a"), ("j1.flange_b", "g1.a"), ("g1.b", "g2.a"), ("g2.b", "j2.flange_a"),
        t=Torque(), j1=Inertia(J=2), j2=Inertia(J=5), g1=gear(3), g2=gear(-2),
    ))  # fmt: skip
    assert forces(model, port=[7.0]) == pytest.approx([-5 / 11, -15 / 11], rel=1e-14)


def test_planetary_set_with_its_ring_in_the_housing() -> None:
    # Js*as = T + l, Jc*ac = -(1 + r)*l, as = (1 + r)*ac; r*l is what the ring puts on the housing
    def law(b: Builder) -> None:
        row = b.constraint(b.w("a") + 2 * b.w("support") - 3 * b.w("b"))
        b.output("ring", "torque", OUT_REACTION, index=b.reaction(row, gain=2.0))

    model = compile_driveline(drive(
        ("t.flange", "s.flange_a"), ("s.flange_b", "p.a"), ("p.b", "c.flange_a"),
        t=Torque(), s=Inertia(J=1), c=Inertia(J=6), p=Probe(law),
    ))  # fmt: skip
    # ac = 3*T/(9*1 + 6) = T/5, l = -6*ac/3 = -2*T/5
    assert forces(model, port=[10.0]) == pytest.approx([-8.0], rel=1e-14)


def test_gear_on_a_support_that_moves() -> None:
    # (aa - as) = i*(ab - as), Ja*aa = T + l, Jb*ab = -i*l, Js*as = (i - 1)*l
    model = compile_driveline(drive(
        ("t.flange", "j1.flange_a"), ("j1.flange_b", "g.a"), ("g.b", "j2.flange_a"), ("g.support", "box.flange_a"),
        t=Torque(), j1=Inertia(J=2), j2=Inertia(J=4), box=Inertia(J=8), g=gear(3),
    ))  # fmt: skip
    wanted = -(12.0 / 2) / (1 / 2 + 4 / 8 + 9 / 4)
    assert forces(model, port=[12.0]) == pytest.approx([wanted], rel=1e-14)


def test_torques_on_both_sides_of_a_coupling_share_a_row_but_not_their_effect_on_it() -> None:
    # two torques whose speeds are the same: only the one behind the coupling goes through it
    model = compile_driveline(drive(
        ("t1.flange", "j1.flange_a"), ("j1.flange_b", "g.a"), ("g.b", "t2.flange"),
        t1=Torque(), t2=Torque(), j1=Inertia(J=2), g=gear(1),
    ))  # fmt: skip
    a = model.arrays
    assert a.tq["row"][0] == a.tq["row"][1]
    assert forces(model, port=[5.0, 0.0])[0] == 0.0
    assert forces(model, port=[0.0, 5.0])[0] == pytest.approx(5.0, rel=1e-15)


def test_reaction_with_a_share_of_its_own_friction() -> None:
    # lossy gear: ta = -(l + tau) is the torque of the drive on flange_a, tau the friction torque along w_a
    def law(b: Builder) -> None:
        row = b.constraint(b.w("a") - 4 * b.w("b"))
        one = Table1D.constant(1.0)
        zero = Table1D.constant(0.0)
        index = b.loss(b.w("a"), constraint=row, gain=-1.0, own_gain=-1.0, eta1=one, eta2=one, tbf1=zero, tbf2=zero)
        assert b.loss_of(index) == (0, 0)

    model = compile_driveline(drive(
        ("t.flange", "j1.flange_a"), ("j1.flange_b", "g.a"), ("g.b", "j2.flange_a"),
        t=Torque(), j1=Inertia(J=1), j2=Inertia(J=16), g=Probe(law),
    ))  # fmt: skip
    # a1 = (T + tau)/(J1 + J2/16) = (T + tau)/2; ta = T - J1*a1
    tau = -0.5
    assert forces(model, port=[10.0], fr=[tau]) == pytest.approx([10.0 - (10.0 + tau) / 2], rel=1e-14)


def test_reactions_agree_with_the_full_equations_of_a_train_with_everything_in_it() -> None:
    d = drive(
        ("t.flange", "s.flange_a"), ("s.flange_b", "p.sun", "g0.a"), ("p.ring", "g1.a"), ("p.carrier", "c.flange_a"),
        ("g1.b", "clutch.flange_a", "damper.flange_a"), ("clutch.flange_b", "j.flange_a"),
        ("g0.b", "spring.flange_a", "stop.a"), ("spring.flange_b", "damper.flange_b", "j.flange_b", "stop.b"),
        ("g0.support", "box.flange_a", "brake.flange_a"),
        t=Torque(), s=Inertia(J=0.3), c=Inertia(J=0.7), j=Inertia(J=1.1), box=Inertia(J=9.0),
        p=IdealPlanetary(ratio=2), g0=gear(-3), g1=gear(5), clutch=Clutch(fn_max=1, mue_pos=1),
        brake=Brake(fn_max=1, mue_pos=1), spring=Spring(c=1), damper=Damper(d=1),
        stop=Probe(lambda b: b.contact(b.w("b") - b.w("a"), 10.0, 1.0, -0.1, 0.1)),
    )  # fmt: skip
    model = compile_driveline(d)
    parts, nodes = model.parts, list(model.topology.nodes)
    given = {"port": [3.0], "fr": [0.7, -1.3], "lin": [0.9, 2.1], "con": [-4.2]}

    def line(form: Form) -> np.ndarray:
        row = model.topology.over_nodes(form)[0]
        return np.array([float(row.get(n, 0)) for n in nodes])

    groups = {"port": parts.torques, "fr": parts.frictions, "lin": parts.compliances, "con": parts.contacts}
    f = sum(v * line(p.form) for key, group in groups.items() for v, p in zip(given[key], group, strict=True))
    J = np.zeros(len(nodes))
    for part in parts.inertias:
        J += part.J * line(part.form)
    G = np.array([line(c.form) for c in parts.constraints])
    # J*w' - G^T*l = f, G*w' = 0; nodes without inertia make no difference
    zero = np.zeros((len(G), len(G)))
    solved = np.linalg.solve(np.block([[np.diag(J), -G.T], [G, zero]]), np.concatenate([f, np.zeros(len(G))]))
    wanted = [solved[len(nodes) + r.constraint] for r in parts.reactions]
    assert len(wanted) == 2
    assert forces(model, **given) == pytest.approx(wanted, rel=1e-12)


# --- arrays


def test_all_groups_are_there_and_empty_when_unused() -> None:
    a = compile_driveline(drive(("a.flange_b", "b.flange_a"), a=Inertia(J=1), b=Inertia(J=1))).arrays
    for group in ("ls", "con", "drv", "ed", "cv", "th", "thg", "ths", "vg"):
        assert len(a.elements[group]) == 0, group
    assert len(a.re_A) == 0
    assert (a.ls["tab"].shape, a.drv["inputs"].shape, a.drv["p"].shape) == ((0, 4), (0, 3), (0, 2))


def test_ports_are_numbered_torques_first_curves_last() -> None:
    def law(b: Builder) -> None:
        curve = b.curve_force(b.w("a"), tab1=Table1D((0.0, 1.0), (0.0, 2.0)), absolute=True, gain=-1.0)
        number = b.input("x", "1")
        chart = Table2D((0.0, 1.0), (0.0, 1.0), ((0.0, 1.0), (2.0, 3.0)))
        b.curve_force(b.w("b"), tab2=chart, arg=("input", number))
        brake = b.eddy(b.w("a"), 3.0, 10.0, 0.004, 293.0, port="heatPort", T=350.0)
        b.output("curve", "torque", OUT_PORT, port=("curve", curve))
        b.output("eddy", "torque", OUT_PORT, port=("eddy", brake))
        b.heat("heatPort", HEAT_OF_PORT, ("eddy", brake))

    d = drive(
        ("t.flange", "j.flange_a", "p.a"), ("p.b", "k.flange_a"),
        t=Torque(), j=Inertia(J=1), k=Inertia(J=1), p=Probe(law),
    )  # fmt: skip
    model = compile_driveline(d)
    a = model.arrays
    assert a.out["idx"][model.output_index("p.eddy")] == 1
    assert a.out["idx"][model.output_index("p.curve")] == 2
    assert (a.cv["arg"].tolist(), a.cv["arg_idx"].tolist(), a.cv["absolute"].tolist()) == ([0, 1], [-1, 0], [1, 0])
    assert (a.cv["tab1"][1], a.cv["tab2"][0]) == (-1, -1)
    # an open heat port: the temperature given, and nowhere for the heat to go
    assert (a.ed["th"][0], a.ed["T"][0], len(a.ths["kind"])) == (-1, 350.0, 0)
    d.add("oil", Reservoir(C=100.0))
    d.connect("p.heatPort", "oil.port")
    a = compile_driveline(d).arrays
    assert (a.ed["th"][0], a.ths["kind"][0], a.ths["idx"][0], a.ths["node"][0]) == (0, HEAT_OF_PORT, 1, 0)


def test_contact_carries_its_stops() -> None:
    def law(b: Builder) -> None:
        b.contact(b.w("b") - b.w("a"), 100.0, 2.0, -0.1, float("inf"), kind=1)

    d = drive(("x.flange_a", "p.a"), ("y.flange_a", "p.b"), x=Inertia(J=1), y=Inertia(J=1), p=Probe(law))
    a = compile_driveline(d).arrays
    assert (a.con["lo"][0], a.con["hi"][0], a.con["kind"][0], a.order) == (-0.1, 1e300, 1, 4)
    assert compile_driveline(d).contact_names == ("p",)


def test_loss_tables_are_checked() -> None:
    def lossy(**curves: float) -> Driveline:
        def law(b: Builder) -> None:
            row = b.constraint(b.w("a") - 2 * b.w("b"))
            tables = {k: Table1D.constant(v) for k, v in curves.items()}
            b.loss(b.w("a"), constraint=row, gain=-1.0, own_gain=0.0, input=-1, **tables)

        return drive(("x.flange_a", "p.a"), ("p.b", "y.flange_a"), x=Inertia(J=1), y=Inertia(J=1), p=Probe(law))

    a = compile_driveline(lossy(kA=0.1, kB=-0.2, cA=0.0, cB=0.0)).arrays
    assert (a.ls["form"][0], a.fr["src"][0], a.ls["fr"][0], a.ls["re"][0]) == (1, LOSS, 0, 0)
    assert a.ls["tab"].tolist() == [[0, 1, 2, 2]]
    with pytest.raises(TableError, match=r"kA = -0\.2 is below kB = 0\.1 .*components\.p"):
        compile_driveline(lossy(kA=-0.2, kB=0.1, cA=0.0, cB=0.0))
    with pytest.raises(TableError, match=r"eta1 = 1\.1 .* out of range"):
        compile_driveline(lossy(eta1=1.1, eta2=1.0, tbf1=0.0, tbf2=0.0))


# --- motions forced by inputs, changing ratios


def test_exact_position_asks_for_the_derivatives_of_its_input() -> None:
    model = compile_driveline(drive(("p.a", "j.flange_a"), p=Probe(moved), j=Inertia(J=1)))
    assert model.derived_inputs == {"p.phi_ref'": ("p.phi_ref", 1), "p.phi_ref''": ("p.phi_ref", 2)}
    assert model.input_names == ("p.phi_ref", "p.phi_ref'", "p.phi_ref''")
    a = model.arrays
    assert a.drv["inputs"].tolist() == [[0, 1, 2]]
    assert (a.fr["src"][0], a.fr["fwd"][0], a.fr["bwd"][0]) == (BILATERAL, BLOCKED, BLOCKED)


def test_a_motion_forced_twice_is_refused() -> None:
    d = drive(("p.a", "j.flange_a", "q.a"), p=Probe(moved), q=Probe(moved), j=Inertia(J=1))
    with pytest.raises(OverconstrainedError, match="forced more than once: p, q") as caught:
        compile_driveline(d)
    assert caught.value.components == ("p", "q")


def test_variable_gear_is_fourth_order_where_nothing_beside_it_forbids_that() -> None:
    d = drive(("x.flange_a", "p.a"), ("p.b", "s.flange_a"), ("s.flange_b", "z.flange_a"), ("y.flange_a", "p.b"),
              x=Inertia(J=1), y=Inertia(J=1), z=Inertia(J=1), s=Spring(c=1), p=Probe(changing))  # fmt: skip
    a = compile_driveline(d).arrays
    assert (a.order, a.vg["fr"][0], a.vg["kind"][0], a.vg["input"][0], a.vg["tab"][0]) == (4, 0, 0, 0, -1)
    assert a.vg["row_a"][0] != a.vg["row_b"][0]
    d.order = 4
    assert compile_driveline(d).arrays.order == 4


def test_variable_gear_needs_inertia_and_freedom_on_both_sides() -> None:
    open_side = drive(("x.flange_a", "p.a"), ("p.b", "c.flange_a"), ("c.flange_b", "z.flange_a"),
                      x=Inertia(J=1), z=Inertia(J=1), c=Clutch(fn_max=1, mue_pos=1), p=Probe(changing))  # fmt: skip
    with pytest.raises(NoInertiaError, match=r"both sides of a gear of changing ratio need .*c\.flange_a = p\.b"):
        compile_driveline(open_side)
    tied = drive(("x.flange_a", "p.a", "g.flange_a"), ("p.b", "y.flange_a", "g.flange_b"),
                 x=Inertia(J=1), y=Inertia(J=1), g=IdealGear(ratio=2), p=Probe(changing))  # fmt: skip
    with pytest.raises(OverconstrainedError, match="sides of 'p' are tied"):
        compile_driveline(tied)
    both = drive(("x.flange_a", "p.a", "q.a"), ("p.b", "y.flange_a", "q.b"),
                 x=Inertia(J=1), y=Inertia(J=1), p=Probe(changing), q=Probe(changing))  # fmt: skip
    compile_driveline(both)  # two of them may leave no motion at all, but they do not contradict each other


def test_forces_in_a_gear_must_not_depend_on_a_changing_ratio() -> None:
    """With its own inertia on the far side the gear is out of the way; without it the reaction would need the ratio."""

    def train(with_inertia: bool) -> Driveline:
        d = drive(("g.b", "p.a", "y.flange_a"), ("p.b", "z.flange_a"), g=gear(2), p=Probe(changing),
                  y=Inertia(J=1), z=Inertia(J=1))  # fmt: skip
        if with_inertia:
            d.add("x", Inertia(J=1))
            d.connect("x.flange_a", "g.a")
        else:
            d.connect("z.flange_b", "g.a")
        return d

    assert compile_driveline(train(True)).arrays.re_A.shape == (1, 2)
    with pytest.raises(CompileError, match="depends on the changing ratio of 'p'|are tied"):
        compile_driveline(train(False))
