"""Build the Cython kernels: in parallel, and only those whose sources changed.

A module is built anew when its digest differs: its own text and that of everything it includes or cimports from this
tree, the versions of Cython and NumPy, the flags. Time stamps decide nothing, so a fresh checkout of the same text, an
isolated build environment and `pip install -e .` all reuse what `build/kernels/` holds.
"""

from __future__ import annotations

import gc
import hashlib
import os
import platform
import re
import shutil
import sys
import sysconfig
from pathlib import Path

import Cython
import numpy
from Cython.Build import cythonize
from Cython.Build.Dependencies import create_dependency_tree
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
KERNELS = ROOT / "cython_kernels"
#: compiled modules and their digests
STORE = ROOT / "build" / "kernels"
#: how many of the kernels that are not up to date are compiled
PROGRESS = ROOT / "build" / "progress"
#: module that holds what Cython otherwise adds to each module that has memoryviews or functions for Python, which is a
#: third of the C of most of them
SHARED = "torqueloop.cython_kernels.cython_helpers"
#: optimisation of the modules of a folder that have functions without the GIL; all others are built with -O1. With -O2
#: a step takes a fifth more instructions; with -O3 for all, a tick takes 1 % less, the build 20 s of a processor more
OPTIMISE = {"step": "-O3", "locks": "-O3", "tick": "-O2"}

# the flags of the kernels are also those of `torqueloop compile`
sys.path.insert(0, str(ROOT))
from torqueloop.core.compile.user_steps import CFLAGS, DIRECTIVES, STEP_CFLAGS  # noqa: E402


def write_records() -> None:
    """Bring what is generated from cython_kernels/model/records.py up to date."""
    from torqueloop.core.compile.record_sources import write

    write(ROOT)


def write_topologies() -> None:
    """Generate the precompiled steps listed in configs/topologies.toml into cython_kernels/step/topologies/."""
    from torqueloop.core.compile.compiler import compile_driveline
    from torqueloop.core.compile.specialise import specialised_source, topology_list
    from torqueloop.core.components.files import load

    folder = KERNELS / "step" / "topologies"
    wanted = topology_list(ROOT / "configs" / "topologies.toml")
    # also what was compiled of one that is not listed any more: it has the layout of state and model that held then
    for stale in folder.iterdir():
        if stale.suffix in (".pyx", ".c", ".so", ".pyd") and stale.name.split(".")[0] not in wanted:
            stale.unlink()
    for name, powertrain in wanted.items():
        origin = powertrain.relative_to(ROOT).as_posix()
        source = specialised_source(compile_driveline(load(powertrain)), name, origin)
        target = folder / f"{name}.pyx"
        if not target.exists() or target.read_text(encoding="utf-8") != source:
            target.write_text(source, encoding="utf-8")


def extensions() -> list[Extension]:
    """One extension per .pyx below cython_kernels/; with TORQUELOOP_KERNELS=generic,locks those only."""
    only = set(filter(None, os.environ.get("TORQUELOOP_KERNELS", "").split(",")))
    found = []
    for pyx in sorted(KERNELS.rglob("*.pyx")):
        if only and pyx.stem not in only:
            continue
        path = Path("torqueloop") / pyx.relative_to(ROOT)
        room = pyx.relative_to(KERNELS).parts[0]
        flags = [*CFLAGS, *STEP_CFLAGS] if room == "step" else CFLAGS
        optimise = OPTIMISE.get(room, "-O1") if runs_without_python(pyx) else "-O1"
        found.append(
            Extension(
                ".".join(path.with_suffix("").parts),
                [str(path)],
                include_dirs=[numpy.get_include()],
                extra_compile_args=[*flags, optimise],
                define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
                libraries=["m", "rt"] if os.name == "posix" else [],
            )
        )
    if missing := only - {ext.name.rpartition(".")[2] for ext in found}:
        raise SystemExit(f"TORQUELOOP_KERNELS: no kernel is called {', '.join(sorted(missing))}")
    if not found:
        raise SystemExit("no .pyx found under cython_kernels/: the source distribution is incomplete")
    # Cython writes its C
    shared = Extension(SHARED, [f"{SHARED.replace('.', '/')}.c"], extra_compile_args=[*CFLAGS, "-O1"])
    return [*found, shared]


def runs_without_python(pyx: Path) -> bool:
    """The module itself, with what it includes, has functions that run without the GIL."""
    text = pyx.read_text(encoding="utf-8")
    included = re.findall(r'^include "(.+)"', text, re.MULTILINE)
    return "noexcept nogil" in text or any(runs_without_python(pyx.parent / name) for name in included)


def own_sources(ext: Extension) -> list[Path]:
    """Files of this tree that the module is made of: its own, what it includes and cimports, directly or not."""
    if ext.name == SHARED:
        return []
    found = {Path(name).resolve() for name in create_dependency_tree().all_dependencies(ext.sources[0])}
    return sorted(path for path in found if path.is_relative_to(ROOT))


def digest(ext: Extension) -> str:
    """Of all that the compiled module depends on."""
    build = (Cython.__version__, numpy.__version__, sys.version, platform.machine(), os.environ.get("CFLAGS", ""))
    found = hashlib.sha256(repr((build, ext.extra_compile_args, ext.define_macros, DIRECTIVES, SHARED)).encode())
    for path in own_sources(ext):
        found.update(path.relative_to(ROOT).as_posix().encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def translated(stale: list[Extension]) -> list[Extension]:
    """The extensions with C for sources, the largest first, so that the last processor does not end with it alone."""
    # Cython's trees are millions of objects that live until a module is done: looking through them for garbage takes a
    # quarter of its time
    gc.set_threshold(100_000, 20, 100)
    done = cythonize(
        sorted(stale, key=lambda ext: -_size(ext)),
        include_path=[str(ROOT)],
        compiler_directives=DIRECTIVES,
        build_dir="build/cython",
        nthreads=os.cpu_count() or 1,
        force=True,
        quiet=True,
        shared_utility_qualified_name=SHARED,
    )
    # build_ext keeps notes of its own on the objects it was given
    c_files = {ext.name: ext.sources for ext in done}
    for ext in stale:
        ext.sources = c_files[ext.name]
    return sorted(stale, key=lambda ext: -Path(ext.sources[0]).stat().st_size)


class BuildKernels(build_ext):
    """build_ext that takes modules from the store where their digest is the same."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count() or 1

    def build_extension(self, ext: Extension) -> None:
        super().build_extension(ext)
        # read by scripts/_venv.sh, which shows it
        self.compiled += 1
        PROGRESS.write_text(f"{self.compiled} of {len(self.extensions)}")

    def build_extensions(self) -> None:
        self.compiled = 0
        PROGRESS.unlink(missing_ok=True)
        digests = {ext.name: digest(ext) for ext in self.extensions}
        stale = [
            ext for ext in self.extensions if self.force or not _stored(ext).exists() or _note(ext) != digests[ext.name]
        ]
        every = self.extensions
        if stale:
            STORE.mkdir(parents=True, exist_ok=True)
            print(f"building {len(stale)} of {len(every)} kernels: {', '.join(e.name.split('.')[-1] for e in stale)}")
            for ext in stale:
                _note_file(ext).unlink(missing_ok=True)
            self.extensions = translated(stale)
            if shutil.which("ccache"):
                os.environ.setdefault("CCACHE_BASEDIR", str(ROOT))
                self.compiler.set_executable("compiler_so", ["ccache", *self.compiler.compiler_so])
            self.force = True  # what is stale is known here better than by time stamps
            super().build_extensions()
            for ext in self.extensions:
                _put(Path(self.get_ext_fullpath(ext.name)), _stored(ext))
                _note_file(ext).write_text(digests[ext.name])
        for ext in every:
            _put(_stored(ext), Path(self.get_ext_fullpath(ext.name)))
        self.extensions = every

    def copy_extensions_to_source(self) -> None:
        """--inplace and editable: beside the sources, whole or not at all (another process may have the old one)."""
        for ext in self.extensions:
            _put(_stored(ext), ROOT / self.get_ext_filename(ext.name))


def _stored(ext: Extension) -> Path:
    return STORE / f"{ext.name}{sysconfig.get_config_var('EXT_SUFFIX')}"


def _note_file(ext: Extension) -> Path:
    return _stored(ext).with_suffix(".digest")


def _note(ext: Extension) -> str:
    return _note_file(ext).read_text() if _note_file(ext).exists() else ""


def is_built(ext: Extension) -> bool:
    """The module in the store, and its C in build/cython, are of the sources as they are."""
    return _note(ext) == digest(ext)


def _put(source: Path, target: Path) -> None:
    """Copy where it differs, whole or not at all: another process may be running the old one."""
    if not target.exists() or target.read_bytes() != source.read_bytes():
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(".fresh")
        shutil.copy2(source, fresh)
        fresh.replace(target)


def _size(ext: Extension) -> int:
    return sum(path.stat().st_size for path in own_sources(ext))


if __name__ == "__main__":
    os.chdir(ROOT)
    write_records()
    write_topologies()
    setup(ext_modules=extensions(), cmdclass={"build_ext": BuildKernels})
