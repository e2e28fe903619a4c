"""Sockets that clients reach live in a process of their own, whose end costs the rig nothing but their connections."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
import zmq
from control_help import Running, SlowCar
from rig_help import DESK, rig_file, run
from waiting import PATIENCE_MS, wait_for

from torqueloop.hil.link import front
from torqueloop.hil.link.endpoints import PeerError
from torqueloop.hil.link.front import CONNECTIONS_MAX, FrontSocket
from torqueloop.hil.report.report import analyse
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.telemetry import Telemetry

ANY = "tcp://127.0.0.1:0"
#: subscribes 12 times to 12 000 topics of 900 bytes, which grew a rig by 520 MB when it held the socket itself
ATTACK = """
import sys, time, zmq
context = zmq.Context()
for k in range(12):
    one = context.socket(zmq.SUB)
    one.set(zmq.SNDHWM, 0)
    one.connect(sys.argv[1])
    for n in range(12_000):
        one.subscribe(f"{n}.{k}.".encode().ljust(900, b"x"))
    time.sleep(0.3)
time.sleep(2.0)
context.destroy(0)
"""


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    made: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield made
    made.destroy(0)


def children() -> list[int]:
    """Front processes of this process."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            pid = int(entry.name)
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"torqueloop.hil.link.front" in (entry / "cmdline").read_bytes():
                found.append(pid)
    return found


def gone(pids: list[int]) -> None:
    """Wait until these processes have ended: a request that one of them still takes is lost with it."""
    wait_for(lambda: not set(pids) & set(children()))


def serve_until(held: FrontSocket, what: Callable[[], bool]) -> None:
    """Whoever holds a socket starts its process again while it waits for messages."""

    def looked() -> bool:
        held.wait(20)
        return what()

    wait_for(looked)


def started_again(held: FrontSocket, starts: int) -> None:
    serve_until(held, lambda: held.starts >= starts)


def asked_and_answered(held: FrontSocket, client: zmq.Socket[bytes]) -> None:
    """One request, one answer."""
    client.send_multipart([b"", b"request"])
    wait_for(lambda: held.wait(20))
    parts = held.receive()
    assert parts is not None and parts[1:] == [b"", b"request"]
    assert held.send([parts[0], b"", b"answer"])
    assert client.poll(PATIENCE_MS) and client.recv_multipart() == [b"", b"answer"]


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV, signal.SIGKILL], ids=["abort", "segv", "kill"])
def test_a_process_that_is_ended_is_started_again_at_the_same_endpoint(context, number) -> None:
    with closing(FrontSocket(zmq.ROUTER, ANY, None)) as held, closing(context.socket(zmq.DEALER)) as client:
        client.connect(held.endpoint)
        asked_and_answered(held, client)
        (pid,) = children()
        os.kill(pid, number)
        started_again(held, 2)
        asked_and_answered(held, client)
        assert held.ends == 1 and signal.Signals(number).name in held.last_end
    assert not children()


def test_a_rig_that_does_not_read_keeps_as_many_messages_as_its_queue_has_places(context) -> None:
    """The process that holds the others ends; what is left is what the rig's own socket has taken."""
    places, part = 40, b"x" * 65_000
    with (
        closing(FrontSocket(zmq.ROUTER, ANY, None, queue=places, max_bytes=2 * len(part))) as held,
        closing(context.socket(zmq.DEALER)) as client,
    ):
        client.setsockopt(zmq.LINGER, 0)
        client.setsockopt(zmq.SNDHWM, 1)
        client.connect(held.endpoint)
        while client.poll(1000, zmq.POLLOUT):
            client.send_multipart([b"", part])
        for pid in children():
            os.kill(pid, signal.SIGKILL)
        gone(children())
        kept = 0
        while held.receive() is not None:
            kept += 1
        # one place may be that of the first message; large messages: few are in the buffers of the system besides
        assert places - 1 <= kept <= places + 6


def test_what_cannot_be_bound_is_said_with_its_reason(context) -> None:
    with closing(FrontSocket(zmq.ROUTER, ANY, None)) as held, pytest.raises(PeerError, match="in use"):
        FrontSocket(zmq.ROUTER, held.endpoint, None)
    with pytest.raises(PeerError, match="allowed: tcp"):
        FrontSocket(zmq.ROUTER, "inproc://x", None)
    assert not children()


def test_too_many_connections_are_dropped_and_the_next_client_is_served(context) -> None:
    with closing(FrontSocket(zmq.ROUTER, ANY, None)) as held:
        crowd = [context.socket(zmq.DEALER) for _ in range(CONNECTIONS_MAX + 1)]
        for one in crowd:
            one.connect(held.endpoint)
        serve_until(held, lambda: held.crowded)
        for one in crowd:
            one.close(0)
        started_again(held, 2)
        with closing(context.socket(zmq.DEALER)) as client:
            client.connect(held.endpoint)
            asked_and_answered(held, client)
        assert held.ends == 0


def test_a_socket_whose_process_ends_again_and_again_is_given_up(monkeypatch) -> None:
    monkeypatch.setattr(front, "ENDS_MAX", 1)
    monkeypatch.setattr(front, "PAUSE_S", 0.0)
    with closing(FrontSocket(zmq.ROUTER, ANY, None)) as held:
        for starts in (1, 2):
            started_again(held, starts)
            os.kill(children()[0], signal.SIGKILL)
            serve_until(held, lambda starts=starts: held.ends >= starts)
        for _ in range(20):
            held.wait(20)
        assert held.starts == 2 and not children() and "not started again in this run" in held.last_end


@pytest.mark.proof
def test_a_run_whose_sockets_die_is_the_run_that_has_none(tmp_path: Path) -> None:
    add = f'\n[telemetry]\nendpoint = "{ANY}"\n'
    going = Running(rig_file(tmp_path, add=add), tmp_path / "run", 3.0, vehicle=SlowCar(2e-3))
    with going.client() as client:
        client.hello()
        pids = children()
        assert len(pids) == 2
        for pid in pids:
            os.kill(pid, signal.SIGABRT)
    gone(pids)
    with going.client() as client:
        assert client.hello()["product"] == "torqueloop"
    result = going.join()
    stats = result.stats
    assert stats.control is not None and stats.telemetry is not None
    assert (stats.control.front_ends, stats.telemetry.front_ends) == (1, 1)
    assert stats.hash == run(DESK, tmp_path / "plain", 3.0).stats.hash
    (check,) = (c for c in analyse(result.out).checks if "served" in c.name)
    assert not check.passed and "control channel: its process ended 1 times (was ended by SIGABRT" in check.text


@pytest.mark.proof
def test_subscriptions_without_end_take_no_memory_of_the_rig() -> None:
    telemetry = Telemetry(load_plan(DESK), ANY, None, False)
    before = resident(os.getpid())
    attack = subprocess.Popen([sys.executable, "-c", ATTACK, telemetry.endpoint])
    largest = 0
    try:
        while attack.poll() is None:
            telemetry.step()
            largest = max(largest, *(resident(pid) for pid in children()), 0)
            time.sleep(0.01)
        assert attack.returncode == 0
        assert largest > 30e6, "the attack has not arrived"
        assert largest < front.MEMORY_BYTES + 50e6 and resident(os.getpid()) - before < 30e6
    finally:
        attack.kill()
        telemetry.stop()


def resident(pid: int) -> int:
    """Memory of a process [bytes]; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
