"""Build the Cython kernels.

The folders core/, cython_kernels/, hil/, configs/ and package/ map onto one package, `torqueloop`. Cython resolves
`torqueloop/core/x.pxd` only in a real tree, so relative symlinks are laid in build/tree first (also used by mypy).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

ROOT = Path(__file__).parent
FOLDERS = {"core": "core", "cython_kernels": "cython_kernels", "hil": "hil", "configs": "configs"}
#: no -ffast-math: NaN checks must survive; no contraction: generic and precompiled kernels are bit-identical
CFLAGS = ["-O3", "-fno-math-errno", "-ffp-contract=off", "-Wno-unused-function"]


def lay_tree() -> Path:
    """Make build/tree/torqueloop with symlinks to the folders and return build/tree."""
    tree = ROOT / "build" / "tree"
    root = tree / "torqueloop"
    root.mkdir(parents=True, exist_ok=True)
    for name, folder in FOLDERS.items():
        link = root / name
        if not link.is_symlink():
            link.symlink_to(os.path.relpath(ROOT / folder, root), target_is_directory=True)
    for file in ("__init__.py", "py.typed"):
        link = root / file
        if not link.is_symlink():
            link.symlink_to(os.path.relpath(ROOT / "package" / file, root))
    return tree


def write_topologies(tree: Path) -> None:
    """Generate the precompiled steps listed in configs/topologies.toml into cython_kernels/topologies/."""
    sys.path.insert(0, str(tree))
    from torqueloop.core.driveline import load
    from torqueloop.core.specialise import specialised_source, topology_list

    folder = ROOT / "cython_kernels" / "topologies"
    wanted = topology_list(ROOT / "configs")
    for stale in folder.glob("*.pyx"):
        if stale.stem not in wanted:
            stale.unlink()
    for name, powertrain in wanted.items():
        origin = powertrain.relative_to(ROOT).as_posix()
        source = specialised_source(load(powertrain).compile(), name, origin)
        target = folder / f"{name}.pyx"
        if not target.exists() or target.read_text(encoding="utf-8") != source:
            target.write_text(source, encoding="utf-8")


def extensions() -> list[Extension]:
    """One extension per .pyx in cython_kernels/ and its topologies/."""
    found = []
    for pyx in sorted((ROOT / "cython_kernels").glob("**/*.pyx")):
        path = pyx.relative_to(ROOT)
        module = "torqueloop." + ".".join(path.with_suffix("").parts)
        found.append(
            Extension(
                module,
                [str(path)],
                include_dirs=[numpy.get_include()],
                extra_compile_args=CFLAGS,
                define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
                libraries=["m", "rt"] if os.name == "posix" else [],
            )
        )
    if not found:
        raise SystemExit("no .pyx found under cython_kernels/: the source distribution is incomplete")
    return found


DIRECTIVES = {
    "language_level": "3",
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "embedsignature": True,
}

if __name__ == "__main__":
    tree = lay_tree()
    write_topologies(tree)
    setup(
        ext_modules=cythonize(
            extensions(),
            include_path=[str(tree)],
            compiler_directives=DIRECTIVES,
            build_dir="build/cython",
            nthreads=0,
        )
    )
