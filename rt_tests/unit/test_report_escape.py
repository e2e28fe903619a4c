"""Text that a run brings along can be anything; on a page it is text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic_run import change, write_run

from torqueloop.hil.record.recording import ChunkWriter, read_stream
from torqueloop.hil.record.run_data import ModeChange, read_signals, signal_header, write_modes
from torqueloop.hil.report.merged import merge, write_merged
from torqueloop.hil.report.write import write_report
from torqueloop.hil.results.clock import Timing, WorstTick, WorstTicks
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.results.links import (
    BusStats,
    GatewayStats,
    LinkStats,
    NativeStats,
    ParticipantStats,
    RxMessage,
    VehicleStats,
)
from torqueloop.hil.results.run import EnergyStats, FaultStats, FirstFaultStats, Measure, SafeState, StreamStats

BAD = "<script>alert('{}')</script>"
#: every place of the results that holds words of somebody else
PLACES = (
    "rig", "powertrain", "gate", "cause", "gear", "signal", "element", "bus", "message", "foreign", "error", "endpoint",
    "vehicle", "peer", "told", "stream", "stream_cause", "target", "kind", "when", "measure", "remedy", "phase", "term",
    "output", "degraded", "kernel", "fault_error", "input", "mode",
)  # fmt: skip


def bad(place: str) -> str:
    assert place in PLACES
    return BAD.format(place)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a script in every name there is."""
    folder = write_run(tmp_path_factory.mktemp("bad") / "run", duration_s=6.0)
    config = folder / "config" / "zf_4hp22.toml"
    config.write_text(config.read_text().replace("[gears.2]", f'[gears."{bad("gear")}"]'))
    _rename_signals(folder)
    write_modes(folder / "modes.csv", [ModeChange(1, 0.001, bad("element"), 0)])
    known = read_run_info(folder)
    assert known is not None and known.stats is not None
    tick = WorstTick(7, 1.0, 2.0, 3.0, {"step": 1.0, bad("phase"): 9.0})
    bus = BusStats(
        {bad("message"): RxMessage(ok=5, crc=2)},
        rx_bad=2,
        foreign=bad("foreign"),
        gateway=GatewayStats(foreign_frames=1, error=bad("error")),
    )
    link = LinkStats(bad("mode"), bad("endpoint"), accepted=5, lost=4, rejected={bad("kind"): 2})
    change(
        folder,
        {"worst": WorstTicks([tick], [tick]), "phase_us": {"step": Timing(1, p50=1.0)}},
        {
            "buses": {bad("bus"): bus, "other": BusStats(native=NativeStats(bad("error"), errors={bad("error"): 1}))},
            "vehicles": {bad("vehicle"): VehicleStats(link=link)},
            "participants": {
                bad("peer"): ParticipantStats.of("process", {bad("told"): bad("told"), "refused": {bad("told"): 3}})
            },
            "recording": {bad("stream"): StreamStats(cause=bad("stream_cause"))},
            "safe_state": SafeState(True, bad("cause"), "limit", 100),
            "first_fault": FirstFaultStats(1, 1, bad("error"), bad("fault_error")),
            "faults": [FaultStats(bad("target"), bad("kind"), bad("when"), 1.0, 5)],
            "outputs_limited": {bad("output"): 5},
            "degraded": [bad("degraded")],
            "energy": EnergyStats({bad("term"): 1e3}, {"road": 1e3}),
            "kernel": bad("kernel"),
        },
        rig=bad("rig"),
        powertrain=bad("powertrain"),
        gates={bad("gate"): f'clock == "{bad("gate")}"'},
        inputs={bad("input"): "0" * 64},
        realtime=[Measure(bad("measure"), bad("kind"), False, bad("cause"), bad("remedy"))],
        error=bad("error"),
    )
    return folder


def _rename_signals(folder: Path) -> None:
    """The signals again, one of them and one friction element under a bad name."""
    signals = read_signals(folder)
    records = np.array(signals.records)
    names = [n.replace("C5.", bad("element") + ".") if n.startswith("C5.") else n for n in signals.names]
    names[names.index("car.a")] = bad("signal")
    header = signal_header(names, [signals.units[n] for n in signals.names], signals.tick_s)
    for file in (folder / "signals").iterdir():
        file.unlink()
    writer = ChunkWriter(folder / "signals", header)
    writer.write(records.tobytes())
    writer.close()
    assert read_stream(folder / "signals").header["names"] == names


def scripts(page: str) -> int:
    return page.lower().count("<script")


@pytest.mark.proof
def test_no_name_of_a_run_becomes_markup(run_dir: Path) -> None:
    report = write_report(run_dir)
    page = report.files["html"].read_text()
    assert scripts(page) == 7, "our own: figures, numbers, uPlot and four of ours"
    # the page shows them: as text, in figures too
    shown = {place for place in PLACES if f"&lt;script&gt;alert(&#39;{place}&#39;)" in page}
    shown |= {place for place in PLACES if f"&lt;script&gt;alert('{place}')" in page}
    shown |= {place for place in PLACES if f"\\u003cscript>alert('{place}')" in page}
    assert set(PLACES) - shown <= {"signal", "phase"}, "every place is on the page, so that this test proves something"
    assert "\\u003cscript>alert('element')" in page[page.index('id="figures"') :], "inside a figure"


def test_nor_on_the_page_of_several_runs(run_dir: Path, tmp_path: Path) -> None:
    report = write_report(run_dir, html=False)
    known = replace(report, stats=replace(report.stats, clock=replace(report.stats.clock, compute_us=None,
                    wake_lateness_us=None, phase_us={})))  # fmt: skip
    page = write_merged(merge([known, known]), tmp_path / "m")["html"].read_text()
    assert scripts(page) == 7 and "&lt;script&gt;alert(&#39;rig&#39;)" in page
