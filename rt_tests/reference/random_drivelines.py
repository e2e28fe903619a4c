"""Random drivelines of what nobody solves in closed form, beside the same in torqueloop.

    python rt_tests/reference/random_drivelines.py [--count 60] [--first 0]

prints the largest error of each, one step per 1 ms tick at order 4, relative to the range of each signal. A driveline
is a chain: a driven flange or a torque, then sections out of SECTIONS, each of them the first one in turn; loads and
brakes on the way. Solved by independent.py on bodies, constraints and modes of random_parts.py. A seed whose driveline
leaves what its parts are valid for (a converter that turns backward), or that the equations leave open, is replaced by
the next number of its own sequence.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from independent import Array, At, Element, Solution, System, simulate
from random_parts import Actuator, Course, Gap, GearLoss, Oil, Plates, Tie, Watch, held, lines, wave

from torqueloop.core import components as kinds
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.simulate.offline import Simulation

#: s; s
T, H = 0.3, 1e-3
BAR = 1e5
#: what joins two bodies of the chain
SECTIONS = ("plates", "one way", "lossy", "variable", "spring", "gap", "converter", "planetary", "rack")
#: ratios of gears
RATIOS = [Fraction(s) for s in ("3/2", "2", "-3/2", "7/3", "-1", "5/4", "2/3")]


class Unfit(Exception):
    """Not an example to compare by."""


@dataclass
class Made:
    """A driveline in the making: bodies, elements, smooth forces; and the same in torqueloop."""

    g: np.random.Generator
    d: Driveline = field(default_factory=lambda: Driveline("random", order=4))
    inertias: list[float] = field(default_factory=list)
    #: made of the number of bodies, when that is known
    parts: list[Callable[[int], Element]] = field(default_factory=list)
    forces: list[Callable[[float, Array, Array, Array], dict[int, float]]] = field(default_factory=list)
    x0: list[float] = field(default_factory=list)
    breaks: set[float] = field(default_factory=set)
    inputs: dict[str, Any] = field(default_factory=dict)
    results: dict[str, Callable[[At], float]] = field(default_factory=dict)
    u0: list[float] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    #: some friction coefficients over the slip have a knee
    knees: bool = False
    actuators: list[tuple[int, Actuator]] = field(default_factory=list)

    def between(self, low: float, high: float) -> float:
        return float(self.g.uniform(low, high))

    def body(self, J: float, w: float, *, mass: bool = False) -> int:
        k = len(self.inertias)
        name = f"s{k}"
        self.d.add(name, kinds.Mass(m=J) if mass else kinds.Inertia(J=J))
        self.inertias.append(J)
        self.u0.append(w)
        self.results[f"{name}.v" if mass else f"{name}.w"] = lambda at: float(at.u[k])
        return k

    def shaft(self) -> int:
        return self.body(10.0 ** self.between(-1.5, 0.0), self.between(-20.0, 80.0))

    def part(self, component: Any, flanges: dict[str, int | None]) -> str:
        """Adds a component; None: the housing."""
        name = f"e{len(self.d.components)}"
        self.d.add(name, component)
        for flange, body in flanges.items():
            if body is not None:
                self.d.connect(f"{name}.{flange}", f"s{body}.flange_a")
            else:
                self.d.add(f"{name}_wall", kinds.Fixed())
                self.d.connect(f"{name}.{flange}", f"{name}_wall.flange")
        return name

    def give(self, name: str, course: Course) -> Course:
        self.inputs[name] = course.signal
        self.breaks.update(course.breaks)
        return course

    def course(self, low: float, high: float) -> Course:
        """A command between two values: at rest, a wave, ramps, steps, held over four ticks."""
        times = sorted(round(float(t), 4) for t in self.g.uniform(0.01, T - 0.01, 4))
        kind = self.g.choice(["wave", "ramps", "steps", "held"])
        if kind == "wave":
            half = self.between(0.3, 1.0) * 0.5 * (high - low)
            return wave(0.5 * (low + high), half, self.between(1.0, 5.0), self.between(0.0, 6.0))
        if kind == "ramps":
            return lines([(t, self.between(low, high)) for t in times if t not in (times[0],)] or [(0.0, low)])
        if kind == "steps":
            return held(self.between(low, high), [(t, self.between(low, high)) for t in times[:2]])
        slow = wave(0.5 * (low + high), 0.4 * (high - low), self.between(1.0, 3.0), self.between(0.0, 6.0))
        return held(slow.value(0.0), [(4e-3 * k, slow.value(4e-3 * k)) for k in range(1, int(T / 4e-3))])

    # --- elements ----------------------------------------------------------------------------------------------
    def row(self, n: int, terms: dict[int, float]) -> Array:
        row = np.zeros(n)
        for k, c in terms.items():
            row[k] += c
        return row

    def add(self, make: Callable[[int], Element]) -> int:
        """An element, made when the number of bodies is known; its place."""
        self.parts.append(make)
        return len(self.parts) - 1

    def press(
        self, terms: dict[int, float], flanges: dict[str, int | None], kind: Any, one_way: bool = False, **more: Any
    ) -> None:
        """A plate pack along a row with an actuator of its own."""
        area, cgeo, peak = 0.01, self.between(0.05, 0.4), float(self.g.choice([1.0, self.between(1.05, 1.3)]))
        m0, m1, knee = self.between(0.08, 0.14), self.between(0.08, 0.14), 4000.0
        bent = self.g.random() < 0.3, self.between(5.0, 40.0)
        if self.knees and bent[0]:
            knee = bent[1]
        table = [[0.0, m0], [knee, m1], [5000.0, m1]]
        lag = bool(self.g.random() < 0.6)
        fills = bool(self.g.random() < 0.4)
        oil = Oil(
            self.between(0.2, 1.0) * BAR,
            self.between(0.005, 0.03) if lag else 0.0, self.between(0.005, 0.03) if lag else 0.0,
            round(self.between(0.02, 0.08), 3) if fills else 0.0, 0.05 if fills else 0.0,
        )  # fmt: skip
        name = self.part(
            kind(area=area, cgeo=cgeo, mue_pos=table, peak=peak, p_return=oil.p_return, p_max=30.0 * BAR,
                 tau_rise=oil.rise, tau_fall=oil.fall, t_fill=oil.fill, t_empty=oil.empty,
                 actuator="fill_time" if fills else "first_order", **more), flanges,
        )  # fmt: skip
        command = self.give(f"{name}.p", self.course(0.0, 6.0 * BAR))
        p, level = len(self.x0), len(self.x0) + 1
        self.x0 += [0.0, 0.0]
        actuator = Actuator(0, command, oil, p, level)
        place = self.add(lambda n: _sized(actuator, n))
        self.actuators.append((place, actuator))

        def mue(w: float) -> float:
            return float(np.interp(w, [r[0] for r in table], [r[1] for r in table]))

        plates = self.add(lambda n: Plates(self.row(n, terms), place, actuator, cgeo * area, mue, peak, one_way))
        if knee < 1000.0:
            self.add(lambda n: Watch(n, lambda at: abs(float(self.row(n, terms) @ at.u)), [knee]))
        self.results[f"{name}.tau"] = lambda at: -float(at.F[plates])
        self.results[f"{name}.p"] = lambda at: actuator.pressure(at.modes[place], at)

    def drive(self) -> int:
        """The first body: driven exactly, or by a torque."""
        a = self.shaft()
        kind = self.g.choice(["speed", "position", "accelerate", "torque", "torque"])
        self.sections.append(str(kind))
        if kind == "torque":
            name = self.part(kinds.Torque(), {"flange": a})
            course = self.give(f"{name}.tau", self.course(-30.0, 60.0))
            self.forces.append(lambda t, q, u, x: {a: course.value(t)})
            return a
        if kind == "speed":
            name = self.part(kinds.Speed(exact=True), {"flange": a})
            course = wave(
                self.between(0.0, 60.0), self.between(5.0, 30.0), self.between(1.0, 4.0), self.between(0.0, 6.0)
            )
            if self.g.random() < 0.4:
                course = lines(
                    [
                        (round(self.between(0.0, 0.1), 4), 20.0),
                        (round(self.between(0.11, 0.3), 4), self.between(30.0, 90.0)),
                    ]
                )
            course = self.give(f"{name}.w_ref", course)
            self.add(lambda n: Tie(lambda t: self.row(n, {a: 1.0}), lambda at: course.rate(at.t), course.value))
            self.u0[a] = course.value(0.0)
            return a
        if kind == "position":
            name = self.part(kinds.Position(exact=True), {"flange": a})
            f, amplitude = self.between(1.0, 4.0), self.between(0.5, 4.0)
            course = self.give(f"{name}.phi_ref", wave(0.0, amplitude, f, 0.0))
            w = 2.0 * math.pi * f
            self.add(
                lambda n: Tie(lambda t: self.row(n, {a: 1.0}), lambda at: -w * w * course.value(at.t), course.rate)
            )
            self.u0[a] = course.rate(0.0)
            return a
        name = self.part(kinds.Accelerate(), {"flange": a})
        course = self.give(f"{name}.a_ref", self.course(-200.0, 400.0))
        self.add(lambda n: Tie(lambda t: self.row(n, {a: 1.0}), lambda at: course.value(at.t), None))
        return a

    # --- sections ----------------------------------------------------------------------------------------------
    def section(self, kind: str, a: int) -> int:
        """Joins a new body to a; the new body."""
        self.sections.append(kind)
        return int(getattr(self, "_" + kind.replace(" ", "_"))(a))

    def _plates(self, a: int) -> int:
        b = self.shaft()
        self.press({b: 1.0, a: -1.0}, {"flange_a": a, "flange_b": b}, kinds.LaminarClutch)
        return b

    def _one_way(self, a: int) -> int:
        b = self.shaft()
        self.press({b: 1.0, a: -1.0}, {"flange_a": a, "flange_b": b}, kinds.OneWayLaminarClutch, one_way=True)
        return b

    def _lossy(self, a: int) -> int:
        b, ratio = self.shaft(), RATIOS[self.g.integers(len(RATIOS))]
        i = float(ratio)
        t1, t2 = self.between(0.1, 2.0), self.between(0.1, 2.0)
        table = [[0.0, self.between(0.7, 0.95), self.between(0.7, 0.95), t1, t2]]
        if self.g.random() < 0.5:
            table.append([2000.0, self.between(0.6, 0.95), self.between(0.6, 0.95), t1 + 10.0, t2 + 10.0])
        self.part(kinds.LossyGear(ratio=ratio, lossTable=table), {"flange_a": a, "flange_b": b})
        gear = self.add(lambda n: Tie(lambda t: self.row(n, {a: 1.0, b: -i})))
        self.add(lambda n: GearLoss(self.row(n, {a: 1.0}), gear, table))
        return b

    def _variable(self, a: int) -> int:
        b = self.shaft()
        name = self.part(kinds.VariableGear(), {"flange_a": a, "flange_b": b})
        if self.g.random() < 0.5:
            begin = (round(self.between(0.02, 0.1), 4), self.between(1.0, 3.0))
            course = lines([begin, (round(self.between(0.15, 0.28), 4), self.between(1.0, 3.0))])
        else:
            middle, half = self.between(1.5, 2.5), self.between(0.1, 0.8)
            course = wave(middle, half, self.between(1.0, 3.0), self.between(0.0, 6.0))
        i = self.give(f"{name}.ratio", course)
        self.add(
            lambda n: Tie(lambda t: self.row(n, {a: 1.0, b: -i.value(t)}), lambda at: i.rate(at.t) * float(at.u[b]))
        )
        return b

    def _spring(self, a: int) -> int:
        b = self.shaft()
        c, d = self._stiffness(a, b), self.between(0.0, 0.5)
        self.part(kinds.SpringDamper(c=c, d=d), {"flange_a": a, "flange_b": b})

        def force(t: float, q: Array, u: Array, x: Array) -> dict[int, float]:
            tau = c * float(q[b] - q[a]) + d * float(u[b] - u[a])
            return {a: tau, b: -tau}

        self.forces.append(force)
        return b

    def _stiffness(self, a: int, b: int) -> float:
        """Of a shaft that swings with up to 50 rad/s."""
        Ja, Jb = self.inertias[a], self.inertias[b]
        return Ja * Jb / (Ja + Jb) * self.between(15.0, 50.0) ** 2

    def _gap(self, a: int) -> int:
        b = self.shaft()
        c, d, gap = self._stiffness(a, b), self.between(0.0, 0.5), self.between(0.02, 0.3)
        self.part(kinds.ElastoBacklash(c=c, d=d, b=gap), {"flange_a": a, "flange_b": b})
        self.add(lambda n: Gap(self.row(n, {b: 1.0, a: -1.0}), c, d, -gap / 2.0, gap / 2.0, 1.0))
        return b

    def _converter(self, a: int) -> int:
        self.u0[a] = self.u0[a] + 120.0
        b = self.shaft()
        self.u0[b] = self.between(20.0, 100.0)
        k0, k1, r, knee = (
            self.between(1e-3, 3e-3),
            self.between(8e-4, 2e-3),
            self.between(1.6, 2.4),
            self.between(0.5, 0.9),
        )
        kc, ratio = self.between(5e-4, 1.5e-3), self.between(0.7, 1.0)
        mp, mu, coast = (
            [[0.0, k0], [knee, k1], [1.0, 0.0]],
            [[0.0, r], [knee, 1.0], [1.0, 1.0]],
            [[0.0, kc], [1.0, 0.0]],
        )
        line: list[dict[str, Any]] = [{"mp": mp, "mu": mu, "coast": coast, "coast_ratio": ratio}]
        self.press({b: 1.0, a: -1.0}, {"pump": a, "turbine": b}, kinds.LockUpTC, **line[0])

        def force(t: float, q: Array, u: Array, x: Array) -> dict[int, float]:
            w_p, w_t = float(u[a]), float(u[b])
            if min(w_p, w_t) < 2.0:
                raise Unfit("a converter turns backward")
            if w_t <= w_p:
                tau_p = _at(mp, w_t / w_p) * w_p**2
                return {a: -tau_p, b: _at(mu, w_t / w_p) * tau_p}
            tau_t = -_at(coast, w_p / w_t) * w_t**2
            return {a: -ratio * tau_t, b: tau_t}

        self.forces.append(force)
        self.add(lambda n: Watch(n, lambda at: float(at.u[b] / at.u[a]), [knee, 1.0]))
        return b

    def _planetary(self, a: int) -> int:
        """Sun a, carrier the new body, ring on a brake."""
        b, ring, ratio = self.shaft(), self.shaft(), Fraction(int(self.g.integers(15, 30)), 10)
        r = float(ratio)
        self.part(kinds.IdealPlanetary(ratio=ratio), {"sun": a, "carrier": b, "ring": ring})
        self.add(lambda n: Tie(lambda t: self.row(n, {a: 1.0, ring: r, b: -(1.0 + r)})))
        self.press({ring: 1.0}, {"flange_a": ring}, kinds.LaminarBrake)
        return b

    def _rack(self, a: int) -> int:
        """A mass on a rack, another behind a gap with an exponent; goes on from the shaft."""
        ratio = Fraction(20)
        m, m2 = self.between(2.0, 10.0), self.between(1.0, 10.0)
        b, c = self.body(m, 0.0, mass=True), self.body(m2, self.between(-1.0, 1.0), mass=True)
        self.part(kinds.IdealGearR2T(ratio=ratio), {"flangeR": a, "flangeT": b})
        self.add(lambda n: Tie(lambda t: self.row(n, {a: 1.0, b: -float(ratio)})))
        n_ = float(self.g.choice([1.0, 1.5, 2.0, self.between(1.1, 3.0)]))
        stiff = m * m2 / (m + m2) * self.between(15.0, 40.0) ** 2 / n_ * 0.02 ** (1.0 - n_)
        damp, touch = self.between(0.0, 20.0), -self.between(0.0, 0.01)
        self.part(kinds.ElastoGap(c=stiff, d=damp, n=n_, s_rel0=touch), {"flange_a": b, "flange_b": c})
        self.add(lambda n: Gap(self.row(n, {c: 1.0, b: -1.0}), stiff, damp, touch, math.inf, n_))
        load = wave(-self.between(5.0, 60.0), self.between(5.0, 60.0), self.between(2.0, 5.0), self.between(0.0, 6.0))
        name = self.part(kinds.Force(), {"flange": c})
        self.give(f"{name}.f", load)
        self.forces.append(lambda t, q, u, x: {c: load.value(t)})
        return a

    def load(self, a: int) -> None:
        """A torque over time, and a brake now and then."""
        name = self.part(kinds.Torque(), {"flange": a})
        course = self.give(f"{name}.tau", self.course(-40.0, 20.0))
        self.forces.append(lambda t, q, u, x: {a: course.value(t)})
        if self.g.random() < 0.4:
            self.press({a: 1.0}, {"flange_a": a}, kinds.LaminarBrake)

    def system(self) -> System:
        """The equations, starting with what the constraints allow."""
        n = len(self.inertias)
        elements = [make(n) for make in self.parts]

        def force(t: float, q: Array, u: Array, x: Array) -> Array:
            total = np.zeros(n)
            for one in self.forces:
                for k, tau in one(t, q, u, x).items():
                    total[k] += tau
            return total

        def rates(at: At) -> list[float]:
            found = [0.0] * len(self.x0)
            for place, part in self.actuators:
                found[part.p], found[part.level] = part.rates(at.modes[place], at)
            return found

        ties = [e for e in elements if isinstance(e, Tie)]
        u0 = np.array(self.u0)
        if ties:
            at = At(0.0, np.zeros(n), u0, np.zeros(0), np.zeros(n), np.zeros(0))
            rows, given = np.array([e.along(at) for e in ties]), np.array([e.speed(at) for e in ties])
            u0 = u0 - np.linalg.pinv(rows) @ (rows @ u0 - given)
        self.u0 = u0.tolist()
        return System(
            np.diag(self.inertias), force, [0.0] * n, u0, elements, x0=self.x0, rates=rates,
            breaks=sorted(self.breaks), results=self.results,
        )  # fmt: skip


def _sized(actuator: Actuator, n: int) -> Actuator:
    actuator.row = np.zeros(n)
    return actuator


def _at(table: Sequence[Sequence[float]], x: float) -> float:
    return float(np.interp(x, [r[0] for r in table], [r[1] for r in table]))


@dataclass
class Compared:
    """A driveline, its section kinds, and the errors of its signals."""

    seed: int
    sections: list[str]
    errors: dict[str, float]
    switchings: int
    counters: dict[str, int]
    attempts: int

    @property
    def worst(self) -> tuple[float, str]:
        return max((error, name) for name, error in self.errors.items())


def made(seed: int, attempt: int = 0, knees: bool = False) -> Made:
    """The driveline of a seed."""
    m = Made(np.random.default_rng((26, seed, attempt)), knees=knees)
    g = m.g
    # each kind of section comes first in turn; the others are drawn
    first = SECTIONS[seed % len(SECTIONS)]
    others = [str(k) for k in g.permutation([k for k in SECTIONS if k != first])]
    chain = [first]
    for kind in others:
        ratio_beside_loss = {"variable", "lossy"} <= {kind, *chain} or {"variable", "rack"} <= {kind, *chain}
        if not ratio_beside_loss and len(chain) < 3:
            chain.append(kind)
    if not {"plates", "one way", "converter", "planetary"} & set(chain):
        chain.append("plates")
    a = m.drive()
    for kind in g.permutation(chain):
        a = m.section(str(kind), a)
    m.load(a)
    return m


def alone(section: str) -> Callable[[int, int, bool], Made]:
    """Makes drivelines of a torque, one section of this kind and a load."""

    def make(seed: int, attempt: int, knees: bool) -> Made:
        m = Made(np.random.default_rng((27, seed, attempt)), knees=knees)
        a = m.shaft()
        name = m.part(kinds.Torque(), {"flange": a})
        course = m.give(f"{name}.tau", m.course(-30.0, 60.0))
        m.forces.append(lambda t, q, u, x: {a: course.value(t)})
        m.load(m.section(section, a))
        return m

    return make


def reference(m: Made) -> Solution:
    """Solved; Unfit where a part is beyond what it is valid for, or where the equations leave more than one way."""
    try:
        return simulate(m.system(), T, 1e-11, 1e-12, max_step=5e-3, most=1000)
    except (AssertionError, RuntimeError) as error:
        raise Unfit(str(error)) from error


def simulation(m: Made, n: int = 1, order: int = 4) -> Simulation:
    """The same in torqueloop, starting with the speeds of the reference."""
    m.d.order = order
    for name in compile_driveline(m.d).coordinates:
        k = int(name[1:])
        m.d.set_start(f"{name}.v" if f"{name}.v" in m.results else f"{name}.w", m.u0[k])
    sim = Simulation(m.d, h=H, substeps=n, kernel="generic")
    for name, signal in m.inputs.items():
        sim.set_input(name, signal)
    return sim


def compared(
    seed: int, n: int = 1, order: int = 4, knees: bool = False, make: Callable[[int, int, bool], Made] = made
) -> Compared:
    """The driveline of a seed by both."""
    for attempt in range(20):
        m = make(seed, attempt, knees)
        try:
            solution = reference(m)
        except Unfit:
            continue
        break
    else:
        raise Unfit(f"seed {seed}: 20 drivelines in a row are no examples")
    sim = simulation(m, n, order)
    result = sim.run(T)
    # at an instant with two sides either is right
    times = [min(solution.switchings, key=lambda s: abs(s - t), default=t) for t in result.time]
    times = [s if abs(s - t) < 1e-9 else float(t) for s, t in zip(times, result.time, strict=True)]
    sides = [np.array([solution.values(t, right) for t in times]) for right in (True, False)]
    found = np.array([result[name] for name in m.results]).T
    off = np.minimum(*(np.abs(side - found) for side in sides))
    fine = np.array([solution.values(float(t)) for t in np.linspace(0.0, T, 1500)])
    span = np.ptp(fine, axis=0)
    errors = {name: float(off[:, k].max() / span[k]) for k, name in enumerate(m.results) if span[k] > 1e-9}
    return Compared(seed, m.sections, errors, len(solution.segments) - 1, dict(result.counters), attempt)


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--substeps", type=int, default=1, help="steps per tick")
    parser.add_argument("--knees", action="store_true", help="friction coefficients over the slip with a knee, some")
    given = parser.parse_args()
    worst = []
    print(f"{'seed':>4} {'error':>8}  {'signal':8} {'switchings':>10} {'fallbacks':>9}  sections")
    for seed in range(given.first, given.first + given.count):
        c = compared(seed, given.substeps, knees=given.knees)
        error, name = c.worst
        worst.append(error)
        print(
            f"{seed:4} {error:8.1e}  {name:8} {c.switchings:10} {c.counters['fallbacks']:9}  {', '.join(c.sections)}"
            f"{f' (draw {c.attempts + 1})' if c.attempts else ''}", flush=True,
        )  # fmt: skip
    print(f"{sum(e <= 1e-6 for e in worst)} of {len(worst)} within 1e-6, worst {max(worst):.1e}")


if __name__ == "__main__":
    main()
