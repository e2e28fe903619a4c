"""A scan of a bus in numbers that are worked out by hand, and listening to a bus for a time."""

from __future__ import annotations

from pathlib import Path

import can
import pytest

from torqueloop.hil.can.bus import CanBusConfig
from torqueloop.hil.can.frame import BRS_FLAG, ERROR_FLAG, ESI_FLAG, EXTENDED, FD_FLAG, REMOTE_FLAG
from torqueloop.hil.can.scan import Frame, bus_frames, log_frames, scan

#: a message of 29 bits and one of 11 bits with the same number
DBC = """VERSION ""
BU_: A B C
BO_ 2147484672 Long: 2 A
 SG_ X : 0|8@1+ (1,0) [0|255] "" B
BO_ 1024 Short: 1 A
 SG_ Y : 0|8@1+ (1,0) [0|255] "" C
BO_ 5 Answer: 1 B
 SG_ Z : 0|8@1+ (1,0) [0|255] "" A
BO_ 6 Wanted: 1 C
 SG_ W : 0|8@1+ (1,0) [0|255] "" B
BA_DEF_ BO_ "GenMsgCycleTime" INT 0 65535;
BA_DEF_DEF_ "GenMsgCycleTime" 0;
BA_ "GenMsgCycleTime" BO_ 2147484672 20;
"""


def test_times_lengths_and_refusals_of_a_bus(tmp_path: Path) -> None:
    path = tmp_path / "car.dbc"
    path.write_text(DBC)
    frames: list[Frame] = [
        (10.000, 0x400 | EXTENDED, b"ab", 0),
        (10.001, 0, b"", ERROR_FLAG),
        (10.010, 0x400 | EXTENDED, b"ab", 0),
        (10.040, 0x400 | EXTENDED, b"a", 0),
        (10.041, 0x400, b"c", 0),
        (10.042, 0x400, b"", REMOTE_FLAG),
        (10.043, 0x400, b"", REMOTE_FLAG),
        (10.060, 0x400 | EXTENDED, b"a", 0),
        (10.061, 0x700, b"", 0),
    ]
    found = scan(frames, path, "B")
    assert (found.frames, found.errors, found.remote, found.more) == (9, 1, 2, 0)
    assert found.seconds == pytest.approx(0.061)
    short, other, long = found.heard
    assert (short.name, short.frames, short.mean_s, short.min_s, short.cycle_s) == ("Short", 1, None, None, None)
    assert (other.can_id, other.name, other.lengths, other.length) == (0x700, "", [0], None)
    assert (long.can_id, long.name, long.senders, long.frames) == (0x400 | EXTENDED, "Long", ["A"], 4)
    # gaps of 10, 30 and 20 ms
    assert (long.min_s, long.mean_s, long.max_s) == (pytest.approx(0.01), pytest.approx(0.02), pytest.approx(0.03))
    assert (long.lengths, long.length, long.cycle_s, long.refused) == ([1, 2], 2, 0.02, {"length": 2})
    assert (found.missing, found.silent) == ({"Wanted": ["C"]}, ["Answer"])


def test_identifiers_beyond_the_list_are_counted_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torqueloop.hil.can.scan.IDENTIFIERS_MAX", 2)
    found = scan([(0.1 * k, 0x500 + k % 4, b"", 0) for k in range(10)])
    assert (found.frames, found.more) == (10, 4) and [row.can_id for row in found.heard] == [0x500, 0x501]


def test_every_flag_of_a_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "bus.blf"
    sent = [
        (can.Message(arbitration_id=0x400, data=b"1", is_extended_id=False), 0x400, 0),
        (can.Message(arbitration_id=0x400, data=b"1", is_extended_id=True), 0x400 | EXTENDED, 0),
        (can.Message(arbitration_id=5, is_extended_id=False, is_remote_frame=True), 5, REMOTE_FLAG),
        (can.Message(arbitration_id=6, data=b"12", is_extended_id=False, is_fd=True), 6, FD_FLAG),
        (can.Message(arbitration_id=7, data=b"12", is_extended_id=False, is_fd=True, bitrate_switch=True), 7,
         FD_FLAG | BRS_FLAG),
        (can.Message(arbitration_id=8, data=b"12", is_extended_id=False, is_fd=True, error_state_indicator=True), 8,
         FD_FLAG | ESI_FLAG),
    ]  # fmt: skip
    with can.Logger(path) as writer:
        for k, (message, _, _) in enumerate(sent):
            message.timestamp = 100.0 + k
            writer(message)
        writer(can.Message(timestamp=110.0, is_error_frame=True))
    found = list(log_frames(path))
    assert [(can_id, flags) for _, can_id, _, flags in found[:-1]] == [(i, flags) for _, i, flags in sent]
    assert found[-1][3] == ERROR_FLAG


class Bus:
    """A bus with a clock of its own: a frame comes every 30 ms, receiving takes as long as it waits."""

    def __init__(self) -> None:
        self.now, self.open = 1000.0, True

    def recv(self, timeout_s: float) -> tuple[int, bytes, int] | None:
        until = self.now + timeout_s
        due = 1000.0 + 0.03 * (int((self.now - 1000.0) / 0.03 + 1e-6) + 1)
        self.now = min(due, until)
        return (0x100, b"\1", 0) if due <= until else None

    def close(self) -> None:
        self.open = False


@pytest.mark.parametrize("seconds", [0.02, 0.1, 0.7])
def test_a_bus_is_listened_to_for_as_long_as_was_asked(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = Bus()
    monkeypatch.setattr("torqueloop.hil.can.scan.open_bus", lambda config: bus)
    monkeypatch.setattr("torqueloop.hil.can.scan.time", type("Clock", (), {"monotonic": lambda: bus.now}))
    times = [t for t, *_ in bus_frames(CanBusConfig(), seconds)]
    assert times == pytest.approx([1000.0 + 0.03 * k for k in range(1, int(seconds / 0.03) + 1)])
    assert bus.now == pytest.approx(1000.0 + seconds) and not bus.open
