"""Participants and clients that mean no good: threads that serve them survive, and cost the run nothing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgpack
import pytest
import zmq
from rig_help import PROCESS, rig_file
from waiting import PATIENCE_MS, PATIENCE_S, wait_for

import torqueloop
from torqueloop.cython_kernels.rings.ring import LatestSlot
from torqueloop.hil.control.client import connect
from torqueloop.hil.control.server import ControlServer
from torqueloop.hil.link import link_socket
from torqueloop.hil.link.child import search_path, start_module
from torqueloop.hil.link.endpoints import PeerError, check_endpoint
from torqueloop.hil.link.front import CONNECTIONS_MAX
from torqueloop.hil.link.keys import make_keys, server_keys
from torqueloop.hil.link.latest_value import RigLink, VehicleEnd
from torqueloop.hil.link.messages import RIG_SLOT, VEHICLE_SLOT, SchemaError, StateMessage, decode, encode
from torqueloop.hil.results.files import read_run_info

ROOT = Path(torqueloop.__file__).resolve().parents[1]


class StubRig:
    """As much of a rig as these clients ask for."""

    def hello(self) -> dict[str, Any]:
        return {"rig": "stub"}


class Link:
    """The rig's end in this process; the tick is played by `tick`."""

    def __init__(self) -> None:
        self.rig_slot, self.vehicle_slot = LatestSlot(len(RIG_SLOT)), LatestSlot(len(VEHICLE_SLOT))
        self.link = RigLink("tcp://127.0.0.1:0", self.rig_slot, self.vehicle_slot)
        self.link.start()
        self.step = 0

    def tick(self) -> None:
        self.step += 1
        self.rig_slot.write([float(self.step), 1e-3 * self.step, 0.0, 0.0, 0.0, 0.0, 0.0])

    def peer(self) -> zmq.Socket[bytes]:
        peer = zmq.Context.instance().socket(zmq.PAIR)
        peer.setsockopt(zmq.LINGER, 0)
        peer.connect(self.link.endpoint)
        return peer

    def answered(self, peer: zmq.Socket[bytes], own_step: int) -> bool:
        """One tick, and an answer to the newest step the peer has; True once the rig has taken one like it."""
        self.tick()
        while peer.poll(2):
            step = decode(peer.recv()).step  # type: ignore[union-attr]
            peer.send(encode(StateMessage(step, own_step, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)))
        return bool(self.vehicle_slot.read()[2][1] == own_step and self.vehicle_slot.version)


@pytest.fixture
def link() -> Iterator[Link]:
    made = Link()
    yield made
    made.link.stop()


#: what msgpack takes and no schema knows
ODD_MAPS: list[dict[Any, Any]] = [
    {"v": 1, "kind": "state", b"": 0},
    {"v": 1, "kind": "step", b"\xff": 0, "x": 1},
    {"v": 1, "kind": "bye", b"": 0, "reason": ""},
    {"v": 1, "kind": [], "x": {}},
    {"v": 1, "kind": "state", "carrier": {b"": []}},
    {"v": [], "kind": {}},
]


@pytest.mark.parametrize("body", ODD_MAPS, ids=str)
def test_no_message_raises_anything_but_a_schema_error(body: dict[Any, Any]) -> None:
    what = "texts as keys" if b"" in body else None
    with pytest.raises(SchemaError, match=what):
        decode(msgpack.packb(body))


def test_a_mistake_of_ours_is_a_refused_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken(data: bytes) -> None:
        raise RuntimeError("nobody thought of it")

    monkeypatch.setattr("torqueloop.hil.link.messages._decode", mistaken)
    with pytest.raises(SchemaError, match="RuntimeError: nobody thought of it"):
        decode(b"")


def test_messages_nobody_thought_of_cost_neither_side_its_thread(link: Link) -> None:
    peer = link.peer()
    for body in ODD_MAPS:
        peer.send(msgpack.packb(body))
    wait_for(lambda: link.link.received == len(ODD_MAPS))
    wait_for(lambda: link.answered(peer, 0))
    assert link.link.is_alive() and not link.link.failure and sum(link.link.rejected.values()) == len(ODD_MAPS)
    peer.close()


def test_the_vehicle_side_survives_them_as_well() -> None:
    rig = zmq.Context.instance().socket(zmq.PAIR)
    port = rig.bind_to_random_port("tcp://127.0.0.1")
    end = VehicleEnd(f"tcp://127.0.0.1:{port}")
    for body in ODD_MAPS:
        rig.send(msgpack.packb(body))
    wait_for(lambda: end.receive(5) or sum(end.rejected.values()) == len(ODD_MAPS))
    end.close()
    rig.close(0)


def test_one_number_of_an_answer_does_not_lock_out_the_others(link: Link) -> None:
    peer = link.peer()
    wait_for(lambda: link.answered(peer, 0))
    peer.send(encode(StateMessage(1, 2**53 - 1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)))
    wait_for(lambda: link.link.rejected["range"])
    wait_for(lambda: link.answered(peer, 1))
    assert not link.link.reopened
    peer.close()


def test_the_first_number_cannot_do_it_either(link: Link) -> None:
    peer = link.peer()
    link.tick()
    assert peer.poll(PATIENCE_MS)
    step = decode(peer.recv()).step  # type: ignore[union-attr]
    peer.send(encode(StateMessage(step, 2**53 - 1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)))
    wait_for(lambda: link.link.rejected["range"])
    wait_for(lambda: link.answered(peer, 5))
    peer.close()


def test_a_last_answer_of_the_old_connection_does_not_lock_out_the_new_one(link: Link) -> None:
    old = link.peer()
    wait_for(lambda: link.answered(old, 5))
    new = link.peer()
    # ZeroMQ turns the second connection away; the first one answers once more after it
    wait_for(lambda: len(link.link._connected) == 2)
    wait_for(lambda: link.answered(old, 6))
    old.close()
    wait_for(lambda: link.answered(new, 0))
    new.close()


def test_a_vehicle_that_comes_back_at_once_is_heard_each_time(link: Link) -> None:
    for n in range(6):
        peer = link.peer()
        # its numbers begin anew, as those of a new process do
        wait_for(lambda p=peer, k=n % 3: link.answered(p, k))  # type: ignore[misc]
        peer.close()
        wait_for(lambda: link.tick() or link.vehicle_slot.write([-1.0] * len(VEHICLE_SLOT)) or True)
    assert link.link.is_alive() and not link.link.failure


# --- endpoints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "endpoint",
    [
        "tcp://127.0.0.1:0;192.0.2.2:5555", "tcp://192.0.2.2:1;127.0.0.1:5", "tcp://127.evil.example:5555",
        "tcp://127.0.0.1.evil.example:5555", "tcp://127.1:5", "tcp://0.0.0.0:5", "tcp://*:5", "tcp://eth0:5",
        "tcp://[::]:5", "tcp://[::1%eth0]:5", "tcp://127.0.0.1:65536", "tcp://127.0.0.1:٣", "tcp://127.0.0.1",
        "tcp://127.0.0.1:1/x", "tcp://127.0.0.1 :5", "udp://127.0.0.1:5", "tcp://2130706433:5", "tcp://0177.0.0.1:5",
        "tcp://localhost.:5", "tcp://[127.0.0.1:5", "ipc://", "tcp://127.0.0.1:5\n",
    ],
)  # fmt: skip
def test_only_an_address_of_this_computer_needs_no_keys(endpoint: str) -> None:
    with pytest.raises(PeerError, match="endpoint"):
        check_endpoint(endpoint)


def test_addresses_of_this_computer_are_taken_and_a_name_becomes_one() -> None:
    for endpoint in ("tcp://127.0.0.1:0", "tcp://127.3.2.1:80", "tcp://[::1]:7", "ipc:///tmp/x", "inproc://x"):
        assert check_endpoint(endpoint) == endpoint
    assert check_endpoint("tcp://localhost:7") == "tcp://127.0.0.1:7"


def test_two_addresses_in_one_are_refused_with_keys_as_well(tmp_path: Path) -> None:
    (tmp_path / "clients").mkdir()
    keys = server_keys(make_keys(tmp_path, "rig")[1], tmp_path / "clients")
    assert check_endpoint("tcp://192.0.2.2:5", keys)
    with pytest.raises(PeerError, match="one name"):
        check_endpoint("tcp://127.0.0.1:0;192.0.2.2:5", keys)


# --- the working directory ------------------------------------------------------------------------------------------


@pytest.mark.proof
def test_a_process_of_the_rig_imports_nothing_from_the_working_directory(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    for name in ("can.py", "torqueloop.py", "msgpack.py", "json.py"):
        (here / name).write_text(f"open({str(tmp_path / 'taken')!r}, 'a').write({name!r})\nraise SystemExit(7)\n")
    rig = rig_file(tmp_path, PROCESS, "ecu.tcu.in_process = false", "vehicle.start_timeout_s = 100.0")
    # -P: what this test is about is what the processes do that are started
    command = [sys.executable, "-P", "-m", "torqueloop.hil.cli", "run", str(rig), "--clock", "virtual",
               "--duration", "0.1", "--quiet", "--no-html", "--out", str(tmp_path / "out")]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": search_path()}
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True)
    assert not (tmp_path / "taken").exists() and done.returncode in (0, 1), done.stderr
    info = read_run_info(tmp_path / "out")
    assert info is not None and info.state == "ended"


def test_a_module_is_started_from_the_package_in_use(tmp_path: Path) -> None:
    """Not from a package of this name in the working directory."""
    (tmp_path / "torqueloop.py").write_text("raise SystemExit('taken')\n")
    done = start_module("torqueloop.hil.cli", "--help", cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said, _ = done.communicate()
    assert b"Usage" in said and b"taken" not in said


@pytest.mark.parametrize("how", [["-m", "probe"], ["probe.py"]], ids=["module", "script"])
def test_what_python_puts_first_unasked_is_not_handed_on(tmp_path: Path, how: list[str]) -> None:
    (tmp_path / "probe.py").write_text("from torqueloop.hil.link.child import search_path\nprint(search_path())\n")
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"} | {"PYTHONPATH": search_path()}
    said = subprocess.run(
        [sys.executable, *how], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert str(tmp_path) not in said.stdout.strip().split(os.pathsep) and str(ROOT) in said.stdout


# --- who connects and stays silent ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [zmq.PAIR, zmq.DEALER, zmq.ROUTER, zmq.XPUB], ids=["pair", "dealer", "router", "xpub"])
def test_one_silent_connection_is_let_go_of(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # ZeroMQ's own handshake timeout is 30 s; this one has ended long before
    monkeypatch.setattr(link_socket, "HANDSHAKE_MS", 200)
    held = link_socket.LinkSocket(kind, "tcp://127.0.0.1:0", True, None, None)
    try:
        with socket.create_connection(
            ("127.0.0.1", int(held.endpoint.rpartition(":")[2])), timeout=PATIENCE_S
        ) as silent:
            while silent.recv(256):  # its greeting, then the end
                pass
    finally:
        held.close()


# --- the control port -----------------------------------------------------------------------------------------------


@pytest.mark.proof
def test_silent_connections_are_let_go_of_and_others_are_served() -> None:
    server = ControlServer(cast(Any, StubRig()), "tcp://127.0.0.1:0")
    server.start()
    port = int(server.endpoint.rpartition(":")[2])
    silent = []
    try:
        while not server.stats().crowded:
            assert len(silent) < 20 * CONNECTIONS_MAX
            silent.append(one := socket.socket())
            one.settimeout(0.2)
            with suppress(OSError):  # nobody listens at this moment
                one.connect(("127.0.0.1", port))
        # it listens again once they are let go of
        with connect(server.endpoint, timeout_s=PATIENCE_S) as client:
            assert client.hello()["rig"] == "stub"
        assert server.is_alive() and server.failure is None
    finally:
        for one in silent:
            one.close()
        server.stop()


@pytest.mark.proof
def test_a_run_with_few_descriptors_ends_well_under_silent_connections(tmp_path: Path) -> None:
    rig, out = rig_file(tmp_path, PROCESS, "vehicle.start_timeout_s = 100.0"), tmp_path / "out"
    arguments = f"--clock virtual --duration 1 --quiet --no-html --out {out} --control tcp://127.0.0.1:0"
    command = f"ulimit -n 256 && exec {sys.executable} -m torqueloop.hil.cli run {rig} {arguments}"
    run = subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           env={**os.environ, "PYTHONPATH": search_path()})  # fmt: skip

    def endpoint() -> str:
        known = read_run_info(out) if (out / "run.json").exists() else None
        return known.control or "" if known is not None else ""

    port = int(wait_for(endpoint, lambda: run.poll() is None).rpartition(":")[2])
    silent: list[socket.socket] = []
    while run.poll() is None:
        one = socket.socket()
        one.settimeout(0.05)
        try:
            one.connect(("127.0.0.1", port))
            # where nobody listens, a connection may find itself
            if one.getsockname() == one.getpeername():
                raise OSError
            silent.append(one)
        except OSError:
            one.close()
            time.sleep(0.01)
        if len(silent) > 400:
            silent.pop(0).close()
    said = run.communicate()[0]
    assert run.returncode in (0, 1) and silent, said
    info = read_run_info(out)
    assert info is not None and info.state == "ended" and (out / "report.json").exists(), said
    assert info.stats is not None and info.stats.control is not None and not info.stats.control.failure
    for one in silent:
        one.close()


def test_what_a_rig_opens_waits_for_a_free_descriptor_and_for_nothing_else() -> None:
    code = (
        "import os, resource, threading\n"
        "from torqueloop.hil.link.child import patiently\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "held = [os.dup(0)]\n"
        "try:\n"
        "    while True: held.append(os.dup(0))\n"
        "except OSError: pass\n"
        "threading.Timer(0.3, lambda: [os.close(fd) for fd in held]).start()\n"
        "with patiently(lambda: open(os.devnull)): print('opened')\n"
        "try: patiently(lambda: open('/nowhere/at/all'))\n"
        "except FileNotFoundError: print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S,
                          env={**os.environ, "PYTHONPATH": search_path()})  # fmt: skip
    assert done.stdout.split() == ["opened", "refused"], done.stderr
