"""Steps precompiled for a driveline of a test: built by Cython and the C compiler, and registered."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.compile.specialise import specialised_source
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.simulate.offline import Simulation

#: a driveline of the order 2 or 4
Made = Callable[[int], Driveline]

ROOT = Path(__file__).resolve().parents[2]


def built(driveline: Driveline, name: str, folder: Path) -> str:
    """Its name; the test is skipped without a compiler or Cython."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    pytest.importorskip("Cython", reason="building a step needs Cython (extra `dev`)")
    text = specialised_source(compile_driveline(driveline), name, "a test")
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


def same_bits(made: Made, order: int, inputs: Mapping[str, Any], name: str, folder: Path, steps: int) -> None:
    """Its precompiled step has the hash of the generic one after every step, and its counters; more than 20 events."""
    kernels = ("generic", built(made(order), f"{name}_{order}", folder))
    runs = [Simulation(made(order), h=1e-3, kernel=kernel) for kernel in kernels]
    for simulation in runs:
        for key, signal in inputs.items():
            simulation.set_input(key, signal)
    for k in range(steps):
        for simulation in runs:
            simulation.step()
        assert runs[0].hash() == runs[1].hash(), f"step {k}"
    assert runs[0].state.counters["events"] > 20 and runs[0].state.counters == runs[1].state.counters


def scratch_suffices(driveline: Driveline, inputs: Mapping[str, Any], seconds: float) -> None:
    """A run takes scratch memory within what is reserved, and gives all of it back."""
    simulation = Simulation(driveline, h=1e-3, kernel="generic")
    simulation.run(seconds, inputs=inputs)
    most, reserved, taken = simulation.state.scratch
    assert taken == 0
    assert 0 < most <= reserved
