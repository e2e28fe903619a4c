"""Telemetry: what a subscriber of another process receives, and what one that stops reading costs: nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgpack
import numpy as np
import pytest
import zmq
from control_help import Running, SlowCar
from rig_help import UNHURRIED, Unit, rig_file
from waiting import PATIENCE_MS, PATIENCE_S, wait_for

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.run.session import RunSpec, run_rig

#: a subscriber of its own process, that knows nothing of this package: prints what it got as JSON
SUBSCRIBER = """
import json, sys, zmq
socket = zmq.Context().socket(zmq.SUB)
socket.setsockopt(zmq.SUBSCRIBE, sys.argv[2].encode())
socket.connect(sys.argv[1])
got = []
while len(got) < int(sys.argv[3]):
    assert socket.poll(int(sys.argv[4])), len(got)
    got.append([part.decode("latin-1") for part in socket.recv_multipart()])
    if len(got) == 1:
        print("begun", flush=True)
print(json.dumps(got))
"""


class Awaiting(SlowCar):
    """Holds each tick up until the subscribers of the test are there, for a minute at most in 3000 ticks."""

    def __init__(self, pause_s: float) -> None:
        super().__init__(pause_s)
        self.subscribed = threading.Event()

    def __call__(self, message):
        self.subscribed.wait(0.02)
        return super().__call__(message)


class Run(threading.Thread):
    """A run on the virtual clock that goes on at its pace once `car.subscribed` is set."""

    def __init__(self, path: Path, out: Path, seconds: float = 3.0, pause_s: float = 5e-4, **more) -> None:
        super().__init__()
        self.path, self.out, self.seconds, self.more = path, out, seconds, more
        self.car, self.result = Awaiting(pause_s), None
        self.start()
        self.endpoint = wait_for(lambda: telemetry_of(out), self.is_alive)

    def run(self) -> None:
        self.result = run_rig(
            self.path,
            RunSpec(
                "virtual",
                self.seconds,
                self.out,
                vehicle=self.car,
                ecus={"tcu": Unit()},
                telemetry="tcp://127.0.0.1:0",
                **self.more,
            ),
        )

    def end(self):
        self.join(PATIENCE_S)
        assert self.result is not None
        return self.result


def telemetry_of(out: Path) -> str | None:
    """The endpoint that run.json tells."""
    info = read_run_info(out)
    return None if info is None else info.telemetry


def test_a_subscriber_in_another_process_receives_what_the_form_says(tmp_path: Path) -> None:
    """Three parts: topic, payload, time as text; values and times are those of the recording, to the bit."""
    path = rig_file(tmp_path, "telemetry.rate_hz = 100.0", 'telemetry.signals = ["engine.*", "car.v", "C4.p"]')
    run = Run(path, tmp_path / "run")
    command = [sys.executable, "-c", SUBSCRIBER, run.endpoint, "desk", "60", str(PATIENCE_MS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as made:
        assert made.stdout is not None and made.stdout.readline() == "begun\n"
        run.car.subscribed.set()
        got = json.loads(made.stdout.read())
    stats = run.end().stats.telemetry
    assert len(got) == 60 and {len(parts) for parts in got} == {3} and {parts[0] for parts in got} == {"desk_4hp22"}
    messages = [json.loads(parts[1]) for parts in got]
    assert [float(parts[2]) for parts in got] == pytest.approx([m["t"] for m in messages], abs=1e-6)
    assert set(messages[0]) == {"t", "engine", "car", "C4"} and set(messages[0]["C4"]) == {"p"}
    recorded = tl.read_run(tmp_path / "run")
    at = {round(t, 6): k for k, t in enumerate(recorded.t)}
    for m in messages:
        k = at[round(m["t"], 6)]
        assert m["engine"]["w"] == recorded["engine.w"][k] and m["car"]["v"] == recorded["car.v"][k]
    steps = np.diff([m["t"] for m in messages])
    assert np.allclose(steps, 0.01), "100 a second of simulated time, none left out"
    assert stats is not None and stats.sent >= 60 and stats.left_out == 0 and stats.rate_hz == 100.0


@pytest.mark.proof
def test_message_pack_and_real_time_stamps(tmp_path: Path) -> None:
    """On the real clock the time is that of day, of the tick's waking, not of the sending."""
    path = rig_file(tmp_path, *UNHURRIED, 'telemetry.format = "msgpack"', own_bus=True)
    began = time.time()
    going = Running(path, tmp_path / "run", 60.0, clock="real", telemetry="tcp://127.0.0.1:0")
    with going.client() as client, zmq.Context() as context, context.socket(zmq.SUB) as socket:
        socket.subscribe(b"")
        socket.connect(wait_for(lambda: telemetry_of(tmp_path / "run")))
        assert socket.poll(PATIENCE_MS)
        _, payload, stamp = socket.recv_multipart()
        client.stop()
    going.join()
    message = msgpack.unpackb(payload)
    signals = tl.read_run(tmp_path / "run").signals
    k = int(np.searchsorted(signals.t, message["t"] - 1e-6))
    assert message["engine"]["w"] == signals["engine.w"][k] and began < float(stamp) < time.time()
    first = float(stamp) - signals.records["t_wall_ns"][k] * 1e-9
    assert 0 <= first - (time.time() - time.monotonic()) < 1.0 or abs(first - (time.time() - time.monotonic())) < 0.01


@pytest.mark.proof
def test_a_subscriber_that_stops_reading_costs_the_run_nothing(tmp_path: Path) -> None:
    """It loses messages; the run goes on as without it, to the same hash, and ends."""
    path = rig_file(tmp_path, "telemetry.rate_hz = 1000.0")
    run = Run(path, tmp_path / "run", 2.0, 2e-4)
    with zmq.Context() as context, context.socket(zmq.SUB) as idle, context.socket(zmq.SUB) as other:
        for socket in (idle, other):
            socket.setsockopt(zmq.RCVHWM, 1)
            socket.setsockopt(zmq.RCVBUF, 4096)
            socket.subscribe(b"")
            socket.connect(run.endpoint)
        seen = 0
        while run.is_alive():
            if other.poll(50):
                other.recv_multipart()
                seen += 1
            if seen == 20:
                run.car.subscribed.set()
        result = run.end()
        waiting = 0
        while idle.poll(200):
            idle.recv_multipart()
            waiting += 1
    told = result.stats.telemetry
    assert told is not None and told.sent > 500 and told.failure == ""
    assert waiting < told.sent and seen >= 20, "the idle one has lost what did not fit its queue"
    quiet = run_rig(path, RunSpec("virtual", 2.0, tmp_path / "quiet", vehicle=SlowCar(0.0), ecus={"tcu": Unit()}))
    assert result.stats.hash == quiet.stats.hash and quiet.stats.telemetry is None
    assert result.stats.clock.missed == 0 and result.stats.recorded_all


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ('telemetry.signals = ["engin.*"]', "no recorded signal is called 'engin.*'"),
        ('telemetry.endpoint = "tcp://0.0.0.0:9872"', "not on loopback"),
        ('telemetry.endpoint = "udp://x"', "allowed: tcp://host:port"),
        ("telemetry.rate_hz = 0", "rate_hz"),
        ('telemetry.format = "xml"', "allowed: 'json' or 'msgpack'"),
        ("telemetry.port = 3", "port"),
    ],
)
def test_a_mistake_is_named(edit: str, words: str, tmp_path: Path) -> None:
    path = rig_file(tmp_path, edit)
    with pytest.raises(ConfigError) as caught:
        run_rig(
            path,
            RunSpec("virtual", 0.1, tmp_path / "run", telemetry=None if "endpoint" in edit else "tcp://127.0.0.1:0"),
        )
    assert words in str(caught.value), caught.value
