"""The J1939 interface against can-j1939, a stack of others: one address for two, requests, and what it makes of ETC1,
ETC2, ETC7 and TSC1 by the numbers of SAE J1939-71 written out here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import can
import numpy as np
import pytest
from waiting import PATIENCE_S

import torqueloop as tl
from torqueloop.hil.can.bus import CanBusConfig, PythonCanPort
from torqueloop.hil.can.frame import EXTENDED, Frame
from torqueloop.hil.ecu.interface import MakerBus, interface_database
from torqueloop.hil.ecu.interface_tables import NUMBERS, load_interface

j1939 = pytest.importorskip("j1939", reason="can-j1939 is not installed")

CONFIGS = Path(tl.__file__).parent / "configs"
TRANSMISSION, ENGINE, CANNOT_CLAIM = 3, 0, 254
#: (priority, group, source, data), as the stack tells it
Told = tuple[int, int, int, bytes]


class Pair:
    """Our interface and the stack of others on one bus of python-can."""

    def __init__(self, channel: str) -> None:
        config = load_interface(CONFIGS / "interfaces" / "tcu_j1939.toml")
        database = interface_database(config, CONFIGS / "can" / "j1939_transmission.dbc", "TCU")
        self.ours, self.step = MakerBus(config, database, 5e-3, 0), 0
        self.port = PythonCanPort(CanBusConfig("virtual", channel))
        self.theirs = j1939.ElectronicControlUnit()
        self.theirs.connect(interface="virtual", channel=channel)
        self.told: list[Told] = []
        self.theirs.subscribe(lambda *x: self.told.append((x[0], x[1], x[2], bytes(x[4]))))

    def close(self) -> None:
        self.theirs.stop()
        self.theirs.disconnect()
        self.port.close()

    def join(self, name: int, address: int) -> Any:
        """Theirs as a node with this NAME."""
        self.node = self.theirs.add_ca(name=j1939.Name(value=name), device_address=address)
        self.node.start()
        return self.node

    def until(self, what: Callable[[], bool]) -> None:
        """Our control steps, until something has come; a loaded machine takes its time."""
        words = {"gear_actual": "N", "gear_target": "N", "lever": "N", "lockup": "open", "mode": "normal"}
        end = time.monotonic() + PATIENCE_S
        while not what():
            assert time.monotonic() < end, self.told[-5:]
            while (frame := self.port.recv(0.0)) is not None:
                self.ours.receive(5e-3 * self.step, Frame(*frame[:2], frame[2], 0))
            for sent in self.ours.frames(self.step, dict.fromkeys(NUMBERS, 0.0), words):
                self.port.send(sent.can_id, sent.data, sent.flags)
            self.step += 1
            time.sleep(1e-3)

    def claims(self, source: int) -> list[Told]:
        """Address claims heard by theirs from an address."""
        return [t for t in self.told if t[1] & 0xFF00 == 0xEE00 and t[2] == source]


@pytest.fixture
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    made = Pair(request.node.name)
    yield made
    made.close()


def test_a_node_with_a_higher_name_loses_our_address(pair: Pair) -> None:
    heard: list[can.Message] = []
    with can.Bus(interface="virtual", channel=pair.port.name.split()[1]) as third:  # type: ignore[abstract]
        pair.until(lambda: third.recv(0.0) is not None)
        node = pair.join(200 << 40, TRANSMISSION)
        lost = j1939.ControllerApplication.State.CANNOT_CLAIM
        pair.until(lambda: node.state == lost)
        while (message := third.recv(0.0)) is not None:
            heard.append(message)
    # theirs said it cannot claim, ours said its NAME again and goes on
    assert [m.arbitration_id for m in heard if m.arbitration_id & 0xFF == CANNOT_CLAIM] == [0x18EEFFFE]
    ours = [bytes(m.data) for m in heard if m.arbitration_id == 0x18EEFF03]
    assert (200 << 40).to_bytes(8, "little") in ours and ours.index((200 << 40).to_bytes(8, "little")) < len(ours) - 1
    assert not pair.ours.address_lost
    before = pair.step
    pair.until(lambda: pair.step > before + 30)
    assert pair.ours.refused == {}


def test_a_node_with_a_lower_name_takes_our_address(pair: Pair) -> None:
    with can.Bus(interface="virtual", channel=pair.port.name.split()[1]) as third:  # type: ignore[abstract]
        node = pair.join(0, TRANSMISSION)
        pair.until(lambda: pair.ours.address_lost)
        # its thread notes its state after its claim has gone out
        pair.until(lambda: node.state == j1939.ControllerApplication.State.NORMAL)
        assert node.device_address == TRANSMISSION
        heard: list[int] = []

        def silent() -> bool:
            heard.extend(m.arbitration_id for m in iter(lambda: third.recv(0.0), None))
            return CANNOT_CLAIM in [i & 0xFF for i in heard]

        pair.until(silent)
        before, said = pair.step, len(heard)
        pair.until(lambda: pair.step > before + 40)
        silent()
        assert len(heard) == said, "one that has no address says nothing more"
        # but for its answer to a request
        node.send_request(0, 60928, 255)
        pair.until(lambda: [i & 0xFF for i in (silent(), heard)[1]].count(CANNOT_CLAIM) == 2)


@pytest.mark.parametrize("destination", [TRANSMISSION, 255])
def test_it_answers_requests_of_any_node_to_it_and_to_all(pair: Pair, destination: int) -> None:
    node = pair.join(500, 200)
    pair.until(lambda: node.state == j1939.ControllerApplication.State.NORMAL)
    answers: list[int] = []
    with can.Bus(interface="virtual", channel=pair.port.name.split()[1]) as third:  # type: ignore[abstract]

        def answered() -> bool:
            answers.extend(m.arbitration_id for m in iter(lambda: third.recv(0.0), None))
            return 0x18EEFF03 in answers

        node.send_request(0, 60928, destination)
        pair.until(answered)
        answers.clear()
        node.send_request(0, 65260, destination)
        before = pair.step
        pair.until(lambda: pair.step > before + 40)
        assert not answered() and pair.ours.refused == {}


def test_it_reads_our_name(pair: Pair) -> None:
    with can.Bus(interface="virtual", channel=pair.port.name.split()[1]) as third:  # type: ignore[abstract]
        pair.until(lambda: pair.step > 2)
        claim = third.recv(0.0)
    assert claim is not None and claim.arbitration_id == 0x18EEFF03
    name = j1939.Name(bytes=claim.data)
    # J1939-81: 3 is the transmission; no manufacturer's code, an address of its own choice it does not take
    assert (name.function, name.identity_number, name.manufacturer_code) == (3, 1, 0)
    assert not name.arbitrary_address_capable


def test_it_reads_what_the_transmission_says_in_a_drive(tmp_path: Path) -> None:
    """A recorded drive through the first shift, frame by frame into the stack, decoded by hand."""
    run = tl.run("desk_j1939", clock="virtual", duration=9.0, out=tmp_path / "run", html=False)
    theirs = j1939.ElectronicControlUnit(send_message=lambda *_: None)
    told: list[tuple[float, Told]] = []
    now = 0.0
    # as the engine: what is directed at it, and at all
    theirs.subscribe(lambda *x: told.append((now, (x[0], x[1], x[2], bytes(x[4])))), ENGINE)
    for frame in run.frames():
        if frame["bus"] == 1 and frame["id"] & EXTENDED:
            now = 1e-9 * float(frame["t_ns"])
            theirs.notify(int(frame["id"]) & 0x1FFFFFFF, bytearray(frame["data"].tobytes()[: frame["dlc"]]), now)
    theirs.stop()

    def of(group: int, source: int = TRANSMISSION) -> list[tuple[float, bytes]]:
        return [(t, data) for t, (_, g, s, data) in told if g == group and s == source]

    def at(name: str, t: float) -> float:
        return float(run[name][int(np.searchsorted(run.t, t)) - 1])

    rpm = 30.0 / np.pi
    etc1, etc2, etc7, tsc1 = of(61442), of(61445), of(65098), of(0)
    assert len(etc1) > 880 and len(etc2) > 88 and len(etc7) > 88 and len(tsc1) > 10
    # priorities of J1939-71: 3 for ETC1 and TSC1, 6 for ETC2 and ETC7
    assert {(p, g) for _, (p, g, s, _) in told if s == TRANSMISSION} >= {(3, 61442), (6, 61445), (6, 65098), (3, 0)}
    late = [(t, d) for t, d in etc1 if t > 3.0]
    for t, data in late:
        # SPN 191 and 161: 0.125 1/min a bit, bytes 2-3 and 6-7
        assert abs(int.from_bytes(data[1:3], "little") * 0.125 - at("HIL_Speeds.n_output", t) * rpm) < 30.0
        turbine = abs(int.from_bytes(data[5:7], "little") * 0.125 - at("HIL_Speeds.n_turbine", t) * rpm)
        assert turbine < 60.0 or data[0] >> 4 & 3, "in a shift it moves faster than the messages"
    # SPN 523, 524: offset -125; SPN 526: 0.001 a bit; SPN 574: a shift is in process in bits 5-6 of byte 1
    gears = [d[3] - 125 for t, d in etc2 if t > 2.0]
    assert sorted(set(gears)) == [1, 2, 3, 4] and gears == sorted(gears)
    # wanted is what comes next
    assert all(wanted - gear in (0, 1) for wanted, gear in ((d[0] - 125, d[3] - 125) for t, d in etc2 if t > 2.0))
    first = next(d for t, d in etc2 if t > 3.0)
    ratio = int.from_bytes(first[1:3], "little") * 1e-3
    t = next(t for t, d in etc2 if t > 3.0)
    assert ratio == pytest.approx(at("HIL_Speeds.n_turbine", t) / at("HIL_Speeds.n_output", t), rel=0.05)
    shifting = [t for t, d in etc1 if d[0] >> 4 & 3 == 1 and t > 3.0]
    asked = [t for t, _ in tsc1]
    assert shifting and shifting[0] <= asked[0] and asked[-1] <= shifting[-1] + 0.1
    for _, data in tsc1:
        # SPN 695: mode 3, speed and torque limit; SPN 518: 1 % a bit, offset -125, of 500 Nm; checksum SPN 4207
        total = sum(data[:7]) + (data[7] & 15) + 0x0C + 0x00 + 0x00 + 0x03
        assert data[0] & 3 == 3 and 0 <= data[3] - 125 <= 100
        assert data[7] >> 4 == (((total >> 6) & 3) + (total >> 3) + total) & 7
