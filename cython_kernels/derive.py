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
#: stands for an unlimited torque; finite, so that interpolation stays finite (same value in forces.pxi)
UNLIMITED = 1e301
#: h/2 * slope * compliance above which the torque of a sliding element is found implicitly: explicit evaluation is
#: stable below 1 and still accurate at 0.2; larger values let clutches with steep mu(w) chatter around zero slip
STIFF = 0.2
#: shortest time constant, s: stands for an actuator without lag
SHORTEST = 1e-9
#: bound on the memory of the lock-pattern cache of one state, bytes
CACHE_BYTES = 64 << 20

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
    a |= {name: int(arrays[name]) for name in ("n_hot", "nin")}
    a["order"] = int(arrays.get("order", 2))
    if a["order"] not in (2, 4):
        raise ValueError(f"order must be 2 or 4, got {a['order']}")
    n = len(a["u0"])
    if a["M"].shape != (n, n):
        raise ValueError(f"M has shape {a['M'].shape}, expected {(n, n)}")
    a["port_row"] = np.concatenate([a[k] for k in ("tq_row", "poly_row", "eng_row", "tc_row_p", "tc_row_t")])
    a["port_row"] = a["port_row"].astype(np.int32)
    for name in ("fr_row", "lin_row", "port_row"):
        if a[name].size and (a[name].min() < 0 or a[name].max() >= a["n_hot"]):
            raise ValueError(f"{name} outside the {a['n_hot']} rows of force elements")
    _check_references(a)
    a |= _matrices(a, h)
    a |= _tables(a)
    a |= _friction(a, h)
    a |= _actuators(a, h)
    a |= _cache(n, len(a["fr_row"]))
    return a


def _check_references(a: Arrays) -> None:
    """Every number that points into another array must point inside it."""
    curves, maps, nact = len(a["tab1_extrap"]), len(a["tab2_nx"]), len(a["act_in"])
    limits = {
        "tq_in": (-1, a["nin"]), "eng_pedal_in": (0, a["nin"]), "act_in": (0, a["nin"]), "fr_mu_tab": (-1, curves),
        "eng_wot_tab": (-1, curves), "eng_drag_tab": (-1, curves), "eng_map_tab2": (-1, maps), "tc_mp_tab": (0, curves),
        "tc_mu_tab": (0, curves), "tc_coast_tab": (0, curves), "fr_src": (0, 4), "fr_fwd": (0, 3), "fr_bwd": (0, 3),
        "out_kind": (0, 22),
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
        len(a["tq_row"]), len(a["poly_row"]), len(a["eng_row"]), len(a["tc_row_p"]), 1 << 30, 1 << 30,
    )  # fmt: skip
    for kind, index in zip(a["out_kind"], a["out_idx"], strict=True):
        if not 0 <= index < sizes[kind]:
            raise ValueError(f"out_idx {index} of kind {kind}, allowed 0 .. {sizes[kind] - 1}")


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
    return {
        "S": S, "B": B, "Sinv": Sinv, "Minv": Minv, "SinvBt": (Sinv @ B.T).T,
        "W": 0.5 * (W + W.T), "W0": 0.5 * (W0 + W0.T),
        "A4": np.kron(np.eye(2), M) + h * np.kron(A, D) + h * h * np.kron(A @ A, G),
        "poly_k": np.stack([a[f"poly_k{i}"] for i in range(4)], axis=1),
    }  # fmt: skip


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
    commands = np.full(nin, -1, dtype=np.int32)
    commands[a["act_in"]] = np.arange(nact)
    simple = not a["act_kind"].any() and len(set(a["act_in"].tolist())) == nact
    return lag | {
        "act_E": np.stack(factors, axis=1) if nact else np.zeros((0, 4)),
        "in_direct": direct,
        "in_act": commands,
        "act_simple": int(simple),
    }


def _cache(n: int, nf: int) -> Arrays:
    """Slots for lock patterns: all 2^nf of them when they are few and fit, else a direct-mapped cache."""
    keys = max(1, (nf + 63) // 64)
    per_slot = 8 * (6 * n * n + 3 * n * nf + keys + 8)
    if nf <= 12 and (1 << nf) * per_slot <= CACHE_BYTES:
        return {"nkey": keys, "ncache": 1 << nf, "direct_cache": 1}
    slots = 16
    while slots < 4096 and 2 * slots * per_slot <= CACHE_BYTES:
        slots *= 2
    return {"nkey": keys, "ncache": slots, "direct_cache": 0}
