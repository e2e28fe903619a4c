"""Stages of the machine about I/O devices: the C shift controller behind a card and a CANopen module, and their faults.

The card is the kernel's comedi_test, whose outputs are looped to its inputs for every process. The module and the unit
wired to both are canopen_module.c. The rig has no bus.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from stages.inside import CONFIGS, armed, forked, run
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.runs.recorded_run import read_run

PRIORITY = 80
SOLENOIDS = ("C4", "C5", "C6", "C7", "C8", "C11", "C12", "LU")
#: name -> (pin at the card, safe value [V]); each safe value is another one, and none is what a drive gives
SAFE = {"pedal": ("1:0", 0.5), "n_out": ("1:1", -0.25), "pong": ("1:2", -0.75)}
#: of a run with a fault: the fault comes, and the pins are looked at so long after it [s]
FAULT_S, LOOK_S, STOP_S = 1.0, 0.5, 1.5
#: the last part of a drive, in which its end may be seen already [s]
END_S = 0.1
#: channels of a probe: it sets what the rig reads, and sees what the rig writes
PROBE = "out ping 1:3 V -10 10 0\nin pong 0:2 V -10 10 0\nopen\n"


def _output(name: str, signal_: str, keys: str) -> str:
    pin, safe = SAFE[name]
    return f'{name} = {{ pin = "{pin}", signal = "{signal_}", {keys}, unit = "V", high = 10.0, safe = {safe} }}'


def write_io_rig(folder: Path, programs: Path) -> Path:
    """The rig of the package whose unit has pins, with I/O devices in place of the unit."""
    folder.mkdir(parents=True, exist_ok=True)
    base, module = CONFIGS / "examples" / "external" / "desk_4hp22_pins.toml", "io.module"
    lines = [
        f'extends = "{base}"',
        'without = ["ecu", "vehicle", "gates", "inputs.\\"road.F\\"", "inputs.\\"road.F_hold\\""]',
        f'plant.powertrain = "{CONFIGS / "powertrains" / "car_4hp22.toml"}"',
        f"clock = {{ tick_s = 1e-3, fifo_priority = {PRIORITY} }}",
        f"safe_state.stop_after_s = {STOP_S}",
        "record.every = 1",
        '[sensors.contact_d]\nkind = "curve"\nsignal = "driver.lever"\nwords = { N = 0.0, D = 1.0 }',
        f'[io.card]\nlibrary = "{programs / "comedi.so"}"',
        '[io.card.inputs]\nping = { pin = "0:3", unit = "V", low = -10.0, high = 10.0 }',
        "[io.card.outputs]",
        _output("pedal", "driver.pedal", "gain = 4.0, offset = 0.5, low = 0.0"),
        _output("n_out", "out.w", "gain = 0.01, low = -1.0"),
        _output("pong", "io.card.ping", "low = -10.0"),
        f'[{module}]\nlibrary = "{programs / "canopen.so"}"',
        f'[{module}.options]\ninterface = "vcan0"\nnode = 5\nheartbeat_ms = 20',
        f"[{module}.inputs]",
        *(f'i_{name} = {{ pin = "ai {k}:2", unit = "A", high = 2.0 }}' for k, name in enumerate(SOLENOIDS, 1)),
        f'[{module}.outputs]\ncontact_d = {{ pin = "do 1", signal = "sensor.contact_d" }}',
        "[hydraulics.solenoids]",
        *(f'EDS_{name} = "io.module.i_{name}"' for name in SOLENOIDS),
    ]
    path = folder / "rig.toml"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


@contextmanager
def module(folder: Path, programs: Path, *mode: object) -> Iterator[subprocess.Popen[bytes]]:
    """The CANopen module with the unit behind it, or with another mode; below the priority of the rig."""
    words = mode or ("unit", programs / "shift_controller_pins.so", programs / "comedi.so")
    log = folder / "module.log"
    with (
        open(log, "wb") as out,
        subprocess.Popen([str(w) for w in (programs / "canopen_module", "vcan0", 5, *words)], stdout=out) as process,
    ):
        os.sched_setscheduler(process.pid, os.SCHED_FIFO, os.sched_param(PRIORITY - 20))
        while b"ready" not in log.read_bytes():
            if process.poll() is not None:
                raise RuntimeError(log.read_text())
            time.sleep(0.01)
        try:
            yield process
        finally:
            process.kill()


def driver(folder: Path, programs: Path, script: str) -> subprocess.Popen[str]:
    """The comedi driver in a process of its own, with channels and calls of a script (io_driver.c)."""
    file = folder / "driver_script"
    file.write_text(script)
    words = [str(programs / "io_driver"), str(programs / "comedi.so"), str(file)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def _edges(process: subprocess.Popen[str]) -> dict[str, int]:
    """What a script with `edges` has printed."""
    printed, _ = process.communicate(timeout=120.0)
    found = re.search(r"^edges (\d+) (\d+) (\d+) (\d+)$", printed, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"no edges: {printed}")
    return dict(zip(("seen", "p50_ns", "p99_ns", "max_ns"), map(int, found.groups()), strict=True))


def _probe(folder: Path, programs: Path, count: int) -> dict[str, int]:
    return _edges(driver(folder, programs, f"{PROBE}priority {PRIORITY - 1}\nedges {count} 1500\nclose\n"))


def io_drive(folder: Path, programs: Path, seconds: float, count: int) -> dict[str, Any]:
    """Through all gears; then the time from a new value at a pin to the answer at another, beside a loop in C."""
    rig = write_io_rig(folder, programs)
    with module(folder, programs):
        stats = run(rig, seconds, folder / "out")
        if stats.safe_state.latched:
            raise RuntimeError(f"{stats.safe_state}, {stats.io}, module: {(folder / 'module.log').read_text()}")
        told = re.findall(r"t = ([\d.]+) s: (\d) -> (\d)", (folder / "module.log").read_text())
    signals = read_run(folder / "out")
    in_d_s = float(signals["rig.time"][np.flatnonzero(signals["io.module.contact_d"])[0]])
    shifts, clock = [[float(t), int(a), int(b)] for t, a, b in told], stats.clock
    # the safe values at the end of the run are a stop for the unit, which then shifts down
    shifts = [shift for shift in shifts if shift[0] - shifts[0][0] < seconds - in_d_s - END_S]
    assert clock.compute_us is not None and clock.wake_lateness_us is not None
    found: dict[str, Any] = {
        **{name: getattr(clock, name) for name in ("ticks", "missed", "overruns", "margin_min_us")},
        **{name: {k: v for k, v in asdict(getattr(clock, name)).items() if k != "hist"}
           for name in ("compute_us", "wake_lateness_us")},
        "degraded": stats.degraded, "safe_state": asdict(stats.safe_state),
        "shifts": shifts,
        "end": {name: float(signals[name][-1]) for name in ("car.v", "turbine.w", "out.w")},
        "devices": {name: {"reads": io.reads, "writes": io.writes, "failed": io.failed, "stale_ticks": io.stale_ticks,
                           "read_p50_us": io.read_us.p50, "write_p50_us": io.write_us.p50}
                    for name, io in stats.io.items() if io.read_us is not None and io.write_us is not None},
        "replayed": replay(folder / "out").hash_equal,
    }  # fmt: skip
    again = folder / "edges"
    rig, got = write_io_rig(again, programs), {}
    with module(again, programs):
        beside = run(rig, 1.5 + count * 0.0045, again / "out",
                     lambda: got.update(_probe(again, programs, count)))  # fmt: skip
    found["edges"] = {**got, "missed": beside.clock.missed, "latched": beside.safe_state.latched}
    # the same channels of the card, and nothing else in the tick
    channels = "in ping 0:3 V -10 10 0\nout pong 1:2 V -10 10 0\nout pedal 1:0 V -10 10 0\nout n_out 1:1 V -10 10 0\n"
    script = f"{channels}open\npriority {PRIORITY}\nloop {500 + 5 * count}\nclose\n"
    bare = driver(again, programs, script)
    found["edges_of_a_c_loop"] = _probe(folder, programs, count)
    found["edges_of_a_c_loop"]["missed"] = int(bare.communicate()[0].split("loop ")[1].split()[0])
    return found


def _pins(folder: Path, programs: Path) -> list[float]:
    """What the card's pins have now, in the order of SAFE."""
    names = "".join(f"in {name} 0:{pin[2:]} V -10 10 0\n" for name, (pin, _) in SAFE.items())
    printed, _ = driver(folder, programs, f"{names}open\nread\nclose\n").communicate(timeout=60.0)
    return [float(word) for word in printed.split("read 0 ")[1].splitlines()[0].split()]


def _link(state: str) -> None:
    subprocess.run(["ip", "link", "set", "vcan0", state], check=True)


def io_faults(folder: Path, programs: Path) -> dict[str, Any]:
    """A module that is killed, frozen, slow, cut off; a rig that is killed. Each: the cause, and the pins after it."""
    cases: dict[str, tuple[tuple[object, ...], Callable[[int], None]]] = {
        "killed": ((), lambda pid: os.kill(pid, signal.SIGKILL)),
        "frozen": ((), lambda pid: os.kill(pid, signal.SIGSTOP)),
        "slow": (("slow", round(1200 * FAULT_S)), lambda _: None),
        "cut off": ((), lambda _: _link("down")),
    }
    found: dict[str, Any] = {}
    for name, (mode, act) in cases.items():
        place = folder / name.replace(" ", "_")
        rig, pins = write_io_rig(place, programs), {}

        def beside(pid: int, place: Path = place, act: Callable[[int], None] = act, pins: Any = pins) -> None:
            time.sleep(FAULT_S)
            pins["before"] = _pins(place, programs)
            act(pid)
            time.sleep(LOOK_S)
            pins["after"] = _pins(place, programs)
            pins["still_runs"] = '"running"' in (place / "out" / "run.json").read_text()

        with module(place, programs, *mode) as process:
            stats = run(rig, 6.0, place / "out", lambda p=process.pid: beside(p))  # type: ignore[misc]
        _link("up")
        found[name] = {**pins, **asdict(stats.safe_state), "replayed": replay(place / "out").hash_equal}
    place = folder / "rig_killed"
    rig = write_io_rig(place, programs)
    with module(place, programs), forked(lambda: run(rig, 60.0, place / "out"), place / "rig.log") as pid:
        armed(place / "out")
        time.sleep(FAULT_S)
        before = _pins(place, programs)
        os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_S)
        found["rig killed"] = {"before": before, "after": _pins(place, programs)}
        time.sleep(LOOK_S)
        found["rig killed"]["module"] = re.findall(r"error values.*", (place / "module.log").read_text())
    return found
