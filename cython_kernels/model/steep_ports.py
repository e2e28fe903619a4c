"""Where torques of the speed (ports) fall so steeply that the step finds them with the accelerations.

Taken at predicted speeds, torques with the slopes -g_i along rows r_i are stable while h times the largest eigenvalue
of M^-1 sum g_i r_i r_i^T is below 0.5 (docs/theory.md, (19), (20)). With the responses W_ij = r_i S^-1 r_j^T the matrix
sqrt(g_i) W_ij sqrt(g_j) has the same eigenvalues but for 0, and elements that stick only lower them. So each port gets
a largest slope, cap/(h W_ii), with one cap for all: the largest with which that eigenvalue stays below the limit. Where
a port is steeper it is found with the accelerations (step/rows.pxi).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from torqueloop.cython_kernels.model.model_arrays import Floats, ModelArrays

#: rad/s or m/s: a torque that is steep beyond it alone counts as never steep
FASTEST = 1e4
#: K: oil is no colder where a drag follows the temperature of a node
COLDEST = 233.15
#: halvings of the cap
HALVINGS = 40


@dataclass(frozen=True)
class _Falling:
    """How steeply one port falls: slope -g[k] between the speeds lo[k] and hi[k], -(g0 + g1*abs(w)) at any speed."""

    #: "overrun": of a converter whose turbine is the faster side; follows its "tc", and acts while that does not
    kind: str
    index: int
    row: int
    lo: Floats
    hi: Floats
    g: Floats
    g0: float = 0.0
    g1: float = 0.0

    @property
    def most(self) -> float:
        """The steepest it is at speeds up to FASTEST."""
        return max(0.0, float(self.g.max(initial=0.0)), self.g0 + self.g1 * FASTEST)

    def between(self, slope: float) -> tuple[float, float]:
        """The speeds between which it falls more steeply than that; 0, 0 where nowhere."""
        steep = np.flatnonzero(self.g > slope)
        return (float(self.lo[steep].min()), float(self.hi[steep].max())) if len(steep) else (0.0, 0.0)

    def beyond(self, slope: float) -> float:
        """The magnitude of the speed from which on it does."""
        if self.g1 <= 0.0:
            return 0.0 if self.g0 > slope else math.inf
        w = max(0.0, (slope - self.g0) / self.g1)
        return w if w <= FASTEST else math.inf


def curve(a: ModelArrays, k: int) -> tuple[Floats, Floats]:
    """Points of 1-D table k."""
    lo, hi = int(a.tab1_ptr[k]), int(a.tab1_ptr[k + 1])
    return a.tab1_x[lo:hi], a.tab1_y[lo:hi]


def steep_ports(a: ModelArrays, h: float, Sinv: Floats, limit: float) -> dict[str, dict[str, Floats]]:
    """Derived fields of the kinds poly, eng, tc, cv, wd. limit: of h times the largest eigenvalue."""

    def row(k: int) -> Floats:
        r, part = np.zeros(len(Sinv)), slice(int(a.row_ptr[k]), int(a.row_ptr[k + 1]))
        np.add.at(r, a.row_idx[part], a.row_val[part])
        return r

    def response(k: int, j: int) -> float:
        return float(row(k) @ Sinv @ row(j))

    laws = [*_resistances(a), *_engines(a), *_converters(a, response), *_curves(a), *_drags(a)]
    R = np.array([row(law.row) for law in laws]).reshape(len(laws), len(Sinv))
    W = R @ Sinv @ R.T
    for i in (k for k, law in enumerate(laws) if law.kind == "overrun"):
        W[i, i - 1] = W[i - 1, i] = 0.0
    slopes = _largest(W, h, np.array([law.most for law in laws]), limit)
    found = {kind: {"steep_lo": np.zeros(len(a.elements[kind])), "steep_hi": np.zeros(len(a.elements[kind]))}
             for kind in ("eng", "cv", "wd")} | {kind: {"steep": np.full(len(a.elements[kind]), math.inf)}
                                                 for kind in ("poly", "tc")}  # fmt: skip
    found["tc"]["steep_over"] = np.full(len(a.tc), math.inf)
    for law, slope in zip(laws, slopes, strict=True):
        if law.kind == "overrun":
            found["tc"]["steep_over"][law.index] = law.beyond(slope)
        elif law.kind in ("poly", "tc"):
            found[law.kind]["steep"][law.index] = law.beyond(slope)
        else:
            lo, hi = law.between(slope)
            found[law.kind]["steep_lo"][law.index], found[law.kind]["steep_hi"][law.index] = lo, hi
    return found


def may_be_steep(a: ModelArrays, found: Mapping[str, Mapping[str, Floats]]) -> bool:
    """Whether a port other than those of converters is steep somewhere; eddy-current brakes always count so."""
    some = any((found[kind]["steep_lo"] < found[kind]["steep_hi"]).any() for kind in ("eng", "cv", "wd"))
    return bool(some or np.isfinite(found["poly"]["steep"]).any() or len(a.ed))


def _largest(W: Floats, h: float, most: Floats, limit: float) -> Floats:
    """The largest slope of each port at which it may be taken at predicted speeds."""
    response = h * np.diag(W)
    free = response <= 0.0
    scale = np.sqrt(np.where(free, 1.0, response))
    alike = np.where(free[:, None] | free[None, :], 0.0, h * W / np.outer(scale, scale))
    own = np.where(free, 0.0, response * most)

    def stable(cap: float) -> bool:
        root = np.sqrt(np.minimum(own, cap))
        return not len(W) or float(np.linalg.eigvalsh(root[:, None] * alike * root).max()) <= limit

    lo, hi = 0.0, limit
    if stable(limit):
        lo = limit
    for _ in range(HALVINGS):
        middle = 0.5 * (lo + hi)
        lo, hi = (middle, hi) if stable(middle) else (lo, middle)
    return np.asarray(np.where(free, math.inf, lo / np.where(free, 1.0, response)))


def _resistances(a: ModelArrays) -> list[_Falling]:
    none = np.zeros(0)
    return [
        _Falling("poly", i, int(p["row"]), none, none, none, -float(p["k"][1]),
                 2.0 * max(0.0, abs(float(p["k"][2])) - float(p["k"][3])))
        for i, p in enumerate(a.poly)
    ]  # fmt: skip


def _segments(a: ModelArrays, k: int, gain: float = 1.0) -> tuple[Floats, Floats, Floats]:
    """Of a 1-D table: ends of its segments, and how steeply gain times it falls there; outside as it goes on."""
    x, y = curve(a, k)
    if len(x) < 2:
        return np.zeros(0), np.zeros(0), np.zeros(0)
    lo, hi = x[:-1].copy(), x[1:].copy()
    if a.tab1_extrap[k]:
        lo[0], hi[-1] = -math.inf, math.inf
    return lo, hi, -gain * np.diff(y) / np.diff(x)


def _map_segments(a: ModelArrays, k: int, gain: float = 1.0) -> tuple[Floats, Floats, Floats]:
    """Of a map, at the second argument at which it falls most steeply."""
    nx, ny = int(a.tab2_nx[k]), int(a.tab2_ny[k])
    x = a.tab2_x[int(a.tab2_xptr[k]) :][:nx]
    z = a.tab2_z[int(a.tab2_zptr[k]) :][: nx * ny].reshape(nx, ny)
    return x[:-1], x[1:], (-gain * np.diff(z, axis=0) / np.diff(x)[:, None]).max(axis=1)


def _engines(a: ModelArrays) -> list[_Falling]:
    found = []
    for i, e in enumerate(a.eng):
        parts = [_map_segments(a, int(e["map"]))] if e["map"] >= 0 else [
            _segments(a, int(e["wot"])), _segments(a, int(e["drag"]))]  # fmt: skip
        parts.append((np.array([-math.inf]), np.array([math.inf]), np.zeros(1)))
        lo, hi, g = (np.concatenate(one) for one in zip(*parts, strict=True))
        found.append(_Falling("eng", i, int(e["row"]), lo, hi, g + float(e["kp"])))
    return found


def _converters(a: ModelArrays, W: Callable[[int, int], float]) -> list[_Falling]:
    """Torques of a converter are a speed squared times functions of the speed ratio nu from 0 to 1, so their slopes
    over both speeds grow with the speed. g1: as if they were one torque on the pump with the same eigenvalue."""
    none, found = np.zeros(0), []
    for i, t in enumerate(a.tc):
        rows = int(t["row_p"]), int(t["row_t"])
        root = np.sqrt([W(k, k) for k in rows])
        knots = [curve(a, int(t[name]))[0] for name in ("mp", "mu", "coast")]
        nu = np.unique(np.clip(np.concatenate([*knots, [0.0, 1.0]]), 0.0, 1.0))
        nu = np.union1d(nu, 0.5 * (nu[1:] + nu[:-1]))
        mp, mu, coast = (np.interp(nu, *curve(a, int(t[name]))) for name in ("mp", "mu", "coast"))
        overrun = np.array([float(t["coast_ratio"]) * coast, coast])
        # both turn backward: a coupling with mp(0)
        most = np.array([3.0 * abs(mp[0]) * float(np.max(root)) ** 2, 0.0])
        # ports (pump, turbine) over the faster side and the other: (-mp, mu mp) w_p^2, (r coast, -coast) w_t^2
        for f, fast in ((np.array([-mp, mu * mp]), 0), (overrun * [[1.0], [-1.0]], 1)):
            rise = np.diff(f) / np.diff(nu)
            for end in (slice(None, -1), slice(1, None)):
                slopes = np.empty((len(nu) - 1, 2, 2))
                slopes[:, :, fast] = (2.0 * f[:, end] - rise * nu[end]).T
                slopes[:, :, 1 - fast] = rise.T
                size = float(np.abs(np.linalg.eigvals(root[:, None] * slopes * root)).max())
                most[fast] = max(most[fast], size)
        most = most / root[0] ** 2 if root[0] else 0.0 * most
        found += [
            _Falling(kind, i, rows[0], none, none, none, 0.0, float(g1))
            for kind, g1 in zip(("tc", "overrun"), most, strict=True)
        ]
    return found


def _curves(a: ModelArrays) -> list[_Falling]:
    found = []
    for i, c in enumerate(a.cv):
        gain = float(c["gain"])
        of = _segments(a, int(c["tab1"]), gain) if c["tab1"] >= 0 else _map_segments(a, int(c["tab2"]), gain)
        lo, hi, g = of
        if c["absolute"]:
            lo, hi, g = np.concatenate([lo, -hi]), np.concatenate([hi, -lo]), np.concatenate([g, g])
        found.append(_Falling("cv", i, int(c["row"]), lo, hi, g))
    return found


def _drags(a: ModelArrays) -> list[_Falling]:
    found = []
    for i, d in enumerate(a.wd):
        T = COLDEST if d["th"] >= 0 else float(d["T"])
        mu = math.exp(-float(d["beta"]) * (T - float(d["T_ref"])))
        end = math.sqrt(mu) * float(d["wc"])
        found.append(_Falling("wd", i, int(d["row"]), np.array([-end]), np.array([end]), np.array([mu * d["d"]])))
    return found
