"""Instructions that the steps of a kernel take, counted by callgrind (valgrind): they repeat exactly on a busy machine.

Each run is made in a process forked from one worker under callgrind and leaves a profile of its own; only what happens
inside `advance` of a kernel is counted. Used by bench_size.py and step_baseline.py.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torqueloop.core.compile.user_steps  # noqa: F401  steps that `torqueloop compile` has built are found
from torqueloop.cython_kernels.kernel.kernel import KernelModel, KernelState
from torqueloop.cython_kernels.model.model_arrays import ModelArrays


class Job(NamedTuple):
    """One stretch of one model."""

    arrays: ModelArrays
    #: step [s]
    h: float
    #: state at the start
    start: bytes
    inputs: Any
    kernel: str = "generic"
    #: how often to go over the stretch, each in a process of its own
    passes: tuple[int, ...] = (1, 2)


#: instructions by function (its own, without what it calls)
Profile = dict[str, float]


class CountingError(Exception):
    """Instructions cannot be counted here; the text says why."""


#: start_counting turns the instrumentation on: until then valgrind only translates, and Python starts five times as
#: fast; write_counts writes what has been counted since the last time into a profile of its own
SWITCH = """#include <valgrind/callgrind.h>
void start_counting(void) { CALLGRIND_START_INSTRUMENTATION; }
void write_counts(void) { CALLGRIND_DUMP_STATS; }
"""


def make_switch(folder: Path) -> Path | None:
    """SWITCH as a library; None without a compiler or valgrind's header: instrumentation is on from the start then."""
    compiler, source, made = shutil.which("cc") or shutil.which("gcc"), folder / "switch.c", folder / "switch.so"
    if compiler is None:
        return None
    source.write_text(SWITCH, encoding="utf-8")
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(made), str(source)]
    return made if subprocess.run(command, capture_output=True).returncode == 0 else None


def start_counting(switch: str) -> None:
    """In a process under valgrind: from here on it counts. switch: path of the library, or "-" for none."""
    if switch != "-":
        ctypes.CDLL(switch).start_counting()


def worker(path: str, switch: str) -> int:
    """Under callgrind: each job in forked processes, by default once over its stretch and twice."""
    models: dict[tuple[int, str], KernelModel] = {}
    for number, job in enumerate(Job(*each) for each in pickle.loads(Path(path).read_bytes())):
        # pickle keeps one object for the arrays that several jobs share
        key = (id(job.arrays), job.kernel)
        model = models.get(key) or KernelModel(job.arrays, job.h, job.kernel)
        models[key] = model
        for passes in job.passes:
            state = KernelState(model)
            child = os.fork()
            if child == 0:
                start_counting(switch)
                for _ in range(passes):
                    state.from_bytes(job.start)
                    model.run(state, job.inputs)
                os._exit(0)
            os.waitpid(child, 0)
            print(f"{number} {child}", flush=True)
    return 0


def read_profile(path: Path) -> Profile:
    """A callgrind profile: lines of costs after fn=; the line after calls= is the cost of the callee and left out."""
    names: dict[str, str] = {}
    own: Profile = {}
    current, inclusive = "", False
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith(("fn=", "cfn=")):
            number, _, name = line.split("=", 1)[1].partition(" ")
            if name:
                names[number] = short_name(name)
            if line.startswith("fn="):
                current = names[number]
        elif line.startswith("calls="):
            inclusive = True
        elif line[:1] in "0123456789+-*" and " " in line:
            if not inclusive:
                own[current] = own.get(current, 0.0) + float(line.split()[1])
            inclusive = False
    return own


def short_name(symbol: str) -> str:
    """__pyx_f_10torqueloop_14cython_kernels_7generic_trial2.part.0 -> trial2"""
    name = symbol.split("'")[0].split(".")[0]
    for module in ("generic_", "locks_", "model_", "tick_", "codec_", "ring_"):
        if name.startswith("__pyx_") and module in name:
            return name.split(module, 1)[1]
    return name


def under_callgrind(
    command: Sequence[str], counted: str | None, folder: Path, progress: Callable[[], None]
) -> list[Profile]:
    """Run a Python command that forks children and prints "NUMBER PROCESS" when one has ended; their profiles in that
    order. counted: pattern of the C function inside which instructions count, None: all of all threads. The command
    gets one more argument, for start_counting in its children."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise CountingError("valgrind is not installed (apt-get install valgrind)")
    options = ["--tool=callgrind", "--quiet"]
    if counted is not None:
        options += ["--collect-atstart=no", f"--toggle-collect={counted}"]
    switch = make_switch(folder)
    if switch is not None:
        options.append("--instr-atstart=no")
    command = [*command, str(switch or "-")]
    found: list[Profile] = []
    with subprocess.Popen(
        [valgrind, *options, f"--callgrind-out-file={folder}/profile.%p", sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            profile = folder / f"profile.{line.split()[1]}"
            if not profile.exists():
                break
            found.append(read_profile(profile))
            profile.unlink()
            progress()
        errors = process.stderr.read()
    if process.returncode or not found:
        raise CountingError(f"valgrind ended with {process.returncode}: {errors.strip()[-300:]}")
    if not all(found):
        raise CountingError("callgrind saw nothing of what is to be counted: the kernels have lost their symbols")
    return found


def written_totals(folder: Path) -> list[float]:
    """Instructions between one write_counts and the next, of the one child that called it; the files are removed."""
    files = {int(path.suffix[1:]): path for path in folder.glob("profile.*.*") if path.suffix[1:].isdigit()}
    totals = []
    for _, path in sorted(files.items()):
        found = re.search(
            r"^(?:totals|summary): (\d+)", path.read_text(encoding="utf-8", errors="replace"), re.MULTILINE
        )
        totals.append(float(found.group(1)) if found else 0.0)
        path.unlink()
    return totals


def instruction_counts(jobs: Sequence[Job], progress: Callable[[], None]) -> list[tuple[Profile, ...]]:
    """For each job the profiles of its passes, one pass over its stretch and two; progress is called after each."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.pickle"
        path.write_bytes(pickle.dumps([tuple(job) for job in jobs]))
        found = under_callgrind([str(Path(__file__).resolve()), str(path)], "__pyx_f_*_advance", Path(folder), progress)
    if len(found) != sum(len(job.passes) for job in jobs):
        raise CountingError(f"only {len(found)} profiles were written")
    rest = iter(found)
    profiles = [tuple(next(rest) for _ in job.passes) for job in jobs]
    if any(sum(b.values()) <= sum(a.values()) for each in profiles for a, b in zip(each, each[1:], strict=False)):
        raise CountingError("the second pass over a stretch cost nothing")
    return profiles


if __name__ == "__main__":
    raise SystemExit(worker(sys.argv[1], sys.argv[2]))
