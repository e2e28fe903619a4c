"""Letter boxes in shared memory, and the pair of ends that stands on them."""

from __future__ import annotations

import mmap
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from waiting import PATIENCE_S

from torqueloop.cython_kernels.link.mailbox import MAILBOX_BYTES, ROOM, Mailbox
from torqueloop.hil.link.child import search_path
from torqueloop.hil.link.pair import Gone, Pair


def alive() -> str | None:
    return None


@pytest.fixture
def memory() -> Iterator[mmap.mmap]:
    yield mmap.mmap(-1, MAILBOX_BYTES)


def test_messages_come_whole_once_and_in_order(memory: mmap.mmap) -> None:
    rig, peer = Mailbox(memory, 0), Mailbox(memory, 1)
    assert peer.take(0.0) is None and rig.take(0.0) is None
    for message in (b"first", b"", b"x" * ROOM, b"last"):
        assert rig.post(message)
        assert not rig.post(b"the one before is still there")
        assert rig.take(0.0) is None, "its own message"
        assert peer.take(0.0) == message and peer.take(0.0) is None
        assert peer.post(message + b"!") if len(message) < ROOM else not peer.post(message + b"!")
        assert rig.take(0.0) == (message + b"!" if len(message) < ROOM else None)


def test_a_sleeper_is_woken_every_time(memory: mmap.mmap) -> None:
    """Questions and answers between two threads, each of which sleeps until the other one has posted: a wake-up that
    is missed holds both for an hour."""
    rig, peer = Mailbox(memory, 0), Mailbox(memory, 1)
    n, answers = 5000, []

    def answer() -> None:
        for _ in range(n):
            message = peer.take(3600.0)
            assert message is not None and peer.post(message + b"?")

    def ask() -> None:
        for k in range(n):
            assert rig.post(b"%d" % k)
            answers.append(rig.take(3600.0))

    threads = [threading.Thread(target=f, daemon=True) for f in (answer, ask)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert answers == [b"%d?" % k for k in range(n)]


def test_what_is_no_memory_for_it_is_refused(memory: mmap.mmap) -> None:
    with pytest.raises(ValueError, match=r"side = 2, allowed: 0, 1"):
        Mailbox(memory, 2)
    with pytest.raises(ValueError, match=f"memory of 100 bytes, allowed: at least {MAILBOX_BYTES}"):
        Mailbox(bytearray(100), 0)
    with pytest.raises(BufferError):
        Mailbox(bytes(MAILBOX_BYTES), 0)
    box = Mailbox(memory, 0)
    with pytest.raises(BufferError):
        memory.close()
    del box
    memory.close()


def test_a_length_that_the_other_side_cannot_have_written_is_refused(memory: mmap.mmap) -> None:
    rig, peer = Mailbox(memory, 0), Mailbox(memory, 1)
    assert rig.post(b"x")
    memory[12:16] = b"\xff" * 4
    with pytest.raises(ValueError, match="message of 4294967295 bytes"):
        peer.take(0.0)


#: a peer that answers with what it is asked, and how many bytes that was; "end" ends it
PEER = """
import sys
from torqueloop.hil.link.pair import Pair
pair = Pair.inherited(int(sys.argv[1]))
print(pair.endpoint, flush=True)
while True:
    message = pair.receive(60.0)
    if message == b"end":
        sys.exit(3)
    pair.send(b"%d " % len(message) + message)
"""


def start(theirs: socket.socket) -> subprocess.Popen[bytes]:
    with theirs:
        return subprocess.Popen(
            [sys.executable, "-c", PEER, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": search_path()},
        )


@pytest.mark.parametrize("kind", ["shared memory", "socket pair"])
def test_a_pair_carries_messages_of_any_length_and_tells_the_end(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind == "socket pair":
        # as on a system without such memory
        monkeypatch.delattr(os, "memfd_create", raising=False)
    elif not hasattr(os, "memfd_create"):
        pytest.skip("no memfd_create on this system: the pair is a socket pair")
    pair, theirs = Pair.make()
    process = start(theirs)
    try:
        for length in (1, 100, ROOM - 9, ROOM, ROOM + 1, 1_000_000, 2):
            message = os.urandom(length)
            assert pair.exchange(message, PATIENCE_S, alive) == b"%d " % length + message
        assert pair.endpoint == kind and process.stdout is not None
        assert process.stdout.readline().decode().strip() == kind
        pair.send(b"end")
        with pytest.raises(Gone, match="has closed the connection"):
            pair.receive(PATIENCE_S)
        assert process.wait(PATIENCE_S) == 3
        with pytest.raises(Gone, match="status 3"):
            pair.exchange(b"x", PATIENCE_S, lambda: "has ended with status 3")
    finally:
        process.kill()
        process.wait()
        pair.close()


def test_a_peer_ends_when_the_rig_closes_its_end() -> None:
    pair, theirs = Pair.make()
    process = start(theirs)
    assert pair.exchange(b"x", PATIENCE_S, alive) == b"1 x"
    pair.close()
    _, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, "Gone"


def test_a_peer_that_says_nothing_is_waited_for_no_longer_than_asked() -> None:
    pair, theirs = Pair.make()
    with theirs:
        assert pair.exchange(b"x", 0.12, alive) is None
        # the next question does not wait for room in the box
        assert pair.exchange(b"y", 0.0, alive) is None
    pair.close()
