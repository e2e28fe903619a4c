"""Cost of one step of the full 4HP22 car: generic and precompiled kernel beside a hand-written C loop of the same size.

All three run the same second-gear stretch from the same state in turn, many rounds; ratios are formed within a round
and their median is printed. The C loop's end state is compared with the kernel's, so it does the same work. The time
of every step of a full-throttle run with its events is the minimum over repetitions (the run is deterministic, so what
varies is the machine).

    python scripts/bench/bench_step.py [--rounds 40]
"""

from __future__ import annotations

import argparse
import ctypes
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components.files import load
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState
from torqueloop.cython_kernels.model.model_arrays import ModelArrays
from torqueloop.cython_kernels.probes.bench import time_steps

ROOT = Path(__file__).resolve().parents[2]
H = 1e-3
FLAGS = ["-O3", "-fno-math-errno", "-ffp-contract=off"]
STEPS = 2000
N, NF, NA = 6, 11, 8
Table = type(
    "Table",
    (ctypes.Structure,),
    {
        "_fields_": [
            ("n", ctypes.c_int),
            ("x", ctypes.POINTER(ctypes.c_double)),
            ("y", ctypes.POINTER(ctypes.c_double)),
            ("at", ctypes.c_int),
        ]
    },
)


def _d(n: int) -> type:
    return ctypes.c_double * n


class Car(ctypes.Structure):
    """struct car of bench_floor.c."""

    _fields_ = [
        ("h", ctypes.c_double), ("P", _d(N * N)), ("T", _d(N * NF)),
        ("u", _d(N)), ("z", _d(N)), ("a", _d(N)), ("s1", _d(N)), ("p", _d(NA)),
        ("E_rise", _d(NA)), ("E_fall", _d(NA)), ("area", _d(NA)), ("p_return", _d(NA)), ("p_cmd", _d(NA)),
        ("cgeo", _d(NF)), ("mu0", _d(NF)), ("peak", _d(NF)),
        ("act", ctypes.c_int * NF), ("mode", ctypes.c_int * NF),
        ("pedal", ctypes.c_double), ("w_idle", ctypes.c_double), ("kp", ctypes.c_double), ("ki", ctypes.c_double),
        ("idle_max", ctypes.c_double), ("xi", ctypes.c_double),
        ("c", ctypes.c_double), ("d", ctypes.c_double), ("phi0", ctypes.c_double), ("k3", ctypes.c_double),
        ("roll", ctypes.c_double),
        ("r1a", ctypes.c_double), ("r1b", ctypes.c_double), ("cr2a", ctypes.c_double), ("cr2b", ctypes.c_double),
        ("hs0", ctypes.c_double), ("hs2", ctypes.c_double), ("hs3", ctypes.c_double),
        ("wot", Table), ("drag", Table), ("mp", Table), ("mu", Table), ("coast", Table), ("mue", Table),
        ("coast_ratio", ctypes.c_double), ("tau", _d(NF)), ("broken", ctypes.c_int),
    ]  # fmt: skip


def build_floor(folder: Path) -> ctypes.CDLL:
    """Compile bench_floor.c with the flags of the kernels."""
    lib = folder / "floor.so"
    command = ["cc", *FLAGS, "-shared", "-fPIC", "-o", str(lib), str(Path(__file__).with_name("bench_floor.c")), "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(lib))


def shift_inputs(model, seconds: float) -> np.ndarray:
    """Full-throttle run 1-2-3-4 with scripted pressures (bar), inputs per step (K, nin) in SI units."""
    t = np.arange(int(round(seconds / H))) * H
    x = np.zeros((len(t), len(model.input_names)))
    script = {
        "C4.p": [(0.1, 15)],
        "C11.p": [(0.1, 15), (18.0, 3), (18.4, 0)],
        "C12.p": [(18.0, 6), (18.6, 12)],
        "C7.p": [(6, 5), (7, 12)],
        "C6.p": [(6.5, 6), (11, 0)],
        "C5.p": [(11, 4), (12, 12)],
    }
    for name, points in script.items():
        for start, bar in points:
            x[t >= start, model.input_index(name)] = bar * 1e5
    x[t >= 1.0, model.input_index("engine.pedal")] = 1.0
    return x


def table(arrays: ModelArrays, index: int, keep: list) -> Table:
    lo, hi = arrays.tab1_ptr[index], arrays.tab1_ptr[index + 1]
    x, y = arrays.tab1_x[lo:hi].copy(), arrays.tab1_y[lo:hi].copy()
    keep += [x, y]
    as_c = ctypes.POINTER(ctypes.c_double)
    return Table(len(x), x.ctypes.data_as(as_c), y.ctypes.data_as(as_c), 0)


def floor_state(model, state: KernelState, x: np.ndarray, keep: list) -> Car:
    """The C loop's struct with the numbers of the model and the present state."""
    a = model.arrays
    P, T = state.lock_matrices()
    car = Car(h=H)
    for field, value in {
        "P": P.T.ravel(), "T": T.T.ravel(), "u": state.u, "z": state.z, "a": state.a, "s1": state.slope, "p": state.p,
        "E_rise": np.exp(-H / a.act["tau_rise"]), "E_fall": np.exp(-H / a.act["tau_fall"]), "area": a.act["area"],
        "p_return": a.act["p_return"], "p_cmd": x[a.act["input"]], "cgeo": a.fr["cgeo"], "peak": a.fr["peak"],
    }.items():  # fmt: skip
        getattr(car, field)[:] = list(np.asarray(value, dtype=float))
    mu_index = int(a.fr["mu"][0])
    for i, name in enumerate(model.friction_names):
        tab = int(a.fr["mu"][i])
        lo = a.tab1_ptr[tab] if tab >= 0 else 0
        car.mu0[i] = float(a.tab1_y[lo]) if tab >= 0 else 1.0
        source = int(a.fr["src"][i])
        car.act[i] = int(a.fr["src_idx"][i]) if source == 2 else (-2 if name == "resistance" else -1)
        car.mode[i] = int(state.modes[i])
        if name == "resistance":
            car.roll = car.mu0[i] * float(a.fr["gain"][i] * a.fr["cgeo"][i])
    rows = {
        int(k): {int(a.row_idx[q]): float(a.row_val[q]) for q in range(a.row_ptr[k], a.row_ptr[k + 1])}
        for k in range(a.n_hot)
    }
    r1, cr2, hs = rows[int(a.fr["row"][0])], rows[int(a.fr["row"][4])], rows[int(a.lin["row"][0])]
    car.r1a, car.r1b, car.cr2a, car.cr2b, car.hs0, car.hs2, car.hs3 = r1[1], r1[2], cr2[1], cr2[2], hs[0], hs[2], hs[3]
    car.pedal = x[int(a.eng["pedal"][0])]
    car.w_idle, car.kp, car.ki = (float(a.eng[k][0]) for k in ("w_idle", "kp", "ki"))
    car.idle_max, car.xi = float(a.eng["tau_idle_max"][0]), float(state.idle_integral[0])
    car.c, car.d = float(a.lin["c"][0]), float(a.lin["d"][0])
    car.phi0 = float(a.lin["phi0"][0] - a.row_off[a.lin["row"][0]])
    car.k3, car.coast_ratio = float(a.poly["k"][0, 3]), float(a.tc["coast_ratio"][0])
    for field, index in {
        "wot": a.eng["wot"][0], "drag": a.eng["drag"][0], "mp": a.tc["mp"][0], "mu": a.tc["mu"][0],
        "coast": a.tc["coast"][0], "mue": mu_index,
    }.items():  # fmt: skip
        setattr(car, field, table(a, int(index), keep))
    return car


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40, help="rounds of the comparison (default 40)")
    parser.add_argument("--repeat", type=int, default=7, help="repetitions of the whole run (default 7)")
    options = parser.parse_args()

    compiled = compile_driveline(load(ROOT / "configs" / "powertrains" / "car_4hp22.toml"))
    arrays = replace(compiled.arrays, order=2)
    models = {"generic": KernelModel(arrays, H, "generic"), "precompiled": KernelModel(arrays, H, "zf_4hp22")}
    fourth = KernelModel(replace(arrays, order=4), H, "zf_4hp22")
    inputs = shift_inputs(compiled, 25.0)
    states = {}
    for name, model in models.items():
        states[name] = KernelState(model)
        states[name].warm()
        model.run(states[name], inputs[:8500])
    if states["generic"].hash() != states["precompiled"].hash():
        print("generic and precompiled kernel differ", file=sys.stderr)
        return 1
    start = {name: state.copy() for name, state in states.items()}
    state4 = KernelState(fourth)
    fourth.run(state4, inputs[:8500])
    start4 = state4.copy()
    stretch = np.ascontiguousarray(np.broadcast_to(inputs[8500], (STEPS, inputs.shape[1])))
    keep: list = []
    with tempfile.TemporaryDirectory() as folder:
        floor = build_floor(Path(folder))
        floor.floor_run.argtypes = [ctypes.POINTER(Car), ctypes.c_long]
        origin = floor_state(compiled, start["generic"], inputs[8500], keep)
        ns: dict[str, list[float]] = {"floor": [], "generic": [], "precompiled": [], "order4": []}
        car = Car()
        for _ in range(options.rounds):
            ctypes.memmove(ctypes.byref(car), ctypes.byref(origin), ctypes.sizeof(Car))
            begin = time.perf_counter_ns()
            floor.floor_run(ctypes.byref(car), STEPS)
            ns["floor"].append((time.perf_counter_ns() - begin) / STEPS)
            for name, model in models.items():
                states[name].restore(start[name])
                begin = time.perf_counter_ns()
                model.run(states[name], stretch)
                ns[name].append((time.perf_counter_ns() - begin) / STEPS)
            state4.restore(start4)
            begin = time.perf_counter_ns()
            fourth.run(state4, stretch)
            ns["order4"].append((time.perf_counter_ns() - begin) / STEPS)
    reached = states["generic"].u
    deviation = float(np.max(np.abs(np.array(car.u) - reached) / np.maximum(1.0, np.abs(reached))))
    events = states["generic"].counters["events"] - start["generic"].counters["events"]
    if car.broken or deviation > 1e-9 or events:
        print(
            f"the C loop does not do the same work: deviation {deviation:.1e}, broken {car.broken}, events {events}",
            file=sys.stderr,
        )
        return 1
    ratio = {k: float(np.median(np.array(ns[k]) / np.array(ns["floor"]))) for k in ("generic", "precompiled")}

    whole = {}
    for name, model in models.items():
        runs = []
        for _ in range(options.repeat):
            states[name].reset()
            states[name].warm()
            runs.append(time_steps(model, states[name], inputs))
        per_step = np.min(runs, axis=0)
        whole[name] = {
            "steps": len(per_step),
            "mean_ns": float(np.median([r.mean() for r in runs])),
            "median_ns": float(np.median(per_step)),
            "p9999_ns": float(np.quantile(per_step, 0.9999)),
            "max_ns": float(per_step.max()),
            "p9999_over_median": float(np.quantile(per_step, 0.9999) / np.median(per_step)),
            "real_time_factor": H * 1e9 / float(np.median([r.mean() for r in runs])),
            "counters": states[name].counters,
            "hash": f"{states[name].hash():016x}",
        }
    ns_of = {k: float(np.median(v)) for k, v in ns.items()}
    print(f"{platform.machine()} {platform.release()} {cpu_name()}")
    print(f"second gear, full throttle, {STEPS} steps x {options.rounds} rounds, order 2, h = {H * 1e3:g} ms (medians)")
    print(f"  hand-written C loop   {ns_of['floor']:7.0f} ns/step   (end state equal to {deviation:.0e})")
    for name in ("precompiled", "generic"):
        print(f"  {name:20s}  {ns_of[name]:7.0f} ns/step   {ratio[name]:.2f} x")
    print(f"  precompiled, order 4  {ns_of['order4']:7.0f} ns/step   (what a driveline with springs takes by itself)")
    print("whole full-throttle run with its events, 25 s (per step: minimum of the repetitions, clock reads included)")
    for name, w in whole.items():
        print(
            f"  {name:20s}  median {w['median_ns']:.0f} ns  p99.99 {w['p9999_ns']:.0f} ns  max {w['max_ns']:.0f} ns  "
            f"p99.99/median {w['p9999_over_median']:.1f}  {w['real_time_factor']:.0f} x real time  "
            f"events {w['counters']['events']}  hash {w['hash']}"
        )
    return 0


def cpu_name() -> str:
    """Model name of the CPU as the kernel gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


if __name__ == "__main__":
    raise SystemExit(main())
