"""Kind "library" with a C source for its file: compiled where the run is (docs/external_controllers.md).

If the source includes "DATABASE_can.h" or "DATABASE_can.c" of one of its buses, these are generated from the database
(hil/can/c_code.py). A file of this name beside the source comes first. A source that includes the header alone is
compiled together with the other file.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.ecu.c_header import INCLUDE
from torqueloop.hil.ecu.control_unit import EcuSetup

#: what `start` may be compiled from
SOURCES = (".c",)
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-shared", "-fPIC", "-O2", "-ffp-contract=off")


def shared_library(setup: EcuSetup) -> Path:
    """The shared library of a unit: its file, or what its C source is compiled to: NAME.so in the run directory (in a
    directory of this process while there is no run). ConfigError with the compiler's words."""
    assert setup.file is not None
    if setup.file.suffix not in SOURCES:
        return setup.file
    where: dict[str, Any] = {"file": setup.rig_file or None, "table": setup.table or None, "key": "start"}
    target = (setup.folder or _scratch()).absolute() / f"{setup.name}.so"
    folders, others = _generated(setup, target.with_name(f"{setup.name}_generated"))
    return compiled(setup.file, target, where, folders, others)


def compiled(source: Path, target: Path | str, where: dict[str, Any], folders: Sequence[str] = (),
             others: Sequence[str] = ()) -> Path:  # fmt: skip
    """A C source, with other ones, as the shared library `target` (a bare name: in a directory of this process), with
    our headers and those in `folders`; ConfigError with the compiler's words. where: file, table and key that name the
    source."""
    target = _scratch() / target
    key = where["key"]
    compiler = next((path for name in COMPILERS if (path := shutil.which(name)) is not None), None)
    if compiler is None:
        allowed = f"{' or '.join(COMPILERS)} on the PATH, or a shared library"
        raise ConfigError(f"{key} = {{value}} needs a C compiler", **where, value=str(source), allowed=allowed)
    headers = [f"-I{folder}" for folder in (INCLUDE, *folders)]
    words = [compiler, *FLAGS, *headers, str(source), *others, "-o", str(target), "-lm"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.splitlines()
        # that of the linker only says that the line before it was an error
        lines = [x for x in said if "error" in x and not x.startswith("collect2")] or said or ["?"]
        raise ConfigError(f"{key} = {{value}} does not compile: {lines[0]}", **where, value=str(source))
    return target


def _generated(setup: EcuSetup, folder: Path) -> tuple[list[str], list[str]]:
    """Folders with the generated files that the source includes, and sources of which it includes the header alone."""
    # it imports cantools whole, which reading a rig does not need
    from torqueloop.hil.can.c_code import c_code, code_stem

    assert setup.file is not None
    text = setup.file.read_text(encoding="utf-8", errors="replace")
    others = []
    wanted = [bus for bus in setup.buses if f'"{code_stem(bus.database)}.' in text]
    for bus in wanted:
        code = c_code(bus.database, bus.node)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{code.stem}.h").write_text(code.header, encoding="utf-8")
        (folder / f"{code.stem}.c").write_text(code.source, encoding="utf-8")
        if f'"{code.stem}.c"' not in text:
            beside = setup.file.with_name(f"{code.stem}.c")
            others.append(str(beside if beside.is_file() else folder / beside.name))
    return ([str(folder)] if wanted else []), others


@cache
def _scratch() -> Path:
    folder = tempfile.mkdtemp(prefix="torqueloop-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
