"""How much the steps of the full 4HP22 car differ: instructions of the slowest 1e-4 of them over the median.

    python scripts/bench/step_spread.py [--seconds 25] [--order 2]

The full-throttle drive through all four gears, by the precompiled kernel, counted by callgrind (valgrind), so a busy
machine changes nothing. Every step with an event, a decision or more than one evaluation of the forces is counted by
itself; the others in groups of neighbours, each with the mean of its group. warm: as a rig begins (state.warm());
cold: without.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from bench_step import H, shift_inputs
from instruction_counts import CountingError, make_switch, written_totals
from numpy.typing import NDArray

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components.files import load
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState

CAR = Path(__file__).resolve().parents[2] / "configs" / "powertrains" / "car_4hp22.toml"
KERNEL = "zf_4hp22"
#: most steps without events in a group
GROUP = 100
#: of the steps, what is slower than the rest
SLOWEST = 1e-4


def groups(model: KernelModel, inputs: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Steps first .. last - 1 that are counted together."""
    state = KernelState(model)
    state.warm()
    found: list[tuple[int, int]] = []
    before, plain, single = dict(state.counters), 1 if model.arrays.order == 2 else 2, True
    for k in range(len(inputs)):
        model.run(state, inputs[k : k + 1])
        after = dict(state.counters)
        alone = after["decisions"] > before["decisions"] or after["evals"] - before["evals"] > plain
        if alone or single or found[-1][1] - found[-1][0] == GROUP:
            found.append((k, k + 1))
        else:
            found[-1] = (found[-1][0], k + 1)
        before, single = after, alone
    return found


def worker(path: str, switch: str) -> int:
    """Under callgrind: the drive in a forked process, a profile behind each group."""
    arrays, inputs, parts, warm = pickle.loads(Path(path).read_bytes())
    model = KernelModel(arrays, H, KERNEL)
    child = os.fork()
    if child == 0:
        counter = ctypes.CDLL(switch)
        state = KernelState(model)
        if warm:
            state.warm()
        counter.start_counting()
        for first, behind in parts:
            model.run(state, inputs[first:behind])
            counter.write_counts()
        os._exit(0)
    return int(os.waitpid(child, 0)[1] != 0)


def per_step(order: int, seconds: float, warm: bool) -> NDArray[np.float64]:
    """Instructions of every step."""
    compiled = compile_driveline(load(CAR))
    arrays, inputs = replace(compiled.arrays, order=order), shift_inputs(compiled, seconds)
    parts = groups(KernelModel(arrays, H, KERNEL), inputs)
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise CountingError("valgrind is not installed (apt-get install valgrind)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        switch = make_switch(folder)
        if switch is None:
            raise CountingError("there is no C compiler, or valgrind's header is missing")
        (folder / "job").write_bytes(pickle.dumps((arrays, inputs, parts, warm)))
        command = [
            valgrind, "--tool=callgrind", "--quiet", "--collect-atstart=no", "--toggle-collect=__pyx_f_*_advance",
            "--instr-atstart=no", f"--callgrind-out-file={folder}/profile.%p",
            sys.executable, str(Path(__file__).resolve()), "--worker", str(folder / "job"), str(switch),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        totals = written_totals(folder)
    if done.returncode or len(totals) < len(parts):
        raise CountingError(f"{len(totals)} of {len(parts)} groups were counted: {done.stderr.strip()[-300:]}")
    return np.concatenate([np.full(b - a, t / (b - a)) for (a, b), t in zip(parts, totals, strict=False)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=25.0)
    parser.add_argument("--order", type=int, choices=(2, 4), default=2)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        return worker(*given.worker)
    found: dict[str, dict[str, float]] = {}
    try:
        for name, warm in (("warm", True), ("cold", False)):
            counts = np.sort(per_step(given.order, given.seconds, warm))
            median = float(np.median(counts))
            slow = float(counts[int(np.ceil((1.0 - SLOWEST) * len(counts))) - 1])
            found[name] = {
                "steps": len(counts), "median": median, "slowest_1e-4": slow, "most": float(counts[-1]),
                "ratio": slow / median, "most_ratio": float(counts[-1]) / median,
            }  # fmt: skip
    except CountingError as error:
        print(f"instructions cannot be counted here: {error}", file=sys.stderr)
        return 2
    for name, figures in found.items():
        print(name.ljust(6), *(f"{key} {value:.6g}" for key, value in figures.items()), sep="  ")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
