"""Stage of the machine about the safe state: each of its causes, provoked on the real clock in a run of its own.

The tick is at full priority and time counts instructions, so nothing is late but what is made late.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torqueloop as tl
from stages.electrical import link, occupy_card
from stages.inside import CONFIGS, forked, run, say, tcu_process
from stages.rigs import write_rig
from torqueloop.hil.link.messages import StateMessage, StepMessage
from torqueloop.hil.results.run import RunStats
from torqueloop.hil.vehicle.model import VehicleModel
from torqueloop.hil.vehicle.process import serve
from torqueloop.hil.vehicle.vehicle_tables import load_vehicle_config

#: the error comes at this time, and the run ends by itself after this one [s]
AT_S, RUN_S = 0.5, 2.5
AT_TICK = round(1e3 * AT_S)
CONTROL, VEHICLE = "tcp://127.0.0.1:9871", "tcp://127.0.0.1:9873"
#: discs that come to rest in one step: more than it can locate
DISCS = 14

#: numbers of the processes beside the rig, by name
Processes = dict[str, int]


@dataclass(frozen=True)
class Case:
    """How one cause is provoked."""

    #: part of the sentence that the safe state gives
    says: str
    #: values of the rig file, by dotted key
    overrides: dict[str, Any] = field(default_factory=dict)
    #: done at AT_S
    act: Callable[[Processes], object] | None = None
    #: a vehicle model in a process of its own, whose answers are not finite from this time on [s]; None: the road is in
    #: the tick
    vehicle_nan_s: float | None = None
    #: the rig starts its control unit itself
    starts_unit: bool = False
    #: another rig, written into a folder; it has no bus
    rig: Callable[[Path], Path] | None = None
    #: ticks in which the processor is kept busy: the first one, how many, how long [ns]
    busy: tuple[int, int, int] | None = None
    #: the first tick in which the cause may be latched
    from_tick: int = AT_TICK


def _fault(**keys: Any) -> dict[str, Any]:
    return {"faults": [{"from_s": AT_S, **keys}]}


def _many_stops(folder: Path) -> Path:
    """A rig of discs whose brakes stop them one after the other in its first tick."""
    lines = ['name = "stops"']
    ends = ", ".join(f'["J{k}.flange_b", "B{k}.flange_a"]' for k in range(DISCS))
    lines.append(f"connections = [{ends}]")
    for k in range(DISCS):
        w = 0.1 * (k + 0.5) / DISCS
        lines.append(f'[components.J{k}]\nkind = "Inertia"\nJ_kgm2 = 1.0\nw0_radps = {w}')
        lines.append(f'[components.B{k}]\nkind = "Brake"\nfn_max_N = 10.0\nmue_pos = 1.0')
    (folder / "stops.toml").write_text("\n".join(lines) + "\n")
    text = '[rig]\nname = "stops"\n[plant]\npowertrain = "stops.toml"\n[clock]\ntick_s = 0.01\n'
    text += "[safe_state]\nsolver_limit = 1\n[inputs]\n"
    text += "".join(f'"B{k}.f_normalized" = {{ value = 1.0 }}\n' for k in range(DISCS))
    (folder / "rig.toml").write_text(text)
    return folder / "rig.toml"


class _Car(VehicleModel):
    """The model of the road; its force is no number from a time on."""

    def __init__(self, nan_s: float) -> None:
        super().__init__(load_vehicle_config(CONFIGS / "vehicles" / "bmw_528i_e28.toml"))
        self._nan_s = nan_s

    def step(self, message: StepMessage) -> StateMessage:
        state = super().step(message)
        return state if message.t < self._nan_s else StateMessage(**{**vars(state), "F": float("nan")})


def _kill(name: str) -> Callable[[Processes], None]:
    return lambda processes: os.kill(processes[name], signal.SIGKILL)


def _kill_own_unit(_: Processes) -> None:
    """The control unit that the rig has started."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        if b"\0ecu\0" in file.read_bytes():
            os.kill(int(file.parent.name), signal.SIGKILL)


def _ask_for_safe_state(_: Processes) -> None:
    with tl.connect(CONTROL) as rig:
        rig.safe()


_CARD = {
    "outputs": {"n_out": {"pin": "1:1", "signal": "out.w", "gain": 0.01, "low": -1.0, "unit": "V", "high": 10.0}},
}
_ENGINE = {"signal": "engine.w", "max": 3000, "on_limit": "safe"}

#: cause -> how it is provoked. The first two are drives in which nothing is wrong
CASES: dict[str, Case] = {
    "none": Case(""),
    "none, with a vehicle": Case("", vehicle_nan_s=1e9),
    "not_finite": Case("is not finite", _fault(signal="engine.pedal", kind="nan")),
    "limit": Case("engine.w left its limits", {
        'limits."engine.w"': {"min": -50.0, "max": 1500.0, "unit": "rpm"},
        "driver.pedal": [[0.0, 0.0], [AT_S, 0.0], [AT_S + 0.1, 1.0]],
    }),
    "overruns": Case("overruns in a row", busy=(AT_TICK, 60, 1_300_000)),
    "missed": Case("whole periods late", {"clock.policy": "stop"}, busy=(AT_TICK, 1, 3_500_000)),
    "tcu_silent": Case("required message TCU_Pressure_1", act=_kill("unit")),
    "vehicle_silent": Case("no value from the vehicle model for", act=_kill("vehicle"), vehicle_nan_s=1e9),
    "vehicle_data": Case("vehicle model refused", vehicle_nan_s=AT_S),
    "solver": Case("could not resolve a step in 1 ticks", rig=_many_stops, from_tick=0),
    "hung": Case("no heartbeat for", {"safe_state.watchdog_s": 0.1}, busy=(AT_TICK, 1, 300_000_000)),
    "thread": Case("tcu process was ended by SIGKILL", act=_kill_own_unit, starts_unit=True),
    "bus": Case("interface down", act=lambda _: link("down")),
    "request": Case("requested by the operator", {"control.endpoint": CONTROL}, act=_ask_for_safe_state),
    "tcu_frames": Case("frames of required message TCU_Pressure_1", _fault(message="TCU_Pressure_1", kind="crc")),
    "encode": Case("a signal of HIL_Speeds", _fault(signal="HIL_Speeds.n_engine", kind="nan")),
    "output": Case("HIL_Speeds.n_engine, to be sent", {
        'outputs."HIL_Speeds.n_engine"': _ENGINE,
        **_fault(signal="HIL_Speeds.n_engine", kind="value", value=6000.0),
    }),
    "io": Case("card: a call took longer", {"io.card": _CARD}, act=lambda _: occupy_card(25)),
}  # fmt: skip


def _one(folder: Path, programs: Path, case: Case) -> RunStats:
    """The run of a case."""
    folder.mkdir(parents=True)
    has_vehicle, overrides, processes = case.vehicle_nan_s is not None, {**case.overrides}, Processes()
    if "io.card" in overrides:
        overrides["io.card"] = {"library": str(programs / "comedi.so"), **overrides["io.card"]}
    with ExitStack() as beside:
        if case.rig is not None:
            rig = case.rig(folder)
        else:
            rig = write_rig(folder, CONFIGS, vehicle=has_vehicle, ecu=case.starts_unit)
            overrides |= {"safe_state.stop_after_s": 0.2}
        if case.rig is None and not case.starts_unit:
            processes["unit"] = beside.enter_context(tcu_process(folder))
        if has_vehicle:
            overrides |= {"vehicle.endpoint": VEHICLE}
            body = lambda: serve(_Car(case.vehicle_nan_s or 0.0), "vehicle", VEHICLE)  # noqa: E731
            processes["vehicle"] = beside.enter_context(forked(body, folder / "vehicle.log"))
        act = case.act
        return run(
            rig, RUN_S, folder / "out", None if act is None else lambda: (time.sleep(AT_S), act(processes)),
            participants="config" if case.starts_unit else "none", overrides=overrides, inject_busy=case.busy,
        )  # fmt: skip


def detectors(folder: Path, programs: Path) -> dict[str, Any]:
    """Every cause: what is latched, its sentence, and the tick. RuntimeError names those that are not what they are to
    be: another cause or none, a sentence that does not say what it is, or a tick before the error."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    shutil.rmtree(folder, ignore_errors=True)
    found, wrong = {}, []
    for name, case in CASES.items():
        try:
            safe = _one(folder / name.replace(" ", "_"), programs, case).safe_state
        finally:
            link("up")
        kind = name.partition(",")[0]
        found[name] = {"kind": safe.kind, "says": safe.cause, "tick": safe.step}
        early = safe.latched and safe.step < case.from_tick
        if safe.kind != kind or case.says not in safe.cause or early:
            wrong.append(f"{name}: {found[name]}")
        say(f"  {name}: {found[name]}")
    if wrong:
        raise RuntimeError("; ".join(wrong))
    return found
