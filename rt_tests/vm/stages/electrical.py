"""Stages of the machine about I/O devices: the C shift controller behind cards of all kinds, and their faults.

Each kind of hardware is simulated by the kernel: comedi_test, whose outputs are looped to its inputs for every process,
and chips on i2c-stub, whose registers every process sees. The CANopen module and the unit that is wired to all of them
are canopen_module.c. The rig has no bus.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import signal
import struct
import subprocess
import time
import zlib
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
#: kind of chip -> its address; what each carries is in write_io_rig
CHIPS = {"pcal9555a": "20", "pca9685": "40", "ds4424": "10", "max11603": "33", "nct7904": "2d", "lm75": "48"}
#: output of the card -> its pin and its safe value [V]: none is what a drive gives
SAFE = {"n_out": ("1:1", -0.25), "pong": ("1:2", -0.75)}
#: output of a chip -> its register (i2c_pins.c), and what this has with the safe value: lines 4 and 12, the DAC, the
#: high byte of a duty of 12 bits
SAFE_CHIPS = {
    "contact_d": ("20:2:4", 0.0),
    "answer": ("20:3:4", 1.0),
    "pedal": ("10:f8:s", -100.0),
    "lamp": ("40:9", 12.0),
}
#: of a run with a fault: the fault comes, and the pins are looked at so long after it [s]
FAULT_S, LOOK_S, STOP_S = 0.6, 0.3, 1.2
#: the last part of a drive, in which its end may be seen already [s]
END_S = 0.1
#: way through the rig -> driver that sets its input and sees its output from outside, with these pins; its own driver
EDGES = {
    "card": ("comedi", "out ping 1:3 V -10 10 0\nin pong 0:2 V -10 10 0\n",
             "comedi", "in ping 0:3 V -10 10 0\nout pong 1:2 V -10 10 0\nout n_out 1:1 V -10 10 0\n"),
    "lines": ("i2c_pins", "out ask 20:1:0 1 0 1 0\nin answer 20:3:4 1 0 1 0\n",
              "gpio", "key device 0-0020\nin ask 8 1 0 1 0\nin y_C11 0 1 0 1 0\nin y_C8 1 1 0 1 0\n"
              "out answer 12 1 0 1 0\nout contact_d 4 1 0 1 0\n"),
}  # fmt: skip
#: the wires of the unit: pedal 0 .. 1 is -127 .. 127 of the DAC; 1 A at a shunt of 1 Ohm is 125 steps of the ADC; a
#: duty of 1 is 2 A; a solenoid that is switched is on above 0.4 A; the lever is at N (2) or at D (3)
WIRING = """
driver {programs}/comedi.so
sensor 2 0:1 100
driver {programs}/i2c_pins.so
sensor 0 20:2:4 1 2
sensor 1 10:f8:s 0.003937007874015748 0.5
actuator 1 33:61 125
actuator 2 33:63 125
actuator 3 2d:10 127.5
actuator 6 2d:11 127.5
actuator 4 20:0:1 1.25
actuator 5 20:0:0 1.25
"""
BUS = Path("/sys/bus/i2c/devices/i2c-0")


def write_io_rig(folder: Path, programs: Path) -> Path:
    """The rig of the package whose unit has pins, with I/O devices in place of the unit."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, address in CHIPS.items():
        if not (BUS.parent / f"0-00{address}").exists():
            (BUS / "new_device").write_text(f"{kind} 0x{address}")
    base = CONFIGS / "examples" / "external" / "desk_4hp22_pins.toml"
    path = folder / "rig.toml"
    path.write_text(f"""extends = "{base}"
without = ["ecu", "vehicle", "gates", 'inputs."road.F"', 'inputs."road.F_hold"']
plant.powertrain = "{CONFIGS / "powertrains" / "car_4hp22.toml"}"
clock = {{ tick_s = 1e-3, fifo_priority = {PRIORITY} }}
safe_state.stop_after_s = {STOP_S}
record.every = 1

[sensors.contact_d]
kind = "curve"
signal = "driver.lever"
words = {{ N = 0.0, D = 1.0 }}

[io.card]
library = "{programs / "comedi.so"}"
[io.card.inputs]
ping = {{ pin = "0:3", unit = "V", low = -10.0, high = 10.0 }}
[io.card.outputs]
n_out = {{ pin = "1:1", signal = "out.w", gain = 0.01, low = -1.0, unit = "V", high = 10.0, safe = -0.25 }}
pong = {{ pin = "1:2", signal = "io.card.ping", low = -10.0, unit = "V", high = 10.0, safe = -0.75 }}

[io.lines]
library = "{programs / "gpio.so"}"
options = {{ device = "0-0020" }}
[io.lines.inputs]
ask = {{ pin = "8" }}
y_C11 = {{ pin = "0" }}
y_C8 = {{ pin = "1" }}
[io.lines.outputs]
contact_d = {{ pin = "4", signal = "sensor.contact_d" }}
answer = {{ pin = "12", signal = "io.lines.ask", safe = 1.0 }}

[io.adc]
library = "{programs / "iio_hwmon.so"}"
options = {{ device = "max11603" }}
[io.adc.inputs]
i_C5 = {{ pin = "in_voltage0", unit = "V", high = 2.0 }}
i_C6 = {{ pin = "in_voltage1", unit = "V", high = 2.0 }}

[io.dac]
library = "{programs / "iio_hwmon.so"}"
options = {{ device = "ds4424" }}
[io.dac.outputs.pedal]
pin = "out_current0"
signal = "driver.pedal"
unit = "1"
gain = 254.0
offset = -127.0
low = -127.0
high = 127.0
safe = -100.0

[io.duty]
library = "{programs / "iio_hwmon.so"}"
options = {{ device = "nct7904" }}
[io.duty.inputs]
d_C7 = {{ pin = "pwm1" }}
d_C12 = {{ pin = "pwm2" }}

[io.pwm]
library = "{programs / "pwm.so"}"
options = {{ device = "/sys/class/pwm/pwmchip0", period_us = 5000 }}
[io.pwm.outputs]
lamp = {{ pin = "0", signal = "driver.pedal", gain = 0.5, unit = "1", safe = 0.75 }}

[io.room]
library = "{programs / "iio_hwmon.so"}"
options = {{ device = "lm75" }}
[io.room.inputs]
T = {{ pin = "temp1", unit = "K", low = 200.0, high = 400.0 }}

[io.module]
library = "{programs / "canopen.so"}"
options = {{ interface = "vcan0", node = 5, heartbeat_ms = 20 }}
[io.module.inputs]
i_C4 = {{ pin = "ai 1:2", unit = "A", high = 2.0 }}
i_LU = {{ pin = "ai 8:2", unit = "A", high = 2.0 }}
[io.module.outputs]
contact_d = {{ pin = "do 1", signal = "sensor.contact_d" }}

[hydraulics.solenoids]
EDS_C4 = "io.module.i_C4"
EDS_C5 = {{ signal = "io.adc.i_C5", gain = 1.0 }}
EDS_C6 = {{ signal = "io.adc.i_C6", gain = 1.0 }}
EDS_C7 = {{ signal = "io.duty.d_C7", gain = 2.0 }}
EDS_C8 = "io.lines.y_C8"
EDS_C11 = "io.lines.y_C11"
EDS_C12 = {{ signal = "io.duty.d_C12", gain = 2.0 }}
EDS_LU = "io.module.i_LU"
""", encoding="utf-8")  # fmt: skip
    (folder / "wiring").write_text(WIRING.format(programs=programs))
    return path


@contextmanager
def module(folder: Path, programs: Path, *mode: object) -> Iterator[subprocess.Popen[bytes]]:
    """The CANopen module with the unit behind it, or with another mode; below the priority of the rig."""
    words = mode or ("unit", programs / "shift_controller_pins.so", folder / "wiring")
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


def driver(folder: Path, programs: Path, name: str, script: str) -> subprocess.Popen[str]:
    """A driver in a process of its own, with channels and calls of a script (io_driver.c)."""
    file = folder / f"script_{name}_{zlib.crc32(script.encode()):x}"
    file.write_text(script)
    words = [str(programs / "io_driver"), str(programs / f"{name}.so"), str(file)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def _edges(process: subprocess.Popen[str]) -> dict[str, int]:
    """What a script with `edges` has printed."""
    printed, _ = process.communicate(timeout=120.0)
    found = re.search(r"^edges (\d+) (\d+) (\d+) (\d+)$", printed, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"no edges: {printed}")
    return dict(zip(("seen", "p50_ns", "p99_ns", "max_ns"), map(int, found.groups()), strict=True))


def _probe(folder: Path, programs: Path, way: str, count: int) -> dict[str, int]:
    name, channels, *_ = EDGES[way]
    script = f"{channels}open\npriority {PRIORITY - 1}\nedges {count} 1500\nclose\n"
    return _edges(driver(folder, programs, name, script))


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
                           "read_p50_us": io.read_us and io.read_us.p50,
                           "write_p50_us": io.write_us and io.write_us.p50}
                    for name, io in stats.io.items()},
        "replayed": replay(folder / "out").hash_equal,
    }  # fmt: skip
    found["edges"] = {way: _edges_of(folder / f"edges_{way}", programs, way, count) for way in EDGES}
    return found


def _edges_of(folder: Path, programs: Path, way: str, count: int) -> dict[str, Any]:
    """From a new value at an input to the answer at an output: through the rig, and through a loop in C with the same
    channels of the device and nothing else."""
    rig, got = write_io_rig(folder, programs), {}
    with module(folder, programs):
        beside = run(rig, 1.5 + count * 0.0045, folder / "out",
                     lambda: got.update(_probe(folder, programs, way, count)))  # fmt: skip
    through = {**got, "missed": beside.clock.missed, "latched": beside.safe_state.latched}
    *_, name, channels = EDGES[way]
    script = f"{channels}open\npriority {PRIORITY}\nloop {500 + 5 * count}\nclose\n"
    loop = driver(folder, programs, name, script)
    time.sleep(0.1)
    bare: dict[str, Any] = _probe(folder, programs, way, count)
    bare["missed"] = int(loop.communicate()[0].split("loop ")[1].split()[0])
    return {"rig": through, "loop": bare}


def _pins(folder: Path, programs: Path) -> dict[str, float]:
    """What the pins of card and chips have now."""
    card = "".join(f"in {name} 0:{pin[2:]} V -10 10 0\n" for name, (pin, _) in SAFE.items())
    chips = "".join(f"in {name} {pin} 1 -1e9 1e9 0\n" for name, (pin, _) in SAFE_CHIPS.items())
    values = []
    for name, channels in (("comedi", card), ("i2c_pins", chips)):
        printed, _ = driver(folder, programs, name, f"{channels}open\nread\nclose\n").communicate(timeout=60.0)
        values += [float(word) for word in printed.split("read 0 ")[1].splitlines()[0].split()]
    return dict(zip((*SAFE, *SAFE_CHIPS), values, strict=True))


def link(state: str) -> None:
    """Set vcan0 up or down."""
    subprocess.run(["ip", "link", "set", "vcan0", state], check=True)


def _chip(driver_: str, address: str, what: str) -> None:
    Path(f"/sys/bus/i2c/drivers/{driver_}/{what}").write_text(f"0-00{address}")


def occupy_card(waits: int) -> None:
    """Another program has the card for `waits` times 0.1 ms: comedi serves one list of instructions after the other."""
    wait, ioctl_insnlist, ns = 0xA000005, 0x8010640B, ctypes.c_uint(99_999)
    insn = struct.pack("IIQIIIIII", wait, 1, ctypes.addressof(ns), *6 * [0])
    insns = ctypes.create_string_buffer(insn * waits, len(insn) * waits)
    with open("/dev/comedi0", "rb") as card:
        fcntl.ioctl(card, ioctl_insnlist, struct.pack("IQ", waits, ctypes.addressof(insns)))


#: what is lost -> driver of the kernel and address of the chip
LOST = {"lines": ("pca953x", "20"), "dac": ("ds4424", "10"), "pwm": ("pca9685-pwm", "40"), "adc": ("max1363", "33"),
        "duty": ("nct7904", "2d"), "room": ("lm75", "48")}  # fmt: skip


def _one_fault(folder: Path, programs: Path, mode: tuple[object, ...], act: Callable[[int], None]) -> dict[str, Any]:
    """A run in which `act` happens: its cause, and the pins before and after it."""
    rig, pins = write_io_rig(folder, programs), {}

    def beside(pid: int) -> None:
        time.sleep(FAULT_S)
        pins["before"] = _pins(folder, programs)
        act(pid)
        time.sleep(LOOK_S)
        pins["after"] = _pins(folder, programs)
        pins["still_runs"] = '"running"' in (folder / "out" / "run.json").read_text()

    with module(folder, programs, *mode) as process:
        stats = run(rig, 6.0, folder / "out", lambda: beside(process.pid))
    return {**pins, **asdict(stats.safe_state), "replayed": replay(folder / "out").hash_equal}


def io_faults(folder: Path, programs: Path, chips: int) -> dict[str, Any]:
    """A module that is killed, frozen, slow, cut off; a card that another program uses; so many chips that are
    lost, one in a run; a rig that is killed. Each: the cause, and the pins after it."""
    cases: dict[str, tuple[tuple[object, ...], Callable[[int], None]]] = {
        "killed": ((), lambda pid: os.kill(pid, signal.SIGKILL)),
        "frozen": ((), lambda pid: os.kill(pid, signal.SIGSTOP)),
        "slow": (("slow", round(1200 * FAULT_S)), lambda _: None),
        "cut off": ((), lambda _: link("down")),
        # (longer than two ticks: whenever it begins, one call of the rig waits longer than it may)
        "card slow": ((), lambda _: occupy_card(25)),
        "card frozen": ((), lambda _: occupy_card(5000)),
        **{
            f"{name} lost": ((), lambda _, chip=chip: _chip(*chip, "unbind"))
            for name, chip in list(LOST.items())[:chips]
        },
    }
    found: dict[str, Any] = {}
    for name, (mode, act) in cases.items():
        found[name] = _one_fault(folder / name.replace(" ", "_"), programs, mode, act)
        link("up")
        if name.removesuffix(" lost") in LOST:
            _chip(*LOST[name.removesuffix(" lost")], "bind")
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
