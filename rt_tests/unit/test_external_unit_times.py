"""How long the rig waits for a control unit outside of it: for its start, for each step, and what it tells of that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from torqueloop.hil.ecu import external
from torqueloop.hil.ecu.control_unit import EcuInputs, EcuSetup, make_unit
from torqueloop.hil.link.endpoints import PeerError


class Silent:
    """A connection at whose other end nobody answers."""

    place, process = "outside", None

    def __init__(self) -> None:
        self.waits: list[float] = []

    def open(self) -> None: ...

    def exchange(self, message: bytes, timeout_s: float) -> bytes | None:
        self.waits.append(timeout_s)
        return None

    def close(self) -> int | None:
        return None


SETUP = EcuSetup(
    "u", 1e-3, None, (), options={"endpoint": "tcp://127.0.0.1:5999", "timeout_s": 0.25, "start_timeout_s": 7.0}
)


@pytest.mark.parametrize("kind", ["zmq", "process"])
def test_the_start_has_a_time_of_its_own(kind: str) -> None:
    unit: Any = (
        make_unit("zmq", SETUP)
        if kind == "zmq"
        else external.hosted("soft_tcu", SETUP, 1e-3, external.Options(timeout_s=0.25, start_timeout_s=7.0))
    )
    unit._connection = silent = Silent()
    for ask in (unit.start, lambda: unit.step(EcuInputs(0.0)), unit.save):
        with pytest.raises(PeerError, match="no answer within"):
            ask()
    assert silent.waits == [7.0, 0.25, 0.25]


def test_the_longest_wait_is_told_in_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 10.004, 20.0, 20.031, 30.0, 30.002, 40.0, 40.001])
    monkeypatch.setattr(external, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    unit: Any = make_unit("zmq", SETUP)
    unit._connection, unit._open = Silent(), True
    for _ in range(3):
        with pytest.raises(PeerError):
            unit.step(EcuInputs(0.0))
    told = unit.stop().reported
    assert told["wait_max_ms"] == pytest.approx(31.0) and told["steps"] == 0
