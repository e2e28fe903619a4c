"""A process killed with SIGKILL: what it recorded up to the last second is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from waiting import wait_for

from torqueloop.hil.record.pieces import SignalPieces
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.report.report import analyse
from torqueloop.hil.report.write import write_report

WRITER = """
import sys, time
from queue_source import QueueSource
from torqueloop.hil.record.recorder import Recorder
from torqueloop.hil.record.run_data import signal_header
from torqueloop.hil.record.signals import signal_dtype, signal_encoder
from torqueloop.hil.record.streamed import Streamed
from torqueloop.hil.results.files import write_run_info
from torqueloop.hil.results.run import RunInfo, RunStats
from datetime import UTC, datetime
from pathlib import Path
import numpy as np

out, forms = sys.argv[1], sys.argv[2:]
source = QueueSource()
recorder = Recorder(out)
header = signal_header(["engine.w", "C4.mode"], ["rad/s", "1"], 1e-3, 2)
started = datetime(2026, 1, 2, tzinfo=UTC)
made = [Streamed(form, Path(out), header["names"], header["units"], 1e-3, started, 0) for form in forms]
recorder.add_stream("signals", header, source, encode=signal_encoder(2), forms=made)
recorder.start()
record = np.zeros(10, signal_dtype(2))
tick = 0
while True:
    # a millisecond each where the machine is quick; none are made up for where it was not
    for _ in range(2):
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

#: a participant that does not come to the handler of a signal, as one in the code of a control unit that never returns
HANGS = """
import os, signal, sys, time
from torqueloop.hil.link.child import die_with
signal.signal(signal.SIGTERM, lambda *_: None)
die_with(int(sys.argv[1]))
print("runs", flush=True)
time.sleep(600.0)
"""
RIG = "import os, subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1], str(os.getpid())])"


def started(folder: Path, *forms: str) -> subprocess.Popen[bytes]:
    """A process that records a tick a millisecond."""
    path = os.pathsep.join([str(Path(__file__).resolve().parents[1] / "unit"), *filter(None, sys.path)])
    command = [sys.executable, "-c", WRITER, str(folder), *forms]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path})


def killed(process: subprocess.Popen[bytes], progress: Path, ticks: int) -> int:
    """How far it had come when it was killed."""
    try:
        wait_for(lambda: progress.exists() and int(progress.read_text() or "0") > ticks, lambda: process.poll() is None)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    reached = int(progress.read_text() or "0")
    assert reached > ticks
    return reached


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_other_tools_read_a_killed_run_up_to_its_last_chunk(tmp_path: Path) -> None:
    """What asammdf reads is what we read, to the bit; one chunk less where the kill came between the two writes."""
    asammdf = pytest.importorskip("asammdf")
    process = started(tmp_path, "mf4", "csv")
    reached = killed(process, tmp_path / "progress", 1700)
    signals = read_signals(tmp_path)
    with asammdf.MDF(tmp_path / "signals.mf4") as mdf:
        read = mdf.get("engine.w")
        assert mdf.get("C4.mode").unit == "" and read.unit == "rad/s"
    n = len(read.samples)
    chunks = list(SignalPieces.of(tmp_path))
    assert n in (signals.n, signals.n - len(chunks[-1])) and reached - n <= 2000
    assert read.samples.tobytes() == signals["engine.w"][:n].tobytes()
    assert read.timestamps.tobytes() == signals.t[:n].tobytes()
    lines = (tmp_path / "signals.csv").read_text().splitlines()[2:]
    values = np.array([[float(x) for x in line.split(",")] for line in lines if line.count(",") == 4])
    np.testing.assert_array_equal(values[:, 1], signals["engine.w"][: len(values)])
    assert signals.n - len(chunks[-1]) <= len(values) <= signals.n


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_killed_writer_leaves_all_but_the_last_second(tmp_path: Path) -> None:
    reached = killed(started(tmp_path), tmp_path / "progress", 2500)
    signals = read_signals(tmp_path)
    assert not signals.closed and not signals.gaps
    assert signals.tick[0] == 0
    # Chunks are written every 0.5 s, which is 500 ticks at most; the recorder's thread may be held up a little.
    assert reached - signals.tick[-1] <= 1000
    np.testing.assert_array_equal(signals["engine.w"], signals.tick * 0.5)
    report = write_report(tmp_path)
    assert report.exit_status == 1 and not report.run.info.over
    assert (tmp_path / "report.html").is_file() and (tmp_path / "junit.xml").is_file()
    assert analyse(tmp_path).metrics["ticks"] == signals.tick[-1] + 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends the children of a process with it")
def test_a_participant_that_hangs_ends_with_a_killed_rig() -> None:
    """It held a processor for ever, with real-time priority."""
    rig = subprocess.Popen([sys.executable, "-c", RIG, HANGS], stdout=subprocess.PIPE)
    assert rig.stdout is not None and rig.stdout.readline() == b"runs\n"
    rig.kill()
    # both have closed the pipe
    assert rig.communicate(timeout=120.0)[0] == b""
