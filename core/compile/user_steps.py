"""Precompiled steps of a user's own drivelines: built once with the C compiler of this computer, found by every run.

They lie in a folder of the user's cache whose name is a digest of everything they were built against (sources of the
kernels, versions of Python, NumPy, Cython): another version of torqueloop never loads an old step.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import sys
import sysconfig
import tempfile
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from torqueloop.core.compile.compiler import CompiledModel
from torqueloop.core.compile.specialise import specialised_source
from torqueloop.core.describe.errors import CompileError
from torqueloop.core.describe.naming import identifier
from torqueloop.cython_kernels.step import topologies

#: no -ffast-math: NaN checks must survive; no contraction: generic and precompiled kernels are bit-identical
CFLAGS = [
    "-g0", "-fno-math-errno", "-ffp-contract=off", "-Wno-unused-function", "-Wno-unreachable-code",
    # a step is one function of small ones: the bounds on how far inlining may go are meant for whole programs
    "--param=inline-unit-growth=200", "--param=large-function-insns=10000", "--param=large-function-growth=1000",
]  # fmt: skip
#: of steps, generic and precompiled: what is declared inline is, and nothing else, so that what a step costs does not
#: swing with what else stands in the file; and -fwrapv, which Python is built with, would have every index
#: sign-extended
STEP_CFLAGS = [
    "-DCYTHON_INLINE=inline __attribute__((always_inline))", "-fno-inline-functions",
    "-fno-inline-functions-called-once", "-fno-inline-small-functions", "-fno-wrapv", "-fno-gcse",
]  # fmt: skip
DIRECTIVES: dict[str, Any] = {
    "language_level": "3",
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "embedsignature": True,
}
#: package the built modules belong to
PACKAGE = "torqueloop.cython_kernels.step.topologies"


def package_folder() -> Path:
    """The folder `torqueloop` this module was imported from."""
    return Path(sys.modules["torqueloop"].__path__[0])


@cache
def folder() -> Path:
    """Where the steps built for these kernels lie (it need not exist)."""
    flags = (CFLAGS, STEP_CFLAGS, sorted(DIRECTIVES.items()))
    found = hashlib.sha256(repr((sys.version, platform.machine(), *flags)).encode())
    found.update(_version("numpy").encode())
    kernels = package_folder() / "cython_kernels"
    for path in sorted(p for p in kernels.rglob("*") if p.suffix in (".pxd", ".pxi")):
        found.update(path.relative_to(kernels).as_posix().encode())
        found.update(path.read_bytes())
    root = os.environ.get("TORQUELOOP_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "torqueloop"
    return Path(root).expanduser() / "steps" / found.hexdigest()[:16]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def use(built: Path) -> None:
    """Load a step that has just been built: from here on it is found in this process too."""
    spec = importlib.util.spec_from_file_location(f"{PACKAGE}.{built.name.partition('.')[0]}", built)
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def build(model: CompiledModel, name: str, optimise: str = "-O3") -> Path:
    """Build the step of a driveline; the module's file. CompileError without Cython or a C compiler."""
    word = identifier(name)
    source = specialised_source(model, word, name)
    try:
        import numpy
        from Cython.Build import Dependencies, cythonize
        from setuptools import Distribution, Extension  # type: ignore[import-untyped]
    except ImportError as error:
        raise CompileError(f"{error.name} is missing: pip install 'torqueloop[compile]'") from None
    target = folder() / f"{word}{sysconfig.get_config_var('EXT_SUFFIX')}"
    with tempfile.TemporaryDirectory() as place:
        # the folder above the source is searched for what it includes: it must not be one that others write to
        written = Path(place) / "source" / f"{word}.pyx"
        written.parent.mkdir()
        written.write_text(source, encoding="utf-8")
        extension = Extension(
            f"{PACKAGE}.{word}",
            [str(written)],
            include_dirs=[numpy.get_include()],
            # warnings of generated C are nobody's business
            extra_compile_args=[*CFLAGS, *STEP_CFLAGS, optimise, "-w"],
            define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
            libraries=["m"] if os.name == "posix" else [],
        )
        # it keeps the include path of the first call in a process, whoever made it
        Dependencies._dep_tree = None
        package = package_folder()
        where = [str(package / "cython_kernels" / "step" / "topologies"), str(package.parent)]
        try:
            [made] = cythonize(  # type: ignore[no-untyped-call]
                [extension], include_path=where, compiler_directives=DIRECTIVES, build_dir=place, force=True, quiet=True
            )
            made.include_dirs.append(str(package.parent))
            command = Distribution({"ext_modules": [made]}).get_command_obj("build_ext")
            command.build_lib, command.build_temp = place, place
            command.ensure_finalized()
            command.run()
        except Exception as error:  # compilers and setuptools raise many kinds
            raise CompileError(f"the step of {name} cannot be built: {error}") from error
        built = Path(command.get_ext_fullpath(made.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        # whole or not at all: another process may be loading the old one
        fresh = target.with_suffix(".fresh")
        shutil.copy2(built, fresh)
        fresh.replace(target)
    return target


# found like the steps built with the package, when one is first looked for
topologies.add_folder(folder)
