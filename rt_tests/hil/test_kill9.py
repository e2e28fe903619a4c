"""A process killed with SIGKILL: what it recorded up to the last second is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.report.report import analyse
from torqueloop.hil.report.write import write_report

WRITER = """
import sys, time
from queue_source import QueueSource
from torqueloop.hil.record.recorder import Recorder
from torqueloop.hil.record.run_data import signal_header
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.results.files import write_run_info
from torqueloop.hil.results.run import RunInfo, RunStats
import numpy as np

out = sys.argv[1]
source = QueueSource()
recorder = Recorder(out)
recorder.add_stream("signals", signal_header(["engine.w", "C4.mode"], ["rad/s", "1"], 1e-3), source)
recorder.start()
record = np.zeros(10, signal_dtype(2))
begin = time.monotonic()
tick = 0
while True:
    while tick < (time.monotonic() - begin) * 1000:
        record["tick"] = np.arange(tick, tick + 10)
        record["out"][:, 0] = record["tick"] * 0.5
        source.push(record.tobytes())
        tick += 10
    write_run_info(out, RunInfo("kill9", state="running", duration_s=1000.0, stats=RunStats()))
    # The parent learns how far the run had come at the moment of the kill.
    with open(out + "/progress", "w") as f:
        f.write(str(tick))
    time.sleep(0.02)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_killed_writer_leaves_all_but_the_last_second(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(__file__).resolve().parents[1] / "unit"), *filter(None, sys.path)])
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], env={**os.environ, "PYTHONPATH": path})
    try:
        deadline = time.monotonic() + 60.0
        progress = tmp_path / "progress"
        while time.monotonic() < deadline:
            text = progress.read_text() if progress.exists() else ""
            if text and int(text) > 2500:
                break
            assert process.poll() is None, "the writer ended by itself"
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    reached = int(progress.read_text() or "0")
    assert reached > 2500
    signals = read_signals(tmp_path)
    assert not signals.closed and not signals.gaps
    assert signals.tick[0] == 0
    # Chunks are written every 0.5 s; on a machine under load the recorder's thread may be held up a little.
    assert reached - signals.tick[-1] <= 1000
    np.testing.assert_array_equal(signals["engine.w"], signals.tick * 0.5)
    report = write_report(tmp_path)
    assert report.exit_status == 1 and not report.run.info.over
    assert (tmp_path / "report.html").is_file() and (tmp_path / "junit.xml").is_file()
    assert analyse(tmp_path).metrics["ticks"] == signals.tick[-1] + 1
