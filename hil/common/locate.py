"""Find configuration files: by path, or by bare name among those installed with the package."""

from __future__ import annotations

import os
import time
from pathlib import Path

from torqueloop.configs import SUFFIXES, installed
from torqueloop.core.describe.errors import ConfigError, did_you_mean
from torqueloop.core.describe.renamed import file_in, remedy

#: folder of installed configs -> what a file in it is called in messages
FOLDERS = {
    "rigs": "rig",
    "gearboxes": "gearbox",
    "sketches": "gearbox sketch",
    "powertrains": "powertrain",
    "drives": "drive around a gearbox",
    "vehicles": "vehicle",
    "hydraulics": "hydraulic unit",
    "tcu": "TCU",
    "interfaces": "maker's bus interface",
    "scenarios": "scenario",
    "studies": "study",
    "trees": "tree of bodies",
    "can": "CAN database",
    "converters": "converter table",
    "engines": "engine map",
    "cycles": "cycle",
    "examples/io": "driver of an I/O device",
}
__all__ = ["FOLDERS", "default_folder", "find", "installed", "locate"]


def file_beside(name: str | Path) -> Path | None:
    """The file of a bare name in the current folder: `mine` is ./mine.toml there."""
    path = Path(name)
    if path.suffix in SUFFIXES or len(path.parts) > 1:
        return None
    return next((p for p in (path.with_name(path.name + suffix) for suffix in SUFFIXES) if os.path.isfile(p)), None)


def locate(name: str | Path, folder: str) -> Path:
    """The file `name`: a path that exists; else, by bare name, a file in the current folder, or an installed one of
    `folder`.

    A path is meant when it has a folder or suffix; then it must exist.
    """
    path = Path(name)
    if os.path.isfile(path):
        return path
    if (here := file_beside(name)) is not None:
        return here
    what = FOLDERS.get(folder, "configuration")
    known = installed(folder)
    if os.path.isdir(path) and str(name) not in known:
        raise ConfigError(f"{path} is a folder, not a {what} file")
    if path.suffix in SUFFIXES or len(path.parts) > 1:
        hint = f"installed ones are used by bare name: {', '.join(known)}" if known else None
        raise ConfigError(f"no such {what} file: {path}", hint=hint)
    if str(name) not in known:
        raise ConfigError(f"no {what} named {str(name)!r} is installed", hint=did_you_mean(str(name), known))
    return known[str(name)]


def find(near: str | Path, name: str, folder: str) -> Path:
    """The file that `name` means where it is written in the file `near`: relative to it, else an installed one."""
    path = Path(near).parent / name
    if os.path.isfile(path):
        return path.resolve()
    if Path(name).suffix or len(Path(name).parts) > 1:
        raise ConfigError("{key} = {value}: no such file", value=name, hint=remedy(name, file_in(name)))
    known = installed(folder)
    if name not in known:
        what, beside = FOLDERS.get(folder, "configuration"), f"{name}.toml"
        own = f"write {beside!r} for the file of this folder" if os.path.isfile(path.with_name(beside)) else None
        raise ConfigError(f"{{key}} = {{value}}: no {what} of this name is installed", value=name,
                          hint=own or did_you_mean(name, known))  # fmt: skip
    return known[name].resolve()


def default_folder(name: str) -> Path:
    """runs/DATE-TIME-NAME for the results of a command, with a number behind it where that exists already."""
    base = Path("runs") / f"{time.strftime('%Y%m%d-%H%M%S')}-{name}"
    path, k = base, 1
    while os.path.exists(path):
        k += 1
        path = base.with_name(f"{base.name}-{k}")
    return path
