"""Whole trajectories of the dense reference: SciPy within a mode, located events, modes decided by trying.

Within a mode the accelerations are smooth; DOP853 follows them with rtol 1e-11. Events end a mode: a slip reaches zero,
the sticking torques reach their limits (of all splits where they are not unique), a normal force appears or vanishes,
a loss changes its branch, an input jumps. At an event the slips at rest are made exactly zero by the projection that
conserves momentum, and the modes are decided anew a moment later, when what was at a limit has gone beyond it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from dense import Answer, Dense, Instant, Mode, same
from laws import BLOCKED, Array, Friction, Loss
from neutral import Backlash, Train
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

#: s: how far ahead a decision looks
MOMENT = 1e-8
#: slip that counts as zero at an event, rad/s
ZERO = 1e-8


class Ambiguous(Exception):
    """More than one continuation is consistent, or several things happen at once: not an example to compare by."""


@dataclass
class Phase:
    """A time span with constant modes."""

    begin: float
    end: float
    modes: tuple[Mode, ...]
    dense_output: Callable[[Array], Array]


@dataclass
class Trajectory:
    """w and phi over time, and the phases."""

    phases: list[Phase]
    n: int

    def __call__(self, times: Array) -> tuple[Array, Array]:
        """Speeds and angles, (samples, shafts)."""
        out = np.zeros((len(times), 2 * self.n))
        ends = np.array([p.end for p in self.phases])
        which = np.minimum(np.searchsorted(ends, times, side="left"), len(self.phases) - 1)
        for k in np.unique(which):
            mask = which == k
            out[mask] = self.phases[k].dense_output(times[mask]).T
        return out[:, : self.n], out[:, self.n :]

    def ways(self, element: int) -> list[tuple[float, int]]:
        """(time, way) of every change of one element."""
        changes: list[tuple[float, int]] = []
        for phase in self.phases:
            way = phase.modes[element].way
            if not changes or changes[-1][1] != way:
                changes.append((phase.begin, way))
        return changes


class Reference:
    """Solves a train from 0 to T."""

    def __init__(self, train: Train, rtol: float = 1e-11, atol: float = 1e-11, series: bool = False) -> None:
        """series: losses may hold each other at rest (slow: a linear program per instant); else that is Ambiguous."""
        self.train = train
        self.dense = Dense(train)
        self.series = series
        self.rtol, self.atol = rtol, atol

    def run(self, T: float, max_phases: int = 400) -> Trajectory:
        d = self.dense
        n = d.n
        y = np.r_[self.train.w0, self.train.phi0]
        w = self._stop_blocked(y[:n])
        y = np.r_[w, y[n:]]
        t = 0.0
        modes: tuple[Mode, ...] | None = None
        stops = sorted({*(s for s in self.train.steps() if 0.0 < s < T), *self.pressings(T), T})
        phases: list[Phase] = []
        rest = np.abs(d.B @ w) <= ZERO
        while t < T:
            modes, y = self.decide(t, y, rest, modes)
            if self._undetermined(modes):
                raise Ambiguous("peaks of elements whose torques are not unique")
            phase = self.follow(t, y, modes, rest, next(s for s in stops if s > t))
            phases.append(phase)
            if len(phases) > max_phases:
                raise Ambiguous("too many phases")
            t = phase.end
            y = phase.dense_output(np.array([t]))[:, 0]
            slip = d.B @ y[:n]
            rest = np.array([m.way == 0 or abs(s) <= ZERO for m, s in zip(modes, slip, strict=True)])
        return Trajectory(phases, n)

    def pressings(self, T: float) -> list[float]:
        """Times at which a normal force appears or vanishes."""
        found = []
        grid = np.linspace(0.0, T, max(3, round(T / 1e-3)))
        for law in self.dense.laws:
            if isinstance(law, Friction) and law.press is not None:
                values = [law.press(t) for t in grid]
                for t0, t1, f0, f1 in zip(grid[:-1], grid[1:], values[:-1], values[1:], strict=True):
                    if f0 * f1 < 0.0 and not any(t0 <= s <= t1 for s, _ in law.press.steps):
                        found.append(float(brentq(law.press, t0, t1, xtol=1e-15, rtol=1e-15)))
        return found

    # --- decisions --------------------------------------------------------------------------------------------
    def _project(self, w: Array, held: Array) -> Array:
        """Nearest speeds (in kinetic energy) at which the rows `held` and the gears have no speed."""
        d = self.dense
        rows = np.vstack([d.C, held])
        if not len(rows):
            return w
        n, m = d.n, len(rows)
        K = np.block([[d.J, rows.T], [rows, np.zeros((m, m))]])
        return np.asarray(np.linalg.lstsq(K, np.r_[d.J @ w, np.zeros(m)], rcond=1e-12)[0][:n])

    def _stop_blocked(self, w: Array) -> Array:
        """Impact of free wheels that start turning the blocked way."""
        d = self.dense
        for law, s in zip(d.laws, d.B @ w, strict=True):
            if isinstance(law, Friction) and (
                (law.backward == BLOCKED and s < -ZERO) or (law.forward == BLOCKED and s > ZERO)
            ):
                raise Ambiguous("starts with an impact")
        return w

    def decide(
        self, t: float, y: Array, rest: Array, before: tuple[Mode, ...] | None
    ) -> tuple[tuple[Mode, ...], Array]:
        """Modes from here on, and the state with the slips at rest made zero."""
        d = self.dense
        n = d.n
        if rest.any():
            y = np.r_[self._project(y[:n], d.B[rest]), y[n:]]
        now = self._ahead(t, y, rest, before)
        answer = self._first(now, before)
        return answer.modes, y

    def _ahead(self, t: float, y: Array, rest: Array, before: tuple[Mode, ...] | None) -> Instant:
        d = self.dense
        n = d.n
        w, phi = y[:n], y[n:]
        a = np.zeros(n)
        if before is not None:
            a = d.solve(d.instant(t, w, phi, list(rest)), before).a
        later = d.instant(t + MOMENT, w + MOMENT * a, phi + MOMENT * w, list(rest))
        slip = d.B @ w
        return Instant(later.t, later.w, later.phi, later.f, np.where(rest, 0.0, slip), list(rest))

    def _first(self, now: Instant, before: tuple[Mode, ...] | None) -> Answer:
        d = self.dense
        convex = not any(isinstance(law, Loss) or law.peak != 1.0 or law.hold > 0.0 for law in d.laws)
        if convex:
            answer = d.boxed(now)
            if d.faults(now, answer, tol=1e-10):
                raise Ambiguous(str(d.faults(now, answer, tol=1e-10)))
            return answer
        found: list[Answer] = []
        count = 1
        for i in range(len(d.laws)):
            count *= len(d.choices(now, i))
        if count > 1000:
            raise Ambiguous("too many combinations")
        for answer in d.every_answer(now, tol=1e-10):
            if not any(same(answer.a, other.a) for other in found):
                found.append(answer)
        if not found:
            raise AssertionError(f"no consistent modes at t = {now.t}")
        if len(found) > 1 and before is not None:
            # what can stick within its own limits does
            can = [r and Mode(0) in d.choices(now, i) for i, r in enumerate(now.rest)]
            held = d.solve(now, [Mode(0) if c else m for c, m in zip(can, self._moving(now, before), strict=True)])
            kept = [i for i, c in enumerate(can) if c and not self._beyond(now, held, i)]
            found = [f for f in found if all(f.modes[i].way == 0 for i in kept)] or found
        if len(found) > 1:
            counts = [sum(m.way == 0 for m in f.modes) for f in found]
            most = [f for f, c in zip(found, counts, strict=True) if c == max(counts)]
            if len(most) > 1 or before is not None:
                raise Ambiguous(f"{len(found)} consistent sets of modes at t = {now.t}")
            found = most
        return found[0]

    def _moving(self, now: Instant, before: Sequence[Mode]) -> list[Mode]:
        """Modes as they were, where they are still possible."""
        choices = [self.dense.choices(now, i) for i in range(len(before))]
        return [m if m in c else c[0] for m, c in zip(before, choices, strict=True)]

    def _beyond(self, now: Instant, answer: Answer, i: int) -> bool:
        """Does this sticking element go beyond its limits?"""
        lo, hi = self.dense.bounds(now, i, answer)
        return bool(not lo <= answer.tau[i] <= hi)

    def _undetermined(self, modes: Sequence[Mode]) -> bool:
        """Torques that are not unique, of elements that would slide with less than they hold, or of losses."""
        laws = [law for law, m in zip(self.dense.laws, modes, strict=True) if m.way == 0]
        peaked = any(not self.series if isinstance(law, Loss) else law.peak > 1.001 for law in laws)
        return peaked and self.dense.redundant(modes)

    # --- one phase --------------------------------------------------------------------------------------------
    def follow(self, t0: float, y0: Array, modes: tuple[Mode, ...], rest: Array, end: float) -> Phase:
        """Integrate with these modes until something happens."""
        d = self.dense
        n = d.n
        resting = [m.way == 0 for m in modes]
        w0, phi0 = y0[:n], y0[n:]
        regimes = d.regimes(w0 + MOMENT * d.solve(d.instant(t0, w0, phi0, resting), modes).a, phi0 + MOMENT * w0)

        def at(t: float, y: Array) -> tuple[Instant, Answer]:
            w, phi = y[:n], y[n:]
            slip = d.B @ w
            slip = np.array([0.0 if m.way == 0 else (m.way * max(m.way * s, 0.0) if m.way in (1, -1) else s)
                             for m, s in zip(modes, slip, strict=True)])  # fmt: skip
            after = t < end
            now = Instant(t, w, phi, d.forces(t, w, phi, after, regimes), slip, resting)
            return now, d.solve(now, modes)

        def rhs(t: float, y: Array) -> Array:
            return np.r_[at(t, y)[1].a, y[:n]]

        events: list[Callable[[float, Array], float]] = []

        def add(function: Callable[[float, Array], float]) -> None:
            function.terminal, function.direction = True, -1.0  # type: ignore[attr-defined]
            events.append(function)

        for i, (law, mode) in enumerate(zip(d.laws, modes, strict=True)):
            if mode.way in (-1, 1):
                add(lambda t, y, i=i, way=mode.way: way * float(d.B[i] @ y[:n]))
            if isinstance(law, Loss) and mode.way in (-1, 1):
                add(lambda t, y, i=i, law=law, mode=mode: self._ahead_of(i, law, mode, *at(t, y)))
        for e, r, regime in zip(d.gaps, d.G, regimes, strict=True):
            for border in self._borders(e, r, regime):
                add(border)
        if any(resting):
            add(lambda t, y: d.margin(*at(t, y)))
        solution = solve_ivp(
            rhs, (t0, end), y0, "DOP853", rtol=self.rtol, atol=self.atol, max_step=3e-3, events=events or None,
            dense_output=True, first_step=min(1e-4, 0.5 * (end - t0)),
        )  # fmt: skip
        if solution.status < 0:
            raise AssertionError(solution.message)
        return Phase(t0, float(solution.t[-1]), modes, solution.sol)

    def _borders(self, e: Backlash, r: Array, regime: int) -> list[Callable[[float, Array], float]]:
        """What is positive as long as a clearance stays in its regime."""
        n = self.dense.n

        def parts(y: Array, side: int) -> tuple[float, float]:
            return e.c * (side * float(r @ y[n:]) - 0.5 * e.gap), e.d * side * float(r @ y[:n])

        if regime == 0:
            return [lambda t, y: -parts(y, 1)[0], lambda t, y: -parts(y, -1)[0]]
        side = 1 if regime > 0 else -1
        inside = [lambda t, y: parts(y, side)[0]]
        if abs(regime) == 3:
            return [*inside, lambda t, y: -sum(parts(y, side))]
        if abs(regime) == 2:
            return [*inside, lambda t, y: parts(y, side)[1] - parts(y, side)[0]]
        return [*inside, lambda t, y: sum(parts(y, side)), lambda t, y: parts(y, side)[0] - parts(y, side)[1]]

    def _ahead_of(self, i: int, law: Loss, mode: Mode, now: Instant, answer: Answer) -> float:
        r = self.dense.reaction(law, i, answer)
        (ka, ca), (kb, cb) = law.lines(now.slip[i], mode.way)
        ahead = mode.way * ((ka * r + ca) - (kb * r + cb))
        return ahead if mode.branch == 0 else -ahead


def tube_error(reference: Trajectory, times: Array, w: Array, shift: float = 1e-5) -> Array:
    """Largest distance of each speed from the reference within +-shift in time, relative to the speed's range."""
    end = reference.phases[-1].end
    samples = [reference(np.clip(times + s, 0.0, end))[0] for s in (-shift, 0.0, shift)]
    low, high = np.min(samples, axis=0), np.max(samples, axis=0)
    outside = np.maximum(0.0, np.maximum(low - w, w - high))
    reach = np.ptp(reference(np.linspace(0.0, end, 2000))[0], axis=0)
    return np.asarray(outside.max(axis=0) / (reach + 1e-6))
