"""Dense reference for one instant: the full equations with all multipliers, and who sticks, slides, and loses how much.

    J a = f + C^T lam + B^T tau,   C a = 0,   one law per friction element

Nothing is eliminated and nothing is shared with the compiler under test. With the modes given this is one linear
system; a set of modes is right when all its inequalities hold (`faults`). The modes are found by trying all of them
(`every_answer`), or by SciPy's bounded least squares where the problem is convex (`boxed`: no losses, no peaks).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from laws import BLOCKED, CAPPED, Array, Friction, Loss, Row
from neutral import Torque, Train
from scipy.linalg import null_space
from scipy.optimize import linprog, lsq_linear

#: slip below which an element counts as at rest, rad/s
REST = 1e-9
#: branch of a loss law
A, B = 0, 1


@dataclass(frozen=True)
class Mode:
    """-1 backward, 0 stuck, 1 forward, 2 free; and the branch of the loss law."""

    way: int
    branch: int = A


@dataclass
class Answer:
    """Accelerations, multipliers, torques along the rows for given modes."""

    modes: tuple[Mode, ...]
    a: Array
    lam: Array
    tau: Array

    @property
    def ways(self) -> tuple[int, ...]:
        return tuple(m.way for m in self.modes)


@dataclass
class Instant:
    """Speeds, angles, time; what acts, and what the friction elements may do. `rest`: slips taken as zero."""

    t: float
    w: Array
    phi: Array
    f: Array
    slip: Array
    rest: list[bool] = field(default_factory=list)


def matrix(rows: Sequence[Row], n: int) -> Array:
    out = np.zeros((len(rows), n))
    for k, r in enumerate(rows):
        for shaft, c in r.items():
            out[k, shaft] = c
    return out


class Dense:
    """The equations of a train."""

    def __init__(self, train: Train) -> None:
        self.n = len(train.J)
        self.J = np.diag(np.asarray(train.J, dtype=float))
        self.C = matrix(train.constraints(), self.n)
        self.names = [name for name, _ in train.laws()]
        self.laws = [law for _, law in train.laws()]
        self.B = matrix([law.row for law in self.laws], self.n)
        self.springs = [e for e in train.elements if e.word == "spring"]
        self.D = matrix([e.row for e in self.springs], self.n)
        self.c = np.array([e.c for e in self.springs])
        self.d = np.array([e.d for e in self.springs])
        self.relaxed = np.array([e.phi0 for e in self.springs])
        self.gaps = [e for e in train.elements if e.word == "backlash"]
        self.G = matrix([e.row for e in self.gaps], self.n)
        self.sources: list[Torque] = [e for e in train.elements if e.word == "torque"]
        self.T = matrix([e.row for e in self.sources], self.n)
        self.Z = null_space(self.C) if len(self.C) else np.eye(self.n)
        self._factors: dict[tuple[object, ...], Array] = {}

    # --- motion and forces ------------------------------------------------------------------------------------
    def consistent_start(self, w: Array) -> Array:
        """The speeds nearest to w that the gears allow."""
        return self.Z @ (self.Z.T @ w)

    def spring_torque(self, w: Array, phi: Array) -> Array:
        """Along the rows of the springs."""
        return -(self.c * (self.D @ phi - self.relaxed) + self.d * (self.D @ w))

    def regimes(self, w: Array, phi: Array) -> list[int]:
        """Where each clearance is."""
        return [e.regime(float(r @ phi), float(r @ w)) for e, r in zip(self.gaps, self.G, strict=True)]

    def forces(self, t: float, w: Array, phi: Array, after: bool = True, regimes: Sequence[int] | None = None) -> Array:
        """Torques on the shafts that do not depend on modes; regimes: those of the clearances, where they are held."""
        f = np.zeros(self.n)
        for e, r, regime in zip(self.gaps, self.G, regimes or self.regimes(w, phi), strict=True):
            f += r * e.force(regime, float(r @ phi), float(r @ w))
        if len(self.springs):
            f += self.D.T @ self.spring_torque(w, phi)
        for source, r in zip(self.sources, self.T, strict=True):
            f += r * source.tau(t, after)
        return f

    def energy(self, w: Array, phi: Array) -> float:
        """Kinetic and potential energy."""
        x = self.D @ phi - self.relaxed if len(self.springs) else np.zeros(0)
        total = 0.5 * w @ self.J @ w + 0.5 * np.sum(self.c * x * x)
        for e, r in zip(self.gaps, self.G, strict=True):
            total += 0.5 * e.c * max(0.0, abs(float(r @ phi)) - 0.5 * e.gap) ** 2
        return float(total)

    def instant(self, t: float, w: Array, phi: Array, rest: Sequence[bool] | None = None) -> Instant:
        slip = self.B @ w
        resting = [bool(abs(s) <= REST) for s in slip] if rest is None else list(rest)
        return Instant(t, w, phi, self.forces(t, w, phi), slip, resting)

    # --- one set of modes -------------------------------------------------------------------------------------
    def choices(self, now: Instant, i: int) -> list[Mode]:
        """Modes element i may have at this instant."""
        law = self.laws[i]
        if isinstance(law, Loss):
            if not now.rest[i]:
                way = 1 if now.slip[i] > 0.0 else -1
                return [Mode(way, A), Mode(way, B)]
            return [Mode(0), Mode(1, A), Mode(1, B), Mode(-1, A), Mode(-1, B)]
        if law.normal(now.t) <= 0.0 and not law.always:
            return [Mode(2)]
        if not now.rest[i]:
            return [Mode(1 if now.slip[i] > 0.0 else -1)]
        ways = [0]
        if law.forward != BLOCKED:
            ways.append(1)
        if law.backward != BLOCKED:
            ways.append(-1)
        return [Mode(way) for way in ways]

    def slides_with(self, law: Friction, way: int, now: Instant, i: int) -> float:
        """Torque along the row of a sliding element."""
        acts = (law.forward if way > 0 else law.backward) == CAPPED
        return -way * law.capacity(now.t, 0.0 if now.rest[i] else now.slip[i]) if acts else 0.0

    def solve(self, now: Instant, modes: Sequence[Mode]) -> Answer:
        """The linear system of these modes; where torques are not unique, the least ones (sum of squares)."""
        n, m, k = self.n, len(self.C), len(self.laws)
        rhs = np.zeros(n + m + k)
        rhs[:n] = now.f
        key: list[object] = []
        for i, (law, mode) in enumerate(zip(self.laws, modes, strict=True)):
            if isinstance(law, Loss) and mode.way in (-1, 1):
                slope, offset = law.lines(0.0 if now.rest[i] else now.slip[i], mode.way)[mode.branch]
                rhs[n + m + i] = -offset
                key.append((i, slope))
            elif mode.way in (-1, 1):
                assert isinstance(law, Friction)
                rhs[n + m + i] = self.slides_with(law, mode.way, now, i)
                key.append((i, None))
            else:
                key.append((i, "stuck" if mode.way == 0 else None))
        x = self._inverse(tuple(key)) @ rhs
        return Answer(tuple(modes), x[:n], x[n : n + m], x[n + m :])

    def _inverse(self, key: tuple[object, ...]) -> Array:
        """Inverse of the system (least-norm where stuck elements are redundant)."""
        found = self._factors.get(key)
        if found is not None:
            return found
        n, m, k = self.n, len(self.C), len(self.laws)
        K = np.zeros((n + m + k, n + m + k))
        K[:n, :n] = self.J
        K[:n, n : n + m] = -self.C.T
        K[:n, n + m :] = -self.B.T
        K[n : n + m, :n] = self.C
        stuck = []
        for i, how in key:  # type: ignore[misc]
            line = K[n + m + i]
            if how == "stuck":
                line[:n] = self.B[i]
                stuck.append(i)
                continue
            line[n + m + i] = 1.0
            if how is not None:
                law = self.laws[i]
                line[n + law.constraint] += how * law.gain
                line[n + m + i] += how * law.own
        held = np.vstack([self.C, self.B[stuck]]) if stuck else self.C
        redundant = len(held) and np.linalg.matrix_rank(held) < len(held)
        found = np.linalg.pinv(K, rcond=1e-12) if redundant else np.linalg.inv(K)
        if len(self._factors) > 4000:
            self._factors.clear()
        self._factors[key] = found
        return found

    # --- is it right? -----------------------------------------------------------------------------------------
    def reaction(self, law: Loss, i: int, answer: Answer) -> float:
        return float(law.gain * answer.lam[law.constraint] + law.own * answer.tau[i])

    def bounds(self, now: Instant, i: int, answer: Answer) -> tuple[float, float]:
        """Torques along the row with which element i may stick."""
        law = self.laws[i]
        if isinstance(law, Loss):
            r = self.reaction(law, i, answer)
            forward = max(k * r + c for k, c in law.lines(0.0, 1))
            backward = min(k * r + c for k, c in law.lines(0.0, -1))
            return -forward, -backward
        limit = law.limit(now.t)
        low = -limit if law.forward == CAPPED else 0.0
        high = limit if law.backward == CAPPED else (np.inf if law.backward == BLOCKED else 0.0)
        return low, high

    def redundant(self, modes: Sequence[Mode]) -> bool:
        """More elements stick than there is motion to hold: their torques are not unique."""
        stuck = [i for i, mode in enumerate(modes) if mode.way == 0]
        rows = np.vstack([self.C, self.B[stuck]])
        return bool(stuck) and np.linalg.matrix_rank(rows) < len(rows)

    def margin(self, now: Instant, answer: Answer) -> float:
        """Distance from their limits that all sticking elements can keep at once (< 0: not all can stick)."""
        stuck = [i for i, mode in enumerate(answer.modes) if mode.way == 0]
        if not stuck:
            return np.inf
        limits = [self.bounds(now, i, answer) for i in stuck]
        least = min(min(answer.tau[i] - lo, hi - answer.tau[i]) for i, (lo, hi) in zip(stuck, limits, strict=True))
        if least >= 0.0 or not self.redundant(answer.modes):
            return float(least)
        # any split will do: torques tau_s + N_tau y and multipliers lam + N_lam y with the same accelerations
        span = null_space(np.hstack([self.B[stuck].T, self.C.T]))
        n_tau, n_lam = span[: len(stuck)], span[len(stuck) :]
        best = -np.inf
        losses = [k for k, i in enumerate(stuck) if isinstance(self.laws[i], Loss)]
        for sides in itertools.product((A, B), repeat=2 * len(losses)):
            lines, room = [], []
            for k, i in enumerate(stuck):
                law = self.laws[i]
                if isinstance(law, Loss):
                    # -tau <= k r + c (forward line), -tau >= k r + c (backward line); either line of each side may do
                    place = losses.index(k)
                    dr = law.gain * n_lam[law.constraint] + law.own * n_tau[k]
                    r = self.reaction(law, i, answer)
                    ahead = law.lines(0.0, 1)[sides[2 * place]]
                    back = law.lines(0.0, -1)[sides[2 * place + 1]]
                    lines += [np.r_[-n_tau[k] - ahead[0] * dr, 1.0], np.r_[n_tau[k] + back[0] * dr, 1.0]]
                    room += [ahead[0] * r + ahead[1] + answer.tau[i], -answer.tau[i] - back[0] * r - back[1]]
                    continue
                lo, hi = limits[k]
                if np.isfinite(hi):
                    lines.append(np.r_[n_tau[k], 1.0])
                    room.append(hi - answer.tau[i])
                lines.append(np.r_[-n_tau[k], 1.0])
                room.append(answer.tau[i] - lo)
            cost = np.zeros(span.shape[1] + 1)
            cost[-1] = -1.0
            wide = [(None, None)] * span.shape[1] + [(None, 1e6)]
            found = linprog(cost, A_ub=np.array(lines), b_ub=np.array(room), bounds=wide)
            if found.status == 0:
                best = max(best, float(-found.fun))
            if best > 0.0:
                break
        return best

    def faults(self, now: Instant, answer: Answer, tol: float = 1e-9) -> list[str]:
        """What is wrong with these modes; tol relative to the largest torque and acceleration."""
        force = tol * (1.0 + np.abs(now.f).max(initial=0.0) + np.abs(answer.tau).max(initial=0.0))
        rates = self.B @ answer.a
        speed = tol * (1.0 + np.abs(answer.a).max())
        wrong = []
        for i, (law, mode) in enumerate(zip(self.laws, answer.modes, strict=True)):
            if now.rest[i] and mode.way in (-1, 1) and mode.way * rates[i] < -speed:
                wrong.append(f"{self.names[i]} slides {mode.way} but accelerates by {rates[i]:g}")
            if isinstance(law, Loss) and mode.way in (-1, 1):
                r = self.reaction(law, i, answer)
                (ka, ca), (kb, cb) = law.lines(0.0 if now.rest[i] else now.slip[i], mode.way)
                ahead = mode.way * ((ka * r + ca) - (kb * r + cb))
                if (ahead if mode.branch == A else -ahead) < -force:
                    wrong.append(f"{self.names[i]} is on branch {mode.branch} at reaction {r:g}")
        margin = np.inf if wrong else self.margin(now, answer)
        if margin < -force:
            wrong.append(f"the sticking elements go {-margin:g} beyond their limits")
        return wrong

    # --- finding the modes ------------------------------------------------------------------------------------
    def combinations(self, now: Instant) -> Iterator[tuple[Mode, ...]]:
        return itertools.product(*(self.choices(now, i) for i in range(len(self.laws))))

    def every_answer(self, now: Instant, tol: float = 1e-9) -> list[Answer]:
        """All consistent sets of modes; of those with the same accelerations only one, with the most elements stuck."""
        found: list[Answer] = []
        for modes in sorted(self.combinations(now), key=lambda ms: sum(m.way != 0 for m in ms)):
            answer = self.solve(now, modes)
            if not self.faults(now, answer, tol=tol) and not any(same(answer.a, other.a) for other in found):
                found.append(answer)
        return found

    def boxed(self, now: Instant) -> Answer:
        """Without losses: the torques of all resting elements by bounded least squares (unique accelerations).

        min 1/2 tau^T W tau + b^T tau within the limits is the dual of the least constraint; W = R M^-1 R^T.
        """
        modes = [self.choices(now, i)[0] for i in range(len(self.laws))]
        open_ = [i for i, mode in enumerate(modes) if mode.way == 0]
        free = [Mode(2) if i in open_ else mode for i, mode in enumerate(modes)]
        start = self.solve(now, free)
        L = np.linalg.cholesky(self.Z.T @ self.J @ self.Z)
        limits = [self.bounds(now, i, start) for i in open_]
        used = [k for k, (lo, hi) in enumerate(limits) if hi > lo]
        tau = np.zeros(len(open_))
        if used:
            Q = np.linalg.solve(L, (self.B[[open_[k] for k in used]] @ self.Z).T)
            target = -L.T @ np.linalg.lstsq(self.Z, start.a, rcond=None)[0]
            box = np.array([limits[k] for k in used]).T
            tau[used] = lsq_linear(Q, target, (box[0], box[1]), method="bvls", tol=1e-15, max_iter=1000).x
            rates = np.linalg.solve(L.T, Q @ tau[used] - target)
        else:
            rates = np.linalg.lstsq(self.Z, start.a, rcond=None)[0]
        a = self.Z @ rates
        for k, i in enumerate(open_):
            rate = float(self.B[i] @ a)
            at_limit = min(abs(tau[k] - limits[k][0]), abs(limits[k][1] - tau[k])) <= 1e-9 * (1.0 + abs(tau[k]))
            if abs(rate) > 1e-8 * (1.0 + np.abs(a).max()) and at_limit:
                modes[i] = Mode(1 if rate > 0.0 else -1)
        return self.solve(now, modes)


def same(a: Array, b: Array, tol: float = 1e-8) -> bool:
    """Equal accelerations."""
    return bool(np.abs(a - b).max() <= tol * (1.0 + np.abs(a).max()))
