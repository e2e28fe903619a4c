"""Precompiled steps of contacts with an exponent beside a clutch and losses: equal to the generic step, to the bit."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gap_models import Bounce

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.compile.specialise import specialised_source
from torqueloop.core.components import Clutch, IdealGearR2T, Inertia, LossyGear
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.signals import Pulse
from torqueloop.core.simulate.offline import Simulation

ROOT = Path(__file__).resolve().parents[2]
LOSSES = [[0.0, 0.95, 0.9, 0.1, 0.2], [50.0, 0.9, 0.85, 0.2, 0.3]]
INPUTS: dict[str, Any] = {"F0.f": -9.81, "F1.f": -3.0, "k.f_normalized": Pulse(amplitude=1.0, period=0.06, width=50.0)}


def gaps(order: int) -> Driveline:
    """Masses on gaps with an exponent, one of them in the teeth of a lossy rack with a clutch behind it."""
    d = Bounce(n=1.5, d=5.0, c=(2e6, 1e3)).driveline(order)
    parts = {"rack": IdealGearR2T(ratio=10), "P": Inertia(J=1e-3), "gear": LossyGear(ratio=2, lossTable=LOSSES),
             "k": Clutch(fn_max=5.0, mue_pos=0.4), "W": Inertia(J=0.01, w0=20.0)}  # fmt: skip
    for name, part in parts.items():
        d.add(name, part)
    for pair in (("W.flange_b", "k.flange_a"), ("k.flange_b", "gear.flange_a"), ("gear.flange_b", "P.flange_a"),
                 ("P.flange_b", "rack.flangeR"), ("rack.flangeT", "M0.flange_b")):  # fmt: skip
        d.connect(*pair)
    return d


def built(order: int, folder: Path) -> str:
    """Name of the step precompiled for this driveline, built by Cython and the C compiler and registered."""
    name = f"gaps_{order}"
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    pytest.importorskip("Cython", reason="building a step needs Cython (extra `dev`)")
    text = specialised_source(compile_driveline(gaps(order)), name, "a test")
    source = folder / f"{name}.pyx"
    source.write_text(text.replace('include "../', f'include "{ROOT}/cython_kernels/step/'))
    options = [f"-X{o}" for o in ("boundscheck=False", "wraparound=False", "cdivision=True", "initializedcheck=False")]
    subprocess.run(
        [sys.executable, "-m", "cython", "-3", "-I", str(ROOT), *options, source.name], cwd=folder, check=True
    )
    module = folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    flags = ["-O0", "-fPIC", "-shared", "-fno-math-errno", "-ffp-contract=off", "-w"]
    include = f"-I{sysconfig.get_paths()['include']}", f"-I{np.get_include()}"
    subprocess.run(["cc", *flags, *include, f"{name}.c", "-o", str(module)], cwd=folder, check=True)
    spec = importlib.util.spec_from_file_location(name, module)
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    return name


@pytest.mark.proof
@pytest.mark.parametrize("order", [2, 4])
def test_a_precompiled_step_has_the_bits_of_the_generic_one(order: int, tmp_path: Path) -> None:
    name = built(order, tmp_path)
    runs = [Simulation(gaps(order), h=1e-3, kernel=kernel) for kernel in ("generic", name)]
    for simulation in runs:
        for key, signal in INPUTS.items():
            simulation.set_input(key, signal)
    for k in range(400):
        for simulation in runs:
            simulation.step()
        assert runs[0].hash() == runs[1].hash(), f"step {k}"
    assert runs[0].state.counters["events"] > 20 and runs[0].state.counters == runs[1].state.counters


@pytest.mark.parametrize("order", [2, 4])
def test_scratch_memory_is_given_back_and_suffices(order: int) -> None:
    sim = Simulation(gaps(order), h=1e-3, kernel="generic")
    sim.run(2.0, inputs=INPUTS)
    most, reserved, taken = sim.state.scratch
    assert taken == 0
    assert 0 < most <= reserved
