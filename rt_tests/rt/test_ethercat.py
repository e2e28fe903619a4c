"""The EtherCAT driver (configs/examples/io/ethercat.c) against terminals that a program simulates, over two virtual
interfaces that are joined. Needs root, and the library SOEM 2 where the compiler finds it (CPATH, LIBRARY_PATH).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DRIVER, INSIDE, HEADERS = (
    ROOT / "configs" / "examples" / "io",
    ROOT / "rt_tests" / "vm",
    ROOT / "hil" / "ecu" / "include",
)
MASTER, RAIL = f"tlm{os.getpid()}", f"tlt{os.getpid()}"
#: a full scale of 10 V is 32767 steps
STEP = 10.0 / 32767

pytestmark = pytest.mark.rt


def _compiled(source: Path, target: Path, *words: str) -> None:
    flags = ("-O2", "-Wall", "-Wextra", "-Werror", f"-I{HEADERS}")
    subprocess.run(["cc", *flags, str(source), *words, "-o", str(target), "-lm"], check=True, capture_output=True)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("ethercat")
    probe = folder / "probe.c"
    probe.write_text('#include <soem/soem.h>\nint main(void) { static ecx_contextt c; return ecx_init(&c, ""); }\n')
    try:
        _compiled(probe, folder / "probe", "-lsoem")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no library SOEM 2: {error.stderr.decode().splitlines()[0]}")
    _compiled(DRIVER / "ethercat.c", folder / "ethercat.so", "-shared", "-fPIC", "-DSOEM", "-lsoem")
    _compiled(INSIDE / "ethercat_terminals.c", folder / "terminals")
    _compiled(INSIDE / "io_driver.c", folder / "io_driver", "-ldl")
    made = subprocess.run(
        f"ip link add {MASTER} type veth peer name {RAIL}", shell=True, capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"no virtual interfaces: {made.stderr.strip()}")
    try:
        for name in (MASTER, RAIL):
            subprocess.run(["ip", "link", "set", name, "up"], check=True)
        yield folder
    finally:
        subprocess.run(["ip", "link", "del", MASTER], check=True)


def driven(programs: Path, script: str, *mode: object) -> list[str]:
    """Lines that the driver's calls print, with two terminals at the other end."""
    file = programs / "script"
    file.write_text(f"key interface {MASTER}\n{script}\n")
    words = [str(word) for word in (programs / "terminals", RAIL, 2, *mode)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as terminals:
        assert terminals.stdout is not None and terminals.stdout.readline() == "ready\n"
        try:
            words = [str(programs / "io_driver"), str(programs / "ethercat.so"), str(file)]
            return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60.0).stdout.splitlines()
        finally:
            terminals.kill()


CHANNELS = """
in bit 1:4 1 0 1 0
in volts 2:8:i16:10 V -10 10 0
in raw 2:8:u16:65535 1 0 65535 0
out bit 1:3 1 0 1 1
out volts 2:8:i16:10 V -10 10 -2.5
open
"""


def test_values_pass_by_the_bits_of_their_terminal_and_the_first_ones_are_the_safe_ones(programs: Path) -> None:
    """Input bit k + 1 is output bit k, and the number is minus that of the outputs. A frame brings what the terminals
    had when it came by: the outputs of the frame before."""
    script = f"{CHANNELS}sleep 20000\nread\n" + "".join(
        f"write {bit} {volts}\nsleep 20000\nread\n" for bit, volts in ((0, 3.5), (1, -10), (1, -10))
    )
    opened, first, *rest = driven(programs, f"{script}read\nclose")
    assert opened == "open" and [float(x) for x in first.split()[1:3]] == [0, 1]
    rows = [[float(x) for x in line.split()[1:]] for line in (first, *rest[1:6:2])]
    assert [row[:2] for row in rows] == [[0, 1], [0, 1], [0, 0], [0, 1]]
    volts = [row[2] for row in rows]
    assert volts == pytest.approx([2.5, 2.5, -3.5, 10.0], abs=STEP)
    assert [row[3] for row in rows] == pytest.approx([v / STEP % 65536 for v in volts], abs=1e-6)
    # no frame was sent before the last reading
    assert rest[-2].startswith("read 1 "), "nothing new"


@pytest.mark.parametrize(("pin", "text"), [
    ("out x 3:0 1 0 1 0", "no such terminal"),
    ("out x 1:24 1 0 1 0", "fewer bits in this direction"),
    ("out x 1:9:i16:10 V -10 10 0", "fewer bits in this direction"),
    ("out x 1:8:i16:5 V -10 10 0", "the range of the pin is smaller"),
    ("out x 1:8:u16:10 V -10 10 0", "the range of the pin is smaller"),
    ("out x 1:8:f16:10 V -10 10 0", "a pin is written"),
    ("key speed 3", "unknown key speed"),
])  # fmt: skip
def test_a_pin_that_the_terminals_have_not_is_refused(programs: Path, pin: str, text: str) -> None:
    (line, *_) = driven(programs, f"{pin}\nopen")
    assert line.startswith("refused: ") and text in line


def test_a_terminal_that_is_lost_is_a_failure_and_no_frame_at_all_is_nothing_new(programs: Path) -> None:
    calls = "write 1 1\nsleep 20000\nread\n"
    lost = driven(programs, f"{CHANNELS}sleep 20000\nread\n{8 * calls}close", "die", 6)
    states = [int(line.split()[1]) for line in lost if line.startswith("read")]
    failed = states.index(2)
    assert 0 in states[:failed] and 0 not in states[failed:]
    cut = driven(programs, f"{CHANNELS}sleep 20000\nread\nrun ip link set {RAIL} down\n{calls}close")
    subprocess.run(["ip", "link", "set", RAIL, "up"], check=True)
    assert [line.split()[1] for line in cut if line.startswith("read")] in (["0", "1"], ["0", "2"])


def test_no_terminal_and_no_interface_are_refused_by_name(programs: Path) -> None:
    file = programs / "alone"
    for interface, text in ((MASTER, f"no terminal answers at {MASTER}"), ("none0", "interface none0 does not open")):
        file.write_text(f"key interface {interface}\nin bit 1:0 1 0 1 0\nopen\n")
        words = [str(programs / "io_driver"), str(programs / "ethercat.so"), str(file)]
        printed = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60.0).stdout
        assert f"refused: {text}" in printed
