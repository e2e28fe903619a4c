"""The tick's CAN port on a CAN device whose other side the test plays: slcan, a serial line with CAN as text. The queue
can run full, and the kernel itself reports controller states and errors.

Needs the slcan module and root; each test says why it is skipped.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import struct
import subprocess
import time
import tty
from collections.abc import Callable, Iterator

import pytest

from torqueloop.cython_kernels.can.socketcan import BUS_STATES, DATA, OWN, NativePort
from torqueloop.hil.can.bus import CanBusError
from torqueloop.hil.can.raw_socket import RawSocket, interface_info, open_raw

PATIENCE_S = 20.0
_TIOCSETD, _SIOCGIFNAME, _N_SLCAN = 0x5423, 0x8910, 17


class Line:
    """A CAN device on a pseudo terminal. `master` is the far end of the line."""

    def __init__(self) -> None:
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        try:
            fcntl.ioctl(self.slave, _TIOCSETD, struct.pack("i", _N_SLCAN))
            answer = fcntl.ioctl(self.slave, _SIOCGIFNAME, bytes(32))
        except OSError as error:
            os.close(self.master)
            os.close(self.slave)
            pytest.skip(f"no slcan here: {error}")
        self.name = answer.split(b"\0")[0].decode()
        self.link("txqueuelen", "4", "up")
        self.raw: RawSocket = open_raw(self.name, [0x210], [0x110], send_buffer_bytes=1 << 20)
        self.port = NativePort([0x110])
        self.port.open(self.raw.sock.fileno(), self.raw.fd_frames)
        self.seen: list[tuple[int, int, bytes, int, int]] = []

    def link(self, *words: str) -> None:
        ip = shutil.which("ip") or "/sbin/ip"
        done = subprocess.run([ip, "link", "set", self.name, *words], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"ip link set {self.name} {' '.join(words)}: {done.stderr.strip()}")

    def say(self, text: str) -> None:
        os.write(self.master, text.encode() + b"\r")

    def hear(self, wait_s: float = 0.2) -> bytes:
        """What the device has put on the line."""
        text = b""
        while select.select([self.master], [], [], wait_s)[0]:
            text += os.read(self.master, 1 << 16)
        return text

    def until(self, enough: Callable[[], bool]) -> bool:
        end = time.monotonic() + PATIENCE_S
        while not enough():
            if time.monotonic() > end:
                return False
            self.seen += self.port.receive(64)
            time.sleep(0.005)
        return True

    def count(self, name: str) -> int:
        return int(self.port.counters()[name])

    def state(self) -> str:
        return BUS_STATES[self.port.state]

    def close(self) -> None:
        self.port.close()
        self.raw.close()
        os.close(self.slave)
        os.close(self.master)


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    made.hear()  # commands of opening
    yield made
    made.close()


def test_frames_go_both_ways_and_are_confirmed(line: Line) -> None:
    line.say("t21021122")
    assert line.until(lambda: bool(line.seen)) and line.seen[0][:3] == (DATA, 0x210, b"\x11\x22")
    assert line.port.send(0x110, b"\xab\xcd")
    assert b"t1102ABCD\r" in line.hear()
    assert line.until(lambda: line.count("tx_confirmed") == 1) and line.seen[-1][0] == OWN


def test_a_line_that_takes_nothing_ends_in_enobufs_and_recovers(line: Line) -> None:
    sent = lost = 0
    for k in range(20_000):
        if line.port.send(0x110, struct.pack("<I", k)):
            sent += 1
        else:
            lost += 1
            if lost == 50:
                break
    assert lost == 50, "nobody reads the line: its buffers and the queue of the device are finite"
    assert line.count("tx_enobufs") == line.count("tx_lost") == 50
    assert line.port.word(1)["tx_lost_in_row"] == 50 and line.state() == "active"
    # the line is read again
    assert line.hear(1.0).count(b"t1104") > 0
    assert line.until(lambda: line.port.send(0x110, b"\xee"))
    assert line.port.word(2)["tx_lost_in_row"] == 0 and b"t1101EE\r" in line.hear(1.0)


def test_states_of_the_controller_come_from_the_kernel(line: Line) -> None:
    steps = [("sw100010", "warning"), ("sp130010", "passive"), ("sa010010", "active"), ("sb000000", "bus off")]
    for text, state in steps:
        n = line.count("error_frames")
        line.say(text)
        if not line.until(lambda n=n: line.count("error_frames") > n):
            pytest.skip("the slcan of this kernel reports no states (Linux 6.0 and newer do)")
        assert line.state() == state
    assert line.port.counters()["errors"]["bus_off"] == 1
    assert line.port.word(7)["down_since_ns"] == 7
    # a bus that is off takes no frames in or out until the interface is set up anew
    line.link("down")
    assert line.until(lambda: line.state() == "interface down")
    line.link("up")
    line.hear()
    line.say("t210133")
    assert line.until(lambda: any(k == DATA for k, *_ in line.seen)) and line.state() == "active"
    assert line.port.word(8)["down_since_ns"] == 0


def test_bus_errors_are_counted_by_class(line: Line) -> None:
    line.say("e1a")
    if not line.until(lambda: line.count("error_frames") > 0):
        pytest.skip("the slcan of this kernel reports no errors (Linux 6.0 and newer do)")
    errors = line.port.counters()["errors"]
    assert errors["ack"] == 1 and errors["bus_error"] == 1 and line.state() == "active"


def test_a_device_that_is_taken_away_is_seen_and_cannot_be_opened_again(line: Line) -> None:
    name = line.name
    os.close(line.slave)
    os.close(line.master)
    line.master, line.slave = os.openpty()  # closed by the fixture
    assert line.until(lambda: line.state() == "interface down")
    assert not line.port.send(0x110, b"x") and line.count("tx_down") == 1
    with pytest.raises(CanBusError, match=f"no network interface '{name}'"):
        interface_info(name)
