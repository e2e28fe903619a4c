"""Messages of the telemetry, made of records by hand: which ticks, times, values, groups, and what is counted."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import msgpack
import numpy as np
import pytest

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.record.signals import signal_dtype
from torqueloop.hil.results.links import TelemetryStats
from torqueloop.hil.rig.run import telemetry as module
from torqueloop.hil.rig.run.telemetry import BLOCKS, Telemetry

NAMES = ["engine.w", "engine.tau", "car.v", "rear.left.tau", "plain"]


class Socket:
    """Takes the place of the process of the socket; `taken`: what it took, `full`: it takes nothing."""

    def __init__(self, kind: int, endpoint: str, keys: object, queue: int, limit: int) -> None:
        self.endpoint, self.starts = f"{endpoint}7", 1
        self.crowded, self.ends, self.last_end = 11, 12, "ended by hand"
        self.incoming: list[list[bytes]] = []
        self.taken: list[list[bytes]] = []
        self.full = False

    def wait(self, _: int) -> None: ...

    def receive(self) -> list[bytes] | None:
        return self.incoming.pop(0) if self.incoming else None

    def send(self, parts: list[bytes]) -> bool:
        if not self.full:
            self.taken.append(parts)
        return not self.full

    def close(self) -> None: ...


def made(monkeypatch: pytest.MonkeyPatch, rate_hz: float = 100.0, form: str = "json", real: bool = False,
         signals: tuple[str, ...] = ("*",)) -> tuple[Telemetry, Any]:  # fmt: skip
    """Telemetry of a rig with ticks of 1 ms, and its socket, with one subscriber."""
    monkeypatch.setattr(module, "FrontSocket", Socket)
    table = SimpleNamespace(signals=list(signals), format=form, rate_hz=rate_hz)
    config = SimpleNamespace(telemetry=table, clock=SimpleNamespace(tick_s=1e-3), rig=SimpleNamespace(name="desk"))
    plan: Any = SimpleNamespace(config=config, recorded=[(name, k) for k, name in enumerate(NAMES)], path="rig.toml")
    found = Telemetry(plan, "tcp://127.0.0.1:", None, real)
    socket: Any = found._socket
    socket.incoming.append([b"\x01de"])
    found.step()
    return found, socket


def records(first: int, last: int) -> bytes:
    """Signal k of a tick is the tick and k tenths."""
    ticks = np.arange(first, last + 1)
    found = np.zeros(len(ticks), signal_dtype(len(NAMES)))
    found["tick"], found["t_wall_ns"] = ticks, 5_000_000_000 + 1_000_000 * ticks
    found["out"] = ticks[:, None] + 0.1 * np.arange(len(NAMES))
    return found.tobytes()


def given(telemetry: Telemetry, *blocks: bytes) -> None:
    for block in blocks:
        telemetry.tap(block)
        telemetry.step()


def ticks(socket: Any) -> list[int]:
    return [round(json.loads(parts[1])["engine"]["w"]) for parts in socket.taken]


@pytest.mark.parametrize(
    ("rate_hz", "wanted"),
    [(100.0, [10, 20, 30, 40]), (50.0, [20, 40]), (40.0, [25]), (1000.0, [*range(3, 48)]), (4000.0, [*range(3, 48)])],
)
def test_samples_lie_on_a_grid_from_tick_0_at_the_rate_asked_for(
    monkeypatch: pytest.MonkeyPatch, rate_hz: float, wanted: list[int]
) -> None:
    """Whatever tick the first record has and however the recorder cuts its blocks; at most every tick."""
    telemetry, socket = made(monkeypatch, rate_hz)
    given(telemetry, records(3, 19), records(20, 47))
    assert ticks(socket) == wanted
    assert telemetry.stats().rate_hz == pytest.approx(min(rate_hz, 1000.0))


def test_a_run_that_went_back_to_a_checkpoint_is_published_on_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    telemetry, socket = made(monkeypatch)
    given(telemetry, records(0, 61), records(13, 35))
    assert ticks(socket) == [0, 10, 20, 30, 40, 50, 60, 20, 30]


def test_a_message_has_the_topic_the_end_of_its_tick_and_the_values_by_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is rounded to nanoseconds: 1001 ticks of 1 ms are 1.001 s, not 1.0009999999999999 s."""
    telemetry, socket = made(monkeypatch, 1000.0)
    given(telemetry, records(1000, 1000))
    topic, payload, stamp = socket.taken[0]
    assert (topic, stamp) == (b"desk", b"1.001000") and payload.startswith(b'{"t":1.001,')
    groups = {"engine": {"w": 1000.0, "tau": 1000.1}, "car": {"v": 1000.2}, "rear/left": {"tau": 1000.3}}
    assert json.loads(payload) == {"t": 1.001, **groups, "plain": 1000.4}


def test_chosen_signals_keep_their_values_and_what_is_not_finite_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    telemetry, socket = made(monkeypatch, 1000.0, "msgpack", signals=("car.*", "engine.tau", "plain"))
    found = np.frombuffer(records(4, 4), signal_dtype(len(NAMES))).copy()
    found["out"][0, NAMES.index("plain")] = np.nan
    given(telemetry, found.tobytes())
    assert msgpack.unpackb(socket.taken[0][1]) == {"t": 0.005, "engine": {"tau": 4.1}, "car": {"v": 4.2}}
    with pytest.raises(ConfigError, match=r"^rig.toml: .*is called .engin\.\*. in \[telemetry\]"):
        made(monkeypatch, signals=("engin.*",))


def test_on_the_real_clock_a_message_has_the_time_since_1970_of_its_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the loop was at 2 s when the one on the wall was at 1 700 000 002.5 s: its 0 was half a second
    later than 1 700 000 000 s. The tick began at 5.004 s on the clock of the loop."""
    monkeypatch.setattr(module, "now_wall_ns", lambda: 1_700_000_002_500_000_000)
    monkeypatch.setattr(module, "now_ns", lambda: 2_000_000_000)
    telemetry, socket = made(monkeypatch, 1000.0, real=True)
    given(telemetry, records(4, 4))
    assert socket.taken[0][2] == b"1700000005.504000" and json.loads(socket.taken[0][1])["t"] == 0.005


def test_what_is_sent_and_what_is_left_out_are_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    telemetry, socket = made(monkeypatch)
    given(telemetry, records(0, 29))
    socket.full = True
    given(telemetry, records(30, 79))
    told = TelemetryStats("tcp://127.0.0.1:7", 100.0, 3, 5, 11, 12, "ended by hand", "")
    assert telemetry.stats() == told
    # blocks that this thread has no time for: one more than it keeps
    for _ in range(BLOCKS + 1):
        telemetry.tap(records(80, 80))
    assert telemetry.stats().left_out == 6


def test_nothing_is_kept_for_subscribers_that_have_gone_or_ask_for_another_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A socket that starts again has none: its subscribers subscribe again."""
    telemetry, socket = made(monkeypatch, 1000.0)
    socket.starts = 2
    telemetry.step()
    assert not telemetry.subscribed
    given(telemetry, records(0, 9))
    assert not socket.taken
    socket.incoming += [[b"\x01other"], [b"\x01"]]
    given(telemetry, b"")
    assert telemetry.subscribed, "the empty word begins every topic"
    given(telemetry, records(10, 11))
    socket.incoming.append([b"\x00"])
    given(telemetry, records(12, 13))
    assert not telemetry.subscribed
    given(telemetry, records(14, 15))
    assert ticks(socket) == [10, 11, 12, 13]
