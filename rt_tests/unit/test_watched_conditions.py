"""What is looked at again and again while a run lives: how long a condition has held, what its signals were, and for
how many looks a control unit has given nothing new."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from torqueloop.hil.common.conditions import parse_condition
from torqueloop.hil.common.levers import word_value
from torqueloop.hil.rig.run import real_clock, unit_pins
from torqueloop.hil.rig.run.unit_pins import LOOK_S
from torqueloop.hil.testing.driven_rig import _Watched


class Played:
    """A rig whose signals are those of a table, in steps of 10 ms."""

    def __init__(self, **columns: Any) -> None:
        self.columns, self.k = columns, 0

    @property
    def t(self) -> float:
        return 5.0 + 0.01 * self.k

    def resolved(self, text: str) -> Any:
        return parse_condition(text).resolved(lambda name: "1", word_value)

    def now(self, names: list[str]) -> dict[str, float]:
        return {name: float(self.columns[name][self.k]) for name in names}


@pytest.mark.parametrize("for_s", [0.0, 0.01, 0.05, 0.2])
def test_a_condition_is_met_when_it_has_held_for_so_long_without_a_break(for_s: float) -> None:
    x = np.sin(np.arange(300) * 0.11) + 0.4 * np.sin(np.arange(300) * 0.57)
    rig = Played(x=x, y=np.cos(x) - 3.0)
    watched = _Watched(rig, "x > 0.3 and y < 0", for_s)  # type: ignore[arg-type]
    n = round(for_s / 0.01)
    for k in range(300):
        rig.k = k
        held = bool((x[max(0, k - n) : k + 1] > 0.3).all()) and k >= n
        assert watched.holds() == held, k
        y = np.cos(x) - 3.0
        ranges = {"x": x[: k + 1], "y": y[: k + 1]}
        said = "; ".join(f"{name} {v.min():.6g} .. {v.max():.6g}, last {v[-1]:.6g}" for name, v in ranges.items())
        assert watched.seen() == said


def test_a_control_unit_without_new_values_fails_the_run_after_its_time_of_looks() -> None:
    """Every unit has a time of its own; a new value begins it again."""
    slots = {"A": SimpleNamespace(version=4), "B": SimpleNamespace(version=9), "still": SimpleNamespace(version=0)}
    units = [
        SimpleNamespace(name=name, actuators=["u"], config=SimpleNamespace(pins_timeout_s=timeout))
        for name, timeout in (("A", 2.0), ("B", 5.0), ("still", 100.0))
    ]
    failed: list[tuple[int, str]] = []
    run = SimpleNamespace(
        plan=SimpleNamespace(started_units=lambda: units), participants=dict.fromkeys(slots),
        parts=SimpleNamespace(pins={name: SimpleNamespace(actuators=slot) for name, slot in slots.items()}),
        fail=lambda kind, text: failed.append((look, f"{kind}: {text}")),
    )  # fmt: skip
    watch = next(kind for name, kind in vars(unit_pins).items() if isinstance(kind, type) and hasattr(kind, "look"))(
        run
    )
    assert watch.first() == ["still"]
    fresh_until = 7
    for look in range(1, 150):
        slots["A"].version += look <= fresh_until
        watch.look()
    said = dict(reversed([(text.split(":")[1].split()[-1], look) for look, text in failed]))
    first = {"A": min(k for k in range(999) if k * LOOK_S > 2.0) + fresh_until,
             "B": min(k for k in range(999) if k * LOOK_S > 5.0) + 1}  # fmt: skip
    assert said == first
    assert failed[0][1] == "thread: control unit A: no new values at its actuators for more than 2 s"


def test_a_sender_hangs_when_frames_wait_and_none_goes_out_for_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames that the bus has refused count as gone; an empty ring and every frame that goes begin the time again."""
    now, failed = 0.0, []
    monkeypatch.setattr(real_clock.time, "monotonic", lambda: now)
    stats, ring = SimpleNamespace(tx=40, tx_failed=3), [1]
    run = SimpleNamespace(
        gateways={"b": SimpleNamespace(stats=lambda: stats)}, fail=lambda kind, text: failed.append((now, kind, text)),
        parts=SimpleNamespace(bus=lambda name: SimpleNamespace(tx_ring=ring)),
    )  # fmt: skip
    sender = real_clock._Sender(run, "b")  # type: ignore[arg-type]
    #: time, frames sent, refused, waiting; hangs?
    course = [(0.5, 40, 3, 1, False), (2.4, 40, 3, 9, False), (2.6, 40, 3, 9, True), (2.7, 41, 3, 9, False),
              (4.6, 41, 3, 9, False), (4.8, 41, 3, 9, True), (5.0, 41, 4, 9, False), (6.9, 41, 4, 0, False),
              (8.8, 41, 4, 7, False), (9.0, 41, 4, 7, True)]  # fmt: skip
    for at, sent, refused, waiting, hangs in course:
        now, stats.tx, stats.tx_failed, ring[:] = at, sent, refused, [1] * waiting
        failed.clear()
        sender.look()
        assert bool(failed) == hangs, at
    ((at, kind, text),) = failed
    assert (at, kind) == (
        9.0,
        "thread",
    ) and text == "CAN gateway of bus b: can-tx hangs, 7 frames wait for more than 2 s"


def test_refused_messages_of_the_vehicle_count_in_a_row() -> None:
    failed: list[str] = []
    link = SimpleNamespace(rejected={"range": 5, "type": 0}, stats=lambda: SimpleNamespace(accepted=accepted))
    run = SimpleNamespace(
        link=link, plan=SimpleNamespace(config=SimpleNamespace(vehicle=SimpleNamespace(refuse_limit=4))),
        fail=lambda kind, text: failed.append(f"{kind}: {text}"),
    )  # fmt: skip
    refusals, accepted = real_clock._Refusals(run), 70  # type: ignore[arg-type]
    refusals.look()
    for accepted, more, in_row in ((70, 3, 3), (71, 9, 0), (71, 1, 1), (71, 2, 3), (71, 1, 4)):
        link.rejected["range"] += more
        refusals.look()
        assert bool(failed) == (in_row >= 4), (accepted, more)
    assert failed == ["vehicle_data: 4 messages of the vehicle model refused in a row (range 21)"]
