"""The CAN trace of the live page: each frame counted once, changed bytes, signals; in a browser with its filter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rig_help import CONFIGS
from waiting import PATIENCE_S, wait_for
from watch_help import Paced, page_in_a_browser

from torqueloop.hil.record.bus_log import FLAG_ERROR, FLAG_FD, ID_EXTENDED, bus_header, pack_frame
from torqueloop.hil.record.recording import ChunkWriter, chunk_bytes
from torqueloop.hil.record.stream_tail import StreamTail
from torqueloop.hil.watch import trace
from torqueloop.hil.watch.trace import Trace

DATABASE = str(CONFIGS / "can" / "tcu_4hp22.dbc")


@pytest.fixture(scope="module")
def paced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Paced]:
    made = Paced(tmp_path_factory.mktemp("trace") / "run")
    yield made
    made.close()


def test_every_chunk_is_read_once_over_several_files_and_never_half(tmp_path: Path) -> None:
    tail = StreamTail(tmp_path / "bus")
    assert tail.new() == []
    writer = ChunkWriter(tmp_path / "bus", {"kind": "bus"}, file_bytes=100)
    payloads = [bytes([k]) * 40 for k in range(9)]
    found = []
    for payload in payloads:
        writer.write(payload)
        found += tail.new()
    assert found == payloads and len(list((tmp_path / "bus").iterdir())) > 2 and tail.new() == []
    # what is there when it begins is not new
    assert (late := StreamTail(tmp_path / "bus")).new() == []
    last = sorted((tmp_path / "bus").iterdir())[-1]
    whole, before = chunk_bytes(9, b"x" * 30), last.read_bytes()
    for cut in (1, 12, 16, 45):
        last.write_bytes(before + whole[:cut])
        assert late.new() == [] == tail.new()
    last.write_bytes(before + whole)
    assert late.new() == [b"x" * 30] == tail.new()


def rows_of(found: list[dict[str, Any]]) -> dict[tuple[str, bool], dict[str, Any]]:
    return {(row["id"], row["sent"]): row for row in found}


def test_rows_have_counts_periods_changed_bytes_and_signals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = ChunkWriter(tmp_path / "bus", bus_header("can0"))
    made = Trace(tmp_path, {"powertrain": DATABASE})
    # TCU_Status of the database, by hand: gear 3 in the low half of byte 2, lever_echo D above it
    status = [bytes.fromhex(text) for text in ("4316330300fafe00", "4317330300fafe00", "9917340300fafe00")]
    frames = [pack_frame(10_000_000 * k, 0x212, data, tx=False, refused=k == 1) for k, data in enumerate(status)]
    frames.append(pack_frame(5, 0x212, status[0], tx=True))
    frames.append(pack_frame(6, 0x18FF0102 | ID_EXTENDED, b"\x01\x02", tx=False))
    writer.write(b"".join(frames))
    found = rows_of(made.rows())
    row = found["212", False]
    assert (row["count"], row["refused"], row["period_s"], row["bus"]) == (3, 1, pytest.approx(0.01), "powertrain")
    assert row["t"] == pytest.approx(0.02)
    assert row["data"] == status[2].hex() and row["changed"] == [0, 1, 2] and row["name"] == "TCU_Status"
    signals = {name: (value, unit) for name, value, unit in row["signals"]}
    assert signals["gear_actual"] == ("4", "") and signals["tau_limit"][1] == "Nm"
    assert found["212", True]["count"] == 1 and found["212", True]["changed"] == []
    assert found["18FF0102", False]["name"] == "" and found["18FF0102", False]["data"] == "0102"
    # the next look: what differs from the frame before counts, a frame of another length and a longer record too
    writer.write(pack_frame(40_000_000, 0x212, status[2][:6] + b"\xff\x00", tx=False))
    row = rows_of(made.rows())["212", False]
    assert row["count"] == 4 and row["changed"] == [6] and row["period_s"] == pytest.approx(0.02)
    writer.write(pack_frame(60_000_000, 0x212, bytes(range(24)), tx=False, flags=FLAG_FD))
    assert rows_of(made.rows())["212", False]["data"] == bytes(range(24)).hex()
    writer.write(pack_frame(70_000_000, 0x210, b"\x01", tx=False) + pack_frame(7, 0, b"", tx=False, flags=FLAG_ERROR))
    found = rows_of(made.rows())
    assert found["210", False]["name"] == "TCU_Pressure_1" and found["000", False]["name"] == "error frame"
    assert made.rows() == []
    monkeypatch.setattr(trace, "ROWS_MAX", 3)
    writer.write(pack_frame(8, 0x300, b"", tx=False) + pack_frame(9, 0x212, b"", tx=False))
    assert list(rows_of(made.rows())) == [("212", False)] and made.left_out == 1


@pytest.mark.proof
def test_in_a_browser(paced: Paced) -> None:
    """The trace has the messages of the bus with the values that the rig has, changed bytes stand out, the filter."""
    with page_in_a_browser(paced) as tab:
        row = "[...document.querySelectorAll('#trace tbody tr')].find((r) => r.cells[2]?.textContent === 'HIL_Driver')"
        wait_for(lambda: tab.evaluate(f"Boolean({row}) && Number({row}.cells[6].textContent) > 100"))
        assert tab.inner_text("#trace-count") == "6 messages"
        paced.rig.override({"driver.pedal": 0.4, "driver.lever": 5.0})
        below = f"{row}.nextSibling.textContent"
        wait_for(lambda: "pedal 40 %" in tab.evaluate(below) and "lever 3" in tab.evaluate(below))
        # the counter of the message changes with every frame, not all of its bytes do
        assert tab.evaluate(f"{row}.cells[8].querySelectorAll('b').length") in range(1, 8)
        assert float(tab.evaluate(f"{row}.cells[5].textContent")) == pytest.approx(10.0, abs=0.5)
        tab.fill("#trace-filter", "sent v_vehicle")
        shown = "[...document.querySelectorAll('#trace tbody tr')].filter((r) => !r.hidden && r.cells.length > 1)"
        assert tab.evaluate(f"{shown}.map((r) => r.cells[2].textContent)") == ["HIL_Driver"]
        tab.set_viewport_size({"width": 390, "height": 844})
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_rig_that_records_no_frames_says_why_there_is_no_trace(tmp_path: Path) -> None:
    rig = tmp_path / "quiet.toml"
    rig.write_text('kind = "rig"\nextends = "desk_4hp22"\n[record]\nbus = false\n')
    made = Paced(tmp_path / "run", rig=rig)
    try:
        events = made.source.subscribe()
        while (event := events.get(timeout=PATIENCE_S))[0] != "trace":
            pass
        assert "not on this computer or not recorded" in json.loads(event[1])["error"]
    finally:
        made.close()
