"""A report made by hand, in which every number is another one: what a screen shows in a wrong place is seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from torqueloop.hil.record.signals import Signals, signal_dtype
from torqueloop.hil.report.analysis import Band, Shift
from torqueloop.hil.report.collect import Run
from torqueloop.hil.report.energy import EnergyBalance
from torqueloop.hil.report.monitors import GearStrip, MonitorVerdict
from torqueloop.hil.report.report import Report
from torqueloop.hil.report.run_checks import Check
from torqueloop.hil.report.shift_quality import ShiftQuality
from torqueloop.hil.results.clock import ClockStats, Grace, Margin, Timing, WorstTick, WorstTicks
from torqueloop.hil.results.gates import GateResult
from torqueloop.hil.results.links import BusStats, Coupling, LinkStats, NativeStats, RxMessage, VehicleStats
from torqueloop.hil.results.run import RunInfo, RunStats, SolverStats, StreamStats

TICK_S = 2e-3
PHASES = ("latch", "inputs", "step", "outputs", "tx", "publish")


def filled(kind: type, start: int, **given: Any) -> Any:
    """A dataclass whose numbers are start, start + 1 ...; those that are not whole lie half a unit above."""
    numbers = [f for f in fields(kind) if f.name not in given and str(f.type).startswith(("int", "float"))]
    made = {f.name: start + k + (0.5 if str(f.type).startswith("float") else 0) for k, f in enumerate(numbers)}
    return kind(**made, **given)


def timing(start: int, kind: type = Timing) -> Any:
    """Percentiles in another order than that of their values would hide; none is its neighbour's."""
    return filled(kind, start, hist=[(10.0, 900), (20.0, 90), (400.0, 10)])


def worst_tick(start: int) -> WorstTick:
    """A tick whose longest phase is tx."""
    phases = {name: start + 0.5 + k + (50 if name == "tx" else 0) for k, name in enumerate(PHASES)}
    return filled(WorstTick, start + 10, phase_us=phases)


CLOCK = filled(
    ClockStats, 301,
    compute_us=timing(101), wake_lateness_us=timing(121), margin_us=timing(141, Margin),
    phase_us={name: replace(timing(501 + 20 * k), mean=mean)
              for k, (name, mean) in enumerate(zip(PHASES, (1.0, 2.0, 40.0, 3.0, 30.0, 4.0), strict=True))},
    worst=WorstTicks([worst_tick(630), worst_tick(660)], [worst_tick(700), worst_tick(730)]),
    grace=filled(Grace, 401), policy="catch_up",
)  # fmt: skip

#: the first shift begins before there is room for what is shown before it
SHIFTS = [
    Shift("1", "2", 0.31, 0.85, -0.52, 1.73),
    Shift("2", "3", 4.25, 4.65, 0.44, 2.31),
    Shift("3", "4", 9.5, 10.125, None, None),
]
QUALITY = [
    ShiftQuality("1", "2", 0.125, 0.85, 0.725, 0.211, 12.5, 1.37, 23.4, 0.0567, 8910.0, 5120.0, 6.4),
    ShiftQuality("2", "3", 4.05, 4.65, 0.6, 0.187, 7.25, 0.83, 31.6, 0.0342, 3456.0, 2345.0, 7.1),
    ShiftQuality("3", "4", 9.5, 10.125, 0.625, None, None, None, None, None, None, None, None),
]
#: the largest of what came in and of what went out is 500 kJ
ENERGY = EnergyBalance(
    {"engine": 480e3, "starter": 20e3, "tiny": 1e-4},
    {"road": 123.4e3, "C4": 45.6e3, "converter": 77.9e3},
    {"kinetic": 260.1e3, "spring": -8.0e3, "lean": 1.0e3},
    -12.5,
)
GATES = [
    GateResult("missed == 0", True, {"missed": 0, "late": 1234.5}, source="rig file: gate 1"),
    GateResult("shifts == 4", False, {"shifts": 3}, "shifts = 3", "command line"),
]
CHECKS = [
    Check("the run ended by itself", True, ""),
    Check("links are alive", False, "it is silent"),
    Check("real time not degraded", False, "no priority", counts=False),
]
MONITORS = [
    MonitorVerdict("shifts in time", "passed", "longest 0.54 s", "duration", "s", 1.5, None, None, 0.54),
    MonitorVerdict("speeds in range", "failed", "the engine turns too fast", "speed", "1", 650.0, 7.25, 0.5, 712.3456),
    MonitorVerdict("gears follow", "follows", "late. It follows from it.", "delay", "s", 0.25, 7.5, 0.1, 0.75),
    MonitorVerdict("clutch cool", "waived", "hot. Waived: old", "temperature", "degC", 300.0, 8.5, 0.2, 312.0),
    MonitorVerdict("reverse", "not reached", "nothing of it", "torque", "Nm", 10.0),
]
STRIP = GearStrip(
    [Band(0.0, 2.5, 1), Band(2.5, 10.0, 2)],
    [Band(0.0, 5.0, "nothing"), Band(5.0, 10.0, 3)],
    [Band(0.0, 7.5, "N"), Band(7.5, 10.0, 4)],
)
RX = {"TCU_Status": filled(RxMessage, 201), "TCU_Pressure_1": filled(RxMessage, 221)}
NATIVE = filled(
    NativeStats, 801, receive_latency_us=timing(241), send_latency_us=timing(261), errors={"ack": 3, "crc": 0}
)
STATS = RunStats(
    CLOCK,
    buses={"can": filled(BusStats, 281, rx=RX, native=NATIVE)},
    vehicles={"vehicle": filled(VehicleStats, 901, link=filled(LinkStats, 921, mode="latest value",
              coupling=filled(Coupling, 941)))},
    recording={"signals": filled(StreamStats, 961), "bus": filled(StreamStats, 981, cause="disk full")},
    outputs_limited={"tau_engine": 17, "w_out": 23},
    solver=filled(SolverStats, 11),
    kernel="generic",
    hash="9f2c51d07a3be846",
)  # fmt: skip
INFO = RunInfo(
    "desk", state="ended", started="2026-01-02T03:04:05+00:00", ended="2026-01-02T03:05:05+00:00", clock="real",
    duration_s=10.0, tick_s=TICK_S, powertrain="car", stats=STATS,
)  # fmt: skip
METRICS = {"clock": "real", "ticks": 301, "duration_s": 12.3456, "real_time_factor": 1234.5, "mode_changes": 71,
           "can_rx_ok": 422, "can_rx_bad": 73, "can_rx_timeout": 79}  # fmt: skip


def report(path: Path, stats: RunStats = STATS, info: Mapping[str, Any] | None = None, **changed: Any) -> Report:
    """The report; what is given stands in place of what is above."""
    run = Run(path, replace(INFO, stats=stats, **(info or {})), changed.pop("signals", None), [], "")
    made: dict[str, Any] = {
        "rebuilt": [], "metrics": dict(METRICS), "bands": [], "shifts": SHIFTS, "energy": ENERGY, "gates": GATES,
        "checks": CHECKS, "monitors": MONITORS, "quality": QUALITY, "strip": STRIP, **changed,
    }  # fmt: skip
    return Report(run, stats, **made)


def recorded(columns: Mapping[str, tuple[str, Sequence[float] | np.ndarray]], tick_s: float = TICK_S) -> Signals:
    """Signals {name: (unit, values)}."""
    rows = np.zeros(len(next(iter(columns.values()))[1]), signal_dtype(len(columns)))
    rows["tick"] = np.arange(len(rows))
    rows["out"] = np.column_stack([values for _, values in columns.values()])
    return Signals.of(list(columns), {name: unit for name, (unit, _) in columns.items()}, tick_s, rows)
