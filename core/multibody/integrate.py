"""The coupled system over time: Runge-Kutta of order 4, each step followed by a projection onto its rows.

Four stages, each with its own system of equations (coupled.py); quaternions coefficient by coefficient. Then lengths of
quaternions, places and speeds of the rows are corrected along M^-1 A^T (Hairer, Lubich, Wanner, *Geometric Numerical
Integration*, IV.4: a projection keeps the order). What the rows had drifted by in one step before that is a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import InitialValueError, RangeError, TorqueloopError
from torqueloop.core.multibody.carried import at
from torqueloop.core.multibody.coupled import Coupled, Solution, State
from torqueloop.core.multibody.friction import STUCK
from torqueloop.core.multibody.tree import Floats
from torqueloop.cython_kernels.locks.boxed_problem import boxed

#: speeds of rows at the start, of the largest speed
AT_START = 1e-9
#: a slip below this, of the largest speed, is none
NO_SLIP = 1e-9
#: what a force may be beyond its limit, relative
FITS = 1e-9
#: of the terms of a rate of slip: its rounding
RATE_ROUNDING = 1e-11
#: to find the end of a mode in a step; cuts in one step
HALVINGS, MOST_CUTS = 46, 60
#: of q, v, z, u and the energy balance
Rates = tuple[Any, Any, Any, Any, Any]
NODES, WEIGHTS = (0.0, 0.5, 0.5, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One row per step and the start; times s, all else in SI."""

    t: Floats
    q: Floats
    v: Floats
    z: Floats
    u: Floats
    #: (steps + 1, rows) multipliers, in the order of `Coupled.row_names`
    multipliers: Floats
    #: (steps + 1, bodies, 6) force and moment of every joint, see `Coupled.wrenches`
    wrenches: Floats
    energy: Floats
    #: J since the start: of the sources of torque, and lost in dampers
    work: Floats
    loss: Floats
    #: (steps + 1, 6), see `Coupled.momentum`
    momentum: Floats
    #: largest drift of a step before its projection: places (rad, m), speeds (rad/s, m/s); and what is left after it
    drift: tuple[float, float]
    residual: tuple[float, float]
    #: (steps + 1, elements) of every friction element, in the order of `Coupled.friction_names`: 0 stuck, 1 and -1
    #: sliding forward and backward; force along its row
    modes: Floats
    frictions: Floats
    #: accelerations of joints and shafts
    dv: Floats
    du: Floats
    #: (steps + 1, shafts with joints): angle of their zero references; torque and twist
    turned: Floats
    shaft_torques: Floats
    twists: Floats

    @property
    def books(self) -> float:
        """Largest of |energy - work + loss - energy at the start|, J."""
        return float(np.abs(self.energy - self.work + self.loss - self.energy[0]).max())


def integrate(
    system: Coupled, end: float, step: float, *, q: Mapping[str, float] | Floats | None = None,
    speeds: Mapping[str, float] | None = None, v: Floats | None = None, u: Floats | None = None,
) -> Trajectory:  # fmt: skip
    """From t = 0 to `end` in steps of `step` (s), angles of drivelines starting at their z0.

    q: the library's vector, or angles of joints by name; speeds: of joints by name; v, u: or all of them.
    InitialValueError: speeds that a row forbids. OverconstrainedError: rows that follow from each other.
    """
    if not (step > 0 and end >= step):
        raise RangeError("{key} = {value}", table="integrate", key="step", value=step, allowed=f"0 < step <= {end}")
    s = _start(system, q, speeds, v, u)
    system.check_rows(s)
    _check_speeds(system, s)
    run = _Run(system, s)
    for k in range(round(end / step)):
        run.advance(k * step, step)
    return run.result(step)


class Stepper:
    """Integrates step by step, for a participant that receives its inputs one after the other: state and last
    solution."""

    def __init__(self, system: Coupled, **start: Any) -> None:
        """start: q, speeds, v, u as of `integrate`."""
        s = _start(system, *(start.get(key) for key in ("q", "speeds", "v", "u")))
        system.check_rows(s)
        _check_speeds(system, s)
        self._run = _Run(system, s)

    @property
    def state(self) -> State:
        """Where it is."""
        return self._run.state

    @property
    def modes(self) -> tuple[int, ...]:
        """Of the friction elements."""
        return self._run.modes

    def advance(self, t: float, h: float, n: int = 1) -> None:
        """From t to t + h in n steps."""
        for k in range(n):
            self._run.to(t + k * h / n, t + (k + 1) * h / n)

    def solution(self, t: float) -> Solution:
        """Accelerations and forces at t, where it is."""
        self._run.decide(t)
        return self._run.system.solve(t, self._run.state, False, self._run.modes)

    def save(self) -> dict[str, Any]:
        """Everything that changes."""
        s, run = self._run.state, self._run
        parts = {key: getattr(s, key).tolist() for key in ("q", "v", "z", "u", "turned")}
        return {**parts, "modes": list(run.modes), "kept": run.kept.tolist()}

    def load(self, data: Mapping[str, Any]) -> None:
        """Inverse of save; KeyError, TypeError or ValueError for another system's."""
        old, run = self._run.state, self._run
        parts = {key: np.array(data[key], float) for key in ("q", "v", "z", "u", "turned")}
        if any(value.shape != getattr(old, key).shape for key, value in parts.items()):
            raise ValueError("a state of another tree")
        run.state, run.modes, run.kept = State(**parts), tuple(map(int, data["modes"])), np.array(data["kept"], float)


def _start(
    system: Coupled, q: Mapping[str, float] | Floats | None, speeds: Mapping[str, float] | None, v: Floats | None,
    u: Floats | None,
) -> State:  # fmt: skip
    built = system.built
    place = np.array(built.pin.neutral(built.model)) if q is None or isinstance(q, Mapping) else np.array(q, float)
    if isinstance(q, Mapping):
        for name, angle in q.items():
            built.coordinate(name, "q")
            place[built.model.joints[built.index(name, "q")].idx_q] = angle
    velocity = np.zeros(system.nv) if v is None else np.array(v, float)
    for name, speed in (speeds or {}).items():
        velocity[built.coordinate(name, "speeds")] = speed
    z = np.concatenate([np.zeros(0), *(c.model.arrays.z0 for c in system.carried)])
    given = np.concatenate([np.zeros(0), *(c.model.arrays.u0 for c in system.carried)])
    spin = given if u is None else np.array(u, float)
    for key, value, size in (("q", place, built.model.nq), ("v", velocity, system.nv), ("u", spin, system.nu)):
        if value.shape != (size,):
            raise RangeError("{key} has {value} entries", table="integrate", key=key, value=value.size,
                             allowed=str(size))  # fmt: skip
    if not built.pin.isNormalized(built.model, place, 1e-9):
        raise RangeError("{key} = {value} has a quaternion whose length is not 1", table="integrate", key="q",
                         value=place.tolist())  # fmt: skip
    start = State(place, velocity, z, spin, np.zeros(len(system.shafts)))
    return replace(start, turned=system.turned(start))


def _check_speeds(system: Coupled, s: State) -> None:
    _, _, matrix, _ = system.equations(0.0, s)
    speeds = np.concatenate([s.v, s.u])
    for name, value in zip(system.row_names, matrix @ speeds, strict=True):
        if abs(value) > AT_START * max(1.0, float(np.abs(speeds).max())):
            raise InitialValueError(f"row {name!r}: its speeds at the start add up to {value:.6g} instead of 0")


class _Run:
    """A state under way, and what is recorded of it."""

    def __init__(self, system: Coupled, start: State) -> None:
        self.system, self.state, self.q0 = system, start, start.q
        moments = [signal for moment in system.moments.values() for signal in moment]
        self.signals = [*system.torques.values(), *moments, *(i for c in system.carried for i in c.inputs.values())]
        self.kept = system.places(start.q, start.z, self.q0)
        self.books = np.zeros(2)
        self.drift = np.zeros(2)
        self.residual = np.zeros(2)
        self.modes = tuple(int(np.sign(slip)) for slip in system.slips(start))
        self.states = [start]
        self.work = [self.books]
        self.solutions: list[Solution] = []
        self.mode_log: list[tuple[int, ...]] = []

    def advance(self, t: float, h: float) -> None:
        self.decide(t)
        self.keep(t)
        self.to(t, t + h)
        self.states.append(self.state)
        self.work.append(self.books)

    def keep(self, t: float) -> None:
        self.solutions.append(self.system.solve(t, self.state, False, self.modes))
        self.mode_log.append(self.modes)

    def to(self, t: float, end: float) -> None:
        """Up to `end`, with stops where a torque jumps, a slip ends or a force leaves its limits."""
        inside = {time for signal in self.signals for time in signal.event_times(t, end)}
        for stop in [*sorted(inside), end]:
            for _ in range(MOST_CUTS):
                self.decide(t)
                reached = self._step(t, stop - t)
                t = stop if reached is None else t + reached
                if reached is None:
                    break
            else:
                raise TorqueloopError(f"friction changes its mode more than {MOST_CUTS} times until t = {stop:g} s: "
                                      "the step is too long, or the elements against each other")  # fmt: skip

    def decide(self, t: float) -> None:
        """Modes of all friction elements without slip, from t on."""
        system = self.system
        if not system.friction_names:
            return
        speeds = np.concatenate([self.state.v, self.state.u])
        none = NO_SLIP * max(1.0, float(np.abs(speeds).max()))
        slips = system.slips(self.state)
        resting = [k for k, slip in enumerate(slips) if abs(slip) <= none]
        modes = [STUCK if k in resting else int(np.sign(slip)) for k, slip in enumerate(slips)]
        free, response = system.responses(t, self.state, modes, resting)
        limits, slides = system.limits(t)[resting], system.limits(t, slides=True)[resting]
        let_go = np.zeros(len(resting), dtype=bool)
        while True:
            forces, sides = boxed(response, free, -limits[:, 0], limits[:, 1])
            # at its limit, and moved by the others
            rates, size = free + response @ forces, np.abs(free) + np.abs(response) @ np.abs(forces)
            moves = (sides != 0) & (np.abs(rates) > RATE_ROUNDING * size)
            if not (moves & ~let_go).any():
                break
            # from here on it bears what it bears sliding, and may carry others with it
            let_go |= moves
            limits[let_go] = slides[let_go]
        for k, side, goes in zip(resting, sides, moves, strict=True):
            modes[k] = -int(side) if goes else STUCK
        self.modes = tuple(modes)
        if any(slips[k] != 0.0 for k, mode in enumerate(modes) if mode == STUCK):
            self.state = self._projected(self.state)

    def _excess(self, t: float, s: State) -> float:
        """Above 0: at the end of a step a slip goes the other way by so much, or a force at rest leaves its limits."""
        if not self.modes:
            return -np.inf
        slips, worst = self.system.slips(s), -np.inf
        for k, mode in enumerate(self.modes):
            if mode != STUCK:
                worst = max(worst, -mode * slips[k])
        if STUCK in self.modes:
            found, limits = self.system.solve(t, s, True, self.modes), self.system.limits(t, True)
            for k, mode in enumerate(self.modes):
                if mode == STUCK:
                    force, (forward, backward) = found.frictions[k], limits[k]
                    worst = max(worst, force - backward * (1 + 2 * FITS), -force - forward * (1 + 2 * FITS))
        return float(worst)

    def _step(self, t: float, h: float) -> float | None:
        """One step of length h, or up to where modes end in it: how far that was; None: all of it."""
        if h <= 0.0:
            return None
        s, books = self._tried(t, h)
        if self._excess(t + h, s) <= 0.0:
            self._take(s, books)
            return None
        low, high = 0.0, h
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            s, books = self._tried(t, middle)
            low, high = (low, middle) if self._excess(t + middle, s) > 0.0 else (middle, high)
        self._take(*self._tried(t, high))
        return high

    def _take(self, s: State, books: Floats) -> None:
        self.state, self.books = replace(s, turned=self.system.turned(s)), books

    def _tried(self, t: float, h: float) -> tuple[State, Floats]:
        s = self.state
        rates: list[Rates] = []
        for node in NODES:
            stage = s if not rates else self._moved(s, node * h, rates[-1])
            last = node == 1.0
            found = self.system.solve(t + node * h, stage, last, self.modes)
            rates.append((self.system.built.rates(stage.q, stage.v), found.a, stage.u, found.du,
                          self._powers(t + node * h, stage, last, found)))  # fmt: skip
        q, v, z, u, books = (sum(w * r[i] for w, r in zip(WEIGHTS, rates, strict=True)) for i in range(5))
        return self._projected(self._moved(s, h, (q, v, z, u, books))), self.books + h * books

    def _moved(self, s: State, h: float, rate: Rates) -> State:
        q = self.system.built.pin.normalize(self.system.built.model, s.q + h * rate[0])
        return State(q, s.v + h * rate[1], s.z + h * rate[2], s.u + h * rate[3], s.turned)

    def _powers(self, t: float, s: State, before: bool, found: Solution) -> Floats:
        system = self.system
        outside = sum(at(signal, t, before) * s.v[k] for k, signal in system.torques.items())
        for joint, moment in system.moments.items():
            outside += np.array([at(x, t, before) for x in moment]) @ system.turning(s, joint)
        parts = [c.powers(t, s.u[system.part(k)], before) for k, c in enumerate(system.carried)]
        rubbed = -float(found.frictions @ system.slips(s))
        bent = sum(g.shaft.d * rate**2 for g, (_, rate) in zip(system.shafts, system.shaft_torques(s), strict=True))
        return np.array([outside + sum(p for p, _ in parts), sum(loss for _, loss in parts) + rubbed + bent])

    def _projected(self, s: State) -> State:
        system, nv = self.system, self.system.nv
        if not system.row_names:
            return self._stopped(s, system.equations(0.0, s)[0]) if STUCK in self.modes else s
        off = system.places(s.q, s.z, self.q0) - self.kept
        before = float(np.abs(off).max())
        for _ in range(3):
            if np.abs(off).max() < 1e-15:
                break
            mass, _, matrix, _ = system.equations(0.0, s)
            move = _correction(mass, matrix, off)
            place = system.built.pin.integrate(system.built.model, s.q, -move[:nv])
            s = replace(s, q=place, z=s.z - move[nv:])
            off = system.places(s.q, s.z, self.q0) - self.kept
        mass, _, matrix, _ = system.equations(0.0, s)
        speeds = np.concatenate([s.v, s.u])
        move = _correction(mass, matrix, matrix @ speeds)
        self.drift = np.maximum(self.drift, [before, float(np.abs(matrix @ speeds).max())])
        self.residual = np.maximum(self.residual, [np.abs(off).max(), np.abs(matrix @ (speeds - move)).max()])
        return self._stopped(State(s.q, s.v - move[:nv], s.z, s.u - move[nv:], s.turned), mass)

    def _stopped(self, s: State, mass: Floats) -> State:
        """Speeds without the slips of what sticks, and of the rows."""
        system, nv = self.system, self.system.nv
        stuck = [k for k, mode in enumerate(self.modes) if mode == STUCK]
        if not stuck:
            return s
        matrix = np.vstack([system.equations(0.0, s)[2], system.friction_rows[stuck]])
        move = _correction(mass, matrix, matrix @ np.concatenate([s.v, s.u]))
        return State(s.q, s.v - move[:nv], s.z, s.u - move[nv:], s.turned)

    def result(self, h: float) -> Trajectory:
        system, states = self.system, self.states
        t = h * np.arange(len(states), dtype=np.float64)
        self.decide(float(t[-1]))
        self.keep(float(t[-1]))
        work = np.array(self.work)
        return Trajectory(
            t=t, q=np.array([s.q for s in states]), v=np.array([s.v for s in states]),
            z=np.array([s.z for s in states]), u=np.array([s.u for s in states]),
            multipliers=np.array([f.multipliers for f in self.solutions]),
            wrenches=np.array([system.wrenches(*each) for each in zip(states, self.solutions, t, strict=True)]),
            energy=np.array([system.energy(s) for s in states]), work=work[:, 0], loss=work[:, 1],
            momentum=np.array([system.momentum(s) for s in states]),
            drift=(float(self.drift[0]), float(self.drift[1])),
            residual=(float(self.residual[0]), float(self.residual[1])),
            modes=np.array(self.mode_log, float).reshape(len(t), -1),
            frictions=np.array([f.frictions for f in self.solutions]),
            dv=np.array([f.a for f in self.solutions]), du=np.array([f.du for f in self.solutions]),
            turned=np.array([s.turned for s in states]),
            shaft_torques=np.array([[tau for tau, _ in system.shaft_torques(s)] for s in states]),
            twists=np.array([system.shaft_twists(s) for s in states]),
        )  # fmt: skip


def _correction(mass: Floats, matrix: Floats, off: Floats) -> Floats:
    """M^-1 A^T (A M^-1 A^T)^+ off."""
    spread = np.linalg.solve(mass, matrix.T)
    return np.asarray(spread @ np.linalg.lstsq(matrix @ spread, off, rcond=None)[0])
