"""The run directory: its name, the copies of all inputs in config/, and run.json."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import time
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torqueloop
from torqueloop.core.errors import ConfigError
from torqueloop.hil.record.run_data import write_json_atomic

#: strings in a TOML file that end like this and name an existing file are inputs of the run
_INPUT_SUFFIXES = {".toml", ".csv", ".dbc", ".arxml", ".kcd", ".json", ".yaml"}


def input_files(path: Path) -> list[Path]:
    """The file and all files it refers to, directly or through other TOML files, in a stable order."""
    found: dict[Path, None] = {}
    waiting = [path.resolve()]
    while waiting:
        file = waiting.pop(0)
        if file in found:
            continue
        found[file] = None
        if file.suffix == ".toml":
            with file.open("rb") as stream:
                waiting += _named(tomllib.load(stream), file.parent)
    return list(found)


def _named(value: Any, folder: Path) -> list[Path]:
    if isinstance(value, dict):
        return [p for item in value.values() for p in _named(item, folder)]
    if isinstance(value, list):
        return [p for item in value for p in _named(item, folder)]
    if (
        isinstance(value, str)
        and len(value) < 300
        and "\n" not in value
        and Path(value).suffix.lower() in _INPUT_SUFFIXES
    ):
        path = folder / value
        return [path.resolve()] if path.is_file() else []
    return []


class RunFolder:
    """One run directory; made when the checks are through, kept whatever happens afterwards."""

    def __init__(self, rig_path: Path, rig_name: str, out: Path | str | None) -> None:
        self.path = Path(out) if out is not None else _default(rig_name)
        make_empty(self.path)
        files = input_files(rig_path)
        root = Path(os.path.commonpath([f.parent for f in files]))
        #: sha256 of every input, by its path in config/
        self.inputs: dict[str, str] = {}
        for file in files:
            target = self.path / "config" / file.relative_to(root)
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
            except OSError as error:
                raise ConfigError(
                    f"the run directory {{value}} cannot be written to: {error.strerror}",
                    key="out",
                    value=self.path,
                ) from None
            self.inputs[str(file.relative_to(root))] = hashlib.sha256(target.read_bytes()).hexdigest()
        self.info: dict[str, Any] = {
            "rig": rig_name,
            "rig_file": str(Path("config") / rig_path.resolve().relative_to(root)),
            "state": "starting",
            "ended": None,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "pid": os.getpid(),
            "command": sys.argv,
            "version": torqueloop.__version__,
            "python": platform.python_version(),
            "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, {platform.system()} {platform.release()}",
            "inputs": self.inputs,
        }

    def write(self, **changes: Any) -> None:
        """Update run.json; a reader or a crash sees the old or the new file."""
        self.info.update(changes)
        write_json_atomic(self.path / "run.json", self.info)

    def finish(self, state: str, **changes: Any) -> None:
        """Last entry: how the run ended."""
        self.write(state=state, ended=datetime.now(UTC).isoformat(timespec="seconds"), **changes)


#: longer runs are a slip of the keyboard, and their number of ticks is not exact any more [s]
DURATION_MAX_S = 1e6


def check_duration(duration_s: float, tick_s: float) -> None:
    """ConfigError unless this is at least one tick."""
    if not tick_s <= duration_s <= DURATION_MAX_S:
        allowed = f"{tick_s:g} (one tick) .. {DURATION_MAX_S:g}"
        raise ConfigError("{key} = {value} s is not allowed", key="duration", value=duration_s, allowed=allowed)


def make_empty(path: Path) -> None:
    """Make the directory of a run; ConfigError where it is not empty or cannot be made."""
    if path.exists() and not path.is_dir():
        raise ConfigError("{key} = {value} is no directory", key="out", value=path, allowed="a new directory")
    try:
        if path.is_dir() and any(path.iterdir()):
            raise ConfigError("the run directory {value} is not empty: nothing is overwritten", key="out", value=path)
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"the run directory {{value}} cannot be made: {error.filename or path}: {error.strerror}",
            key="out",
            value=path,
        ) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise ConfigError("the run directory {value} may not be written to", key="out", value=path)


def _default(rig_name: str) -> Path:
    """runs/<date>-<time>-<rig>, with a number if that exists already."""
    base = Path("runs") / f"{time.strftime('%Y%m%d-%H%M%S')}-{rig_name}"
    path, k = base, 1
    while path.exists():
        k += 1
        path = base.with_name(f"{base.name}-{k}")
    return path
