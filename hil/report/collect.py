"""Everything a report is made of, read from the run directory alone (so it works after kill -9 as well)."""

from __future__ import annotations

import os
from dataclasses import field
from pathlib import Path

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, TorqueloopError
from torqueloop.core.describe.reading import read_toml
from torqueloop.hil.record.bus_stream import BUS_FORMS
from torqueloop.hil.record.first_fault import read_first_fault
from torqueloop.hil.record.recording import Damage, RecordingError, StreamReader
from torqueloop.hil.record.run_data import ModeChange, modes_from_signals, read_modes, read_signals
from torqueloop.hil.record.run_folder import changed_inputs
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.record.streamed import FORMS
from torqueloop.hil.results.files import ResultError, ResultVersionError, read_run_info
from torqueloop.hil.results.run import RunInfo, RunStats

SIGNALS = "signals"
#: streams of a run beside the signals, where they are looked for if run.json does not say
OTHER_STREAMS = ("inputs", "bus")


class ReportError(TorqueloopError):
    """The directory is no run directory, or nothing in it can be read."""


@dataclass
class Run:
    """One run as it lies on disk."""

    path: Path
    #: run.json; of a directory without one: what can be said of it
    info: RunInfo
    #: None when nothing was recorded
    signals: Signals | None
    modes: list[ModeChange]
    #: where `modes` came from: "modes.csv", "recorded signals", ""
    modes_source: str
    #: what is missing or damaged, in words; empty for a run that ended properly
    incomplete: list[str] = field(default_factory=list)
    #: every tick around the first fault; None without one
    first_fault: Signals | None = None
    #: {gear name: ratio} of the gearbox in config/
    gears: dict[str, float] = field(default_factory=dict)

    @property
    def stats(self) -> RunStats:
        """Statistics the run left; empty ones where it left none."""
        return self.info.stats or RunStats()

    @property
    def name(self) -> str:
        """Name of the rig, else that of the directory."""
        return self.info.rig or self.path.name


def load_run(path: Path | str) -> Run:
    """Read a run directory. ReportError when it is none, ResultVersionError when its run.json is of another version;
    whatever else is missing is listed in `incomplete`."""
    path = Path(path)
    if not os.path.isdir(path):
        raise ReportError(f"{path}: no such directory")
    damage: str | None = None
    try:
        info = read_run_info(path)
    except ResultVersionError:
        raise
    except ResultError as error:
        info, damage = None, str(error)
    signals, incomplete = _signals(path)
    if info is None and signals is None:
        raise ReportError(damage or f"{path}: not a run directory (neither run.json nor signals/ can be read)")
    if damage is not None:
        incomplete.append(damage)
    if info is not None:
        incomplete += _streams(path, info, signals)
        incomplete += changed_inputs(path, info.inputs)
    run = Run(path, info or RunInfo("", state="unknown", clock=""), signals, [], "", incomplete)
    run.modes, run.modes_source = _modes(path, signals, incomplete)
    if not run.info.over:
        incomplete.insert(0, _how_it_ended(run, info is not None))
    reported = run.stats.first_fault
    run.first_fault = read_first_fault(path, reported.path if reported is not None else None)
    run.gears = _gears(path / "config")
    return run


def _signals(path: Path) -> tuple[Signals | None, list[str]]:
    try:
        signals = read_signals(path)
    except RecordingError as error:
        return None, [f"no signals: {error}"]
    found = []
    if not signals.closed:
        found.append("the signal recording has no end mark: what was still in memory when the run died is missing")
    found += [f"signals: {d}" for d in signals.damage]
    if signals.gaps:
        missing = sum(n for _, n in signals.gaps)
        first = signals.gaps[0]
        found.append(f"signals: {missing} ticks missing, {len(signals.gaps)} gaps, the first after tick {first[0] - 1}")
    if signals.stray_bytes:
        found.append(f"signals: {signals.stray_bytes} bytes are no whole record")
    return signals, found


def _streams(path: Path, info: RunInfo, signals: Signals | None) -> list[str]:
    """What is missing of all streams, and damaged of those beside the signals: all checksums, all bytes written."""
    reported = info.stats.recording if info.stats is not None else {}
    found = []
    streams = [name for name in reported if name.partition(".")[2] not in (*FORMS, *BUS_FORMS)]
    for name in dict.fromkeys([*streams, *(n for n in OTHER_STREAMS if os.path.exists(path / n))]):
        stats = reported.get(name)
        try:
            if name == SIGNALS and signals is not None:
                closed, chunks = signals.closed, signals.chunks
                damage: list[Damage] = []
            else:
                closed, chunks, damage = _read_through(path / name)
        except RecordingError as error:
            found.append(f"{name}: {error}")
            continue
        found += [f"{name}: {d}" for d in damage]
        if not closed and info.over and not (stats is not None and stats.cause):
            found.append(f"{name}: the recording of a run that ended has no end mark")
        # run.json of a run that was killed is older than its last chunks
        if stats is not None and info.over and not stats.cause and chunks < stats.chunks:
            found.append(f"{name}: {stats.chunks - chunks} of {stats.chunks} chunks are missing")
    return found


def _read_through(folder: Path) -> tuple[bool, int, list[Damage]]:
    """(closed properly, intact chunks, damage) of a stream, chunk by chunk."""
    stream = StreamReader(folder)
    count = sum(1 for _ in stream)
    return stream.closed, count, stream.damage


def _modes(path: Path, signals: Signals | None, incomplete: list[str]) -> tuple[list[ModeChange], str]:
    if os.path.isfile(path / "modes.csv"):
        try:
            return read_modes(path / "modes.csv"), "modes.csv"
        except (RecordingError, ValueError) as error:
            incomplete.append(f"modes.csv: {error}")
    if signals is not None:
        rebuilt = modes_from_signals(signals)
        if rebuilt:
            return rebuilt, "recorded signals"
    return [], ""


def _how_it_ended(run: Run, known: bool) -> str:
    if not known:
        return "there is no run.json that can be read: only the recorded signals are known"
    text = f"the run did not end by itself (state {run.info.state!r} in run.json)"
    if run.signals is not None and run.signals.n:
        text += f"; recorded up to t = {run.signals.t[-1]:.3f} s"
    if run.info.duration_s is not None:
        text += f" of {run.info.duration_s:g} s"
    return text


def _gears(config: Path) -> dict[str, float]:
    """Ratios per gear from the driveline file in config/ that has them.

    A control unit's file may have [gears] with ratios as well; what the driveline says counts.
    """
    found: list[tuple[bool, dict[str, float]]] = []
    for file in sorted(config.rglob("*.toml")) if os.path.isdir(config) else []:
        try:
            data = read_toml(file)
        except ConfigError:
            continue
        table = data.get("gears")
        gears = {
            str(name): float(gear["ratio"])
            for name, gear in (table.items() if isinstance(table, dict) else ())
            if isinstance(gear, dict) and isinstance(gear.get("ratio"), (int, float))
        }
        if gears:
            found.append(("components" in data or "gearbox" in data, gears))
    return max(found, key=lambda entry: entry[0])[1] if found else {}
