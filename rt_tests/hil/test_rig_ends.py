"""How a run ends that did not want to: signals, killed processes, a full disk, a thread that hangs.

Status, recording, and nothing left behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig_help import UNHURRIED, children, rig_file, ticks_so_far
from waiting import PATIENCE_S, wait_for

from torqueloop.hil.can.multicast import MulticastPort
from torqueloop.hil.record.first_fault import read_first_fault
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.report.report import analyse
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.run import real_clock
from torqueloop.hil.rig.run.interrupts import Interrupts
from torqueloop.hil.rig.run.live_run import LiveRun
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import RunSpec, run_rig


def started(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    """`torqueloop run` on the real clock with both participants, once it has ticked."""
    rig, out = rig_file(folder, *UNHURRIED, own_bus=True), folder / "r"
    command = [sys.executable, "-m", "torqueloop.hil.cli", "run", str(rig), "--duration", "300", "--out", str(out)]
    process = subprocess.Popen(
        [*command, "-q", "--no-html"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        wait_for(lambda: ticks_so_far(out), lambda: process.poll() is None)
    except AssertionError:
        process.kill()
        pytest.fail(process.communicate()[0])
    return process, out


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        text = process.communicate(timeout=PATIENCE_S)[0]
    finally:
        process.kill()
    assert children(process.pid) == []
    return process.returncode, text


@pytest.mark.proof
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.usefixtures("multicast")
def test_a_signal_ends_a_real_run_in_order_with_its_own_status(tmp_path: Path, number: signal.Signals) -> None:
    process, out = started(tmp_path)
    process.send_signal(number)
    status, text = ended(process)
    assert status == 128 + number and "interrupted" in text and "Traceback" not in text
    info = read_run_info(out)
    assert info.state == "interrupted" and not info.stats.safe_state.latched
    signals = read_signals(out)
    assert signals.closed and not signals.gaps and signals.tick[-1] == info.stats.clock.ticks - 1
    assert replay(out).passed


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C as Python has it, also where whoever has started the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("multicast", "ctrl_c")
def test_a_signal_between_any_two_lines_closes_the_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exception of Ctrl-C was raised wherever the signal found the program, also outside of what it closes."""

    class Unlucky(real_clock.SilentPins):
        """Made once before the first tick, and once more before they are looked after."""

        made = 0

        def __init__(self, run: LiveRun) -> None:
            super().__init__(run)
            Unlucky.made += 1
            if Unlucky.made == 2:
                wait_for(lambda: run.parts.rig.tick > 100)
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(real_clock, "SilentPins", Unlucky)
    result = run_rig(rig_file(tmp_path, *UNHURRIED, own_bus=True), RunSpec("real", 60.0, tmp_path / "r"))
    assert result.state == "interrupted" and result.stats.clock.ticks > 100 and not result.stats.safe_state.latched
    signals = read_signals(result.out)
    assert signals.closed and signals.tick[-1] == result.stats.clock.ticks - 1 and replay(result.out).passed


@pytest.mark.usefixtures("ctrl_c")
def test_a_signal_is_an_exception_before_the_first_tick_and_when_it_comes_again_at_the_end() -> None:
    stopped: list[bool] = []
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        interrupts.begin(lambda: stopped.append(True))
        assert not interrupts.came
        for n in (1, 2):
            signal.raise_signal(signal.SIGINT)
            assert interrupts.came and len(stopped) == n
        interrupts.over = True
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with Interrupts() as interrupts:
        interrupts.begin(lambda: None)
        interrupts.over = True
        signal.raise_signal(signal.SIGINT)
        assert interrupts.came
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.proof
@pytest.mark.parametrize("kind", ["tcu", "vehicle"])
@pytest.mark.usefixtures("multicast")
def test_a_killed_participant_latches_and_is_named(tmp_path: Path, kind: str) -> None:
    process, out = started(tmp_path)
    for pid in children(process.pid):
        if f"\0{'ecu' if kind == 'tcu' else kind}\0" in Path(f"/proc/{pid}/cmdline").read_text():
            os.kill(pid, signal.SIGKILL)
    status, text = ended(process)
    safe = read_run_info(out).stats.safe_state
    assert status == 1 and safe.kind == "thread"
    assert f"{kind} process was ended by SIGKILL" in safe.cause and kind in text
    signals = read_signals(out)
    assert signals.closed and (signals["input.engine.pedal"][-1], signals["rig.status"][-1]) == (0.0, 3.0)
    kept = read_first_fault(out)
    assert kept is not None and kept.tick[-1] >= safe.step and replay(out).passed


FULL = """
import resource, sys
sys.path.insert(0, sys.argv[3])
from rig_help import run
from pathlib import Path
from torqueloop.hil.record import recorder
# chunks by their size alone, so that the error comes at the same place on every machine
recorder.CHUNK_S = 1000.0
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[4]),) * 2)
r = run(Path(sys.argv[1]), Path(sys.argv[2]), 8.0)
sys.exit(r.exit_status)
"""


@pytest.mark.proof
@pytest.mark.parametrize("room", [3_000_000, 6_300_000], ids=["in the middle", "at the end"])
def test_a_disk_that_is_full_degrades_the_run_and_the_run_goes_on(tmp_path: Path, room: int) -> None:
    """A limit on the size of files stands for the disk: no rights are needed, and the error comes at the same place."""
    out = tmp_path / "r"
    command = [sys.executable, "-c", FULL, str(rig_file(tmp_path)), str(out), str(Path(__file__).parent), str(room)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 1, done.stderr
    stats = read_run_info(out).stats
    assert stats.clock.ticks == 8000 and not stats.safe_state.latched
    said = [text for text in stats.degraded if "recording of signals has stopped" in text]
    assert said and "File too large" in said[0]
    assert stats.recording["signals"].discarded_bytes > 0
    signals = read_signals(out)
    assert 500 < len(signals.tick) < 8000 and not signals.closed and not signals.gaps
    failed = {c.name: c.text for c in analyse(out).checks if c.counts and not c.passed}
    assert "File too large" in failed["recording without gaps"]


@pytest.mark.usefixtures("multicast")
def test_a_sending_thread_that_hangs_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release, whole, count = threading.Event(), MulticastPort.send, [0]

    def send(self, can_id: int, data: bytes, *more: object) -> None:  # type: ignore[no-untyped-def]
        count[0] += 1
        if count[0] > 200:
            release.wait(PATIENCE_S)
        whole(self, can_id, data, *more)

    monkeypatch.setattr(MulticastPort, "send", send)
    # what hangs is let go once the rig has said so, and its end waits for nobody
    failed = LiveRun.fail

    def fail(run: LiveRun, cause: str, note: str) -> None:
        failed(run, cause, note)
        release.set()

    monkeypatch.setattr(LiveRun, "fail", fail)
    rig = rig_file(tmp_path, *UNHURRIED, own_bus=True)
    result = run_rig(rig, RunSpec("real", 60.0, tmp_path / "r"))
    safe = result.stats.safe_state
    assert safe.kind == "thread" and "can-tx hangs" in safe.cause
    assert result.exit_status == 1 and result.stats.clock.ticks < 50_000


@pytest.mark.proof
@pytest.mark.usefixtures("multicast")
def test_a_killed_rig_leaves_a_readable_recording_and_no_participant(tmp_path: Path) -> None:
    process, out = started(tmp_path)
    assert len(children(process.pid)) == 2
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    wait_for(lambda: not children(process.pid))
    report = analyse(out)
    assert not report.run.info.over and report.exit_status == 1
    assert report.metrics["ticks_recorded"] >= report.stats.clock.ticks - 1000, "at most the last second is lost"
    assert replay(out).passed
