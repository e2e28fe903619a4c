"""Steps precompiled for a driveline of a test: built by Cython and the C compiler, and registered."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.compile.specialise import specialised_source
from torqueloop.core.compile.user_steps import folder as steps_folder
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.simulate.offline import Simulation

#: a driveline of the order 2 or 4
Made = Callable[[int], Driveline]

ROOT = Path(__file__).resolve().parents[2]
#: stands for the name of a step in its source
NAME = "name_of_this_step"


def built(driveline: Driveline) -> str:
    """Name of the step that is precompiled for drivelines of this structure, whatever their values and order. It is
    built once for all tests and workers and stays in build/, until a source of the kernels changes. The test is
    skipped without a compiler or Cython."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    pytest.importorskip("Cython", reason="building a step needs Cython (extra `dev`)")
    text = specialised_source(compile_driveline(driveline), NAME, "a test")
    return _loaded(text, hashlib.sha256(text.encode()).hexdigest()[:16])


@cache
def _loaded(text: str, digest: str) -> str:
    name = f"of_a_test_{digest}"
    # the name of the folder of a user's steps is a digest of all that they are built against
    place = ROOT / "build" / "steps_of_tests" / f"{steps_folder().name}-{version('cython')}"
    module = place / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    place.mkdir(parents=True, exist_ok=True)
    with open(place / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not module.exists():
            with tempfile.TemporaryDirectory(dir=place) as folder:
                _build(text.replace(NAME, name), name, Path(folder)).replace(module)
    spec = importlib.util.spec_from_file_location(name, module)
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    return name


def _build(text: str, name: str, folder: Path) -> Path:
    """The module of a source."""
    source = folder / f"{name}.pyx"
    source.write_text(text.replace('include "../', f'include "{ROOT}/cython_kernels/step/'))
    options = [f"-X{o}" for o in ("boundscheck=False", "wraparound=False", "cdivision=True", "initializedcheck=False")]
    subprocess.run(
        [sys.executable, "-m", "cython", "-3", "-I", str(ROOT), *options, source.name], cwd=folder, check=True
    )
    flags = ["-O0", "-fPIC", "-shared", "-fno-math-errno", "-ffp-contract=off", "-w"]
    include = f"-I{sysconfig.get_paths()['include']}", f"-I{np.get_include()}"
    subprocess.run(["cc", *flags, *include, f"{name}.c", "-o", "module.so"], cwd=folder, check=True)
    return folder / "module.so"


def same_bits(made: Made, order: int, inputs: Mapping[str, Any], steps: int) -> None:
    """Its precompiled step has the hash of the generic one after every step, and its counters; more than 20 events."""
    kernels = ("generic", built(made(order)))
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
