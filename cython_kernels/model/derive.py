"""What a kernel model holds beyond the compiled arrays: everything that can be computed before the first step.

Pure numpy; `KernelModel` calls it once and keeps the results. Names are those of the fields in model.pxd, SI units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from torqueloop.cython_kernels.model.choices import ACTUATORS, ARGUMENTS, FIXED, MOTIONS, SOURCES, WAYS
from torqueloop.cython_kernels.model.look_ups import look_ups
from torqueloop.cython_kernels.model.model_arrays import ModelArrays, Records, completed
from torqueloop.cython_kernels.model.model_sizes import ARRAYS, SIZES, Array, Size
from torqueloop.cython_kernels.model.records import KINDS, PORTS, RECORDS
from torqueloop.cython_kernels.model.references import check_references
from torqueloop.cython_kernels.model.steep_ports import curve, may_be_steep, steep_ports

#: stands for an unlimited torque; finite, so that interpolation stays finite (same value in points.pxi)
UNLIMITED = 1e301
#: h/2 * slope * compliance above which a torque over the speed is found with the accelerations (sliding elements; ports
#: together, see steep_ports.py): taken at predicted speeds it is stable below 0.25
STIFF = 0.2
#: largest h*omega of a resolved oscillation, h*d/m and h*c/d of a resolved decay: a step truncated within a steeper one
#: leaves energy open (at the limit order 4 up to 2e-4 of what is turned over, at 1 2e-3; of decays 3e-4 at 2; beyond
#: the limit nothing, accept.pxi)
RESOLVED = 0.25
#: how far steps leave a relaxation unresolved whose acceleration is still taken at its instant: beyond it there would
#: be more rounding in the mean of two of them, 2e-16 of each, than a step leaves of a speed
FOLLOWED = 1e4
#: part of h over which a decision looks ahead. Short: it then finds the mode of this instant, and later events of the
#: same step get a split of their own. Not 0: a torque that has just reached its limit must be seen to go beyond it.
#: Springs the step does not resolve shorten it in proportion, since forces are taken as they go on from now.
LOOK_AHEAD = 1.0 / 32.0
#: how far steps leave contacts unresolved whose stiffness grows with the deflection: nobody knows before how far
CURVED = 100.0
#: singular values below this share of the largest belong to rows that depend on the others (RANK_TOL in locks.pyx)
DEPENDENT = 1e-9
#: shortest time in which a piston fills or empties, s
SHORTEST = 1e-9
#: bound on the memory of the lock-pattern cache of one state, bytes
CACHE_BYTES = 64 << 20
#: up to so many speeds a lock pattern holds T (TL_FORMED in model.pxd)
FORMED = 12
#: rows of what is multiplied often come in multiples of it (TL_LANES there)
LANES = 4
#: in in_direct: an input that nothing but torques and forces given from outside follow (IN_TORQUE in inputs.pxi)
TORQUES_ALONE = 2


@dataclass(frozen=True)
class Completed:
    """Everything of tl_model but its tables and its step function; names are those of records.py."""

    elements: dict[str, Records]
    arrays: dict[str, np.ndarray]
    sizes: dict[str, float]
    #: slopes of the curves, aligned with their points
    tab1_dy: np.ndarray


def complete(a: ModelArrays, h: float) -> Completed:
    """What the kernel needs at the step h, checked; ValueError names what is wrong."""
    if not h > 0.0:
        raise ValueError(f"h must be positive, got {h} s")
    if a.order not in (2, 4):
        raise ValueError(f"order must be 2 or 4, got {a.order}")
    n = len(a.u0)
    if a.M.shape != (n, n):
        raise ValueError(f"M has shape {a.M.shape}, expected {(n, n)}")
    port_row = np.concatenate([a.elements[kind][row] for kind, row in PORTS]).astype(np.int32)
    check_references(a, len(port_row))
    slopes = _slopes(a)
    arrays, linear = _matrices(a, h)
    ncurved = int((a.con["n"] != 1.0).sum())
    unresolved = max(linear, CURVED) if ncurved else linear
    arrays |= {name: getattr(a, name) for name in ("M", "row_ptr", "row_idx", "row_val", "row_off")}
    arrays |= _hot_rows(a)
    arrays |= {name: getattr(a, name) for name in ("re_A", "re_port", "re_fr", "re_lin", "re_con")}
    arrays |= {"port_row": port_row, "fr_order": _neighbours(arrays["W0"])} | _inputs(a)
    columns = _columns(a, h, arrays)
    sizes = {
        "n": n, "nrow": len(a.row_off), "nhot": a.n_hot, "nhot_more": len(arrays["hot_row"]), "nin": a.nin,
        "nport": len(port_row), "nre": len(a.re_A),
        "order": a.order, "unresolved": int(unresolved > 1.0), "look_ahead": LOOK_AHEAD / max(1.0, unresolved),
        "nrm": len(arrays["rm_at"]), "ncurved": ncurved,
        "linear_resolved": int(linear <= 1.0),
        "watched": int(may_be_steep(a, columns)),
        "act_fills": int((a.act["kind"] == ACTUATORS["FILL_TIME"]).any()),
        "h": h, "inv_h": 1.0 / h, "beta": 0.25 if len(a.lin) or len(a.con) else 1.0 / 6.0,
        **_cache(a, unresolved > 1.0),
    }  # fmt: skip
    elements = {kind: completed(kind, a.elements[kind], **fields) for kind, fields in columns.items() if kind != "lu"}
    elements["lu"], breakpoints = look_ups(a, columns, followed=a.order == 4 and linear <= 1.0)
    arrays |= breakpoints
    return Completed(elements, _typed(ARRAYS, arrays), _complete(SIZES, sizes), slopes)


def _hot_rows(a: ModelArrays) -> dict[str, np.ndarray]:
    """The rows of the force elements without pointers: passes over them have no inner loops."""
    starts, end = a.row_ptr[: a.n_hot], int(a.row_ptr[a.n_hot])
    row_of = np.repeat(np.arange(a.n_hot), np.diff(a.row_ptr[: a.n_hot + 1]))
    others = np.setdiff1d(np.arange(end), starts)
    order = np.concatenate([starts, others])
    return {"row_of": row_of, "hot_idx": a.row_idx[order], "hot_val": a.row_val[order], "hot_row": row_of[others]}


def _columns(a: ModelArrays, h: float, arrays: dict[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Per kind the derived fields, and given ones that the step size limits."""
    columns: dict[str, dict[str, np.ndarray]] = {kind: {} for kind in KINDS}
    columns["fr"] = _friction(a, h, arrays["W"])
    columns["act"] = _actuators(a, h)
    columns |= steep_ports(a, h, arrays["Sinv"], 2.0 * STIFF)
    columns["drv"] = {"p": _filters(a, h)}
    relaxation = _relaxation(a, arrays["D"], arrays["K"], h)
    columns["rx"] = {"resolved": np.full(len(a.rx), relaxation <= FOLLOWED, dtype=np.int32)}
    return columns


def _complete(described: Sequence[Array | Size], found: Mapping[str, Any]) -> dict[str, Any]:
    wrong = sorted({one.name for one in described} ^ set(found))
    if wrong:
        raise TypeError(f"parts of the model without a value, or that it does not have: {wrong}")
    return dict(found)


def _typed(described: Sequence[Array], found: Mapping[str, Any]) -> dict[str, np.ndarray]:
    _complete(described, found)
    return {one.name: np.ascontiguousarray(found[one.name], dtype=one.type) for one in described}


def _symmetric_inverse(A: np.ndarray) -> np.ndarray:
    if not len(A):
        return np.zeros((0, 0))
    inverse = np.linalg.inv(A)
    return np.asarray(0.5 * (inverse + inverse.T))


def _matrices(a: ModelArrays, h: float) -> tuple[dict[str, np.ndarray], float]:
    """Dampers and stiffnesses in u, the matrices of the steps, responses of the friction elements; and how far the step
    leaves an oscillation unresolved."""
    n, rows = len(a.u0), len(a.row_off)
    R = np.zeros((rows, n))
    for k in range(rows):
        first, last = int(a.row_ptr[k]), int(a.row_ptr[k + 1])
        if first == last and k < a.n_hot:
            raise ValueError(f"row {k} used by a force element is empty")
        for q in range(first, last):
            R[k, a.row_idx[q]] += a.row_val[q]
    rigid = _rigid(a, R)
    M, Rl, B = a.M, R[a.lin["row"]], R[a.fr["row"]]
    D = Rl.T @ (a.lin["d"][:, None] * Rl)
    G = Rl.T @ (a.lin["c"][:, None] * Rl)
    S = M + 0.5 * h * D + 0.25 * h * h * G
    S = 0.5 * (S + S.T)
    heavy = np.setdiff1d(np.arange(n), a.rx["coord"])
    Sinv, Minv = _symmetric_inverse(S), _embedded(_symmetric_inverse(M[np.ix_(heavy, heavy)]), heavy, n)
    # Lobatto IIIA (lobatto.pxd, with its source): weights of the accelerations of middle and end in the speeds there
    A = np.array([[1 / 3, -1 / 24], [2 / 3, 1 / 6]])
    W, W0 = B @ Sinv @ B.T, B @ Minv @ B.T
    Rc = R[a.con["row"]]
    curved = a.con["n"] != 1.0
    c_all = G + Rc.T @ ((2.0 * ~curved * a.con["c"])[:, None] * Rc)
    d_all = D + Rc.T @ (a.con["d"][:, None] * Rc)
    matrices = {
        "D": D, "K": G, "S_range": _ranges(np.abs(M) + np.abs(c_all) + np.abs(d_all)),
        "S": S, "B": B, "Sinv": Sinv, "Minv": Minv, "SinvBt": (Sinv @ B.T).T,
        "W": 0.5 * (W + W.T), "W0": 0.5 * (W0 + W0.T),
        "A4": np.kron(np.eye(2), M) + h * np.kron(A, D) + h * h * np.kron(A @ A, G),
    } | rigid  # fmt: skip
    stuck = _behind_friction(a, B)
    c_all, d_all = stuck.T @ c_all @ stuck, stuck.T @ d_all @ stuck
    unresolved = _unresolved(_held(M, Minv, heavy, B[a.drv["fr"]]), c_all, d_all, h)
    return matrices, max(unresolved, _relaxation(a, D, G, h))


def _rigid(a: ModelArrays, R: np.ndarray) -> dict[str, np.ndarray]:
    """Motions that twist no spring, contact or stop, one per coordinate that is free of the others. A universal joint
    is the same after whole turns of its shafts: where no multiple of a motion turns them so, it counts as a spring."""
    springs = a.lin["row"][a.lin["c"] != 0.0]
    twisted = np.concatenate([springs, a.con["row"], a.fr["row"][a.elements["st"]["fr"]], a.rx["row"]]).astype(int)
    twists = R[twisted]
    ends = R[np.concatenate([a.jo["row_a"], a.jo["row_b"]]).astype(int)]
    free, basis = _null(twists, R.shape[1])
    units = [_whole_turns(turns) for turns in basis @ ends.T]
    if None in units:
        free, basis = _null(np.vstack([twists, ends]), R.shape[1])
        units = [0.0] * len(free)
    rows = basis @ R.T
    rows[:, twisted] = 0.0
    rows[np.abs(rows) < DEPENDENT] = 0.0
    at, unit = np.array(free, dtype=np.int32), np.array(units, dtype=float)
    return {"rm_z": basis, "rm_row": rows, "rm_at": at, "rm_unit": unit}


def _null(A: np.ndarray, n: int) -> tuple[list[int], np.ndarray]:
    """Free columns of A and the solutions of A x = 0 that are 1 at one of them and 0 at the others (Gauss-Jordan)."""
    A = A.astype(float)
    used: list[int] = []
    for _ in range(len(A)):
        rest = np.abs(A[len(used) :])
        if not rest.size or rest.max() <= DEPENDENT:
            break
        row, column = np.unravel_index(int(rest.argmax()), rest.shape)
        at = len(used)
        swapped = at + int(row)
        A[[at, swapped]] = A[[swapped, at]]
        A[at] /= A[at, column]
        others = np.arange(len(A)) != at
        A[others] -= np.outer(A[others, column], A[at])
        used.append(int(column))
    free = [k for k in range(n) if k not in used]
    basis = np.zeros((len(free), n))
    for j, k in enumerate(free):
        basis[j, k] = 1.0
        basis[j, used] = -A[: len(used), k]
    return free, basis


def _whole_turns(turns: np.ndarray) -> float | None:
    """Least angle of which every multiple turns joints, which turn `turns` times as far, by whole turns; 0 where they
    do not turn, None where there is none below 1e4 turns."""
    known = [Fraction(float(t)).limit_denominator(1000) for t in turns if abs(t) > DEPENDENT]
    if any(abs(float(t) - float(r)) > DEPENDENT for t, r in zip(turns[np.abs(turns) > DEPENDENT], known, strict=True)):
        return None
    common = math.lcm(*(r.denominator for r in known))
    return (2.0 * math.pi * common if known else 0.0) if common < 10_000 else None


def _ranges(A: np.ndarray) -> np.ndarray:
    """(n, 2) first entry of each row that is not zero, and one past the last."""
    used = A != 0.0
    return np.array([(r.argmax(), len(r) - r[::-1].argmax()) if r.any() else (0, 0) for r in used], dtype=np.int32)


def _embedded(A: np.ndarray, at: np.ndarray, n: int) -> np.ndarray:
    """(n, n) with the matrix A of some coordinates in their places: 0 of those that no force moves at once."""
    whole = np.zeros((n, n))
    whole[np.ix_(at, at)] = A
    return whole


def _held(M: np.ndarray, Minv: np.ndarray, heavy: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Inverse inertia with the rows B held: driven flanges may be all but massless, but they do not swing. On a basis
    of the speeds that are left, since what such a flange would do without its driver is beyond any rounding."""
    if not len(B):
        return Minv
    B, M = B[:, heavy], M[np.ix_(heavy, heavy)]
    _, s, V = np.linalg.svd(B)
    Z = V[int((s > DEPENDENT * s.max()).sum()) :].T
    return _embedded(Z @ np.linalg.inv(Z.T @ M @ Z) @ Z.T, heavy, len(Minv))


def _behind_friction(a: ModelArrays, B: np.ndarray) -> np.ndarray:
    """Speeds when friction in series with springs sticks, from all: its shaft without inertia goes with the others."""
    stuck = np.eye(B.shape[1])
    for q, i, share in zip(a.rx["coord"], a.rx["fr"], a.rx["share"], strict=True):
        if i >= 0:
            stuck[q] = -B[i] / share
            stuck[q, q] = 0.0
    return stuck


def _unresolved(Minv: np.ndarray, G: np.ndarray, D: np.ndarray, h: float) -> float:
    """The fastest oscillation and decay relative to what the step resolves: h*omega and h*d/m, of what a trial may have
    that is truncated on its polynomial (inside a step it is not A-stable; beyond 1 repeated truncations would add
    energy). Steps with events are then made of trials of the length that is used, see shortened.pxi, and decisions look
    less far ahead."""
    if not len(Minv) or not (G.any() or D.any()):
        return 0.0
    omega2 = np.abs(np.linalg.eigvals(Minv @ G)).max()
    decay = np.abs(np.linalg.eigvals(Minv @ D)).max()
    return float(max(h * np.sqrt(omega2), h * decay) / RESOLVED)


def _relaxation(a: ModelArrays, D: np.ndarray, G: np.ndarray, h: float) -> float:
    """The same for coordinates without inertia: their fastest decay, which is of springs and closed clearances against
    dampers."""
    damped = a.rx[a.rx["elastic"] == 0]
    if not len(damped):
        return 0.0
    here = np.ix_(damped["coord"], damped["coord"])
    closed = np.diag(
        [share**2 * a.con["c"][k] if k >= 0 else 0.0 for k, share in zip(damped["con"], damped["share"], strict=True)]
    )
    return float(h * np.abs(np.linalg.eigvals(np.linalg.solve(D[here], G[here] + closed))).max() / RESOLVED)


def _slopes(a: ModelArrays) -> np.ndarray:
    """Slopes of the 1-D tables, aligned with their points (the last of each table is 0)."""
    slopes = np.zeros(len(a.tab1_x))
    for k in range(len(a.tab1_extrap)):
        x, y = curve(a, k)
        if len(x) < 1 or np.any(np.diff(x) <= 0):
            raise ValueError(f"1-D table {k}: x must increase strictly")
        first = int(a.tab1_ptr[k])
        slopes[first : first + len(x) - 1] = np.diff(y) / np.diff(x)
    for k, (nx, ny) in enumerate(zip(a.tab2_nx, a.tab2_ny, strict=True)):
        if nx < 2 or ny < 2:
            raise ValueError(f"2-D table {k} needs at least 2 x 2 points")
    return slopes


def _friction(a: ModelArrays, h: float, W: np.ndarray) -> dict[str, np.ndarray]:
    """Constants of the friction elements: values at standstill, steepness of mu, capacities that never change."""
    nf, nact = len(a.fr), len(a.act)
    mu0, dmu, w_steep = np.ones(nf), np.zeros(nf), np.zeros(nf)
    fixed, value = np.zeros(nf, dtype=np.int32), np.zeros((nf, 5))
    for i in range(nf):
        if a.fr["src"][i] == SOURCES["LOSS"]:
            fixed[i] = FIXED["FIXED_LOSS"]
            continue
        if a.fr["src"][i] == SOURCES["STOP"]:
            fixed[i] = FIXED["FIXED_STOP"]
            value[i] = (1.0, 0.0, 0.0, UNLIMITED, UNLIMITED)
            continue
        if a.fr["src"][i] == SOURCES["BILATERAL"]:
            fixed[i] = FIXED["FIXED_VALUE"]
            value[i] = (1.0, 0.0, 0.0, UNLIMITED, UNLIMITED)
            continue
        k = int(a.fr["mu"][i])
        x, y = curve(a, k) if k >= 0 else (np.zeros(1), np.ones(1))
        mu0[i] = np.interp(0.0, x, y)
        if a.fr["src"][i] == SOURCES["CONSTANT"] and a.fr["gain"][i] == 0.0:
            # never pressed: a free wheel alone
            fixed[i] = FIXED["FIXED_VALUE"]
            held = (0.0, a.fr["hold"][i], UNLIMITED)[a.fr["fwd"][i]], (0.0, 0.0, UNLIMITED)[a.fr["bwd"][i]]
            value[i] = (0.0, 0.0, 0.0, *held)
        elif np.ptp(y) > 0.0:
            rise = np.diff(y) / np.diff(x)
            dmu[i] = max(0.0, rise.max())
            if dmu[i] > 0.0:
                w_steep[i] = x[1 + int(np.flatnonzero(rise >= 0.1 * dmu[i]).max())]
        elif a.fr["src"][i] == SOURCES["CONSTANT"] and a.fr["gain"][i] > 0.0:
            sliding = a.fr["gain"][i] * a.fr["cgeo"][i] * mu0[i]
            ways = ((0.0, 0.0), (sliding, sliding * a.fr["peak"][i]), (0.0, UNLIMITED))
            forward, backward = ways[a.fr["fwd"][i]], ways[a.fr["bwd"][i]]
            fixed[i] = FIXED["FIXED_VALUE"]
            value[i] = (a.fr["gain"][i], forward[0], backward[0], forward[1], backward[1])
    by_pressure = a.fr["src"] == SOURCES["ACTUATED"]
    piston = np.where(by_pressure, a.fr["src_idx"], 0)
    area = a.act["area"][piston] if nact else np.zeros(nf)
    preload = a.act["p_return"][piston] if nact else np.zeros(nf)
    return {
        "cap0": a.fr["cgeo"] * mu0,
        "lim": a.fr["peak"] * a.fr["cgeo"] * mu0,
        "dmu": dmu,
        "w_steep": w_steep,
        "stiff": 0.5 * h * np.diag(W) / STIFF,
        "fixed": fixed,
        "fixed_val": value,
        "serial": np.isin(np.arange(nf), a.rx["fr"]).astype(np.int32),
        "both": ((a.fr["fwd"] == WAYS["CAPPED"]) & (a.fr["bwd"] == WAYS["CAPPED"])).astype(np.int32),
        "ga": np.where(by_pressure, a.fr["gain"] * area, 0.0),
        "pret": np.where(by_pressure, preload, 0.0),
    }


def _actuators(a: ModelArrays, h: float) -> dict[str, np.ndarray]:
    """Times of pistons that are not 0, exponential factors of a step and half a step."""
    times = {k: np.maximum(a.act[k], SHORTEST) for k in ("t_fill", "t_empty")}
    factors = [
        np.exp(-part * h / np.maximum(a.act[k], SHORTEST)) for k in ("tau_rise", "tau_fall") for part in (1.0, 0.5)
    ]
    return times | {"E": np.stack(factors, axis=1)}


def _inputs(a: ModelArrays) -> dict[str, np.ndarray]:
    """What each input acts on."""
    direct = np.zeros(a.nin, dtype=np.int32)
    torques = a.tq["input"]
    direct[torques[torques >= 0]] = TORQUES_ALONE
    for record in RECORDS:
        if record.kind == "tq":
            continue
        for field in record.fields:
            if field.direct:
                numbers = a.elements[record.kind][field.name]
                direct[numbers[numbers >= 0]] = 1
    source = a.fr["src"]
    direct[a.fr["src_idx"][(source == SOURCES["NORMALIZED"]) | (source == SOURCES["CAPACITY"])]] = 1
    direct[a.cv["arg_idx"][a.cv["arg"] == ARGUMENTS["ARGUMENT_INPUT"]]] = 1
    commands = np.full(a.nin, -1, dtype=np.int32)
    commands[a.act["input"]] = np.arange(len(a.act))
    return {"in_direct": direct, "in_act": commands}


def _filters(a: ModelArrays, h: float) -> np.ndarray:
    """Corner frequencies of driven flanges, limited to what a step can follow: beyond |pole| h = 2 collocation, which
    is A-stable but not L-stable, would let the filter ring instead of settling faster."""
    p = a.drv["p"].copy()
    if len(p):
        p[:, 0] = np.minimum(p[:, 0], np.where(a.drv["kind"] == MOTIONS["DRIVEN_POSITION_FILTER"], 1.5, 2.0) / h)
    return np.asarray(p)


def _pattern_size(a: ModelArrays, unresolved: bool) -> int:
    """Doubles of one lock pattern, as KernelState lays them out."""
    n, nf, contacts, losses = len(a.u0), len(a.fr), len(a.con), len(a.ls)
    kinds = 3 if len(a.lin) + contacts else 1  # of a step, of an instant, of what no compliance sees
    rows = -(-(n + nf) // LANES) * LANES  # P and below it T
    size = kinds * n * n + (kinds * n * rows if n <= FORMED else n * nf) + n * nf
    seen = min(n, len(a.lin) + contacts + len(a.rx))
    size += seen * (n + 3 * (seen + nf))
    four = 4 * n * n if a.order == 4 else 0
    own = n * n + four if contacts else 0
    plain = losses + contacts + len(a.drv) + len(a.vg) == 0
    torques = 4 * n * nf if a.order == 4 and n <= FORMED and plain else 0
    fast = fast_modes(a, unresolved) * 2 * (1 + 3 * n + nf)
    return int(size + four + torques + own + (a.order // 2 * losses) ** 2 + losses**2 + fast)


def fast_modes(a: ModelArrays, unresolved: bool) -> int:
    """How many modes that decay within a step a lock pattern may have: two to each damper. None where the pattern alone
    does not say what they are: ratios change, joints bend, or coordinates have no inertia."""
    if not unresolved or len(a.rx) + len(a.vg) + len(a.jo):
        return 0
    return 2 * (len(a.lin) + len(a.con))


def _cache(a: ModelArrays, unresolved: bool) -> dict[str, Any]:
    """Slots for lock patterns (two bits of the key for each contact): all of them when they are few and fit, else a
    cache with sets of four. Variable gears make every pattern anew as their ratio changes, so few are kept."""
    bits, size = len(a.fr) + 2 * len(a.con), _pattern_size(a, unresolved)
    keys = max(1, (bits + 63) // 64)
    per_slot = 8 * (size + keys + 16) + 4 * (0 if len(a.u0) <= FORMED else 4 * len(a.u0) + 3 * len(a.fr))
    result = {"nkey": keys, "pattern_size": size, "direct_cache": 0}
    if len(a.vg):
        return result | {"ncache": 8}
    if bits <= 12 and (1 << bits) * per_slot <= CACHE_BYTES:
        return result | {"ncache": 1 << bits, "direct_cache": 1}
    slots = 16
    while slots < 4096 and 2 * slots * per_slot <= CACHE_BYTES:
        slots *= 2
    return result | {"ncache": slots}


def _neighbours(W: np.ndarray) -> np.ndarray:
    """Reverse Cuthill-McKee order of the friction elements: those that act on each other come close together, so that
    the factors of the boxed problem of a chain are narrow."""
    linked = W != 0.0
    degree = linked.sum(axis=0)
    order: list[int] = []
    waiting = set(range(len(W)))
    while waiting:
        queue = [min(waiting, key=lambda i: (degree[i], i))]
        waiting.discard(queue[0])
        while queue:
            here = queue.pop(0)
            order.append(here)
            found = sorted((int(i) for i in np.flatnonzero(linked[here]) if i in waiting), key=lambda i: (degree[i], i))
            waiting.difference_update(found)
            queue += found
    return np.array(order[::-1], dtype=np.int32)
