"""What the stages of the virtual machine cover, and the judge of the long run, without the machine."""

from __future__ import annotations

import sys
from pathlib import Path

import can
import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "vm"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "judges"))

from everything_run import READ, TOLERANCE_S, by_key, compared, growth, listened, off
from stages.detectors import CASES
from stages.everything import COUNTS

from torqueloop.cython_kernels.tick.rig import CAUSES


def test_every_cause_of_the_safe_state_is_provoked_in_the_machine() -> None:
    assert {name.partition(",")[0] for name in CASES} == set(CAUSES)


def frames(changed: tuple[int, bytes] | None = None, without: range = range(0), *, of: range = range(100)):
    """One message each 10 ms, a frame of which is another one or is not there."""
    found = []
    for k in of:
        data = changed[1] if changed is not None and changed[0] == k else k.to_bytes(2, "big")
        if k not in without:
            found.append(can.Message(timestamp=1e9 + 0.01 * k, arbitration_id=0x110, data=data, channel="vcan0"))
    return by_key(found, {"vcan0": 0})


#: another message, before the first frame and after the last one
OTHERS = by_key(
    [can.Message(timestamp=1e9 + t, arbitration_id=0x200, channel="vcan0") for t in (-0.5, 1.5)], {"vcan0": 0}
)
NOTHING = {"missing": 0, "changed": 0, "unseen": 0}


def test_a_recording_with_all_frames_lacks_none_also_when_it_begins_later_and_ends_sooner() -> None:
    seen = {**frames(), **OTHERS}
    assert compared(seen, frames()) == {"kept": 100, **NOTHING}
    assert compared(seen, frames(of=range(20, 70))) == {"kept": 50, **NOTHING}


@pytest.mark.parametrize("lost", [range(40, 41), range(99, 100), range(0, 1), range(0, 30)])
def test_a_lost_frame_is_found_wherever_it_is(lost: range) -> None:
    """The other message says when the recording begins and ends."""
    late = by_key([can.Message(timestamp=1e9 + 2.0, arbitration_id=0x300, channel="vcan0")], {"vcan0": 0})
    counts = compared({**frames(), **OTHERS, **late}, {**frames(without=lost), **OTHERS})
    assert counts["missing"] + counts["changed"] >= len(lost)
    assert counts["unseen"] == 0


def test_changed_and_invented_frames_are_found() -> None:
    assert compared({**frames(), **OTHERS}, frames(changed=(50, b"\xff\xff")))["changed"] == 1
    assert compared({**frames(without=range(90, 100)), **OTHERS}, frames())["unseen"] == 10
    assert TOLERANCE_S < 0.005


def test_what_a_killed_run_recorded_after_the_last_block_of_candump_is_not_judged() -> None:
    assert compared(frames(of=range(90)), frames()) == {"kept": 89, **NOTHING}
    assert compared(frames(of=range(90)), frames(without=range(40, 41)))["changed"] > 0


def test_what_candump_lost_and_a_line_that_is_cut_off_are_seen(tmp_path: Path) -> None:
    log = tmp_path / "candump.log"
    log.write_text("(1.000000) vcan0 110#0011\nDROPCOUNT: dropped 2 CAN frames on 'vcan0' socket (total drops 2)\n"
                   "(1.010000) vcan1 18FEF100#22\n(1.02000")  # fmt: skip
    seen, lost = listened(log)
    assert lost == 1
    assert {key: data for key, (_, data) in seen.items()} == {
        (0, 0x110, False): [b"\x00\x11"], (1, 0x18FEF100, True): [b"\x22"],
    }  # fmt: skip


def test_memory_that_grows_from_the_second_minute_on_is_a_slope() -> None:
    """The first minutes fill caches: they are not part of it."""
    kB = [10_000, 60_000, 60_100, 60_200, 60_300]
    rows = [{"guest_s": 60.0 * k, "processes": {"rig": {"rss_kB": x}}} for k, x in enumerate(kB)]
    before, now, slope = growth(rows)["rig"]
    assert (before, now) == (60.1, 60.3) and slope == pytest.approx(100.0)


def test_a_client_that_has_ended_or_reads_nothing_is_no_run_with_everything_on() -> None:
    counts = dict.fromkeys(COUNTS, 5) | {"telemetry_missing": 0, "page_gone": 0}
    processes = {"rig": {}, "page": {}}
    good = {"processes": processes, "counts": counts, "telemetry": {"left_out": 0}}
    assert off([good, good]) == [] and set(READ) <= set(COUNTS)
    assert off([good, {**good, "processes": {"rig": {}}}]) == ["page has ended"]
    assert off([good, {**good, "counts": {**counts, "page_trace": 0}}]) == ["page_trace: nothing was read"]
    lost = {**good, "counts": {**counts, "telemetry_missing": 2}}
    assert off([good, lost]) == ["telemetry: 2 samples did not arrive"]
    assert off([{**lost, "telemetry": {"left_out": 2}}]) == []
