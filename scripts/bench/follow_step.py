"""Follow one step with the debugger: each function in the order of its calls, with its place and its numbers.

    python scripts/bench/follow_step.py [--step 6605] [--order 2] [--depth 4] [--also NAME] [--gdb]

The step is one of the full-throttle drive of the 4HP22 car (step_spread.py), by default one of the shift from 1 to 2,
in which the input clutch comes to rest. The generic kernel is translated again, without optimisation and with the lines
of its sources, into a temporary folder; the debugger (gdb) prints what is called in it. --depth: how far down; --also:
a function below it that is printed nevertheless; --gdb: stop before the step, for walking through it by hand. Read it
beside docs/theory.md, section 13.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULE = "torqueloop.cython_kernels.step.generic"
#: what Cython puts before the name of a C function of the module
PREFIX = "__pyx_f_10torqueloop_14cython_kernels_4step_7generic_"


def build(folder: Path) -> Path:
    """The generic step with line numbers of its sources, not optimised."""
    import numpy
    from Cython.Compiler.Main import CompilationOptions
    from Cython.Compiler.Main import compile as translate

    from torqueloop.core.compile.user_steps import DIRECTIVES

    os.chdir(ROOT)
    source = str(folder / "generic.c")
    options = CompilationOptions(compiler_directives=DIRECTIVES, emit_linenums=True, output_file=source)
    translate([f"{MODULE.replace('.', '/')}.pyx"], options)
    found = folder / "generic.so"
    include = [f"-I{sysconfig.get_path('include')}", f"-I{numpy.get_include()}"]
    command = ["cc", "-shared", "-fPIC", "-O0", "-g", "-w", *include, source, "-o", str(found), "-lm", "-lrt"]
    subprocess.run(command, check=True)
    return found


def drive(library: str, step: int, order: int) -> None:
    """The drive up to the step; the debugger takes over before it."""
    from dataclasses import replace

    spec = importlib.util.spec_from_file_location(MODULE, library)
    assert spec is not None and spec.loader is not None
    sys.modules[MODULE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[MODULE])
    from bench_step import H, shift_inputs

    from torqueloop.core.compile.compiler import compile_driveline
    from torqueloop.core.components.files import load
    from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState

    compiled = compile_driveline(load(ROOT / "configs" / "powertrains" / "car_4hp22.toml"))
    model = KernelModel(replace(compiled.arrays, order=order), H, "generic")
    inputs = shift_inputs(compiled, (step + 1) * H)
    state = KernelState(model)
    state.warm()
    model.run(state, inputs[:step])
    before = list(state.modes)
    os.kill(os.getpid(), signal.SIGTRAP)
    model.run(state, inputs[step : step + 1])
    for name, old, new in zip(compiled.friction_names, before, state.modes, strict=True):
        if old != new:
            print(f"{name}: mode {old} -> {new}")


def trace() -> None:
    """In the debugger: prints each call of a function of the step."""
    import gdb

    kinds = (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_FLT)
    depth, also = int(os.environ["FOLLOW_DEPTH"]), os.environ["FOLLOW_ALSO"].split()
    gdb.execute("set pagination off")
    gdb.execute("run", to_string=True)
    if os.environ["FOLLOW_BY_HAND"]:
        return

    class Call(gdb.Breakpoint):  # type: ignore[misc]
        """At each function; never stops."""

        def stop(self) -> bool:
            frame, level = gdb.selected_frame(), -1
            name, place = frame.name().removeprefix(PREFIX), frame.find_sal()
            above = frame
            while above is not None and (above.name() or "").startswith(PREFIX):
                level, above = level + 1, above.older()
            if level < depth or name in also:
                numbers = [
                    f"{symbol.name.removeprefix('__pyx_v_')} = {frame.read_var(symbol)}"
                    for symbol in frame.block()
                    if symbol.is_argument and symbol.type.strip_typedefs().code in kinds
                ]
                where = f"{Path(place.symtab.filename).name}:{place.line}"
                print(f"{'  ' * level}{name}  {where}  {', '.join(numbers)}".rstrip(), flush=True)
            return False

    listed = gdb.execute(f"info functions {PREFIX}", to_string=True)
    for name in sorted(set(re.findall(rf"{PREFIX}\w+", listed))):
        Call(name, internal=True)
    gdb.execute("signal 0")


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--step", type=int, default=6605)
    parser.add_argument("--order", type=int, choices=(2, 4), default=2)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--also", nargs="*", default=[])
    parser.add_argument("--gdb", action="store_true")
    parser.add_argument("--library", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.library:
        drive(args.library, args.step, args.order)
        return 0
    if shutil.which("gdb") is None:
        print("error: the debugger gdb is not installed (Debian: apt install gdb)", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="torqueloop-") as folder:
        worker = [sys.executable, __file__, "--library", str(build(Path(folder)))]
        worker += ["--step", str(args.step), "--order", str(args.order)]
        options = {"FOLLOW_DEPTH": str(args.depth), "FOLLOW_ALSO": " ".join(args.also)}
        options["FOLLOW_BY_HAND"] = "yes" if args.gdb else ""
        batch = [] if args.gdb else ["-batch"]
        command = ["gdb", "-q", *batch, "-x", __file__, "--args", *worker]
        return subprocess.run(command, env={**os.environ, **options}).returncode


if __name__ == "__main__":
    if "gdb" in sys.modules:
        trace()
    else:
        sys.exit(main())
