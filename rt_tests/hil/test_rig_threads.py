"""What serves the loop and dies: gateway and vehicle link latch the safe state, the recorder only degrades the run.

On the real clock with the processes of the desk rig; each thread is made to fail in mid-run.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import msgpack
import pytest
import zmq
from rig_help import UNHURRIED, Unit, children, rig_file, run
from waiting import wait_for

from torqueloop.hil.can.multicast import MulticastPort
from torqueloop.hil.link.latest_value import RigLink
from torqueloop.hil.record.recorder import Recorder
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.run.session import RunResult, RunSpec, run_rig


class Fault:
    """Raises in one thread once the run has recorded for a while."""

    def __init__(self, out: Path, thread: str) -> None:
        self.file, self.thread, self.raised = out / "signals" / "000001.tlc", thread, False

    def __call__(self) -> None:
        if self.thread not in threading.current_thread().name or self.raised:
            return
        if self.file.exists() and self.file.stat().st_size > 100_000:
            self.raised = True
            raise RuntimeError("cable pulled")


def live(tmp_path: Path, seconds: float) -> RunResult:
    return run_rig(rig_file(tmp_path, *UNHURRIED, own_bus=True), RunSpec("real", seconds, tmp_path / "r"))


@pytest.mark.proof
@pytest.mark.parametrize(("thread", "method"), [("can-rx", "recv"), ("can-tx", "send")])
def test_dead_gateway_thread_latches_the_safe_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, multicast: None, thread: str, method: str
) -> None:
    fault, whole = Fault(tmp_path / "r", thread), getattr(MulticastPort, method)

    def broken(self, *arguments):  # type: ignore[no-untyped-def]
        fault()
        return whole(self, *arguments)

    monkeypatch.setattr(MulticastPort, method, broken)
    result = live(tmp_path, 30.0)
    safe = result.stats.safe_state
    assert fault.raised and safe.latched and safe.kind == "thread"
    assert "CAN gateway" in safe.cause and thread in safe.cause and "cable pulled" in safe.cause
    assert result.exit_status == 1 and result.stats.clock.ticks < 20_000 and not children(os.getpid())


@pytest.mark.proof
def test_dead_vehicle_link_latches_the_safe_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, multicast: None
) -> None:
    fault, whole = Fault(tmp_path / "r", ""), RigLink._receive_all

    def broken(self) -> None:  # type: ignore[no-untyped-def]
        fault()
        whole(self)

    monkeypatch.setattr(RigLink, "_receive_all", broken)
    result = live(tmp_path, 30.0)
    safe = result.stats.safe_state
    assert safe.latched and safe.kind == "thread"
    assert "vehicle link" in safe.cause and "cable pulled" in safe.cause
    assert result.exit_status == 1 and not children(os.getpid())


@pytest.mark.proof
def test_dead_recorder_degrades_the_run_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, multicast: None
) -> None:
    fault, whole = Fault(tmp_path / "r", "torqueloop-recorder"), Recorder.poll

    def broken(self) -> None:  # type: ignore[no-untyped-def]
        fault()
        whole(self)

    monkeypatch.setattr(Recorder, "poll", broken)
    monkeypatch.setattr(threading, "excepthook", lambda *_: None)
    result = live(tmp_path, 2.0)
    assert fault.raised and not result.stats.safe_state.latched
    assert result.stats.clock.ticks == 2000, "the run goes to its end"
    assert any("recorder" in text for text in result.stats.degraded)
    # what was still in the rings is written when the run ends
    signals = read_signals(result.out)
    assert signals.tick[-1] == 1999 and not signals.gaps


def test_dead_recorder_is_seen_on_the_virtual_clock_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault, whole = Fault(tmp_path / "r", "torqueloop-recorder"), Recorder.poll

    def broken(self) -> None:  # type: ignore[no-untyped-def]
        fault()
        whole(self)

    monkeypatch.setattr(Recorder, "poll", broken)
    monkeypatch.setattr(threading, "excepthook", lambda *_: None)
    result = run(rig_file(tmp_path), tmp_path / "r", 25.0, unit=Unit())
    assert fault.raised and any("recorder" in text for text in result.stats.degraded)
    assert result.stats.clock.ticks == 25_000
    assert result.exit_status == 1, "samples were lost: that is no pass"


class NanVehicle(threading.Thread):
    """A vehicle process of somebody else: right at first, then its force is NaN."""

    def __init__(self, endpoint: str, good: int) -> None:
        super().__init__(daemon=True)
        self.endpoint, self.good, self.stop = endpoint, good, threading.Event()

    def run(self) -> None:
        socket = zmq.Context.instance().socket(zmq.PAIR)
        socket.connect(self.endpoint)
        sent = 0
        while not self.stop.is_set():
            if not socket.poll(20):
                continue
            step = msgpack.unpackb(socket.recv())
            if step["kind"] != "step":
                continue
            sent += 1
            state = {
                "v": 1,
                "kind": "state",
                "step": step["step"],
                "own_step": sent,
                "t": step["t"],
                "speed": 0.0,
                "a": 0.0,
                "F": 0.0 if sent < self.good else float("nan"),
                "F_hold": 1000.0,
                "grade": 0.0,
            }
            socket.send(msgpack.packb(state))
        socket.close(0)


def test_nan_from_a_vehicle_process_never_gets_in_and_latches(tmp_path: Path, multicast: None) -> None:
    endpoint = f"ipc://{tmp_path}/v"
    rig = rig_file(
        tmp_path,
        f'vehicle.endpoint = "{endpoint}"',
        "without vehicle.start",
        *UNHURRIED,
        own_bus=True,
    )
    vehicle = NanVehicle(endpoint, 300)
    vehicle.start()
    try:
        result = run_rig(rig, RunSpec("real", 30.0, tmp_path / "r"))
    finally:
        vehicle.stop.set()
        vehicle.join()
    safe = result.stats.safe_state
    assert safe.latched and safe.kind == "vehicle_data" and "not_finite" in safe.cause
    assert result.stats.vehicles["vehicle"].link.rejected["not_finite"] >= 10
    assert result.report.metrics["finite"] == 1


@pytest.mark.proof
def test_second_start_on_the_same_bus_works_as_soon_as_the_first_has_ended(tmp_path: Path, multicast: None) -> None:
    """Ports, sockets and processes of a run are gone when it returns."""
    rig = rig_file(tmp_path, *UNHURRIED, own_bus=True)
    before = len(os.listdir("/proc/self/fd"))
    for k in range(2):
        run_rig(rig, RunSpec("real", 0.2, tmp_path / f"r{k}"))
        assert read_run_info(tmp_path / f"r{k}").state == "ended"
    # ZeroMQ closes its own in a thread
    wait_for(lambda: len(os.listdir("/proc/self/fd")) <= before + 4)
    assert not [t.name for t in threading.enumerate() if t.name.startswith(("can-", "torqueloop-"))]
