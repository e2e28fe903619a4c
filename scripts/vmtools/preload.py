"""The files a Python program is made of, to be held in the machine's memory.

Reading 2000 files over the share takes a minute of the guest's time; from memory it is a matter of seconds.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

from vmtools.errors import Unavailable
from vmtools.packages import find

#: parts of the standard library no program here imports
_LEFT_OUT = {"site-packages", "test", "tests", "idlelib", "ensurepip", "lib2to3", "tkinter", "turtledemo"}
_LISTING = r"""
import json, sys
found = set()
for module in list(sys.modules.values()):
    found |= {getattr(module, "__file__", None), getattr(module, "__cached__", None)}
with open("/proc/self/maps") as maps:
    found |= {line.split(maxsplit=5)[5].strip() for line in maps if len(line.split(maxsplit=5)) == 6}
print("\n" + json.dumps([sys.executable, *sorted(filter(None, found))]))
"""


def python_files(code: str) -> list[Path]:
    """Files of the running Python after this code, compiled ones included; and the whole standard library."""
    done = subprocess.run([sys.executable, "-c", code + _LISTING], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    found = [Path(p) for p in json.loads(done.stdout.splitlines()[-1])]
    library = Path(sys.base_prefix, "lib", f"python{sys.version_info.major}.{sys.version_info.minor}")
    found += [p for p in library.rglob("*") if _wanted(p, p.relative_to(library).parts)]
    # a library is asked for by a name that is a link to it
    folders = {p.parent for p in found if ".so." in p.name and not p.is_relative_to(sys.prefix)}
    found += [p for f in folders for p in f.glob("*.so.*") if p.is_symlink() and p.resolve() in found]
    # what decides about the environment, looked at by every start; a package installed in place is found by its .pth
    found += Path(sysconfig.get_path("purelib")).glob("__editable__*.pth")
    found += [p for parent in Path(sys.prefix, "bin").parents for p in [parent / "pyvenv.cfg"]]
    return [p for p in found if p.is_absolute() and p.is_file()]


def _wanted(path: Path, parts: tuple[str, ...]) -> bool:
    return not (_LEFT_OUT & set(parts) or parts[0].startswith("config-") or ".opt-" in path.name)


def program_files(names: list[str]) -> list[Path]:
    """Programs with the libraries they load, and what the loader asks for."""
    found = [Path("/etc", n) for n in ("ld.so.cache", "passwd", "group", "nsswitch.conf", "hosts", "localtime")]
    for name in names:
        path = find(name)
        if path is None:
            raise Unavailable(f"{name} not found")
        text = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
        found += [Path(path), *(Path(p) for p in re.findall(r"(/\S+) \(0x", text))]
    return [p for p in found if p.is_file()]
