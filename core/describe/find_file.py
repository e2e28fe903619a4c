"""Files that a driveline file names: beside it, or installed ones by bare name."""

from __future__ import annotations

import os
from pathlib import Path

from torqueloop.configs import installed
from torqueloop.core.describe.errors import ConfigError, did_you_mean


def named_file(directory: Path, name: str, *folders: str) -> Path:
    """The file that `name` means where it is written in a file of `directory`: relative to it, else the bare name of
    one installed in `folders`. ConfigError, without its place, where there is none."""
    path = Path(os.path.normpath(directory / name))
    if os.path.isfile(path):
        return path
    known = {key: found for folder in folders for key, found in installed(folder).items()}
    if name in known:
        return known[name]
    bare = not Path(name).suffix and len(Path(name).parts) == 1
    raise ConfigError("{key}: there is no file {value}", value=name, hint=did_you_mean(name, known) if bare else None)
