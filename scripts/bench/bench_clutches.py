"""Cost of a step of CoupledClutches (Modelica library) with its sines and steps: compiled loop and sim.step(). With the
step for any driveline, and with the one that `torqueloop compile examples/coupled_clutches.toml` builds.

    python scripts/bench/bench_clutches.py [--rounds 20] [--generic]

--generic: the first only. loop: all steps of the example in one call of the kernel, inputs sampled before (start,
middle and end of each step; the events of the two step signals are at ends of steps). step: a Python loop over
`sim.step()`, which samples as it goes. Of a call, and of every few steps, the least over the rounds: what varies is the
machine. instructions: of the loop, by callgrind.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from instruction_counts import CountingError, Job, instruction_counts

from torqueloop.core.reference import import_case, read_case
from torqueloop.core.simulate.offline import Simulation
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState

ROOT = Path(__file__).resolve().parents[2]
CASE = ROOT / "rt_tests" / "reference" / "msl" / "CoupledClutches"
H, STOP = 1e-3, 1.5
#: steps that are timed together
BLOCK = 20


def clutches(kernel: str) -> Simulation:
    """The example at its start."""
    case = import_case(read_case(CASE))
    sim = Simulation(case.driveline, H, kernel)
    for name, signal in case.inputs.items():
        sim.set_input(name, signal)
    return sim


def samples(sim: Simulation) -> np.ndarray:
    """Inputs of all steps: (K, 3, nin)."""
    points = np.arange(round(STOP / H) + 1) * H
    times = ((points[:-1], +1), (0.5 * (points[:-1] + points[1:]), 0), (points[1:], -1))
    columns = [np.stack([signal.sample(at, side) for signal in sim.signals], axis=-1) for at, side in times]
    return np.ascontiguousarray(np.stack(columns, axis=1))


def loop_ns(rounds: int, kernel: str) -> float:
    """Least time per step of one call of the kernel."""
    sim = clutches(kernel)
    inputs = samples(sim)
    model = KernelModel(sim.model.arrays, H, kernel)
    state = KernelState(model)
    model.advance(state, inputs[0], 0.0)
    start = state.to_bytes()
    best = np.inf
    for _ in range(rounds):
        state.from_bytes(start)
        begin = time.perf_counter_ns()
        done = model.run(state, inputs)
        best = min(best, (time.perf_counter_ns() - begin) / done)
    return float(best)


def step_ns(rounds: int, kernel: str) -> float:
    """Time per sim.step(): of every BLOCK of steps the least over the rounds, the mean of the blocks."""
    blocks = (round(STOP / H) - 1) // BLOCK
    least = np.full(blocks, np.inf)
    for _ in range(rounds):
        sim = clutches(kernel)
        sim.step()
        for block in range(blocks):
            begin = time.perf_counter_ns()
            for _ in range(BLOCK):
                sim.step()
            least[block] = min(least[block], time.perf_counter_ns() - begin)
    return float(least.mean()) / BLOCK


def instructions(kernel: str) -> float:
    """Per step of the loop, with its events; the lock patterns are known."""
    sim = clutches(kernel)
    inputs = samples(sim)
    state = KernelState(KernelModel(sim.model.arrays, H, kernel))
    job = Job(sim.model.arrays, H, state.to_bytes(), inputs, kernel)
    ((once, twice),) = instruction_counts([job], lambda: None)
    return (sum(twice.values()) - sum(once.values())) / len(inputs)


def measure(rounds: int, kernel: str) -> dict[str, float | str]:
    """Everything of one kernel, by name."""
    found: dict[str, float | str] = {"loop_ns": loop_ns(rounds, kernel), "step_ns": step_ns(rounds, kernel)}
    try:
        found["loop_instructions"] = instructions(kernel)
    except CountingError as error:
        found["loop_instructions"] = f"not counted here: {error}"
    return found


def end(kernel: str) -> int:
    """Hash of the state after all steps."""
    sim = clutches(kernel)
    model = KernelModel(sim.model.arrays, H, kernel)
    state = KernelState(model)
    model.run(state, samples(sim))
    return int(state.hash())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--generic", action="store_true", help="only the step for any driveline")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        found = {"generic": measure(given.rounds, "generic")}
        if not given.generic:
            os.environ["TORQUELOOP_CACHE"] = cache
            run = "from torqueloop.hil.cli import main; main()"
            command = [sys.executable, "-c", run, "compile", str(ROOT / "examples" / "coupled_clutches.toml")]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            found["precompiled"] = measure(given.rounds, "coupled_clutches")
            if end("generic") != end("coupled_clutches"):
                raise SystemExit("the two steps differ")
    for kernel, figures in found.items():
        for name, value in figures.items():
            print(
                f"{kernel:12} {name:18} {value:.0f}" if isinstance(value, float) else f"{kernel:12} {name:18} {value}"
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
