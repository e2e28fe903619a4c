#!/usr/bin/env python
"""What variants side by side in the lanes of vectors could gain at most: the smooth step of the 4HP22 car.

    python scripts/bench/bench_lanes.py [--rounds 40]

The hand-written C loop of bench_floor.c, the loop for 4 and 8 variants (bench_lanes.c) and the precompiled step run
in turns. The loops are compiled for the processor; the first lane must reach the state of the C loop.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from bench_step import FLAGS, STEPS, Car, H, N, floor_state, shift_inputs

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components.files import load
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState

#: when the engine pulls in second gear
BEGIN = 8500


def loops(folder: Path, name: str, *options: str) -> ctypes.CDLL:
    """bench_lanes.c for this processor."""
    lib = folder / f"{name}.so"
    source = str(Path(__file__).with_name("bench_lanes.c"))
    subprocess.run(["cc", *FLAGS, *options, "-shared", "-fPIC", "-o", str(lib), source, "-lm"], check=True)
    return ctypes.CDLL(str(lib))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    compiled = compile_driveline(load("car_4hp22"))
    model = KernelModel(replace(compiled.arrays, order=2), H, "zf_4hp22")
    inputs = shift_inputs(compiled, 1e-3 * BEGIN + 1.0)
    state = KernelState(model)
    state.warm()
    model.run(state, inputs[:BEGIN])
    begin, keep = state.copy(), []
    origin, car = floor_state(compiled, state, inputs[BEGIN], keep), Car()
    stretch = np.ascontiguousarray(np.broadcast_to(inputs[BEGIN], (STEPS, inputs.shape[1])))
    ns: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        made = {"4 lanes, AVX2": loops(Path(folder), "avx2", "-march=haswell", "-DW=4")}
        if "avx512f" in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
            made["8 lanes, AVX-512"] = loops(
                Path(folder), "avx512", "-march=native", "-mprefer-vector-width=512", "-DW=8"
            )
        for _ in range(rounds):
            ctypes.memmove(ctypes.byref(car), ctypes.byref(origin), ctypes.sizeof(Car))
            t = time.perf_counter_ns()
            made["4 lanes, AVX2"].floor_run(ctypes.byref(car), ctypes.c_long(STEPS))
            ns.setdefault("C loop", []).append((time.perf_counter_ns() - t) / STEPS)
            for name, lib in made.items():
                lib.lanes_size.restype, lib.lane_speed.restype = ctypes.c_ulong, ctypes.c_double
                memory = ctypes.create_string_buffer(lib.lanes_size() + 64)
                lanes = ctypes.c_void_p(-(-ctypes.addressof(memory) // 64) * 64)
                lib.lanes_fill(lanes, ctypes.byref(origin))
                t = time.perf_counter_ns()
                lib.lanes_run(ctypes.byref(origin), lanes, ctypes.c_long(STEPS))
                ns.setdefault(name, []).append((time.perf_counter_ns() - t) / STEPS / lib.lanes_count())
                speeds = np.array([lib.lane_speed(lanes, i, 0) for i in range(N)])
                np.testing.assert_allclose(speeds, np.array(car.u), rtol=1e-9, atol=1e-9)
                other = lib.lane_speed(lanes, 4, lib.lanes_count() - 1)
                assert not lib.lanes_broken(lanes) and abs(other - speeds[4]) > 1e-6, "the lanes are not what they seem"
            state.restore(begin)
            t = time.perf_counter_ns()
            model.run(state, stretch)
            ns.setdefault("precompiled", []).append((time.perf_counter_ns() - t) / STEPS)
    base = np.array(ns["precompiled"])
    for name, values in ns.items():
        print(f"{name:18s} {np.median(values):6.1f} ns a step and variant   precompiled / this: "
              f"{np.median(base / np.array(values)):.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
