"""Drivelines built in Python for the tests of core: two gearboxes and a small clutch chain."""

from __future__ import annotations

from torqueloop.core.components import (
    Clutch,
    Fixed,
    FreeWheel,
    IdealPlanetary,
    Inertia,
    LaminarBrake,
    LaminarClutch,
    Torque,
)
from torqueloop.core.describe.driveline import Driveline

PACK = {"faces": 8, "r_o": 0.09, "r_i": 0.07, "mue_pos": 0.12, "area": 0.008}

#: gear -> (engaged elements, ratio from the tooth numbers to 5 decimals)
GEARS_4HP22 = {
    "1": (("C4", "C11", "F15"), 2.47945),
    "2": (("C4", "C6", "C11"), 1.47945),
    "3": (("C4", "C5", "C11"), 1.0),
    "4": (("C4", "C5", "C12"), 0.72807),
    "R": (("C5", "C8", "C11"), -2.08571),
}
GEARS_6HP26 = {
    "1": (("A", "D"), 4.17083),
    "2": (("A", "C"), 2.33973),
    "3": (("A", "B"), 1.52113),
    "4": (("A", "E"), 1.14279),
    "5": (("B", "E"), 0.86718),
    "6": (("C", "E"), 0.69106),
    "R": (("B", "D"), -3.40252),
}


def zf_4hp22() -> Driveline:
    """Three simple sets: Simpson pair and overdrive set, with seven plate packs and three free wheels."""
    d = Driveline("4hp22")
    for shaft in ("in", "R1", "S12", "X", "CR2", "S3", "out"):
        d.add(shaft, Inertia(J=0.01))
    d.add("housing", Fixed())
    for name, sun, ring in (("P1", 35, 73), ("P2", 35, 73), ("P3", 31, 83)):
        d.add(name, IdealPlanetary(z_sun=sun, z_ring=ring))
    for name, a, b in (("C4", "in", "R1"), ("C5", "in", "S12"), ("C11", "X", "S3")):
        d.add(name, LaminarClutch(**PACK))
        d.connect(f"{name}.flange_a", f"{a}.flange_b")
        d.connect(f"{name}.flange_b", f"{b}.flange_a")
    for name, shaft, one_way in (("C6", "S12", False), ("C7", "S12", True), ("C8", "CR2", False), ("C12", "S3", False)):
        d.add(name, LaminarBrake(one_way=one_way, **PACK))
        d.connect(f"{name}.flange_a", f"{shaft}.flange_a")
    d.add("F14", FreeWheel())
    d.connect("F14.flange_a", "S3.flange_a")
    d.connect("F14.flange_b", "X.flange_b")
    d.add("F15", FreeWheel())
    d.connect("F15.flange_a", "housing.flange")
    d.connect("F15.flange_b", "CR2.flange_b")
    for name, sun, carrier, ring in (("P1", "S12", "X", "R1"), ("P2", "S12", "CR2", "X"), ("P3", "S3", "X", "out")):
        d.connect(f"{name}.sun", f"{sun}.flange_a")
        d.connect(f"{name}.carrier", f"{carrier}.flange_a")
        d.connect(f"{name}.ring", f"{ring}.flange_a")
    d.set_gearbox("in", "out")
    for gear, (engaged, _) in GEARS_4HP22.items():
        d.add_gear(gear, engaged)
    return d


def zf_6hp26() -> Driveline:
    """Lepelletier: simple front set with its sun in the housing, and a Ravigneaux set (one half a plus set)."""
    d = Driveline("6hp26")
    for shaft in ("in", "C1", "SA", "SB", "CR", "out"):
        d.add(shaft, Inertia(J=0.01))
    d.add("housing", Fixed())
    d.add("front", IdealPlanetary(z_sun=37, z_ring=71))
    d.add("small", IdealPlanetary(z_sun=31, z_ring=85, plus_set=True))
    d.add("large", IdealPlanetary(z_sun=38, z_ring=85))
    sets = (
        ("front", "housing.flange", "C1.flange_a", "in.flange_a"),
        ("small", "SA.flange_a", "CR.flange_a", "out.flange_a"),
        ("large", "SB.flange_a", "CR.flange_a", "out.flange_a"),
    )
    for name, sun, carrier, ring in sets:
        d.connect(f"{name}.sun", sun)
        d.connect(f"{name}.carrier", carrier)
        d.connect(f"{name}.ring", ring)
    for name, a, b in (("A", "C1", "SA"), ("B", "C1", "SB"), ("E", "in", "CR")):
        d.add(name, LaminarClutch(**PACK))
        d.connect(f"{name}.flange_a", f"{a}.flange_b")
        d.connect(f"{name}.flange_b", f"{b}.flange_b")
    for name, shaft in (("C", "SB"), ("D", "CR")):
        d.add(name, LaminarBrake(**PACK))
        d.connect(f"{name}.flange_a", f"{shaft}.flange_b")
    d.set_gearbox("in", "out")
    for gear, (engaged, _) in GEARS_6HP26.items():
        d.add_gear(gear, engaged)
    return d


def two_shafts(fn_max: float = 20.0) -> Driveline:
    """A torque on a shaft that is clutched to a second one."""
    d = Driveline("two shafts")
    d.add("torque", Torque())
    d.add("J1", Inertia(J=1.0, w0=10.0))
    d.add("clutch", Clutch(fn_max=fn_max, mue_pos=0.5, peak=1.1))
    d.add("J2", Inertia(J=2.0))
    d.connect("torque.flange", "J1.flange_a")
    d.connect("J1.flange_b", "clutch.flange_a")
    d.connect("clutch.flange_b", "J2.flange_a")
    return d
