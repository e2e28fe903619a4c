"""Instructions of our shaft with two joints against MuJoCo's bodies of the same shaft, counted by callgrind (valgrind).

    python examples/figures/joint_shaft_counts.py

The shaft of `examples/figures/joint_shafts.py cost`, which prints the errors of both. Counted are our step (`advance`,
order 4, generic kernel) and MuJoCo's `mj_step` (RK4), without Python and without what sets the torques;
200 steps from 0.5 s on. A busy machine changes nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from joint_shafts import LOAD, RISE, TORQUE, mujoco_model, two_joints

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "bench"))
from instruction_counts import (
    CountingError,
    Job,
    instruction_counts,
    start_counting,
    under_callgrind,
)

#: steps that are counted, and when they begin [s]
STEPS, BEGIN = 200, 0.5
OURS, THEIRS = (1e-3, 5e-3), (1e-3, 1e-4, 2e-5)


def ours() -> dict[float, float]:
    """Step -> instructions of one."""
    compiled = compile_driveline(two_joints())
    jobs = []
    for h in OURS:
        before = round(BEGIN / h)
        t = np.arange(before + STEPS) * h
        given = np.zeros((len(t), len(compiled.input_names)))
        given[:, compiled.input_index("t.tau")] = TORQUE * np.minimum(1.0, (t + 0.5 * h) / RISE)
        model = KernelModel(compiled.arrays, h)
        state = KernelState(model)
        state.warm()
        model.run(state, given[:before])
        jobs.append(Job(compiled.arrays, h, state.to_bytes(), np.ascontiguousarray(given[before:])))
    counted = instruction_counts(jobs, lambda: None)
    totals = [[sum(profile.values()) for profile in each] for each in counted]
    return {h: (twice - once) / STEPS for h, (once, twice) in zip(OURS, totals, strict=True)}


def worker(switch: str) -> int:
    """Under callgrind: MuJoCo's steps, once and twice as many, in forked processes."""
    mujoco = importlib.import_module("mujoco")
    number = 0
    for h in THEIRS:
        model, _, n_b = mujoco_model(h)
        data = mujoco.MjData(model)
        b = model.body("b").id

        def step(n: int, model: object = model, data: object = data, b: int = b, n_b: np.ndarray = n_b) -> None:
            for _ in range(n):
                turning = data.cvel[b, :3]  # type: ignore[attr-defined]
                data.qfrc_applied[0] = TORQUE * min(1.0, data.time / RISE)  # type: ignore[attr-defined]
                data.xfrc_applied[b, 3:] = -LOAD * (turning @ n_b) * n_b  # type: ignore[attr-defined]
                mujoco.mj_step(model, data)

        step(round(BEGIN / h))
        for passes in (1, 2):
            child = os.fork()
            if child == 0:
                start_counting(switch)
                step(passes * STEPS)
                os._exit(0)
            os.waitpid(child, 0)
            print(f"{number} {child}", flush=True)
            number += 1
    return 0


def theirs() -> dict[float, float]:
    """Step -> instructions of one."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(__file__).resolve()), "--worker"]
        found = under_callgrind(command, "mj_step", Path(folder), lambda: None)
    totals = [sum(profile.values()) for profile in found]
    return {h: (totals[2 * k + 1] - totals[2 * k]) / STEPS for k, h in enumerate(THEIRS)}


def main() -> int:
    if sys.argv[1:2] == ["--worker"]:
        return worker(sys.argv[2])
    if importlib.util.find_spec("mujoco") is None:
        print("skipped: MuJoCo is not installed (pip install mujoco)")
        return 0
    try:
        own, other = ours(), theirs()
    except CountingError as error:
        print(f"instructions cannot be counted here: {error}", file=sys.stderr)
        return 2
    for name, found in (("ours", own), ("MuJoCo", other)):
        for h, count in found.items():
            line = f"{name:7} {h * 1e3:5g} ms: {count:9.0f} a step, {count / h / 1e6:9.2f} million a second"
            print(line + (f", {count / h / (own[1e-3] / 1e-3):.1f} times ours at 1 ms" if name == "MuJoCo" else ""))
    alike = (other[1e-4] / 1e-4) / (own[5e-3] / 5e-3)
    print(f"at the same step of 1 ms: {other[1e-3] / own[1e-3]:.1f} times ours")
    print(f"at 2e-3 rad/s (ours 5 ms, MuJoCo 0.1 ms): {alike:.0f} times ours")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
