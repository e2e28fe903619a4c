"""The run directory: its name, the copies of all inputs in config/, and run.json."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torqueloop
from torqueloop.configs import installed, package_root
from torqueloop.core.describe.errors import ConfigError
from torqueloop.core.describe.reading import DATABASE_BYTES, open_regular, read_bytes, read_json, read_toml
from torqueloop.hil.common.locate import default_folder
from torqueloop.hil.results.files import write_run_info
from torqueloop.hil.results.run import RunInfo

#: strings in a TOML file that end like this and name an existing file are inputs of the run
_INPUT_SUFFIXES = {".toml", ".csv", ".dbc", ".arxml", ".kcd", ".json", ".yaml", ".c", ".so"}
#: the same for logs of a bus, which may be long: they are copied without being read into memory
_LOG_SUFFIXES = {".blf", ".asc", ".log", ".mf4", ".trc"}


#: where in a run directory the installed files are kept that were used by bare name
INSTALLED = Path("config") / "installed"
#: keys whose text may be the bare name of an installed file
_BARE_KEYS = {
    "extends", "include", "gearbox", "start", "powertrain", "database", "config", "file", "model", "csv", "interface",
    "known",
}  # fmt: skip


def input_files(*paths: Path) -> list[tuple[Path, bool]]:
    """The files and all files they refer to, directly or through other TOML files, in a stable order; True: used by
    the bare name of an installed file, or through one that is."""
    found: dict[tuple[Path, bool], None] = {}
    waiting = [(path.resolve(), False) for path in paths]
    while waiting:
        file, bare = waiting.pop(0)
        if (file, bare) in found:
            continue
        found[file, bare] = None
        if file.suffix == ".toml":
            named = _named(read_toml(file), file.parent)
            waiting += [(path, bare or by_name) for path, by_name in named]
    return list(found)


def _named(value: Any, folder: Path, key: str = "") -> list[tuple[Path, bool]]:
    if isinstance(value, dict):
        return [p for name, item in value.items() for p in _named(item, folder, name)]
    if isinstance(value, list):
        return [p for item in value for p in _named(item, folder, key)]
    if not isinstance(value, str) or len(value) >= 300 or "\n" in value:
        return []
    if Path(value).suffix.lower() in _INPUT_SUFFIXES | _LOG_SUFFIXES:
        path = folder / value
        return [(path.resolve(), False)] if os.path.isfile(path) else []
    if key in _BARE_KEYS or key.endswith("_csv"):
        known = (installed(kind.name).get(value) for kind in sorted(package_root().iterdir()) if os.path.isdir(kind))
        return [(path.resolve(), True) for path in known if path is not None]
    return []


def _absolute(value: Any) -> set[str]:
    """Absolute names of files in the content of a TOML file."""
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return {name for item in items for name in _absolute(item)}
    return {value} if isinstance(value, str) and Path(value).suffix and Path(value).is_absolute() else set()


def _copied(file: Path, files: set[Path]) -> bytes:
    """The content for the run directory: absolute names of other inputs become relative ones."""
    data = read_bytes(file, DATABASE_BYTES)
    if file.suffix == ".toml":
        for name in _absolute(read_toml(file)):
            if (other := Path(name).resolve()) in files:
                relative = os.path.relpath(other, file.parent)
                # whole texts only: a name may be part of a longer one
                for quote in ('"', "'"):
                    data = data.replace(f"{quote}{name}{quote}".encode(), f"{quote}{relative}{quote}".encode())
    return data


class RunFolder:
    """One run directory; made when the checks are through, kept whatever happens afterwards."""

    def __init__(self, rig_path: Path, rig_name: str, out: Path | str | None, more: Collection[Path] = ()) -> None:
        """more: input files that the rig file does not name."""
        self.path: Path = Path(out) if out is not None else default_folder(rig_name)
        make_empty(self.path)
        #: the folder itself, whatever it is called by the end
        self._held = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        files = input_files(rig_path, *more)
        root = Path(os.path.commonpath([f.parent for f, bare in files if not bare]))
        #: sha256 of every input, by its path in config/
        self.inputs: dict[str, str] = {}
        paths = {f for f, bare in files if not bare}
        for file, bare in files:
            place = Path("installed") / file.relative_to(package_root()) if bare else file.relative_to(root)
            target = self.path / "config" / place
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                if file.suffix.lower() in _LOG_SUFFIXES:
                    shutil.copyfile(file, target)
                else:
                    target.write_bytes(_copied(file, paths))
            except OSError as error:
                raise ConfigError(
                    f"the run directory {{value}} cannot be written to: {error.strerror}",
                    key="out",
                    value=self.path,
                ) from None
            self.inputs[str(place)] = _digest(target)
        self.info: RunInfo = RunInfo(
            rig_name,
            str(Path("config") / rig_path.resolve().relative_to(root)),
            started=now_text(),
            pid=os.getpid(),
            command=list(sys.argv),
            inputs=self.inputs,
            version=torqueloop.__version__,
            python=platform.python_version(),
            machine=machine(),
        )

    @property
    def duration_s(self) -> float:
        """Simulated seconds asked for; 0 before they are known."""
        return self.info.duration_s or 0.0

    def write(self, **changes: Any) -> None:
        """Update run.json (fields of RunInfo); a reader or a crash sees the old or the new file."""
        self.info = replace(self.info, **changes)
        write_run_info(self.path, self.info)

    def settle(self) -> str:
        """Before the last things are written: where the folder is now. Renamed meanwhile: there; deleted: made again,
        for what is still in memory. What happened in words, "" when it is where it was."""
        was = self.path
        try:
            if os.path.samestat(os.fstat(self._held), os.stat(was)):
                return ""
        except OSError:
            pass
        now = Path(os.readlink(f"/proc/self/fd/{self._held}")) if sys.platform.startswith("linux") else was
        if os.path.isdir(now) and os.path.samestat(os.fstat(self._held), now.stat()):
            self.path = now
            return f"the run directory was renamed to {now} during the run"
        was.mkdir(parents=True, exist_ok=True)
        return "the run directory was deleted during the run: what had been recorded is lost"

    def finish(self, state: str, **changes: Any) -> None:
        """Last entry: how the run ended."""
        self.write(state=state, ended=now_text(), **changes)
        if self._held >= 0:
            os.close(self._held)
            self._held = -1


def _digest(path: Path) -> str:
    """sha256 of a regular file; ConfigError for anything else."""
    with os.fdopen(open_regular(path), "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def changed_inputs(run_dir: Path, inputs: Mapping[str, str]) -> list[str]:
    """Files in config/ that are not those the run was made of, in words. inputs: as RunInfo.inputs."""
    found = []
    for place, digest in inputs.items():
        try:
            known = _digest(run_dir / "config" / place)
        except ConfigError:
            found.append(f"config/{place} is missing")
            continue
        if known != digest:
            found.append(f"config/{place} was changed after the run")
    return found


def now_text() -> str:
    """The present time as results have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def machine() -> str:
    """This machine in words."""
    return f"{platform.machine()}, {os.cpu_count()} CPUs, {platform.system()} {platform.release()}"


#: longer runs are a slip of the keyboard, and their number of ticks is not exact any more [s]
DURATION_MAX_S = 1e6


def check_duration(duration_s: float, tick_s: float) -> None:
    """ConfigError unless this is at least one tick."""
    if not tick_s <= duration_s <= DURATION_MAX_S:
        allowed = f"{tick_s:g} (one tick) .. {DURATION_MAX_S:g}"
        raise ConfigError("{key} = {value} s is not allowed", key="duration", value=duration_s, allowed=allowed)


def make_empty(path: Path) -> None:
    """Make the directory of a run; ConfigError where it is not empty or cannot be made."""
    if os.path.exists(path) and not os.path.isdir(path):
        raise ConfigError("{key} = {value} is no directory", key="out", value=path, allowed="a new directory")
    try:
        if os.path.isdir(path) and _never_armed(path):
            # what a start that failed has left is of no use to anyone but to see why
            shutil.rmtree(path)
        if os.path.isdir(path) and any(path.iterdir()):
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


def _never_armed(path: Path) -> bool:
    """A run directory whose run failed before anything was armed."""
    try:
        info = read_json(path / "run.json")
    except ConfigError:
        return False
    return isinstance(info, dict) and info.get("armed") is False
