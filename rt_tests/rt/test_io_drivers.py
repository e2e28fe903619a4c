"""Drivers of configs/examples/io on hardware that the kernel of the virtual machine simulates: `scripts/test --vm`.

A C program (rt_tests/vm/io_driver.c) calls the driver in the machine. What the simulated hardware does is the kernel's
own code. How the tick calls a driver is the business of hil/test_io_devices.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DRIVERS, INSIDE, HEADERS = (
    ROOT / "configs" / "examples" / "io",
    ROOT / "rt_tests" / "vm",
    ROOT / "hil" / "ecu" / "include",
)
SKIPPED = 77

pytestmark = [
    pytest.mark.rt,
    pytest.mark.skipif(os.environ.get("TORQUELOOP_VM") != "1", reason="the machine is part of `scripts/test --vm`"),
]


def compiled(source: Path, target: Path, *words: str) -> Path:
    flags = ("-O2", "-Wall", "-Wextra", "-Werror", f"-I{HEADERS}")
    subprocess.run(["cc", *flags, *words, str(source), "-o", str(target), "-lm", "-ldl"], check=True)
    return target


def in_the_machine(folder: Path, command: str) -> list[str]:
    """Lines that a shell command prints in the machine, with its clock counting instructions."""
    words = [
        sys.executable,
        str(ROOT / "scripts" / "vm.py"),
        "--icount",
        "0",
        "--share",
        str(folder),
        "--timeout",
        "400",
    ]
    done = subprocess.run([*words, "--", "sh", "-c", command], capture_output=True, text=True)
    if done.returncode == SKIPPED:
        pytest.skip(f"no virtual machine here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


#: what comedi_test does: outputs of subdevice 1 are looped to inputs of subdevice 0; 16 bits over -10 .. 10 V
COMEDI = """
key device /dev/comedi0
in back 0:0 V -99 99 0
in other 0:1:0 V -10 10 0
out volts 1:0 V -10 10 -1.5
out more 1:1 V -10 10 0
open
write 0 0
read
write 2.5 -7.25
read
write 10 -10
read
write 11 -11
read
time 2000
close
"""
REFUSED = {
    "0:99": "the card has no such pin", "9:0": "the card has no such pin",
    "1:0": "the subdevice has the other direction", "0:0:7": "the subdevice has no such range",
    "line+3": "a pin is written SUBDEVICE:CHANNEL or SUBDEVICE:CHANNEL:RANGE",
}  # fmt: skip


def test_the_comedi_driver_reads_what_it_has_written_and_refuses_what_the_card_has_not(tmp_path: Path) -> None:
    program = compiled(INSIDE / "io_driver.c", tmp_path / "io_driver")
    library = compiled(DRIVERS / "comedi.c", tmp_path / "comedi.so", "-shared", "-fPIC")
    scripts = [COMEDI, *(f"in back {pin} V -10 10 0\nopen\n" for pin in REFUSED)]
    commands = []
    for k, text in enumerate(scripts):
        (tmp_path / f"script{k}").write_text(text)
        commands.append(f"{program} {library} {tmp_path}/script{k}")
    lines = in_the_machine(tmp_path, "; ".join(commands))
    print("\n".join(lines))
    step = 20.0 / 65535
    reads = [[float(x) for x in line.split()[2:]] for line in lines if line.startswith("read 0")]
    wanted = [(0.0, 0.0), (2.5, -7.25), (10.0, -10.0), (10.0, -10.0)]
    assert len(reads) == len(wanted) and lines[0] == "open"
    for found, value in zip(reads, wanted, strict=True):
        # a value is rounded to the nearest of 65 536 steps
        assert found == pytest.approx(value, abs=step / 2 + 1e-9)
    assert sum(line == "wrote 0" for line in lines) == len(wanted)
    refused = [line.partition("refused: ")[2] for line in lines if line.startswith("refused")]
    assert refused == [f"channel back, pin {pin.replace('+', ' ')}: {text}" for pin, text in REFUSED.items()]
    # instructions of a call with two channels, those of the kernel included; the limit in the rig file is 200 us
    times = {line.split()[1]: int(line.split()[3]) for line in lines if line.startswith("time")}
    assert times["read"] < 200_000 and times["write"] < 200_000


CHANNELS = """
key interface vcan0
key node 5
key heartbeat_ms 20
in switch di+2 1 0 1 0
in volts ai+1:10 V -10 10 0
out lamp do+1 1 0 1 1
out current ao+1:10 V -10 10 -1.5
open
"""
#: a module dies while the rig goes on with its ticks
DIES = "write 1 5\nsleep 3000\nread\nwrite 1 5\nsleep 3000\nread\n" + 2 * "sleep 70000\nwrite 1 5\n" + "read\nclose\n"
#: what a module does -> what it is started with; what the script says after `open`
MODULES = {
    "works": ("", "write 1 5\nsleep 5000\nread\nwrite 0 -2.5\nsleep 5000\nread\nread\ntime 1\nclose\n"),
    "dies": ("die 2", DIES),
    "pauses": ("", "write 1 5\nsleep 3000\nread\nsleep 150000\nread\nwrite 1 5\nsleep 3000\nread\nclose\n"),
    "stops": ("stop 2", "write 1 5\nsleep 3000\nread\nwrite 1 5\nsleep 60000\nread\nclose\n"),
    "lacks 6423h": ("without 6423", ""),
    "lacks 6444h": ("without 6444", ""),
}


def test_a_canopen_module_gives_takes_and_keeps_safe_values_by_itself(tmp_path: Path) -> None:
    program = compiled(INSIDE / "io_driver.c", tmp_path / "io_driver")
    module = compiled(INSIDE / "canopen_module.c", tmp_path / "canopen_module")
    library = compiled(DRIVERS / "canopen.c", tmp_path / "canopen.so", "-shared", "-fPIC")
    commands = []
    for k, (arguments, script) in enumerate(MODULES.values()):
        (tmp_path / f"script{k}").write_text(CHANNELS + script)
        told = tmp_path / f"told{k}"
        commands.append(
            f"echo case; {module} vcan0 5 {arguments} > {told} & until grep -q ready {told}; do sleep 0.02; done"
        )
        commands.append(f"{program} {library} {tmp_path}/script{k}; wait; cat {told}")
    (tmp_path / "nobody").write_text(CHANNELS)
    commands.append(f"echo case; {program} {library} {tmp_path}/nobody")
    lines = in_the_machine(tmp_path, "; ".join(commands))
    print("\n".join(lines))
    cases = [[line for line in part.splitlines() if line] for part in "\n".join(lines).split("case")][1:]
    works, dies, pauses, stops, no_6423, no_6444, nobody = cases

    def reads(case: list[str]) -> list[tuple[float, ...]]:
        return [tuple(float(x) for x in line.split()[1:]) for line in case if line.startswith("read ")]

    step = 10.0 / 32767
    first, second, stale = reads(works)
    assert first == pytest.approx((0, 1, -5.0), abs=step) and second == pytest.approx((0, 0, 2.5), abs=step)
    assert stale[0] == 1 and stale[1:] == second[1:]
    # nobody sends heartbeats any more: the module takes its error values, which are the safe ones
    assert [line for line in works if line.startswith("error")] == [f"error values 1 {round(-1.5 / step)}"]
    assert [state for state, *_ in reads(dies)] == [0, 0, 2]
    assert [state for state, *_ in reads(stops)] == [0, 2]
    # the rig makes no ticks: the module takes its error values, and is started again by the next one
    assert [state for state, *_ in reads(pauses)] == [0, 1, 0]
    assert pauses.count(f"error values 1 {round(-1.5 / step)}") == 2
    assert "refused: node 5 on vcan0: analogue inputs are not sent (6423h)" in no_6423
    assert "refused: node 5 on vcan0: no error value of an analogue output (6443h, 6444h)" in no_6444
    assert nobody == ["refused: node 5 on vcan0: nobody answers"]


#: kind of chip -> its address on the kernel's simulated SMBus
CHIPS = {
    "pcal9555a": "20", "pca9685": "40", "ds4424": "10", "max11603": "33", "ad7998": "21", "nct7904": "2d", "lm75": "48"
}  # fmt: skip
BUS = "/sys/bus/i2c/devices/i2c-0"


class Chips:
    """Scripts for drivers of chips, and for the world outside that sees and sets registers of these."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.n = folder, 0
        self.program = compiled(INSIDE / "io_driver.c", folder / "io_driver")
        self.outside = compiled(INSIDE / "i2c_pins.c", folder / "i2c_pins.so", "-shared", "-fPIC")

    def call(self, library: Path, script: str) -> str:
        self.n += 1
        (self.folder / f"chips{self.n}").write_text(script)
        return f"{self.program} {library} {self.folder}/chips{self.n}"

    def see(self, *pins: str) -> str:
        """The line of a script that prints registers."""
        text = "".join(f"in r {pin} 1 0 1 0\n" for pin in pins)
        call = self.call(self.outside, f"{text}open\nread\nclose\n")
        return f"run {call} | grep read | sed s/read/pins/\n"

    def put(self, **pins: int) -> str:
        """The line of a script that sets registers; _20_1_0: bit 0 of register 1 of the chip 20."""
        text = "".join(f"out r {name[1:].replace('_', ':')} 1 0 1 0\n" for name in pins)
        values = " ".join(map(str, pins.values()))
        call = self.call(self.outside, f"{text}open\nwrite {values}\nclose\n")
        return f"run {call} > /dev/null\n"

    def driver(self, name: str, device: str, channels: str, *calls: str) -> str:
        library = self.folder / f"{name}.so"
        if not library.exists():
            compiled(DRIVERS / f"{name}.c", library, "-shared", "-fPIC")
        keys = "".join(f"key {word}\n" for word in (f"device {device}", *channels.split("key ")[1:]))
        return self.call(library, f"{keys}{channels.split('key ')[0]}open\n{''.join(calls)}close\n")


def numbers(lines: list[str], word: str) -> list[list[float]]:
    return [[float(x) for x in line.split()[1:]] for line in lines if line.startswith(f"{word} ")]


def test_drivers_of_gpio_converters_and_pwm_on_simulated_chips(tmp_path: Path) -> None:
    chips = Chips(tmp_path)

    def lost(driver: str, address: str) -> str:
        return f"time 100\nrun echo 0-00{address} > /sys/bus/i2c/drivers/{driver}/unbind\nread\nwrite 1 1\n"

    gpio = "in a 0 1 0 1 0\nin b 8+active-low+pull-up 1 0 1 0\nout c 4 1 0 1 1\nout d 12+active-low 1 0 1 0\n"
    cases = [
        # outputs 2 and 3, directions 6 and 7, pull-up 47 and 49 of the second port
        chips.driver("gpio", "0-0020", gpio, chips.see("20:2", "20:3", "20:6", "20:7", "20:47", "20:49"), "read\n",
                     chips.put(_20_0_0=1, _20_1_0=1), "read\n", "write 0 1\n", chips.see("20:2", "20:3"),
                     lost("pca953x", "20")),
        chips.driver("iio_hwmon", "max11603", "in a in_voltage0 V 0 2 0\nin b in_voltage1 V 0 2 0\n",
                     chips.put(_33_61=100, _33_63=25), "read\n", lost("max1363", "33")),
        chips.driver("iio_hwmon", "ad7998", "in a in_voltage2 1 0 9999 0\n", chips.put(_21_a0_w=0x0123), "read\n",
                     "time 100\n"),
        chips.driver("iio_hwmon", "ds4424", "out a out_current0 1 -127 127 -5\nout b out_current3 1 -127 127 9\n",
                     chips.see("10:f8:s", "10:fb:s"), "write 100 -77\n", chips.see("10:f8:s", "10:fb:s"),
                     "write 200 0\n", lost("ds4424", "10")),
        chips.driver("iio_hwmon", "lm75", "in t temp1 K 0 2 0\n", chips.put(_48_0_w=0x1980), "read\n",
                     chips.put(_48_0_w=0xF600), "read\n", lost("lm75", "48")),
        chips.driver("iio_hwmon", "nct7904", "in t pwm1 1 0 1 0\nout o pwm2 1 0 1 0.2\n", chips.see("2d:11"),
                     chips.put(_2d_10=204), "read\n", "write 0.6\n", chips.see("2d:11"), lost("nct7904", "2d")),
        # 12 bits: low byte, high byte
        chips.driver("pwm", "/sys/class/pwm/pwmchip0", "out o 3 1 0 1 0.75\nkey period_us 5000\n",
                     chips.see("40:14", "40:15"), "write 0.25\n", chips.see("40:14", "40:15"), "read\n", "time 100\n"),
    ]  # fmt: skip
    refused = {
        ("gpio", "0-0020", "in a 20 1 0 1 0\n"): "channel a, pin 20: the chip has no such line",
        ("gpio", "0-0020", "in a 2+open-drain 1 0 1 0\n"): "channel a, pin 2 open-drain: unknown word behind the line",
        ("gpio", "0-0020", "out a 2 1 0 1 0\nout b 2 1 0 1 0\n"):
            "channel a, pin 2: a line of this direction is in use",
        ("gpio", "none", "in a 2 1 0 1 0\n"): "no GPIO chip none",
        ("iio_hwmon", "max11603", "in a in_voltage0 A 0 2 0\n"): "channel a, pin in_voltage0: its unit is V",
        ("iio_hwmon", "max11603", "in a in_voltage99 V 0 2 0\n"):
            "channel a, pin in_voltage99: the device has no such pin of this direction",
        ("iio_hwmon", "ad7998", "in a in_voltage0 V 0 2 0\n"):
            "channel a, pin in_voltage0: the kernel does not know the scale of this pin: its unit is 1, a step",
        ("iio_hwmon", "none", "in a temp1 K 0 2 0\n"):
            "no device, or several, with the name none; device may be a path",
        ("pwm", "/sys/class/pwm/pwmchip0", "in a 3 1 0 1 0\n"): "channel a, pin 3: a PWM line is an output",
        ("pwm", "/sys/class/pwm/pwmchip0", "out a 33 1 0 1 0\n"):
            "channel a, pin 33: the chip has no such line, or it is in use",
    }  # fmt: skip
    make = "; ".join(f"echo {kind} 0x{address} > {BUS}/new_device" for kind, address in CHIPS.items())
    calls = [chips.driver(*case) for case in refused] + cases
    lines = in_the_machine(tmp_path, "; ".join([make, *(f"echo case; {call}" for call in calls)]))
    print("\n".join(lines))
    found = [[line for line in part.splitlines() if line] for part in "\n".join(lines).split("case\n")[1:]]
    assert [case[0].partition("refused: ")[2] for case in found[: len(refused)]] == list(refused.values())
    gpio_lines, adc, steps, dac, temperature, fan, pwm = found[len(refused) :]
    assert numbers(gpio_lines, "pins") == [[0, 0x10, 0x10, 0x01, 0x01, 0x01, 0x01], [0, 0, 0]]
    assert numbers(gpio_lines, "read") == [[0, 0, 1], [0, 1, 0], [2, 1, 0]]
    assert numbers(adc, "read") == [pytest.approx([0, 0.8, 0.2]), pytest.approx([2, 0.8, 0.2])]
    assert numbers(steps, "read") == [[0, 0x123]]
    # a value beyond the range of the converter is refused by its driver in the kernel
    assert numbers(dac, "pins") == [[0, -5, 9], [0, 100, -77]]
    assert numbers(temperature, "read") == [pytest.approx([s, K]) for s, K in ((0, 298.65), (0, 263.15), (2, 263.15))]
    assert numbers(fan, "pins") == [[0, 51], [0, 153]] and numbers(fan, "read") == [[0, 0.8], [2, 0.8]]
    assert numbers(pwm, "pins") == [[0, 0x00, 0x0C], [0, 0x00, 0x04]] and numbers(pwm, "read") == [[0]]
    wrote = [numbers(case, "wrote") for case in (gpio_lines, dac, fan, pwm)]
    assert wrote == [[[0], [2]], [[0], [2], [2]], [[0], [2]], [[0]]]
    assert not [line for line in lines if line.startswith("failed")]
