"""A run directory without a rig: a plausible full-throttle run through four gears, for tests of report and recorder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from torqueloop.hil.record.bus_log import bus_header, pack_frame
from torqueloop.hil.record.recording import ChunkWriter
from torqueloop.hil.record.run_data import signal_header
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.report.metrics import timing_of
from torqueloop.hil.results.clock import ClockStats
from torqueloop.hil.results.files import read_run_info, write_run_info
from torqueloop.hil.results.links import BusStats, Coupling, LinkStats, RxMessage, TxMessage, VehicleStats
from torqueloop.hil.results.run import EnergyStats, RunInfo, RunStats, SafeState, SolverStats, StreamStats

RATIOS = {"1": 2.47945, "2": 1.47945, "3": 1.0, "4": 0.72807}
#: begin of each shift and its length [s]
SHIFTS = [("1", "2", 4.2, 0.45), ("2", "3", 8.9, 0.5), ("3", "4", 16.0, 0.55)]
ENGAGED = {"1": ["C4", "C11", "F15"], "2": ["C4", "C6", "C11"], "3": ["C4", "C5", "C11"], "4": ["C4", "C5", "C12"]}
ELEMENTS = ["C4", "C5", "C6", "C7", "C8", "C11", "C12", "F14", "F15"]
FINAL_DRIVE = 3.25
WHEEL_M = 0.3


def _blend(t: np.ndarray, begin: float, length: float) -> np.ndarray:
    x = np.clip((t - begin) / length, 0.0, 1.0)
    return x * x * (3.0 - 2.0 * x)


def columns(duration_s: float = 25.0, tick_s: float = 1e-3) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, str]]:
    """(t, columns by name, unit by name)."""
    t = (np.arange(round(duration_s / tick_s)) + 1) * tick_s
    ratio = np.full_like(t, RATIOS["1"])
    for old, new, begin, length in SHIFTS:
        ratio += (RATIOS[new] - RATIOS[old]) * _blend(t, begin, length)
    # Ideal power limited car: a = min(a_grip, P/(m v)) with a torque dip and a double peak in each shift.
    v = np.zeros_like(t)
    a = np.zeros_like(t)
    speed = 0.0
    for k, tk in enumerate(t):
        acceleration = min(1.55 * ratio[k], 95e3 / (1650.0 * max(speed, 3.0))) - 2.3e-4 * speed * speed
        for _, _, begin, length in SHIFTS:
            if begin - 0.15 < tk < begin + length:
                acceleration *= 1.0 - 0.45 * np.sin(np.pi * (tk - begin + 0.15) / (length + 0.15)) ** 2
                acceleration += 0.9 * np.exp(-(((tk - begin - length) / 0.03) ** 2))
        speed += acceleration * tick_s
        v[k], a[k] = speed, acceleration
    w_out = v / WHEEL_M * FINAL_DRIVE
    w_in = ratio * w_out
    slip = 0.97 - 0.4 * np.exp(-t / 2.0)
    w_engine = np.maximum(w_in / slip, 105.0 + 120.0 * (1.0 - np.exp(-t / 0.5)))
    tau_in = a * 1650.0 * WHEEL_M / FINAL_DRIVE / np.maximum(ratio, 0.5) + 20.0
    table: dict[str, np.ndarray] = {"engine.w": w_engine, "turbine.w": w_in, "out.w": w_out}
    table |= {"car.v": v, "car.a": a}
    unit = {"engine.w": "rad/s", "turbine.w": "rad/s", "out.w": "rad/s", "car.v": "m/s", "car.a": "m/s2"}
    gear = np.full(t.shape, "1", dtype=object)
    for _, new, begin, length in SHIFTS:
        gear[t >= begin + length / 2] = new
    share = {"C4": 1.0, "C5": 0.324, "C6": 0.479, "C11": 0.55, "C12": 0.272, "F15": 1.48}
    for element in ELEMENTS:
        closed = np.array([element in ENGAGED[g] for g in gear])
        mode = np.where(closed, 0.0, 2.0)
        slow = np.convolve(closed.astype(float), np.ones(151) / 151.0, mode="same")
        mode[(slow > 0.02) & (slow < 0.98)] = 1.0
        table[f"{element}.mode"] = mode
        table[f"{element}.tau"] = slow * share.get(element, 0.0) * tau_in
        table[f"{element}.w_rel"] = (1.0 - slow) * w_in
        unit.update({f"{element}.mode": "1", f"{element}.tau": "Nm", f"{element}.w_rel": "rad/s"})
        if element.startswith("C"):
            table[f"{element}.p"] = slow * 9e5
            table[f"{element}.p_command"] = np.where(closed, 9e5, 0.0)
            unit.update({f"{element}.p": "Pa", f"{element}.p_command": "Pa"})
    # C11 in the torque phase of 3-4: up, through zero, to the other sign, then gone.
    late = _blend(t, 15.8, 0.2)
    table["C11.tau"] = table["C11.tau"] * (1.0 - 1.6 * late)
    return t, table, unit


def write_run(
    path: Path,
    *,
    killed: bool = False,
    duration_s: float = 25.0,
    clock: str = "real",
    gates: list[str] | None = None,
    safe_state: SafeState | None = None,
) -> Path:
    """Write the run directory. `killed`: no end marks, no modes.csv, an old run.json, as if the process was killed."""
    rng = np.random.default_rng(7)
    tick_s = 1e-3
    t, table, unit = columns(duration_s, tick_s)
    records = np.zeros(len(t), signal_dtype(len(table)))
    records["tick"] = np.arange(len(t))
    records["t_wall_ns"] = (t * 1e9).astype(np.int64)
    records["wake_lateness_ns"] = (rng.lognormal(np.log(6e3), 0.5, len(t))).astype(np.int32)
    records["wake_lateness_ns"][::5000] = 240_000
    records["compute_ns"] = rng.lognormal(np.log(9e3), 0.25, len(t)).astype(np.int32)
    records["out"] = np.stack(list(table.values()), axis=1)
    writer = ChunkWriter(path / "signals", signal_header(list(table), [unit[n] for n in table], tick_s))
    for k in range(0, len(records), 500):
        writer.write(records[k : k + 500].tobytes())
    bus = ChunkWriter(path / "bus", bus_header("239.74.163.2"))
    for k in range(0, len(t), 500):
        bus.write(b"".join(pack_frame(int(t[j] * 1e9), 0x210, bytes(8), tx=False) for j in range(k, k + 500, 5)))
    for stream in (writer, bus):
        stream.abandon() if killed else stream.close()
    config = path / "config"
    config.mkdir(parents=True)
    lines = "".join(f"[gears.{name}]\nengaged = {ENGAGED[name]!r}\nratio = {ratio}\n" for name, ratio in RATIOS.items())
    (config / "zf_4hp22.toml").write_text(lines.replace("'", '"'))
    heat = {"C5": 9.1e3, "C6": 7.4e3, "C11": 1.2e3, "C12": 2.9e3}
    kinetic, road, converter = 0.5 * 1650.0 * table["car.v"][-1] ** 2, 1.9e5, 1.3e5
    energy = EnergyStats(
        supplied={"engine": kinetic + road + converter + sum(heat.values()) + 1e-3},
        lost={"converter": converter, "road load": road, **heat},
        stored={"kinetic energy": kinetic},
    )
    stats = RunStats(
        ClockStats(
            len(t),
            missed=0,
            overruns=0,
            lost_time_s=0.0,
            wake_lateness_us=timing_of(records["wake_lateness_ns"] * 1e-3),
            compute_us=timing_of(records["compute_ns"] * 1e-3),
        ),
        buses={
            "can": BusStats(
                rx={
                    "TCU_Pressure_1": RxMessage(ok=len(t) // 5),
                    "TCU_Status": RxMessage(ok=len(t) // 10, crc=1),
                },
                tx={"HIL_Speeds": TxMessage(sent=len(t) // 5)},
                rx_frames=len(t) // 5 + len(t) // 10,
                rx_bad=1,
                tx_frames=len(t) // 5,
            )
        },
        vehicles={
            "vehicle": VehicleStats(
                len(t),
                age_max_ms=2.31,
                link=LinkStats("latest value", accepted=len(t), coupling=Coupling(len(t), 0.0004)),
            )
        },
        recording={"signals": StreamStats(chunks=len(t) // 500)},
        safe_state=safe_state or SafeState(),
        degraded=["no SCHED_FIFO: Operation not permitted"],
        solver=SolverStats(events=41, splits_max=3),
        energy=None if killed else energy,
        hash=None if killed else "9f2c51d07a3be846",
    )
    if killed:
        stats = replace(stats, clock=replace(stats.clock, ticks=len(t) - 800))
    asked = gates if gates is not None else ["missed == 0", "compute_p99_us < 200"]
    info = RunInfo(
        "desk_4hp22",
        state="running" if killed else "ended",
        started="2026-01-01T12:00:00+00:00",
        ended=None if killed else "2026-01-01T12:00:25+00:00",
        clock=clock,
        duration_s=duration_s if not killed else duration_s + 15.0,
        tick_s=tick_s,
        powertrain="car_4hp22_rig",
        gates={f"gate {k}": gate for k, gate in enumerate(asked, 1)},
        stats=stats,
    )
    write_run_info(path, info)
    return path


def change(path: Path, clock: dict[str, Any] | None = None, stats: dict[str, Any] | None = None, **info: Any) -> None:
    """Change fields of the run.json of a run directory, of its statistics and of the clock's."""
    known = read_run_info(path)
    new = replace(known.stats, **(stats or {}))
    new = replace(new, clock=replace(new.clock, **(clock or {})))
    write_run_info(path, replace(known, stats=new, **info))
