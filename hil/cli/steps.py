"""`torqueloop compile`: a precompiled step of a driveline of one's own."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path
from typing import Annotated

import typer

from torqueloop.core.describe.errors import CompileError
from torqueloop.hil.cli.common import command, out_console
from torqueloop.hil.common.locate import find, locate

#: steps of 1 ms in which the built step is compared with the generic one
COMPARED = 200


@command
def compile_step(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Powertrain or rig: file, or the bare name of one.")],
) -> None:
    """Build the step of a driveline with constant sizes (needs a C compiler and the extra [compile]). The built step is
    compared with the generic one, bit by bit. Every later run of a driveline with this structure uses it."""
    from torqueloop.core.compile.compiler import compile_driveline
    from torqueloop.core.compile.user_steps import build, use
    from torqueloop.core.components.files import load
    from torqueloop.hil.cli.file_check import kind_of

    path = locate(file, "rigs" if Path(file).stem.startswith("desk_") else "powertrains")
    if kind_of(path) == "rig":
        path = find(path, tomllib.loads(path.read_text(encoding="utf-8"))["plant"]["powertrain"], "powertrains")
    model = compile_driveline(load(path))
    begun = time.perf_counter()
    built = build(model, path.stem)
    use(built)
    took = time.perf_counter() - begun
    out_console.print(f"built in {took:.1f} s: {built}", soft_wrap=True, highlight=False)
    hashes = {kernel: _hash_after(path, kernel) for kernel in ("generic", "auto")}
    if len(set(hashes.values())) != 1:
        built.unlink()
        raise CompileError(f"the built step of {path} differs from the generic one and was removed")
    out_console.print(f"equal to the generic step: {COMPARED} steps, hash {hashes['auto']}", highlight=False)


def _hash_after(path: Path, kernel: str) -> str:
    """State hash after some steps from the start values with every pressure at 3 bar and the pedal half down."""
    from torqueloop.core.compile.compiler import compile_driveline
    from torqueloop.core.components.files import load
    from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState

    model = compile_driveline(load(path))
    kernel_model = KernelModel(model.arrays, 1e-3, kernel)
    if kernel == "auto" and kernel_model.kernel_name == "generic":
        raise CompileError(f"the built step of {path} is not found")
    state = KernelState(kernel_model)
    values = [3e5 if unit == "Pa" else 0.5 if unit == "1" else 0.0 for unit in model.input_units]
    import numpy as np

    if kernel_model.run(state, np.tile(values, (COMPARED, 1))) != COMPARED:
        raise CompileError(f"the step of {path} is not finite within {COMPARED} steps")
    return f"{state.hash():016x}"
