"""Find configuration files: by path, or by bare name among those installed with the package."""

from __future__ import annotations

from pathlib import Path

import torqueloop.configs
from torqueloop.core.errors import ConfigError, did_you_mean

#: folder of installed configs -> what a file in it is called in messages
FOLDERS = {
    "rigs": "rig",
    "gearboxes": "gearbox",
    "powertrains": "powertrain",
    "vehicles": "vehicle",
    "tcu": "TCU",
    "scenarios": "scenario",
    "can": "CAN database",
}


def installed(folder: str) -> dict[str, Path]:
    """{name without suffix: path} of the installed files of one folder."""
    root = Path(next(iter(torqueloop.configs.__path__))) / folder
    files = [p for p in root.glob("*") if p.suffix in (".toml", ".dbc")] if root.is_dir() else []
    return {p.stem: p for p in sorted(files)}


def locate(name: str | Path, folder: str) -> Path:
    """The file `name`: a path that exists, else an installed one of `folder` by bare name.

    A path is meant when it exists or has a folder or suffix; then it must exist.
    """
    path = Path(name)
    if path.is_file():
        return path
    what = FOLDERS[folder]
    if path.is_dir():
        raise ConfigError(f"{path} is a folder, not a {what} file")
    known = installed(folder)
    if path.suffix in (".toml", ".dbc") or len(path.parts) > 1:
        hint = f"installed ones are used by bare name: {', '.join(known)}" if known else None
        raise ConfigError(f"no such {what} file: {path}", hint=hint)
    if str(name) not in known:
        raise ConfigError(f"no {what} named {str(name)!r} is installed", hint=did_you_mean(str(name), known))
    return known[str(name)]
