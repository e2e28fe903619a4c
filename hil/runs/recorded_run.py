"""Runs from Python: `torqueloop.run`, and `torqueloop.read_run`, which gives what a run directory holds.

    import torqueloop as tl

    run = tl.run("desk_4hp22", clock="virtual", duration=10.0)
    run.stats.clock.missed                  # numbers, typed: torqueloop.hil.results.run.RunStats
    run["engine.w"], run.t                  # recorded signals, NumPy, SI units
    run.to_dataframe(["engine.w", "car.v"]) # pandas, index t; library="polars" for a Polars frame
    run.plot(["engine.w", "turbine.w"])     # a matplotlib figure
    run.metrics["compute_p99_us"]           # as gates use them
    tl.read_run("runs/20260101-120000-desk_4hp22").passed

Everything but a Polars or pandas frame needs nothing beside torqueloop's own dependencies. A `RecordedRun` can be
pickled: it goes to other processes as its path and what was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.simulate.run import Array, Run
from torqueloop.hil.common.locate import locate
from torqueloop.hil.record.recording import RecordingError
from torqueloop.hil.record.run_data import ModeChange
from torqueloop.hil.record.signals import Signals
from torqueloop.hil.report.report import Report, analyse
from torqueloop.hil.results.run import RunInfo, RunStats

if TYPE_CHECKING:
    from torqueloop.hil.ecu.control_unit import ControlUnit
    from torqueloop.hil.rig.assemble.virtual_links import VehicleStep


@dataclass(frozen=True)
class RecordedRun(Run, Mapping[str, Array]):
    """A run directory: signals by name (`run["engine.w"]`), statistics, verdict."""

    path: Path
    report: Report

    @property
    def info(self) -> RunInfo:
        """Which run it was, how it ended, of what it was made."""
        return self.report.run.info

    @property
    def stats(self) -> RunStats:
        """All its numbers; for a killed run completed from the recording as far as possible."""
        return self.report.stats

    @property
    def metrics(self) -> dict[str, Any]:
        """Flat names to numbers, as gates use them; None: not measured."""
        return self.report.metrics

    @property
    def passed(self) -> bool:
        """All its gates and checks passed."""
        return self.report.passed

    @property
    def modes(self) -> list[ModeChange]:
        """Every mode change of the friction elements."""
        return self.report.run.modes

    @property
    def signals(self) -> Signals:
        """The recorded signals with units and gaps. RecordingError when nothing was recorded."""
        if self.report.run.signals is None:
            raise RecordingError(f"{self.path}: no signals were recorded")
        return self.report.run.signals

    @cached_property
    def t(self) -> Array:
        """Simulated time of the samples [s]."""
        return self.signals.t

    @property
    def units(self) -> dict[str, str]:
        """SI unit of every signal."""
        return self.signals.units

    def signal(self, name: str) -> Array:
        """The samples of one recorded signal, SI. KeyError when there is none of this name."""
        return self.signals[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.report.run.signals or ())

    def __len__(self) -> int:
        return len(self.report.run.signals or ())

    def frame(self, names: Sequence[str] | None = None, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """The former name of `to_dataframe`."""
        return self.to_dataframe(names, library)

    def frames(self) -> NDArray[Any]:
        """The recorded frames as a structured array: t_ns, id, dlc, flags, bus, data (see hil/record/bus_log). `bus`
        counts the keys of `stats.buses`."""
        from torqueloop.hil.record.bus_log import read_bus

        return read_bus(self.path)[0]

    def __hash__(self) -> int:
        return hash(self.path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordedRun) and self.path == other.path and self.info == other.info

    def __repr__(self) -> str:
        ticks, verdict = self.stats.clock.ticks, self.report.verdict
        return f"<run {self.path}: {self.info.rig}, {self.info.clock} clock, {ticks} ticks, {verdict}>"


def read_run(run_dir: Path | str, gates: str | Sequence[str] | Mapping[str, str] | None = None) -> RecordedRun:
    """Read a run directory, also of a run that was killed; `gates` are judged beside its own. ReportError when it is
    none, ResultVersionError when another version of torqueloop wrote it."""
    return RecordedRun(Path(run_dir), analyse(run_dir, gates))


def run(
    rig: str | Path = "desk_4hp22",
    *,
    clock: Literal["real", "virtual"] = "virtual",
    duration: float | None = None,
    out: str | Path | None = None,
    gates: str | list[str] | Mapping[str, str] | None = None,
    participants: Literal["config", "none"] = "config",
    kernel: str = "auto",
    vehicle: VehicleStep | None = None,
    ecus: Mapping[str, ControlUnit] | None = None,
    html: bool = False,
    progress: bool = False,
    control: str | None = None,
    telemetry: str | None = None,
    start_from: str | Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    peers: Literal["config", "none"] | None = None,
) -> RecordedRun:
    """Run a rig (a file, or the bare name of an installed one) and read what it left.

    clock: "virtual" (lockstep, deterministic, as fast as possible) or "real". duration: simulated s, default of the rig
    file. out: directory of the run, default runs/TIME-NAME. gates: conditions beside those of the rig file.
    participants: "none" starts no participant processes; `peers` is its former name. vehicle, ecus (by name): models in
    this process (virtual clock). overrides: dotted key -> value instead of the rig file's. A failed gate is no
    exception: see `passed`.
    """
    from torqueloop.hil.rig.run.session import RunSpec, run_rig

    result = run_rig(
        locate(rig, "rigs"),
        RunSpec(
            clock,
            duration,
            out,
            gates,
            progress=progress,
            participants=peers or participants,
            kernel=kernel,
            vehicle=vehicle,
            ecus=ecus,
            html=html,
            control=control,
            telemetry=telemetry,
            start_from=start_from,
            overrides=overrides,
        ),
    )
    return RecordedRun(result.out, result.report)
