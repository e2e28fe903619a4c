"""Nothing in a tick may touch Python: check what Cython made of the kernels.

The C of every module of cython_kernels is read: what the build has left, where it is of these sources, else it is
translated once more. The check fails on

* any "performance hint" of Cython, and what it hints at: a nogil function that takes the GIL to look for an exception;
* `PyGILState_Ensure` inside a function declared `noexcept nogil`;
* a `cdef` function that is `nogil` but not `noexcept`, unless it says what it returns on error;
* a call that allocates, prints or touches a Python object inside a function declared `noexcept nogil`.

Included files (.pxi) are checked with the modules that include them, .pxd as they are imported.

    python scripts/check_hot_path.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
#: a cdef function, over as many lines as its arguments take, up to the colon (or, in a .pxd, the end of the line)
DECLARATION = re.compile(r"^[ \t]*cdef\b[^\n=(]*\([^)]*\)(?P<tail>[^\n:]*:?)", re.MULTILINE)
#: a C function of a cdef function starts like this in Cython's output
C_FUNCTION = re.compile(r"^[\w \*]+\b__pyx_f_\w+\(.*\) \{", re.MULTILINE)
#: name of a function declared noexcept nogil
HOT = re.compile(r"^[ \t]*cdef\b[^\n=(]*?(?P<name>\w+)\([^)]*\)[^\n:]*\bnoexcept[ ]+nogil", re.MULTILINE)
#: what a tick never calls: memory, output, Python
NEVER = re.compile(
    r"\b((?:m|c|re)alloc|free|alloca|mmap|munmap|brk|sbrk|f?printf|puts|perror|fopen|fwrite|exit|abort|"
    r"Py(?!x_|ThreadState_)\w*_\w+|__Pyx_Py\w+|__Pyx_(?:Raise|AddTraceback|Get|Set|Call)\w*)\("
)


def declared_wrong(path: Path) -> list[str]:
    """cdef functions that are nogil without noexcept or an explicit except clause."""
    found = []
    text = path.read_text(encoding="utf-8")
    for match in DECLARATION.finditer(text):
        tail = match.group("tail")
        if "nogil" in tail and "noexcept" not in tail and "except" not in tail:
            number = text.count("\n", 0, match.start()) + 1
            words = " ".join(match.group(0).split())
            name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
            found.append(f"{name}:{number}: nogil without noexcept: {words}")
    return found


def gil_in_functions(c_source: str) -> list[str]:
    """Names of cdef functions whose C body takes the GIL."""
    found = []
    for match in C_FUNCTION.finditer(c_source):
        end = c_source.find("\n}\n", match.end())
        body = c_source[match.start() : end]
        signature = c_source[match.start() : match.end()]
        if "PyGILState_Ensure" in body and "PyObject" not in signature:
            found.append(re.search(r"__pyx_f_\w+", signature).group(0))
    return found


def hot_names(sources: list[str]) -> set[str]:
    """Names of the functions declared noexcept nogil in these texts."""
    return {match.group("name") for text in sources for match in HOT.finditer(text)}


def own_name(c_name: str) -> str:
    """The name that a function has in its source: `rig_tick` of `__pyx_f_10torqueloop_14cython_kernels_4tick_rig_tick`,
    where each package, module and class stands behind the number of its letters."""
    rest = c_name.removeprefix("__pyx_f_")
    while length := re.match(r"\d+", rest):
        rest = rest[length.end() + int(length.group()) + 1 :]
    return rest


def never_called(c_source: str, names: set[str]) -> list[str]:
    """Calls in the C bodies of the functions of these names that have no place in a tick."""
    found = []
    for match in C_FUNCTION.finditer(c_source):
        c_name = re.search(r"__pyx_f_\w+", match.group(0)).group(0)
        if own_name(c_name) not in names:
            continue
        body = c_source[match.end() : c_source.find("\n}\n", match.end())]
        # Cython's comments quote the source
        body = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL)
        found += [f"{c_name} calls {call}" for call in sorted({m.group(1) for m in NEVER.finditer(body)})]
    return found


def looks_for_exceptions(c_source: str) -> list[str]:
    """Names of cdef functions that take the GIL to look for an exception of a function they called."""
    found = []
    for match in C_FUNCTION.finditer(c_source):
        if "__Pyx_ErrOccurredWithGIL(" in c_source[match.end() : c_source.find("\n}\n", match.end())]:
            found.append(re.search(r"__pyx_f_\w+", match.group(0)).group(0))
    return found


def wrong_in(c_source: str, where: Path, names: set[str]) -> list[str]:
    """What is wrong in the C of a module."""
    return [
        *(f"{where}: {name} takes the GIL" for name in gil_in_functions(c_source)),
        *(f"{where}: {name} takes the GIL to look for an exception" for name in looks_for_exceptions(c_source)),
        *(f"{where}: {call}" for call in never_called(c_source, names)),
    ]


def built(build: ModuleType) -> dict[Path, Path]:
    """Modules whose C, as the build has left it, is of the sources as they are: (source, C)."""
    found = {}
    for extension in build.extensions():
        source = Path(extension.sources[0])
        c_file = ROOT / "build" / "cython" / "torqueloop" / source.with_suffix(".c").relative_to("torqueloop")
        if c_file.is_file() and build.is_built(extension):
            found[ROOT / source.relative_to("torqueloop")] = c_file
    return found


def translated(path: Path, folder: Path, directives: dict[str, object], names: set[str]) -> list[str]:
    """What is wrong in the C that Cython makes of a module."""
    here = path.relative_to(ROOT)
    out = folder / ("_".join(here.parts) + ".c")
    options = ",".join(f"{k}={v}" for k, v in directives.items() if k != "language_level")
    command = [sys.executable, "-m", "cython", "-3", "-I", str(ROOT), "-X", options, "-o", str(out), str(path)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if result.returncode:
        return [f"{here}: {result.stderr.strip().splitlines()[-1]}"]
    printed = (result.stdout + result.stderr).splitlines()
    hints = [f"{here}: {line.strip()}" for line in printed if "performance hint" in line.lower()]
    return hints + wrong_in(out.read_text(encoding="utf-8"), here, names)


def main() -> int:
    sys.path.insert(0, str(ROOT))
    import setup as build

    build.write_topologies()
    problems: list[str] = []
    sources = sorted((ROOT / "cython_kernels").glob("**/*.pyx"))
    for path in sorted((ROOT / "cython_kernels").glob("**/*.p[xy][xdi]")):
        problems += declared_wrong(path)
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "cython_kernels").glob("**/*.p[xy][xdi]"))]
    names = hot_names(texts)
    with chdir(ROOT):
        there = built(build)
    for path, c_file in there.items():
        problems += wrong_in(c_file.read_text(encoding="utf-8"), path.relative_to(ROOT), names)
    rest = [path for path in sources if path not in there]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(lambda path: translated(path, Path(folder), build.DIRECTIVES, names), rest):
            problems += found
    for problem in problems:
        print(problem)
    read = f"{len(sources)} modules ({len(there)} as built, {len(rest)} translated)"
    print(f"hot path: {read}, {len(names)} functions without the GIL, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
