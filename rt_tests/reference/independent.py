"""Drivelines solved independently of torqueloop: numpy and scipy only, every switching located as a root.

A System is written by hand in minimal coordinates: M*a = force(t, q, u, x) + sum of row^T*F over its elements. Each
element has modes; a mode gives one linear equation for its force F (or its acceleration) and indicators that are >= 0
while it holds. Between switchings the mode is kept and scipy.integrate.solve_ivp integrates; an indicator that falls
through 0 ends the segment. The next modes are found by trying every combination: the one whose indicators are all
positive a moment later is taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

Array = np.ndarray
#: a combination of modes is tried this much later, s
LATER = 1e-8
#: branches of a lossy gear that differ by less are the same, Nm
BRANCH = 1e-10
#: the only mode of a constraint
TIED = "T"
#: speeds below this are at rest when a mode is chosen, rad/s
REST = 1e-9


@dataclass
class At:
    """Everything known at one instant: time, angles, speeds, extra states, accelerations, forces of the elements."""

    t: float
    q: Array
    u: Array
    x: Array
    a: Array
    F: Array
    #: modes of the elements, where they are known
    modes: Sequence[str] = ()


class Element:
    """A force F along a row (w = row.u); subclasses give modes."""

    row: Array
    #: can hold at rest what slides in the modes F and B
    can_hold = False

    def along(self, at: At) -> Array:
        """The row at this instant."""
        return self.row

    def speed(self, at: At) -> float:
        """Speed along the row while it is locked."""
        return 0.0

    def others(self, mode: str, at: At) -> Array | None:
        """Coefficients of the forces of all elements in the equation, beside p; None: none."""
        return None

    def modes(self, at: At) -> Sequence[str]:
        """Modes that are possible at this instant."""
        raise NotImplementedError

    def equation(self, mode: str, at: At) -> tuple[float, float, Array | None, float]:
        """(p, s, r, k): p*F + s*(row.a) + r.a = k."""
        raise NotImplementedError

    def indicators(self, mode: str, at: At, F: float) -> list[float]:
        """All >= 0 while the mode holds; always equally many for a mode."""
        raise NotImplementedError

    def number(self, mode: str) -> float:
        """The mode as a number of the Modelica library."""
        return {"F": 1.0, "B": -1.0, "N": 2.0}.get(mode[0], 0.0)


class Friction(Element):
    """Sliding force slide(t, |w|) against w; stuck up to hold(t). `one_way`: w < 0 is blocked by any force."""

    def __init__(
        self, row: Sequence[float], slide: Callable[[float, float], float], hold: Callable[[float], float],
        one_way: bool = False,
    ) -> None:  # fmt: skip
        self.row = np.array(row, dtype=float)
        self.slide, self.hold, self.one_way = slide, hold, one_way

    def modes(self, at: At) -> Sequence[str]:
        w = float(self.row @ at.u)
        if not self.one_way and self.hold(at.t + LATER) <= 0.0:
            return "N"
        if w > REST:
            return "F"
        if w < -REST and not self.one_way:
            return "B"
        return "SF" if self.one_way else "SFB"

    def equation(self, mode: str, at: At) -> tuple[float, float, Array | None, float]:
        if mode == "S":
            return 0.0, 1.0, None, 0.0
        w = abs(float(self.row @ at.u))
        force = {"N": 0.0, "F": -1.0, "B": 1.0}[mode] * self.slide(at.t, w)
        return 1.0, 0.0, None, force

    def indicators(self, mode: str, at: At, F: float) -> list[float]:
        w = float(self.row @ at.u)
        if mode == "N":
            return [1e-12 - self.hold(at.t)]
        pressed = [] if self.one_way else [self.hold(at.t)]
        if mode == "S":
            return [self.hold(at.t) + F, *([] if self.one_way else [self.hold(at.t) - F]), *pressed]
        return [w if mode == "F" else -w, *pressed]


class Loss(Element):
    """A lossy gear at its row w_a: loss = max(kA*r + cA, kB*r + cB) for w > 0, min(kA*r - cA, kB*r - cB) for w < 0.

    r = r0(t, q, u, x) + rA.a is the torque the drive exerts on the gear; coefficients are functions of |w|.
    """

    def __init__(
        self, row: Sequence[float], r0: Callable[[float, Array, Array, Array], float], rA: Sequence[float],
        table: Sequence[Sequence[float]],
    ) -> None:  # fmt: skip
        self.row, self.rA, self.r0 = np.array(row, dtype=float), np.array(rA, dtype=float), r0
        self.table = np.array(table, dtype=float)

    def reaction(self, at: At, F: float) -> float:
        """The torque the drive exerts on the gear."""
        return self.r0(at.t, at.q, at.u, at.x) + float(self.rA @ at.a)

    def coefficients(self, w: float) -> tuple[float, float, float, float]:
        eta1, eta2, t1, t2 = (_line(self.table[:, 0], self.table[:, k], w) for k in (1, 2, 3, 4))
        return 1.0 - eta1, 1.0 - 1.0 / eta2, abs(t1), abs(t2)

    def branches(self, mode: str, at: At) -> tuple[float, float, float, float]:
        """k and c of the branch of a sliding mode, and of the other branch (sign of c with the sense)."""
        kA, kB, cA, cB = self.coefficients(abs(float(self.row @ at.u)))
        sense = 1.0 if mode[0] == "F" else -1.0
        own, other = ((kA, cA), (kB, cB)) if mode[1] == "A" else ((kB, cB), (kA, cA))
        return own[0], sense * own[1], other[0], sense * other[1]

    def modes(self, at: At) -> Sequence[str]:
        w = float(self.row @ at.u)
        if w > REST:
            return ("FA", "FB")
        if w < -REST:
            return ("BA", "BB")
        return ("S", "FA", "FB", "BA", "BB")

    def equation(self, mode: str, at: At) -> tuple[float, float, Array | None, float]:
        if mode == "S":
            return 0.0, 1.0, None, 0.0
        k, c, _, _ = self.branches(mode, at)
        return 1.0, 0.0, k * self.rA, -k * self.r0(at.t, at.q, at.u, at.x) - c

    def indicators(self, mode: str, at: At, F: float) -> list[float]:
        r = self.reaction(at, F)
        if mode == "S":
            kA, kB, cA, cB = self.coefficients(0.0)
            return [max(kA * r + cA, kB * r + cB) + F, -F - min(kA * r - cA, kB * r - cB)]
        k, c, k2, c2 = self.branches(mode, at)
        sense = 1.0 if mode[0] == "F" else -1.0
        # where both branches agree either will do
        return [sense * float(self.row @ at.u), sense * ((k * r + c) - (k2 * r + c2)) + BRANCH]


class Contact(Element):
    """Spring-damper beyond lo..hi; kind 0: tc + min(tc, td), kind 1: tc + td, none when tc + td <= 0."""

    def __init__(
        self, row: Sequence[float], c: float, d: float, lo: float, hi: float, kind: int = 0, shift: float = 0.0
    ) -> None:
        self.row, self.c, self.d, self.kind = np.array(row, dtype=float), c, d, kind
        self.lo, self.hi, self.shift = lo, hi, shift

    def _torques(self, at: At, side: float) -> tuple[float, float, float]:
        """Depth, spring and damper torque on one side, + outwards."""
        x, w = float(self.row @ at.q) + self.shift, float(self.row @ at.u)
        depth = x - self.hi if side > 0 else self.lo - x
        return depth, self.c * depth, self.d * side * w

    def modes(self, at: At) -> Sequence[str]:
        return ("O", *(f"{s}{k}" for s in "HL" for k in ("1", "0", *("2" if self.kind == 0 else ""))))

    def equation(self, mode: str, at: At) -> tuple[float, float, Array | None, float]:
        side = 1.0 if mode[0] == "H" else -1.0
        _, tc, td = self._torques(at, side)
        size = {"O": 0.0, "0": 0.0, "1": tc + td, "2": 2.0 * tc}[mode[-1]]
        return 1.0, 0.0, None, -side * size

    def indicators(self, mode: str, at: At, F: float) -> list[float]:
        if mode == "O":
            return [-self._torques(at, 1.0)[0], -self._torques(at, -1.0)[0]]
        depth, tc, td = self._torques(at, 1.0 if mode[0] == "H" else -1.0)
        if mode[1] == "0":
            return [depth, -(tc + td)]
        if mode[1] == "2":
            return [depth, td - tc]
        return [depth, tc + td, *([tc - td] if self.kind == 0 else [])]


def _line(x: Array, y: Array, at: float) -> float:
    """Linear interpolation, continued along the first and last line."""
    if len(x) == 1:
        return float(y[0])
    k = int(np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(x) - 2))
    return float(y[k] + (y[k + 1] - y[k]) * (at - x[k]) / (x[k + 1] - x[k]))


@dataclass
class System:
    """A driveline in minimal coordinates."""

    M: Array
    #: smooth forces on the coordinates
    force: Callable[[float, Array, Array, Array], Array]
    q0: Sequence[float]
    u0: Sequence[float]
    elements: Sequence[Element] = ()
    #: extra states (temperatures) and their rates
    x0: Sequence[float] = ()
    rates: Callable[[At], Sequence[float]] | None = None
    #: instants at which an input jumps or has a kink
    breaks: Sequence[float] = ()
    #: name -> value of a result
    results: dict[str, Callable[[At], float]] = field(default_factory=dict)
    #: name -> element whose mode is a result
    mode_results: dict[str, int] = field(default_factory=dict)

    def split(self, y: Array) -> tuple[Array, Array, Array]:
        n = len(self.q0)
        return y[:n], y[n : 2 * n], y[2 * n :]

    def solve(self, t: float, y: Array, modes: Sequence[str], side: float = 0.0) -> At:
        """Accelerations and forces with the modes held; inputs are taken at t + side."""
        q, u, x = self.split(y)
        n, m = len(q), len(self.elements)
        at = At(t + side, q, u, x, np.zeros(n), np.zeros(m), modes)
        A, b = np.zeros((n + m, n + m)), np.zeros(n + m)
        A[:n, :n] = self.M
        b[:n] = self.force(at.t, q, u, x)
        for k, (element, mode) in enumerate(zip(self.elements, modes, strict=True)):
            row = element.along(at)
            A[:n, n + k] = -row
            p, s, r, value = element.equation(mode, at)
            others = element.others(mode, at)
            if others is not None:
                A[n + k, n:] = others
            A[n + k, n + k] += p
            A[n + k, :n] = s * row + (0.0 if r is None else r)
            b[n + k] = value
        try:
            z = np.linalg.solve(A, b)
        except np.linalg.LinAlgError:
            z = np.full(n + m, np.nan)
        at.a, at.F = z[:n], z[n:]
        return at

    def indicators(self, t: float, y: Array, modes: Sequence[str], side: float = 0.0) -> list[float]:
        at = self.solve(t, y, modes, side)
        each = zip(self.elements, modes, at.F, strict=True)
        return [g for element, mode, F in each for g in element.indicators(mode, at, float(F))]

    def locked(self, modes: Sequence[str], at: At) -> Array:
        """Rows along which nothing moves but by a motion that is given."""
        held = [e.along(at) for e, mode in zip(self.elements, modes, strict=True) if mode in ("S", TIED)]
        return np.array(held) if held else np.zeros((0, len(self.q0)))

    def open_locks(self, modes: Sequence[str], at: At) -> bool:
        """Locks that hold each other leave their forces open."""
        rows = self.locked(modes, at)
        return len(rows) > 0 and np.linalg.matrix_rank(rows, tol=1e-9) < len(rows)

    def stays(self, t: float, y: Array, modes: Sequence[str]) -> bool:
        """An element that slides by its mode stays at rest: it is locked by others that are."""
        at = self.solve(t, y, modes, 1e-13)
        rows = [e.along(at) for e, mode in zip(self.elements, modes, strict=True) if mode[0] in "FB" and e.can_hold]
        return any(abs(float(r @ at.u)) <= REST and abs(float(r @ at.a)) <= REST for r in rows)

    def choose(self, t: float, y: Array) -> tuple[tuple[str, ...], Array]:
        """Modes from t on, and the state with the speeds of stuck elements set to rest."""
        q, u, x = self.split(y)
        at = At(t, q, u, x, np.zeros(len(q)), np.zeros(len(self.elements)))
        best: tuple[float, tuple[str, ...]] | None = None
        for modes in itertools.product(*(e.modes(at) for e in self.elements)):
            now = self.solve(t, y, modes, 1e-13)
            if not np.all(np.isfinite(now.a)) or self.open_locks(modes, now):
                continue
            rates = [] if self.rates is None else self.rates(now)
            later = np.concatenate([q + LATER * u + 0.5 * LATER**2 * now.a, u + LATER * now.a,
                                    x + LATER * np.array(rates)])  # fmt: skip
            margins = self.indicators(t + LATER, later, modes)
            worst = min(margins, default=0.0)
            if best is None or worst > best[0]:
                best = (worst, modes)
            if worst >= 0.0:
                break
        assert best is not None, f"no modes at t = {t}"
        if self.stays(t, y, best[1]):
            raise RuntimeError(f"locks at t = {t} hold each other: their forces are open")
        held = [k for k, mode in enumerate(best[1]) if mode in ("S", TIED)]
        if held:
            rows = self.locked(best[1], at)
            given = np.array([self.elements[k].speed(at) for k in held])
            u = u - np.linalg.pinv(rows) @ (rows @ u - given)
        return best[1], np.concatenate([q, u, x])


@dataclass
class Solution:
    """Segments of a solution: (t0, t1, modes, dense output)."""

    system: System
    segments: list[tuple[float, float, tuple[str, ...], Any]]
    #: evaluations of the right-hand side
    evaluations: int

    @property
    def switchings(self) -> list[float]:
        """Ends of the segments: instants with two sides."""
        return [s[1] for s in self.segments[:-1]]

    def at(self, t: float, right: bool = True) -> tuple[At, tuple[str, ...]]:
        """State and modes at t; at the end of a segment from the given side."""
        ends = [s[1] for s in self.segments]
        k = int(np.searchsorted(ends, t, side="right" if right else "left"))
        t0, t1, modes, dense = self.segments[min(k, len(ends) - 1)]
        y = dense(min(max(t, t0), t1))
        return self.system.solve(t, y, modes, 1e-13 if right else -1e-13), modes

    def values(self, t: float, right: bool = True) -> list[float]:
        """All results, then the modes, in the order they are given."""
        at, modes = self.at(t, right)
        found = [f(at) for f in self.system.results.values()]
        return found + [self.system.elements[k].number(modes[k]) for k in self.system.mode_results.values()]


def simulate(
    system: System, t_end: float, rtol: float = 1e-11, atol: float = 1e-13, method: str = "DOP853",
    max_step: float = 2e-3, most: int = 20_000,
) -> Solution:  # fmt: skip
    """Integrate from 0 to t_end with every switching located; more than `most` of them are an error."""
    y = np.concatenate([np.array(v, dtype=float) for v in (system.q0, system.u0, system.x0)])
    stops = sorted({b for b in system.breaks if 0.0 < b < t_end} | {t_end})
    segments: list[tuple[float, float, tuple[str, ...], Any]] = []
    t, evaluations = 0.0, 0
    modes, y = system.choose(t, y)
    while t < t_end:
        stop = next(s for s in stops if s > t)
        held = modes

        def rhs(time: float, state: Array, held: tuple[str, ...] = held, t0: float = t, t1: float = stop) -> Array:
            # inputs of the branch between two breaks
            inside = min(max(time, t0 + 1e-13), t1 - 1e-13)
            at = system.solve(inside, state, held)
            rates = [] if system.rates is None else system.rates(at)
            return np.concatenate([at.u, at.a, np.array(rates, dtype=float)])

        known: dict[bytes, list[float]] = {}

        def all_indicators(
            time: float, state: Array, held: tuple[str, ...] = held, known: dict[bytes, list[float]] = known
        ) -> list[float]:
            # all events ask for the same instant one after the other
            key = np.append(state, time).tobytes()
            if key not in known:
                known.clear()
                known[key] = system.indicators(time, state, held)
            return known[key]

        def event(k: int, ask: Any = all_indicators, t1: float = stop) -> Callable[[float, Array], float]:
            def indicator(time: float, state: Array) -> float:
                return ask(min(time, t1 - 1e-13), state)[k]

            indicator.terminal, indicator.direction = True, -1.0  # type: ignore[attr-defined]
            return indicator

        count = len(system.indicators(t, y, held, 1e-13))
        done = solve_ivp(
            rhs, (t, stop), y, method=method, rtol=rtol, atol=atol, dense_output=True, max_step=max_step,
            events=[event(k) for k in range(count)] or None,
        )  # fmt: skip
        assert done.status >= 0, done.message
        evaluations += done.nfev
        segments.append((t, float(done.t[-1]), held, done.sol))
        t, y = float(done.t[-1]), done.y[:, -1]
        if done.status == 1 or stop < t_end:
            modes, y = system.choose(t, y)
        if len(segments) > most:
            raise RuntimeError(f"too many switchings, last at t = {t}")
    return Solution(system, segments, evaluations)
