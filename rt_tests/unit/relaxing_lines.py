"""Drivelines with shafts without inertia between springs and dampers, for tests."""

from __future__ import annotations

import numpy as np

from torqueloop.core.components import Brake, Clutch, Damper, ElastoBacklash, Inertia, Spring, SpringDamper
from torqueloop.core.describe.component import Component
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Pulse
from torqueloop.core.simulate.results import Result

Array = np.ndarray

#: a spring and a damper in series (Maxwell), a Zener element, two spring-dampers, three
CHAINS: dict[str, tuple[Component, ...]] = {
    "spring and damper": (Spring(c=150.0), Damper(d=2.0)),
    "damper and spring": (Damper(d=2.0), Spring(c=150.0, phi_rel0=0.02)),
    "spring and spring-damper": (Spring(c=150.0), SpringDamper(c=80.0, d=2.0)),
    "two spring-dampers": (SpringDamper(c=100.0, d=1.0), SpringDamper(c=300.0, d=0.2, phi_rel0=0.05)),
    "three": (SpringDamper(c=100.0, d=1.0), Damper(d=3.0), SpringDamper(c=300.0, d=0.2)),
    "springs inside": (Damper(d=3.0), Spring(c=300.0), Spring(c=200.0), Damper(d=1.0)),
}


def chain(middle: tuple[Component, ...], order: int = 4, J: tuple[float, float] = (1.0, 2.0)) -> Driveline:
    """x = Inertia, the parts m0, m1 ... in series, y = Inertia; both turn at the start."""
    d = Driveline("chain", order=order)
    d.add("x", Inertia(J=J[0], phi0=0.1, w0=1.0))
    d.add("y", Inertia(J=J[1], phi0=0.0, w0=-0.5))
    before = "x.flange_b"
    for k, part in enumerate(middle):
        d.add(f"m{k}", part)
        d.connect(before, f"m{k}.flange_a")
        before = f"m{k}.flange_b"
    d.connect(before, "y.flange_a")
    return d


def energy(run: Result) -> tuple[Array, Array]:
    """What is stored, and all heat so far."""
    heat = [run[n] for n in run.model.output_names if n.endswith((".heat", ".loss"))]
    return run["energy.kinetic"] + run["energy.potential"], np.sum(heat, axis=0)


def clutched(order: int, stiff: float = 1.0, damping: float = 1.0, Jm: float = 0.0) -> Driveline:
    """a - clutch - b - two spring-dampers - c with a brake - clearance - g."""
    d = Driveline("clutched", order=order)
    d.add("a", Inertia(J=0.5, w0=20.0))
    d.add("b", Inertia(J=0.2))
    d.add("c", Inertia(J=1.0, w0=-2.0))
    d.add("g", Inertia(J=0.1))
    d.add("k", Clutch(fn_max=10.0, mue_pos=1.0, peak=1.2))
    d.add("brake", Brake(fn_max=30.0, mue_pos=1.0, peak=1.1))
    d.add("s1", SpringDamper(c=200.0 * stiff, d=0.5 * damping))
    d.add("s2", SpringDamper(c=400.0 * stiff, d=3.0 * damping))
    d.add("e", ElastoBacklash(c=1e3 * stiff, d=1.0, b=0.02))
    ends = ["a.flange_b", "k.flange_a", "k.flange_b", "b.flange_a", "b.flange_b", "s1.flange_a", "s2.flange_b",
            "c.flange_a"]  # fmt: skip
    for first, second in zip(ends[::2], ends[1::2], strict=True):
        d.connect(first, second)
    d.connect("c.flange_b", "brake.flange_a", "e.flange_a")
    d.connect("e.flange_b", "g.flange_a")
    if Jm:
        d.add("m", Inertia(J=Jm))
        d.connect("s1.flange_b", "s2.flange_a", "m.flange_a")
    else:
        d.connect("s1.flange_b", "s2.flange_a")
    return d


PRESSED = {
    "k.f_normalized": Pulse(amplitude=1.0, width=60.0, period=0.25, startTime=0.03),
    "brake.f_normalized": Pulse(amplitude=1.0, width=30.0, period=0.4, startTime=0.1),
}
