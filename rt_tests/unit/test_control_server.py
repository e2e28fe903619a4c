"""The server of the control channel without sockets: what reaches the rig, what comes back, and what is counted."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from queue import Empty, Queue
from typing import Any

import msgpack
import pytest
import zmq
from waiting import PATIENCE_S

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.control.client import Client, ControlError
from torqueloop.hil.control.messages import REQUEST_BYTES, Request, RequestError, encode_answer, encode_request
from torqueloop.hil.control.server import QUEUE, ControlServer


class Box:
    """In the place of the socket: requests are put in by the test, answers come out."""

    def __init__(self, kind: int, endpoint: str, curve: None, queue: int, max_bytes: int) -> None:
        self.waiting, self.max_bytes = queue, max_bytes
        self.endpoint, self.crowded, self.ends, self.last_end = "box", 2, 3, "was ended by SIGKILL"
        self.requests: Queue[list[bytes]] = Queue()
        self.answers: Queue[list[bytes]] = Queue()
        self.busy, self.ready = False, threading.Event()

    def wait(self, timeout_ms: int) -> bool:
        if self.busy:
            self.busy = False
            self.ready.set()
        try:
            self.next = self.requests.get(timeout=1e-3 * timeout_ms)
        except Empty:
            return False
        return True

    def receive(self) -> list[bytes]:
        self.busy = True
        return self.next

    def send(self, parts: list[bytes]) -> bool:
        self.answers.put(parts)
        return parts[0] != b"gone"

    def close(self) -> None: ...


class Rig:
    """Answers with what it was asked."""

    def __init__(self) -> None:
        #: what waits for a tick goes on while it is set
        self.ticks = threading.Event()
        self.ticks.set()

    def set(self, values: Mapping[str, float], at: int) -> Any:
        self.ticks.wait(PATIENCE_S)
        return ["set", dict(values), at]

    def override(self, values: Mapping[str, float], at: int) -> Any:
        return ["override", dict(values), at]

    def release(self, names: tuple[str, ...], at: int) -> Any:
        return ["release", list(names), at]

    def get(self, names: tuple[str, ...]) -> dict[str, Any]:
        if "nothing" in names:
            raise ConfigError("there is no signal 'nothing'")
        return {"got": list(names)}

    def checkpoint(self, name: str, at: int) -> dict[str, Any]:
        return {"checkpoint": [name, at]}

    def restore(self, name: str, at: int) -> dict[str, Any]:
        return {"restore": [name, at]}

    def record(self, name: str, patterns: tuple[str, ...]) -> dict[str, Any]:
        return {"record": [name, list(patterns)]}

    def stop_recording(self, name: str) -> dict[str, Any]:
        raise RequestError("refused", f"{name} is not recorded")

    def status(self) -> dict[str, Any]:
        return {"state": "running"}

    def describe(self) -> list[dict[str, Any]]:
        raise RuntimeError("a mistake")


class Clock:
    """Time goes on while somebody sleeps, or when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Served:
    """A server that runs, and its two ends."""

    def __init__(self, server: ControlServer, clock: Clock) -> None:
        self.rig, self.server, self.clock = server.rig, server, clock
        self.box: Any = server._socket

    def put(self, data: bytes, client: bytes = b"me", delimiter: bytes = b"") -> None:
        assert len(data) <= self.box.max_bytes, "a longer message closes the connection"
        self.box.requests.put([client, delimiter, data])

    def answer(self) -> dict[str, Any]:
        return msgpack.unpackb(self.box.answers.get(timeout=PATIENCE_S)[-1])

    def ask(self, request: Request) -> dict[str, Any]:
        """The answer, when the server is ready for the next request."""
        self.box.ready.clear()
        self.put(encode_request(request))
        answer = self.answer()
        assert self.box.ready.wait(PATIENCE_S)
        return answer


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr("torqueloop.hil.control.server.FrontSocket", Box)
    clock = Clock()
    monkeypatch.setattr("torqueloop.hil.control.server.time", clock)
    server = ControlServer(Rig(), "tcp://127.0.0.1:0")  # type: ignore[arg-type]
    server.start()
    yield Served(server, clock)
    server.rig.ticks.set()  # type: ignore[attr-defined]
    server.stop()


ASKED = {
    "set": (Request("set", 11, values={"a": 1.5}, at=70), {"tick": ["set", {"a": 1.5}, 70]}),
    "override": (Request("override", 12, values={"b": 2.5}, at=71), {"tick": ["override", {"b": 2.5}, 71]}),
    "release": (Request("release", 13, names=("b", "c"), at=72), {"tick": ["release", ["b", "c"], 72]}),
    "get": (Request("get", 14, names=("d",)), {"got": ["d"]}),
    "checkpoint": (Request("checkpoint", 15, name="e", at=73), {"checkpoint": ["e", 73]}),
    "restore": (Request("restore", 16, name="f", at=74), {"restore": ["f", 74]}),
    "record": (Request("record", 17, name="g", names=("x.*",)), {"record": ["g", ["x.*"]]}),
}


@pytest.mark.parametrize("kind", ASKED)
def test_a_request_reaches_the_rig_as_it_was_asked_and_its_answer_has_its_number(served: Served, kind: str) -> None:
    request, wanted = ASKED[kind]
    answer = served.ask(request)
    assert answer["id"] == request.id and {key: answer[key] for key in wanted} == wanted


def test_the_longest_request_is_served_and_a_longer_one_is_refused_with_its_reason(served: Served) -> None:
    names = tuple("n" * 100 for _ in range(REQUEST_BYTES // 102 - 1))
    request = encode_request(Request("get", 21, names=names))
    assert REQUEST_BYTES - 300 < len(request) <= REQUEST_BYTES and served.box.waiting == QUEUE
    served.put(request)
    assert served.answer()["id"] == 21
    served.put(request + bytes(300))
    assert not served.answer()["ok"] and served.server.rejected["oversized"] == 1


def test_requests_and_answers_are_counted_by_what_came_of_them(served: Served) -> None:
    assert served.ask(Request("get", 1, names=("a",)))["got"] == ["a"]
    refused = served.ask(Request("stop_recording", 2, name="bus", at=-1))
    assert refused["id"] == 2 and "bus is not recorded" in str(refused)
    assert "there is no signal 'nothing'" in str(served.ask(Request("get", 3, names=("nothing",))))
    assert "internal error: RuntimeError: a mistake" in str(served.ask(Request("list", 4)))
    served.box.requests.put([b"me", b"", b"one", b"two"])
    assert "message of 3 parts, allowed: one" in str(served.answer())
    served.put(msgpack.packb({"v": 99, "id": 6, "kind": "get"}))
    assert served.answer()["id"] == 6
    served.put(encode_request(Request("get", 7, names=("a",))), client=b"gone")
    served.answer()
    channel = served.ask(Request("status", 8))["channel"]
    assert (channel["endpoint"], channel["requests"], channel["answered"], channel["not_sent"]) == ("box", 8, 2, 1)
    assert channel["rejected"] == {"refused": 3, "malformed": 1, "version": 1}
    assert (channel["crowded"], channel["front_ends"], channel["front_last_end"]) == (2, 3, "was ended by SIGKILL")


def test_what_waits_for_a_tick_is_bounded_and_holds_nothing_else_up(served: Served) -> None:
    rig: Any = served.rig
    rig.ticks.clear()
    for k in range(QUEUE + 1):
        served.put(encode_request(Request("set", k, values={"a": float(k)})))
    refused = served.answer()
    assert refused["id"] == QUEUE and f"{QUEUE} requests wait for a tick already" in str(refused)
    assert served.ask(Request("get", 100, names=("a",)))["id"] == 100
    rig.ticks.set()
    answers = [served.answer() for _ in range(QUEUE)]
    assert [(a["id"], a["tick"][1]) for a in answers] == [(k, {"a": float(k)}) for k in range(QUEUE)]


def test_more_requests_than_are_served_wait_and_are_counted(served: Served) -> None:
    """500 a second, and at most half of the time: one that takes 20 ms is followed by 20 ms without another one."""
    clock, took = served.clock, [0.0]
    rig: Any = served.rig

    def get(names: tuple[str, ...]) -> dict[str, Any]:
        clock.now += took[0]
        return {}

    rig.get = get
    for k in range(6):
        served.ask(Request("get", k, names=("a",)))
    assert clock.slept == pytest.approx([0.002] * 5)
    clock.now += 1.0
    took[0] = 0.02
    for k in range(3):
        served.ask(Request("get", k, names=("a",)))
    assert clock.slept[5:] == pytest.approx([0.02] * 2)
    stats = served.server.stats()
    assert (stats.delayed, stats.requests, stats.answered) == (7, 9, 9)


class Line:
    """In the place of the client's socket: answers what it is given, after none for an empty list."""

    def __init__(self, answers: list[bytes]) -> None:
        self.raw, self.answers, self.asked_ms, self.closed = self, answers, [], False  # type: ignore[var-annotated]
        self.sent: list[dict[str, Any]] = []

    def send(self, data: bytes) -> None:
        self.sent.append(msgpack.unpackb(data))

    def poll(self, timeout_ms: int) -> bool:
        self.asked_ms.append(timeout_ms)
        return bool(self.answers)

    def recv(self) -> bytes:
        return self.answers.pop(0)

    def close(self) -> None:
        self.closed = True


def test_a_client_waits_as_many_seconds_as_it_is_told_and_asks_anew_on_a_new_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = [Line([]), Line([encode_answer(2, {"tick": 7, "values": {"engine.w": 12.5}})])]
    made: list[tuple[Any, ...]] = []

    def connected(*given: Any, max_bytes: int) -> Line:
        made.append(given)
        return lines[len(made) - 1]

    monkeypatch.setattr("torqueloop.hil.control.client.ConnectedSocket", connected)
    keys: Any = object()
    client = Client("tcp://127.0.0.1:5", 0.25, keys)
    with pytest.raises(ControlError, match=r"no answer from tcp://127\.0\.0\.1:5 within 0\.25 s"):
        client.hello()
    assert lines[0].closed and made == [(zmq.REQ, "tcp://127.0.0.1:5", keys)] * 2
    assert client.ask("get", names=("engine.w",))["values"] == {"engine.w": 12.5}
    assert [line.asked_ms for line in lines] == [[250], [250]]
    assert [(r["kind"], r["id"]) for line in lines for r in line.sent] == [("hello", 1), ("get", 2)]
