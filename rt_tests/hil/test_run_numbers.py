"""Numbers that a run tells of itself while it goes on and at its end, against values worked out by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rig_help import CONFIGS, alone

from torqueloop.cython_kernels.clock.histogram import Histogram
from torqueloop.hil.can.known import Known
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run import real_clock
from torqueloop.hil.rig.run.progress import Progress
from torqueloop.hil.rig.run.run_stats import Energy, Links, _known, margin, run_stats

MS = 1_000_000


@dataclass
class Shown:
    """A rig as the progress line reads it."""

    values: dict[int, float]
    tick: int = 1234
    safe_latched: bool = False

    def value(self, slot: int) -> float:
        return self.values[slot]


#: rig, raw numbers of its database -> words of the gears
GEARS = {
    "desk_4hp22": {0: "N", 1: "1", 4: "4", 7: "R", 8: "P", 15: "invalid", 12: "?"},
    "desk_zf_4hp22_small": {4: "4", 5: "R", 6: "P"},
    "desk_zf_8hp70": {5: "5", 7: "7", 8: "8", 9: "R", 10: "P"},
}


@pytest.mark.parametrize("name", GEARS)
def test_the_progress_line_tells_speeds_and_the_gear_by_the_word_of_its_database(name: str) -> None:
    plan = load_plan(CONFIGS / "rigs" / f"{name}.toml")
    slot = plan.table.slot
    rig = Shown({slot("car.v"): 27.5, slot("engine.w"): 50.0 * 2.0 * math.pi})
    line = Progress(False, plan, SimpleNamespace(rig=rig), 10_000)  # type: ignore[arg-type]
    for number, word in GEARS[name].items():
        rig.values[slot("TCU_Status.gear_actual")] = float(number)
        assert [w.strip() for w in line.text().split("  ") if w.strip()] == [
            "1.23 s", "99.0 km/h", "3000 rpm", f"gear {word}",
        ]  # fmt: skip
    rig.safe_latched = True
    assert line.text().endswith("safe state[/]")


def test_margins_are_told_in_microseconds_from_the_low_end() -> None:
    histogram = Histogram()
    for k in range(1000):
        histogram.add(5_000 if k < 5 else 20_000 if k < 50 else 400_000)
    found = margin(histogram)
    # buckets of a histogram are some percent wide
    assert (found.p0_1, found.p1) == pytest.approx((5.0, 20.0), rel=0.1)


@dataclass
class Clocked:
    """The counters of a rig, some of them other than they are."""

    rig: Any
    changed: dict[str, Any] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rig, name)

    def counters(self) -> dict[str, Any]:
        return self.rig.counters() | self.changed


def test_the_share_of_missed_ticks_counts_no_tick_of_the_grace_period(tmp_path: Path) -> None:
    plan, parts = alone(tmp_path)
    energy = Energy(plan, parts)
    parts.rig.begin(0)
    parts.rig.ticks(20, 0)
    grace = parts.rig.counters()["grace"] | {"ticks": 10, "dropped": 5}
    rig = Clocked(parts.rig, {"grid_points": 100, "missed": 17, "grace": grace, "ticks": 40})
    parts.rig = rig
    clock = run_stats(plan, parts, energy, Links(), took_s=0.16).clock
    assert clock.missed_ratio == pytest.approx(17 / 85)
    # 40 ticks of 1 ms in 0.16 s
    assert clock.real_time_factor == pytest.approx(0.25) and clock.run_s == 0.16
    rig.changed = {"grid_points": 0, "missed": 0}
    assert run_stats(plan, parts, energy, Links()).clock.missed_ratio == 0.0


def test_energy_is_supplied_by_the_engine_and_lost_as_heat(tmp_path: Path) -> None:
    """An engine at full throttle that turns a converter: work in, heat out, and what is left is stored."""
    plan, parts = alone(tmp_path, "driver.pedal = [[0.0, 1.0], [1.0, 1.0]]")
    energy = Energy(plan, parts)
    parts.rig.begin(0)
    for tick in range(400):
        parts.rig.ticks(1, tick * MS)
    found = energy.balance()
    supplied, lost, stored = (sum(terms.values()) for terms in (found.supplied, found.lost, found.stored))
    assert supplied > 100.0 and lost > 0.0 and stored > 0.0 and min(found.lost.values()) >= 0.0
    assert supplied == pytest.approx(lost + stored, rel=1e-9)


def test_each_kind_of_knowledge_of_a_message_is_told_in_its_own_place() -> None:
    told = _known(Known(layout="recorded", period="event", protection="not_public"))
    assert (told.layout, told.period, told.protection) == ("recorded", "sent on events", "not public")


class Waits:
    """A bus with frames to send, as the watch of its sender sees it, and what the run is told."""

    def __init__(self) -> None:
        self.tx, self.tx_failed, self.frames, self.told = 0, 0, 3, []
        self.gateways = {"powertrain": self}
        self.parts = self

    def stats(self) -> Waits:
        return self

    def bus(self, name: str) -> Waits:
        return self

    @property
    def tx_ring(self) -> range:
        return range(self.frames)

    def fail(self, cause: str, text: str) -> None:
        self.told.append((cause, text))


def test_a_sender_hangs_when_frames_wait_and_none_goes_out_for_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, run = [100.0], Waits()
    monkeypatch.setattr(real_clock.time, "monotonic", lambda: now[0])
    sender = real_clock._Sender(run, "powertrain")  # type: ignore[arg-type]
    limit = real_clock.SENDER_S
    for after, change in ((0.0, "tx"), (0.9, ""), (0.2, "tx_failed"), (0.9, ""), (0.2, "frames"), (0.9, "")):
        now[0] += after * limit
        if change == "frames":
            run.frames = 0
        elif change:
            setattr(run, change, getattr(run, change) + 1)
        sender.look()
        run.frames = 3
    assert not run.told
    now[0] += 0.2 * limit
    sender.look()
    ((cause, text),) = run.told
    assert cause == "thread"
    assert text == f"CAN gateway of bus powertrain: can-tx hangs, 3 frames wait for more than {limit:g} s"


def test_refused_messages_of_a_vehicle_count_in_a_row() -> None:
    counts = {"schema": 0, "range": 0}
    accepted = [0]
    told: list[tuple[str, str]] = []
    link = SimpleNamespace(rejected=counts, stats=lambda: SimpleNamespace(accepted=accepted[0]))
    config = SimpleNamespace(vehicle=SimpleNamespace(refuse_limit=5))
    run = SimpleNamespace(link=link, plan=SimpleNamespace(config=config), fail=lambda *what: told.append(what))
    refusals = real_clock._Refusals(run)  # type: ignore[arg-type]
    # 2 and 2, then one is taken: the row begins anew, and 4 are not yet 5
    for schema, range_, taken in ((2, 0, 0), (2, 2, 0), (2, 2, 1), (4, 2, 1), (4, 4, 1)):
        counts.update(schema=schema, range=range_)
        accepted[0] = taken
        refusals.look()
    assert not told
    counts["schema"] = 5
    refusals.look()
    assert told == [("vehicle_data", "5 messages of the vehicle model refused in a row (schema 5, range 4)")]
