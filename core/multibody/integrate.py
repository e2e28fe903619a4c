"""The coupled system over time: Runge-Kutta of order 4, each step followed by a projection onto its rows.

Four stages, each with its own system of equations (coupled.py); quaternions coefficient by coefficient. Then lengths of
quaternions, places and speeds of the rows are corrected along M^-1 A^T (Hairer, Lubich, Wanner, *Geometric Numerical
Integration*, IV.4: a projection keeps the order). What the rows had drifted by in one step before that is a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from torqueloop.core.describe.errors import InitialValueError, RangeError
from torqueloop.core.multibody.carried import at
from torqueloop.core.multibody.coupled import Coupled, Solution, State
from torqueloop.core.multibody.tree import Floats

#: speeds of rows at the start, of the largest speed
AT_START = 1e-9
#: of q, v, z, u and the books
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
    return State(place, velocity, z, spin)


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
        self.signals = [*system.torques.values(), *(i for c in system.carried for i in c.inputs.values())]
        self.kept = system.places(start.q, start.z, self.q0)
        self.books = np.zeros(2)
        self.drift = np.zeros(2)
        self.residual = np.zeros(2)
        self.states = [start]
        self.work = [self.books]
        self.solutions: list[Solution] = []

    def advance(self, t: float, h: float) -> None:
        self.solutions.append(self.system.solve(t, self.state))
        inside = {time for signal in self.signals for time in signal.event_times(t, t + h)}
        for end in [*sorted(inside), t + h]:
            self._step(t, end - t)
            t = end
        self.states.append(self.state)
        self.work.append(self.books)

    def _step(self, t: float, h: float) -> None:
        s = self.state
        rates: list[Rates] = []
        for node in NODES:
            stage = s if not rates else self._moved(s, node * h, rates[-1])
            last = node == 1.0
            found = self.system.solve(t + node * h, stage, last)
            rates.append((self.system.built.rates(stage.q, stage.v), found.a, stage.u, found.du,
                          self._powers(t + node * h, stage, last)))  # fmt: skip
        q, v, z, u, books = (sum(w * r[i] for w, r in zip(WEIGHTS, rates, strict=True)) for i in range(5))
        self.books = self.books + h * books
        self.state = self._projected(self._moved(s, h, (q, v, z, u, books)))

    def _moved(self, s: State, h: float, rate: Rates) -> State:
        q = self.system.built.pin.normalize(self.system.built.model, s.q + h * rate[0])
        return State(q, s.v + h * rate[1], s.z + h * rate[2], s.u + h * rate[3])

    def _powers(self, t: float, s: State, before: bool) -> Floats:
        joints = sum(at(signal, t, before) * s.v[k] for k, signal in self.system.torques.items())
        parts = [c.powers(t, s.u[self.system.part(k)], before) for k, c in enumerate(self.system.carried)]
        return np.array([joints + sum(p for p, _ in parts), sum(loss for _, loss in parts)])

    def _projected(self, s: State) -> State:
        system, nv = self.system, self.system.nv
        if not system.row_names:
            return s
        off = system.places(s.q, s.z, self.q0) - self.kept
        before = float(np.abs(off).max())
        for _ in range(3):
            if np.abs(off).max() < 1e-15:
                break
            mass, _, matrix, _ = system.equations(0.0, s)
            move = _correction(mass, matrix, off)
            s = State(system.built.pin.integrate(system.built.model, s.q, -move[:nv]), s.v, s.z - move[nv:], s.u)
            off = system.places(s.q, s.z, self.q0) - self.kept
        mass, _, matrix, _ = system.equations(0.0, s)
        speeds = np.concatenate([s.v, s.u])
        move = _correction(mass, matrix, matrix @ speeds)
        self.drift = np.maximum(self.drift, [before, float(np.abs(matrix @ speeds).max())])
        self.residual = np.maximum(self.residual, [np.abs(off).max(), np.abs(matrix @ (speeds - move)).max()])
        return State(s.q, s.v - move[:nv], s.z, s.u - move[nv:])

    def result(self, h: float) -> Trajectory:
        system, states = self.system, self.states
        t = h * np.arange(len(states), dtype=np.float64)
        self.solutions.append(system.solve(float(t[-1]), self.state))
        work = np.array(self.work)
        return Trajectory(
            t=t, q=np.array([s.q for s in states]), v=np.array([s.v for s in states]),
            z=np.array([s.z for s in states]), u=np.array([s.u for s in states]),
            multipliers=np.array([f.multipliers for f in self.solutions]),
            wrenches=np.array([system.wrenches(s, f) for s, f in zip(states, self.solutions, strict=True)]),
            energy=np.array([system.energy(s) for s in states]), work=work[:, 0], loss=work[:, 1],
            momentum=np.array([system.momentum(s) for s in states]),
            drift=(float(self.drift[0]), float(self.drift[1])),
            residual=(float(self.residual[0]), float(self.residual[1])),
        )  # fmt: skip


def _correction(mass: Floats, matrix: Floats, off: Floats) -> Floats:
    """M^-1 A^T (A M^-1 A^T)^-1 off."""
    spread = np.linalg.solve(mass, matrix.T)
    return np.asarray(spread @ np.linalg.solve(matrix @ spread, off))
