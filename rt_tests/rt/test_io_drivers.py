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
in back 0:0 V -10 10 0
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
    "line_3": "a pin is written SUBDEVICE:CHANNEL or SUBDEVICE:CHANNEL:RANGE",
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
    assert refused == [f"channel back, pin {pin.replace('_', ' ')}: {text}" for pin, text in REFUSED.items()]
    # instructions of a call with two channels, those of the kernel included; the limit in the rig file is 200 us
    times = {line.split()[1]: int(line.split()[3]) for line in lines if line.startswith("time")}
    assert times["read"] < 200_000 and times["write"] < 200_000


CHANNELS = """
key interface vcan0
key node 5
key heartbeat_ms 20
in switch di_2 1 0 1 0
in volts ai_1:10 V -10 10 0
out lamp do_1 1 0 1 1
out current ao_1:10 V -10 10 -1.5
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
