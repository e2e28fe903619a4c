"""A rig in the hands of a test, on a rig of the test's own whose signals follow formulas: ramps, waits, names, logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from torqueloop.core.describe.errors import UnknownNameError
from torqueloop.hil.record.signals import Signals, signal_dtype
from torqueloop.hil.testing.driven_rig import DrivenRig, NotReached

TICK_S = 2e-3
UNITS = {"car.v": "m/s", "driver.pedal": "1", "driver.kickdown": "1", "driver.brake": "1", "driver.brake_switch": "1",
         "tcu.gear_actual": "1", "tcu.gear_target": "1", "a.x": "1", "b.x": "1"}  # fmt: skip


class Table(dict[str, float]):
    """Signals by name; their slots are their names."""

    names = ["tick", "status", *UNITS]

    def unit(self, name: str) -> str:
        return UNITS[name]

    def slot(self, name: str) -> str:
        return name


class Holder:
    """1 m/s more each second; a write takes a tick, as that of the control channel."""

    virtual = True

    def __init__(self) -> None:
        self.tick = 0
        self.table = Table(dict.fromkeys(UNITS, 0.0))
        #: (tick from which it holds, what was written)
        self.written: list[tuple[int, dict[str, float]]] = []
        self.cause = ""
        clock, rig = SimpleNamespace(tick_s=TICK_S), SimpleNamespace(name="mine")
        control = SimpleNamespace(
            override=self.override, parameters=SimpleNamespace(current={}), status=lambda: {"cause": self.cause},
            get=lambda names: {"values": {name: self.table[name] for name in names}},
        )  # fmt: skip
        self.live: Any = SimpleNamespace(
            plan=SimpleNamespace(table=self.table, config=SimpleNamespace(clock=clock, rig=rig)), control=control,
            parts=SimpleNamespace(rig=SimpleNamespace(values=lambda slots: [self.table[s] for s in slots])),
        )  # fmt: skip

    def check(self) -> None: ...

    def override(self, values: Mapping[str, float]) -> None:
        self.table.update(values)
        self.pass_ticks(1)
        self.written.append((self.tick, dict(values)))

    def pass_ticks(self, ticks: int, until: Callable[[], bool] | None = None) -> bool:
        assert ticks >= 0
        for _ in range(ticks):
            if until is not None and until():
                return True
            self.tick += 1
            self.table["car.v"] = self.tick * TICK_S
        return until is not None and until()


@pytest.fixture
def rig(tmp_path: Path) -> DrivenRig:
    return DrivenRig(Holder(), tmp_path, {"v": "car.v"})  # type: ignore[arg-type]


def holder(rig: DrivenRig) -> Any:
    return rig._holder


@pytest.mark.parametrize("over", [0.0, 0.004, 0.03, 0.5, 0.507])
@pytest.mark.parametrize(("name", "switch"), [("pedal", "kickdown"), ("brake", "brake_switch")])
def test_a_pedal_moves_along_a_line(rig: DrivenRig, name: str, switch: str, over: float) -> None:
    """A write every 10 ms; each holds from the tick on in which the line has its value, the last one at the end."""
    rig.run(1.0)
    rig.override({f"driver.{name}": 0.2})
    begin = holder(rig).tick
    getattr(rig, name)(1.0, over=over)
    moves = [(t, w[f"driver.{name}"]) for t, w in holder(rig).written if f"driver.{name}" in w][1:]
    if name == "brake":
        begin += 1  # its switch is closed before
    n = max(1, round(over / 0.01))
    assert len(moves) == n and moves[-1][1] == pytest.approx(1.0)
    for k, (tick, value) in enumerate(moves, 1):
        assert value == pytest.approx(0.2 + 0.8 * k / n)
        assert tick == begin + max(1, round(k / n * over / TICK_S)), k
    assert holder(rig).table[f"driver.{switch}"] == 1.0
    assert rig.log[-1 if name == "brake" else -2].endswith(f"{name} to 1 within {over:g} s" if over else f"{name} to 1")
    getattr(rig, name)(0.0)
    assert holder(rig).table[f"driver.{name}"] == 0.0 == holder(rig).table[f"driver.{switch}"]


def test_time_passes_by_seconds_and_never_backwards(rig: DrivenRig) -> None:
    assert rig.run(0.501) == pytest.approx(0.5, abs=TICK_S) and rig.run(-3.0) == rig.t == holder(rig).tick * TICK_S
    assert repr(rig) == f"<rig mine at {rig.t:.3f} s, run: {rig.path}>"
    rig.override({"driver.pedal": 0.5})
    assert rig.log == [f"{rig.t:9.3f} s  hold driver.pedal = 0.5"]


def test_a_condition_is_waited_for_as_long_as_it_may_take(rig: DrivenRig) -> None:
    assert rig.wait("v >= 0.75", within=1.0) == pytest.approx(0.75)
    # 0.25 s without a break, from then on
    assert rig.wait("v >= 0.8", for_s=0.25) == pytest.approx(1.05)
    assert rig.log[0] == "    0.750 s  wait 'v >= 0.75'"
    holder(rig).cause = "watchdog"
    with pytest.raises(NotReached) as error:
        rig.wait("v > 9 and tcu.gear_actual == 0", within=0.5)
    text = str(error.value)
    assert text.startswith("'v > 9 and tcu.gear_actual == 0' did not come within 0.5 s (1.050 .. 1.550 s): ")
    assert "car.v 1.05 .. 1.55, last 1.55" in text and "tcu.gear_actual 0 .. 0, last 0" in text
    assert text.endswith(f"; safe state: watchdog; run: {rig.path}")


def test_a_condition_that_ends_is_told_at_once(rig: DrivenRig) -> None:
    assert rig.stays("v < 0.4", 0.25) == pytest.approx(0.25)
    with pytest.raises(NotReached, match=r"did not stay for 2 s \(0\.250 \.\. 0\.400 s\): car\.v 0\.25 \.\. 0\.4"):
        rig.stays("v < 0.4", 2.0)


def test_short_names_are_those_of_one_signal(rig: DrivenRig) -> None:
    names = rig._names
    for short, full in (("v", "car.v"), ("speed", "car.v"), ("gear", "tcu.gear_actual"), ("target", "tcu.gear_target"),
                        ("pedal", "driver.pedal"), ("gear_target", "tcu.gear_target"), ("a.x", "a.x")):  # fmt: skip
        assert names.full(short) == full
    with pytest.raises(UnknownNameError, match=r"several signals are called 'x'.*a\.x, b\.x"):
        names.full("x")
    with pytest.raises(UnknownNameError, match="no signal 'gaer'.*did you mean 'gear'"):
        names.full("gaer")


def test_a_window_has_the_samples_from_its_time_on(rig: DrivenRig) -> None:
    records = np.zeros(100, signal_dtype(2))
    records["tick"], records["out"][:, 0] = np.arange(100), np.arange(100) * 0.5
    rig._read = (holder(rig).tick, Signals.of(["car.v", "tcu.gear_actual"], {"car.v": "m/s"}, TICK_S, records))
    window = rig.since(0.1)
    assert window.t[0] == pytest.approx(0.1) and len(window.t) == 51 and window.t[-1] == pytest.approx(0.2)
    assert window.signal("v").tolist() == [0.5 * k for k in range(49, 100)] and window.units["car.v"] == "m/s"
    assert rig["speed"].tolist() == records["out"][:, 0].tolist() and len(rig) == len(window) == 2
