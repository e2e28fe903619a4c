"""Programs of others on the rig's bus: can-utils, python-can, the kernel's ISO-TP. One run serves several tests.

Time in the machine counts instructions: a tick is missed or not, whatever the host does.
"""

import re
import socket
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import can
import pytest
from stages.inside import CONFIGS, program, run, tcu_process
from stages.rigs import PING_ID, PONG_ID, write_rig

FLOOD = 4000
FOREIGN_ID = 0x6F0
TCU_IDS = {0x210, 0x211, 0x212}
HIL = {"HIL_Speeds": 0x110, "HIL_Driver": 0x111, "HIL_Engine": 0x112, "Pong": PONG_ID}
LINE = re.compile(r"\((\d+\.\d+)\) vcan0 ([0-9A-F]+)#([0-9A-F]*)")


class Dump:
    """candump beside a run."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __enter__(self) -> "Dump":
        self._out = self.file.open("w")
        self._process = subprocess.Popen(["candump", "-L", "-r", "4000000", "vcan0"], stdout=self._out)
        time.sleep(0.2)
        return self

    def __exit__(self, *_: object) -> None:
        time.sleep(0.2)
        self._process.terminate()
        self._process.wait()
        self._out.close()

    def frames(self) -> list[tuple[float, int, bytes]]:
        found = [LINE.match(line) for line in self.file.read_text().splitlines()]
        return [(float(m[1]), int(m[2], 16), bytes.fromhex(m[3])) for m in found if m]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("clients")


def isotp_exchange(seen: dict) -> None:
    """Two kernel ISO-TP sockets on the same bus: a request of 3000 bytes and an answer, in many frames each."""
    request, answer = bytes(i % 251 for i in range(3000)), bytes(i % 241 for i in range(2000))
    with (
        socket.socket(socket.AF_CAN, socket.SOCK_DGRAM, socket.CAN_ISOTP) as tester,
        socket.socket(socket.AF_CAN, socket.SOCK_DGRAM, socket.CAN_ISOTP) as unit,
    ):
        tester.bind(("vcan0", 0x7E8, 0x7E0))
        unit.bind(("vcan0", 0x7E0, 0x7E8))
        for s in (tester, unit):
            s.settimeout(5.0)
        tester.send(request)
        seen["request"] = unit.recv(4095) == request
        unit.send(answer)
        seen["answer"] = tester.recv(4095) == answer


def python_can_exchange(seen: dict) -> None:
    """A python-can peer asks and gets its answer."""
    with can.Bus(interface="socketcan", channel="vcan0", can_filters=[{"can_id": PONG_ID, "can_mask": 0x7FF}]) as bus:
        for value in (0x0101, 0x0202, 0x0303):
            bus.send(can.Message(arbitration_id=PING_ID, data=value.to_bytes(8, "little"), is_extended_id=False))
            for _ in range(20):
                message = bus.recv(1.0)
                if message is not None and bytes(message.data[:2]) == value.to_bytes(2, "little"):
                    seen.setdefault("answered", []).append(value)
                    break


@pytest.fixture(scope="module")
def guests(folder):
    """One run with candump, cansend, python-can and ISO-TP beside it."""
    seen: dict = {}

    def beside() -> None:
        program("cansend", "vcan0", f"{PING_ID:X}#3412000000000000")
        time.sleep(0.05)
        python_can_exchange(seen)
        isotp_exchange(seen)

    with Dump(folder / "guests.log") as dump:
        with tcu_process(folder):
            stats = run(write_rig(folder / "a", CONFIGS), 2.0, folder / "a" / "out", beside)
    return stats, dump.frames(), seen


def held(stats) -> bool:
    """The rig kept its time and its state."""
    return stats.clock.missed == 0 and not stats.safe_state.latched and stats.clock.ticks == 2000


def test_candump_sees_every_frame_we_sent_with_its_identifier_and_period(guests):
    stats, frames, _ = guests
    assert held(stats)
    count = Counter(can_id for _, can_id, _ in frames)
    for name, can_id in HIL.items():
        assert count[can_id] == stats.buses["powertrain"].tx[name].sent
        times = [t for t, i, _ in frames if i == can_id]
        period = (times[-1] - times[0]) / (len(times) - 1)
        assert period == pytest.approx(1e-3 if name == "Pong" else 10e-3, rel=1e-3), name


def test_cansend_and_python_can_are_taken_and_answered(guests):
    stats, frames, seen = guests
    assert stats.buses["powertrain"].rx["Ping"].ok == 4
    values = [int.from_bytes(data[:2], "little") for _, can_id, data in frames if can_id == PONG_ID]
    assert [v for i, v in enumerate(values) if i == 0 or v != values[i - 1]] == [0, 0x1234, 0x0101, 0x0202, 0x0303]
    assert seen["answered"] == [0x0101, 0x0202, 0x0303]


def test_isotp_of_the_kernel_shares_the_bus(guests):
    stats, frames, seen = guests
    assert seen["request"] and seen["answer"]
    assert sum(can_id in (0x7E0, 0x7E8) for _, can_id, _ in frames) > 700, "frames of 5000 bytes in 7-byte pieces"
    assert stats.buses["powertrain"].rx_bad == 0 and stats.buses["powertrain"].foreign_frames == 0


def test_floods_of_our_and_of_foreign_identifiers_do_not_hold_up_the_rig(folder):
    """cangen as fast as it can: on an identifier we receive, on a protected one (rubbish), on one of nobody."""

    def beside() -> None:
        for can_id in (PING_ID, FOREIGN_ID, 0x212):
            program("cangen", "vcan0", "-g", 0, "-I", f"{can_id:X}", "-L", 8, "-n", FLOOD)

    with tcu_process(folder):
        stats = run(write_rig(folder / "b", CONFIGS), 2.0, folder / "b" / "out", beside)
    assert held(stats)
    bus = stats.buses["powertrain"]
    ping, status = bus.rx["Ping"], bus.rx["TCU_Status"]
    assert ping.ok <= FLOOD <= ping.ok + bus.native.rx_dropped
    assert sum(getattr(status, k) for k in ("crc", "repeat", "jump", "range")) + bus.native.rx_dropped > 0.9 * FLOOD
    assert bus.rx_bad > 0.9 * FLOOD - bus.native.rx_dropped and bus.native.tx_lost == 0
    # foreign frames are kept away by the kernel's filter
    assert bus.native.rx_taken + bus.native.rx_dropped < 2 * FLOOD + 1200


def test_flood_of_an_identifier_of_ours_is_counted_as_foreign_sender(folder):
    def beside() -> None:
        program("cangen", "vcan0", "-g", 0, "-I", f"{HIL['HIL_Speeds']:X}", "-L", 8, "-n", FLOOD)

    with tcu_process(folder):
        stats = run(write_rig(folder / "d", CONFIGS), 2.0, folder / "d" / "out", beside)
    bus = stats.buses["powertrain"]
    assert stats.clock.missed == 0
    assert bus.foreign_frames <= FLOOD <= bus.foreign_frames + bus.native.rx_dropped and bus.foreign


def test_canplayer_of_a_recorded_control_unit_drives_the_rig(folder, guests):
    """What candump recorded of the control unit, played to a rig without one."""
    lines = (folder / "guests.log").read_text().splitlines()
    recording = [line for line in lines if (m := LINE.match(line)) and int(m[2], 16) in TCU_IDS]
    (folder / "tcu.replay").write_text("\n".join(recording) + "\n")
    player = subprocess.Popen(["canplayer", "-I", str(folder / "tcu.replay"), "-l", "i", "vcan0=vcan0"])
    try:
        stats = run(write_rig(folder / "c", CONFIGS), 2.0, folder / "c" / "out")
    finally:
        player.terminate()
        player.wait()
    assert held(stats)
    assert stats.buses["powertrain"].rx["TCU_Pressure_1"].ok > 350 and stats.buses["powertrain"].rx_bad < 10
    assert threading.active_count() < 20
