"""What a kernel model holds beyond the compiled arrays: everything that can be computed before the first step.

Pure numpy; `KernelModel` calls it once and keeps the results. Names are those of the fields in model.pxd, SI units.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

#: compiled arrays of integers and of numbers a model needs (see torqueloop.core.compiler)
INTEGERS = (
    "row_ptr", "row_idx", "lin_row", "tq_row", "tq_in", "poly_row", "eng_row", "eng_pedal_in", "eng_wot_tab",
    "eng_drag_tab", "eng_map_tab2", "tc_row_p", "tc_row_t", "tc_mp_tab", "tc_mu_tab", "tc_coast_tab", "fr_row",
    "fr_src", "fr_src_idx", "fr_mu_tab", "fr_fwd", "fr_bwd", "act_in", "act_kind", "tab1_ptr", "tab1_extrap",
    "tab2_nx", "tab2_ny", "tab2_xptr", "tab2_yptr", "tab2_zptr", "out_kind", "out_idx",
)  # fmt: skip
NUMBERS = (
    "M", "row_val", "row_off", "lin_c", "lin_d", "lin_phi0", "tq_gain", "tq_const", "poly_k0", "poly_k1", "poly_k2",
    "poly_k3", "eng_w_idle", "eng_kp", "eng_ki", "eng_tau_idle_max", "tc_coast_ratio", "fr_gain", "fr_cgeo", "fr_peak",
    "fr_hold", "act_area", "act_p_return", "act_tau_rise", "act_tau_fall", "act_t_fill", "act_t_empty", "act_p_max",
    "tab1_x", "tab1_y", "tab2_x", "tab2_y", "tab2_z", "out_gain", "out_off", "u0", "z0",
)  # fmt: skip
#: the same for groups a model may do without (taken as empty): reactions, losses, contacts, driven flanges, variable
#: gears, eddy-current brakes, forces by curve, thermal network
GROUP_INTEGERS = (
    "ls_fr", "ls_re", "ls_form", "ls_tab", "ls_in", "con_row", "con_kind", "drv_fr", "drv_kind", "drv_in", "vg_fr",
    "vg_rowa", "vg_rowb", "vg_kind", "vg_in", "vg_tab", "ed_row", "ed_th", "cv_row", "cv_tab1", "cv_tab2", "cv_arg",
    "cv_arg_idx", "cv_abs", "th_in", "thg_a", "thg_b", "thg_tab", "thg_arg", "thg_in", "ths_kind", "ths_idx",
    "ths_node",
)  # fmt: skip
GROUP_NUMBERS = (
    "re_A", "re_port", "re_fr", "re_lin", "re_con", "con_c", "con_d", "con_lo", "con_hi", "drv_p", "ed_tau", "ed_wn",
    "ed_alpha", "ed_Tref", "ed_T", "cv_gain", "th_C", "th_T0", "thg_G", "ths_gain",
)  # fmt: skip
#: rows of the ports, in their order
PORTS = ("tq_row", "poly_row", "eng_row", "tc_row_p", "tc_row_t", "ed_row", "cv_row")
#: stands for an unlimited torque; finite, so that interpolation stays finite (same value in forces.pxi)
UNLIMITED = 1e301
#: h/2 * slope * compliance above which the torque of a sliding element is found implicitly: explicit evaluation is
#: stable below 1 and still accurate at 0.2; larger values let clutches with steep mu(w) chatter around zero slip
STIFF = 0.2
#: largest h*omega of a resolved oscillation, by order, and h*d/m of a resolved decay
RESOLVED = {2: 0.25, 4: 1.0}
RESOLVED_DECAY = 5.0
#: shortest time constant, s: stands for an actuator without lag
SHORTEST = 1e-9
#: bound on the memory of the lock-pattern cache of one state, bytes
CACHE_BYTES = 64 << 20
#: up to so many speeds a lock pattern holds T (TL_FORMED in model.pxd)
FORMED = 12

Arrays = dict[str, Any]


def complete(arrays: Mapping[str, Any], h: float) -> Arrays:
    """The compiled arrays in their types, checked, with all derived ones; ValueError names what is wrong."""
    if not h > 0.0:
        raise ValueError(f"h must be positive, got {h} s")
    missing = [name for name in INTEGERS + NUMBERS if name not in arrays]
    if missing:
        raise ValueError(f"compiled arrays lack {missing}")
    a: Arrays = {name: np.ascontiguousarray(arrays[name], dtype=np.int32) for name in INTEGERS}
    a |= {name: np.ascontiguousarray(arrays[name], dtype=np.float64) for name in NUMBERS}
    a |= {name: np.ascontiguousarray(arrays.get(name, ()), dtype=np.int32) for name in GROUP_INTEGERS}
    a |= {name: np.ascontiguousarray(arrays.get(name, ()), dtype=np.float64) for name in GROUP_NUMBERS}
    a["out_aux"] = np.ascontiguousarray(arrays.get("out_aux", np.zeros(len(a["out_kind"]))), dtype=np.int32)
    a |= {name: int(arrays[name]) for name in ("n_hot", "nin")}
    a["order"] = int(arrays.get("order", 2))
    if a["order"] not in (2, 4):
        raise ValueError(f"order must be 2 or 4, got {a['order']}")
    n = len(a["u0"])
    if a["M"].shape != (n, n):
        raise ValueError(f"M has shape {a['M'].shape}, expected {(n, n)}")
    a["port_row"] = np.concatenate([a[k] for k in PORTS])
    a["port_row"] = a["port_row"].astype(np.int32)
    for name in ("fr_row", "lin_row", "port_row", "con_row", "vg_rowa", "vg_rowb"):
        if a[name].size and (a[name].min() < 0 or a[name].max() >= a["n_hot"]):
            raise ValueError(f"{name} outside the {a['n_hot']} rows of force elements")
    _check_references(a)
    a |= _matrices(a, h)
    a |= _tables(a)
    a |= _friction(a, h)
    a |= _actuators(a, h)
    a["drv_p"] = _filters(a, h)
    a |= _cache(a)
    return a


def _check_references(a: Arrays) -> None:
    """Every number that points into another array must point inside it."""
    curves, maps, nact = len(a["tab1_extrap"]), len(a["tab2_nx"]), len(a["act_in"])
    nf, nth, nports = len(a["fr_row"]), len(a["th_C"]), len(a["port_row"])
    limits = {
        "tq_in": (-1, a["nin"]), "eng_pedal_in": (0, a["nin"]), "act_in": (0, a["nin"]), "fr_mu_tab": (-1, curves),
        "eng_wot_tab": (-1, curves), "eng_drag_tab": (-1, curves), "eng_map_tab2": (-1, maps), "tc_mp_tab": (0, curves),
        "tc_mu_tab": (0, curves), "tc_coast_tab": (0, curves), "fr_src": (0, 6), "fr_fwd": (0, 3), "fr_bwd": (0, 3),
        "out_kind": (0, 36), "out_aux": (0, len(a["row_off"])), "ls_fr": (0, nf), "ls_re": (0, len(a["re_A"])),
        "ls_form": (0, 2), "ls_tab": (0, curves),
        "ls_in": (-1, a["nin"]), "con_kind": (0, 2), "drv_fr": (0, nf), "drv_kind": (0, 5), "drv_in": (-1, a["nin"]),
        "vg_fr": (0, nf), "vg_kind": (0, 3), "vg_in": (-1, a["nin"]), "vg_tab": (-1, curves), "ed_th": (-1, nth),
        "cv_tab1": (-1, curves), "cv_tab2": (-1, maps), "cv_arg": (0, 3), "cv_abs": (0, 2), "th_in": (-1, a["nin"]),
        "thg_a": (0, nth), "thg_b": (0, nth), "thg_tab": (-1, curves), "thg_arg": (-1, nth), "thg_in": (-1, a["nin"]),
        "ths_kind": (0, 5), "ths_node": (0, nth),
    }  # fmt: skip
    for name, (low, end) in limits.items():
        if a[name].size and (a[name].min() < low or a[name].max() >= end):
            raise ValueError(f"{name}: values {a[name].min()} .. {a[name].max()}, allowed {low} .. {end - 1}")
    by_pressure = a["fr_src"] == 2
    by_input = (a["fr_src"] == 1) | (a["fr_src"] == 3)
    for chosen, end in ((by_pressure, nact), (by_input, a["nin"])):
        index = a["fr_src_idx"][chosen]
        if index.size and (index.min() < 0 or index.max() >= end):
            raise ValueError(f"fr_src_idx: values {index.min()} .. {index.max()}, allowed 0 .. {end - 1}")
    sizes = (
        *(len(a["row_off"]),) * 3, *(len(a["fr_row"]),) * 3, len(a["tq_row"]), nact, a["nin"], len(a["lin_row"]),
        len(a["eng_row"]), *(len(a["tc_row_p"]),) * 2, len(a["poly_row"]), len(a["fr_row"]), len(a["lin_row"]),
        len(a["tq_row"]), len(a["poly_row"]), len(a["eng_row"]), len(a["tc_row_p"]), 1 << 30, 1 << 30, len(a["re_A"]),
        *(len(a["con_row"]),) * 2, nth, *(nports,) * 2, len(a["ls_fr"]), len(a["con_row"]), len(a["vg_fr"]), nf,
        len(a["lin_row"]), len(a["con_row"]), nports, len(a["re_A"]),
    )  # fmt: skip
    for kind, index in zip(a["out_kind"], a["out_idx"], strict=True):
        if not 0 <= index < sizes[kind]:
            raise ValueError(f"out_idx {index} of kind {kind}, allowed 0 .. {sizes[kind] - 1}")
    _check_groups(a)


def _check_groups(a: Arrays) -> None:
    """Losses, bilateral elements and heat sources: each must be of the kind its user takes it for."""
    nf, n, nre = len(a["fr_row"]), len(a["u0"]), len(a["re_A"])
    shapes = {
        "re_A": (nre, n), "re_port": (nre, len(a["port_row"])), "re_fr": (nre, nf), "re_lin": (nre, len(a["lin_row"])),
        "re_con": (nre, len(a["con_row"])), "ls_tab": (len(a["ls_fr"]), 4), "drv_in": (len(a["drv_fr"]), 3),
        "drv_p": (len(a["drv_fr"]), 2),
    }  # fmt: skip
    for name, shape in shapes.items():
        if a[name].size != shape[0] * shape[1]:
            raise ValueError(f"{name} has shape {a[name].shape}, expected {shape}")
        a[name] = a[name].reshape(shape)
    owners = {4: np.sort(a["ls_fr"]), 5: np.sort(np.concatenate([a["drv_fr"], a["vg_fr"]]))}
    for source, expected in owners.items():
        if not np.array_equal(np.flatnonzero(a["fr_src"] == source), expected):
            raise ValueError(f"friction elements with fr_src {source} and their laws do not correspond")
    needed = {0: 1, 1: 1, 2: 1, 3: 2, 4: 3}
    for kind, inputs in zip(a["drv_kind"], a["drv_in"], strict=True):
        if (inputs[: needed[int(kind)]] < 0).any():
            raise ValueError(f"driven flange of kind {kind} lacks inputs: {inputs.tolist()}")
    if len(a["vg_fr"]) and a["order"] != 2:
        raise ValueError("models with gears of variable ratio need order 2")
    sizes = (len(a["port_row"]), nf, len(a["lin_row"]), len(a["con_row"]), a["nin"])
    for kind, index in zip(a["ths_kind"], a["ths_idx"], strict=True):
        if not 0 <= index < sizes[kind]:
            raise ValueError(f"ths_idx {index} of kind {kind}, allowed 0 .. {sizes[kind] - 1}")


def _symmetric_inverse(A: np.ndarray) -> np.ndarray:
    if not len(A):
        return np.zeros((0, 0))
    inverse = np.linalg.inv(A)
    return np.asarray(0.5 * (inverse + inverse.T))


def _matrices(a: Arrays, h: float) -> Arrays:
    """Dampers and stiffnesses in u, the matrices of the steps, responses of the friction elements."""
    n, rows = len(a["u0"]), len(a["row_off"])
    R = np.zeros((rows, n))
    for k in range(rows):
        first, last = int(a["row_ptr"][k]), int(a["row_ptr"][k + 1])
        if first == last and k < a["n_hot"]:
            raise ValueError(f"row {k} used by a force element is empty")
        for q in range(first, last):
            R[k, a["row_idx"][q]] += a["row_val"][q]
    M, Rl, B = a["M"], R[a["lin_row"]], R[a["fr_row"]]
    D = Rl.T @ (a["lin_d"][:, None] * Rl)
    G = Rl.T @ (a["lin_c"][:, None] * Rl)
    S = M + 0.5 * h * D + 0.25 * h * h * G
    S = 0.5 * (S + S.T)
    Sinv, Minv = _symmetric_inverse(S), _symmetric_inverse(M)
    # Lobatto IIIA: weights of the accelerations of the middle and the end in the speeds of the middle and the end
    A = np.array([[1 / 3, -1 / 24], [2 / 3, 1 / 6]])
    W, W0 = B @ Sinv @ B.T, B @ Minv @ B.T
    Rc = R[a["con_row"]]
    c_all = G + Rc.T @ (2.0 * a["con_c"][:, None] * Rc)
    d_all = D + Rc.T @ (a["con_d"][:, None] * Rc)
    return {
        "stiff_cut": int(_unresolved(_held(Minv, B[a["drv_fr"]]), c_all, d_all, h, a["order"])),
        "D": D, "K": G, "S_range": _ranges(np.abs(M) + np.abs(c_all) + np.abs(d_all)),
        "S": S, "B": B, "Sinv": Sinv, "Minv": Minv, "SinvBt": (Sinv @ B.T).T,
        "W": 0.5 * (W + W.T), "W0": 0.5 * (W0 + W0.T),
        "A4": np.kron(np.eye(2), M) + h * np.kron(A, D) + h * h * np.kron(A @ A, G),
        "poly_k": np.stack([a[f"poly_k{i}"] for i in range(4)], axis=1),
    }  # fmt: skip


def _ranges(A: np.ndarray) -> np.ndarray:
    """(n, 2) first entry of each row that is not zero, and one past the last."""
    used = A != 0.0
    return np.array([(r.argmax(), len(r) - r[::-1].argmax()) if r.any() else (0, 0) for r in used], dtype=np.int32)


def _held(Minv: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Inverse inertia with the rows B held: driven flanges may be all but massless, but they do not swing."""
    if not len(B):
        return Minv
    return np.asarray(Minv - Minv @ B.T @ np.linalg.pinv(B @ Minv @ B.T) @ B @ Minv)


def _unresolved(Minv: np.ndarray, G: np.ndarray, D: np.ndarray, h: float, order: int) -> bool:
    """Whether the step leaves an oscillation or a decay unresolved: h*omega or h*d/m beyond what may be cut on the
    collocation polynomial (inside a step it is not A-stable; beyond these limits repeated cuts would add energy). Steps
    with events are then made of trials of the length that is used, see advance.pxi."""
    if not len(Minv) or not (G.any() or D.any()):
        return False
    omega2 = np.abs(np.linalg.eigvals(Minv @ G)).max()
    decay = np.abs(np.linalg.eigvals(Minv @ D)).max()
    return bool(h * np.sqrt(omega2) > RESOLVED[order] or h * decay > RESOLVED_DECAY)


def _curve(a: Arrays, k: int) -> tuple[np.ndarray, np.ndarray]:
    lo, hi = int(a["tab1_ptr"][k]), int(a["tab1_ptr"][k + 1])
    return a["tab1_x"][lo:hi], a["tab1_y"][lo:hi]


def _tables(a: Arrays) -> Arrays:
    """Slopes of the 1-D tables, aligned with their points (the last of each table is unused)."""
    slopes = np.zeros(len(a["tab1_x"]))
    for k in range(len(a["tab1_extrap"])):
        x, y = _curve(a, k)
        if len(x) < 1 or np.any(np.diff(x) <= 0):
            raise ValueError(f"1-D table {k}: x must increase strictly")
        first = int(a["tab1_ptr"][k])
        slopes[first : first + len(x) - 1] = np.diff(y) / np.diff(x)
    for k, (nx, ny) in enumerate(zip(a["tab2_nx"], a["tab2_ny"], strict=True)):
        if nx < 2 or ny < 2:
            raise ValueError(f"2-D table {k} needs at least 2 x 2 points")
    return {"tab1_dy": slopes}


def _friction(a: Arrays, h: float) -> Arrays:
    """Constants of the friction elements: values at standstill, steepness of mu, capacities that never change."""
    nf, nact = len(a["fr_row"]), len(a["act_in"])
    mu0, dmu, w_steep = np.ones(nf), np.zeros(nf), np.zeros(nf)
    fixed, value = np.zeros(nf, dtype=np.int32), np.zeros((nf, 5))
    for i in range(nf):
        if a["fr_src"][i] == 4:
            fixed[i] = 2
            continue
        if a["fr_src"][i] == 5:
            fixed[i] = 1
            value[i] = (1.0, 0.0, 0.0, UNLIMITED, UNLIMITED)
            continue
        k = int(a["fr_mu_tab"][i])
        x, y = _curve(a, k) if k >= 0 else (np.zeros(1), np.ones(1))
        mu0[i] = np.interp(0.0, x, y)
        if np.ptp(y) > 0.0:
            rise = np.diff(y) / np.diff(x)
            dmu[i] = max(0.0, rise.max())
            if dmu[i] > 0.0:
                w_steep[i] = x[1 + int(np.flatnonzero(rise >= 0.1 * dmu[i]).max())]
        elif a["fr_src"][i] == 0 and a["fr_gain"][i] > 0.0:
            sliding = a["fr_gain"][i] * a["fr_cgeo"][i] * mu0[i]
            ways = ((0.0, 0.0), (sliding, sliding * a["fr_peak"][i]), (0.0, UNLIMITED))
            forward, backward = ways[a["fr_fwd"][i]], ways[a["fr_bwd"][i]]
            fixed[i] = 1
            value[i] = (a["fr_gain"][i], forward[0], backward[0], forward[1], backward[1])
    by_pressure = a["fr_src"] == 2
    piston = np.where(by_pressure, a["fr_src_idx"], 0)
    area = a["act_area"][piston] if nact else np.zeros(nf)
    preload = a["act_p_return"][piston] if nact else np.zeros(nf)
    return {
        "fr_cap0": a["fr_cgeo"] * mu0,
        "fr_lim": a["fr_peak"] * a["fr_cgeo"] * mu0,
        "fr_dmu": dmu,
        "fr_w_steep": w_steep,
        "fr_stiff": 0.5 * h * np.diag(a["W"]) / STIFF,
        "fr_fixed": fixed,
        "fr_fixed_val": value,
        "fr_order": _neighbours(a["W0"]),
        "fr_both": ((a["fr_fwd"] == 1) & (a["fr_bwd"] == 1)).astype(np.int32),
        "fr_ga": np.where(by_pressure, a["fr_gain"] * area, 0.0),
        "fr_pret": np.where(by_pressure, preload, 0.0),
    }


def _actuators(a: Arrays, h: float) -> Arrays:
    """Exponential factors of a step and half a step, and what each input acts on."""
    nin, nact = a["nin"], len(a["act_in"])
    lag = {k: np.maximum(a[k], SHORTEST) for k in ("act_tau_rise", "act_tau_fall", "act_t_fill", "act_t_empty")}
    factors = [np.exp(-part * h / lag[k]) for k in ("act_tau_rise", "act_tau_fall") for part in (1.0, 0.5)]
    direct = np.zeros(nin, dtype=np.int32)
    direct[a["tq_in"][a["tq_in"] >= 0]] = 1
    direct[a["eng_pedal_in"]] = 1
    direct[a["fr_src_idx"][(a["fr_src"] == 1) | (a["fr_src"] == 3)]] = 1
    for name in ("drv_in", "ls_in", "vg_in"):
        direct[a[name][a[name] >= 0]] = 1
    direct[a["cv_arg_idx"][a["cv_arg"] == 1]] = 1
    commands = np.full(nin, -1, dtype=np.int32)
    commands[a["act_in"]] = np.arange(nact)
    simple = not a["act_kind"].any() and len(set(a["act_in"].tolist())) == nact
    return lag | {
        "act_E": np.stack(factors, axis=1) if nact else np.zeros((0, 4)),
        "in_direct": direct,
        "in_act": commands,
        "act_simple": int(simple),
    }


def _filters(a: Arrays, h: float) -> np.ndarray:
    """Corner frequencies of driven flanges, limited to what a step can follow: beyond |pole| h = 2 collocation, which
    is A-stable but not L-stable, would let the filter ring instead of settling faster."""
    p = a["drv_p"].copy()
    if len(p):
        p[:, 0] = np.minimum(p[:, 0], np.where(a["drv_kind"] == 2, 1.5, 2.0) / h)
    return np.asarray(p)


def _pattern_size(a: Arrays) -> int:
    """Doubles of one lock pattern, as KernelState lays them out."""
    n, nf, contacts, losses = len(a["u0"]), len(a["fr_row"]), len(a["con_row"]), len(a["ls_fr"])
    pairs = 2 if len(a["lin_row"]) + contacts else 1
    size = pairs * n * n + (pairs if n <= FORMED else 1) * n * nf + n * nf
    four = 4 * n * n if a["order"] == 4 else 0
    own = n * n + four if contacts else 0
    return int(size + four + own + (a["order"] // 2 * losses) ** 2 + losses**2)


def _cache(a: Arrays) -> Arrays:
    """Slots for lock patterns (two bits of the key for each contact): all of them when they are few and fit, else a
    cache with sets of four. Variable gears make every pattern anew as their ratio changes, so few are kept."""
    bits, size = len(a["fr_row"]) + 2 * len(a["con_row"]), _pattern_size(a)
    keys = max(1, (bits + 63) // 64)
    per_slot = 8 * (size + keys + 16) + 4 * (0 if len(a["u0"]) <= FORMED else 4 * len(a["u0"]) + 3 * len(a["fr_row"]))
    result = {"nkey": keys, "pattern_size": size, "direct_cache": 0}
    if len(a["vg_fr"]):
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
