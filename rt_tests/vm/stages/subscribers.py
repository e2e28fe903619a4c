"""Stage of the machine about telemetry: what those who listen cost the loop, above all one that stops reading."""

from __future__ import annotations

import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import zmq

from stages.inside import CONFIGS, forked, run, say, tcu_process
from stages.rigs import write_rig

ENDPOINT = "tcp://127.0.0.1:9872"
#: what a page asks for
RATE_HZ = 60.0
#: messages that the one who stops has read before
READ_FIRST = 10


def _listen(stops: bool) -> None:
    with zmq.Context() as context, context.socket(zmq.SUB) as socket:
        socket.setsockopt(zmq.RCVHWM, 1)
        socket.setsockopt(zmq.RCVBUF, 4096)
        socket.subscribe(b"")
        socket.connect(ENDPOINT)
        count = 0
        while not stops or count < READ_FIRST:
            socket.recv_multipart()
            count += 1
            if count in (1, READ_FIRST):
                print(f"read {count}", flush=True)
        while True:
            time.sleep(10.0)


def telemetry(folder: Path, seconds: float) -> dict[str, Any]:
    """The rig of the machine with telemetry of all its signals: nobody, one who reads, one who has stopped reading."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    found: dict[str, Any] = {}
    for who in ("nobody", "reads", "stopped"):
        place = folder / who
        rig = write_rig(place, CONFIGS)
        lines = f'telemetry.endpoint = "{ENDPOINT}"\ntelemetry.rate_hz = {RATE_HZ}\n'
        rig.write_text(rig.read_text(encoding="utf-8") + lines, encoding="utf-8")
        with ExitStack() as beside:
            beside.enter_context(tcu_process(place))
            if who != "nobody":
                beside.enter_context(forked(lambda stops=who == "stopped": _listen(stops), place / "listener.log"))
            stats = run(rig, seconds, place / "out")
        clock, told = stats.clock, stats.telemetry
        assert clock.compute_us is not None and told is not None
        if who != "nobody":
            assert f"read {READ_FIRST}" in (place / "listener.log").read_text(), "the subscriber has heard nothing"
        found[who] = {"ticks": clock.ticks, "missed": clock.missed, "margin_min_us": clock.margin_min_us,
                      "compute_p50_us": clock.compute_us.p50, "compute_p999_us": clock.compute_us.p999,
                      "sent": told.sent, "degraded": stats.degraded}  # fmt: skip
        say(f"  {who}: {found[who]}")
        shutil.rmtree(place / "out")
    return found
