"""How the soft TCU carries out a shift, against the words of its laws and the formulas at the head of hil/ecu/shift.py:
the pressure of every element in every period of a shift that uses each law, for turbine torques of both signs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torqueloop.hil.common.config_file import validate
from torqueloop.hil.ecu.adaptation import Learnt
from torqueloop.hil.ecu.shift import Measured, ShiftRunner
from torqueloop.hil.ecu.tcu_tables import TcuConfig, load_tcu_config

FILE = load_tcu_config(Path(__file__).resolve().parents[2] / "configs/tcu/soft_zf_8hp45.toml")
DT, LINE, W_OUT = FILE.timing.period_s, 9.0, 120.0
#: 3-4 of the 8HP45: D closes, C opens, B and E are pressed in both; torque per Nm of the turbine in its gear
TORQUE = {"C": 0.65957, "D": 0.39744}
OLD, NEW, J = 2.10638, 1.66667, 0.491
LEARNT = Learnt(fill_s={"D": 0.02}, kiss_bar={"D": -0.05, "C": 0.1})


def config(phases: list[dict[str, Any]], name: str = "3-4") -> TcuConfig:
    data = FILE.model_dump()
    data["shifts"][name] = {"phases": phases}
    return validate(data, TcuConfig, "x.toml")


def phase(stage: str, duration_s: float, until: str = "time", **elements: dict[str, Any]) -> dict[str, Any]:
    return {"name": f"{stage} {duration_s}", "stage": stage, "duration_s": duration_s, "until": until,
            "timeout_s": 0.5, "inertia_s": 0.4, "elements": elements}  # fmt: skip


SHIFT = [
    phase("filling", 0.03, "filled", D={"law": "fill"}, C={"law": "torque", "end": 1.35}),
    phase("torque", 0.2, C={"law": "bar", "end": 2.0, "ramp_s": 0.1},
          D={"law": "torque", "start": 0.2, "end": 1.1, "ramp_s": 0.3}),
    phase("torque", 0.2, C={"law": "hold"}, D={"law": "continue"}),
    phase("inertia", 0.2, C={"law": "open", "ramp_s": 0.05}, D={"law": "kiss"}),
    phase("closing", 0.1, C={"law": "open", "ramp_s": 0.0}, D={"law": "line"}),
]  # fmt: skip


@dataclass
class Elements:
    """Pressures by the words of the laws, written a second time."""

    torque: float
    bar: dict[str, float] = field(default_factory=dict)

    def kiss(self, name: str) -> float:
        return FILE.elements[name].kiss_bar + LEARNT.kiss_bar[name]

    def of(self, name: str, multiple: float) -> float:
        """p = p_kiss + x c |T| / k."""
        least = max(abs(self.torque), FILE.torque_min_Nm)
        return self.kiss(name) + multiple * TORQUE[name] * least / FILE.elements[name].torque_per_bar_Nm

    def multiple(self, name: str) -> float:
        """x of the present pressure; below the kiss point an element carries nothing."""
        return max(0.0, (self.bar[name] - self.kiss(name)) / (self.of(name, 1.0) - self.kiss(name)))


def expected(torque: float, begin: dict[str, float]) -> list[dict[str, float]]:
    """C and D in each period."""
    e, rows = Elements(torque, dict(begin)), []

    def ramp(a: float, b: float, s: float, duration: float) -> float:
        return a + (b - a) * min(1.0, s / duration if duration else 1.0)

    def go(periods: int, c: Any, d: Any) -> None:
        start, x = dict(e.bar), {"C": e.multiple("C"), "D": e.multiple("D")}
        for k in range(1, periods + 1):
            e.bar = {"C": c(k * DT, start["C"], x["C"]), "D": d(k * DT, start["D"], x["D"])}
            rows.append(dict(e.bar))

    # D is full after fill_s = 0.12 s and the learnt 0.02 s, and the phase goes on for 0.03 s
    go(34, lambda s, p, x: e.of("C", ramp(x, 1.35, s, 0.03)), lambda s, p, x: 1.55 if s < 0.14 + 1e-6 else e.kiss("D"))
    go(40, lambda s, p, x: ramp(p, 2.0, s, 0.1), lambda s, p, x: e.of("D", ramp(0.2, 1.1, s, 0.3)))
    go(40, lambda s, p, x: p, lambda s, p, x: e.of("D", ramp(0.2, 1.1, s + 0.2, 0.3)))
    go(40, lambda s, p, x: ramp(p, 0.0, s, 0.05), lambda s, p, x: e.kiss("D"))
    go(20, lambda s, p, x: 0.0, lambda s, p, x: ramp(p, LINE, s, 0.1))
    return rows


@pytest.mark.parametrize("torque", [210.0, -130.0, 4.0])
def test_every_element_gets_the_pressure_of_its_law(torque: float) -> None:
    """Under power, with the car driving the engine, and with less torque than the least that the laws use."""
    begin = {"A": 0.0, "B": LINE, "C": 5.0, "D": 0.0, "E": LINE}
    runner = ShiftRunner(config(SHIFT), "3-4", "3", "4", begin, LEARNT)
    now = Measured(300.0, OLD * W_OUT, W_OUT, 0.4, lever="D")
    stages = []
    for k, row in enumerate(expected(torque, {"C": 5.0, "D": 0.0})):
        found = runner.step(now, torque, LINE)
        stages.append(runner.stage)
        assert runner.phase.startswith(runner.stage)
        assert found == pytest.approx({"A": 0.0, "B": LINE, "E": LINE, **row}, abs=1e-9), k
    assert [stages.count(s) for s in ("filling", "torque", "inertia", "closing")] == [34, 80, 40, 20]
    assert runner.step(now, torque, LINE) == {"A": 0.0, "B": LINE, "C": 0.0, "D": LINE, "E": LINE}
    assert (runner.done, runner.stage, runner.phase) == (True, "closing", "closing 0.1")
    assert runner.timeouts == 0 and runner.elapsed_s == pytest.approx(174 * DT)
    assert runner.observed.torque_s == pytest.approx(0.4) and runner.observed.inertia_s == pytest.approx(0.2)
    assert runner.observed.flare == pytest.approx(0.0, abs=1e-9)


def regulated(law: dict[str, Any], source: str, target: str, torque: float) -> tuple[list[float], list[float]]:
    """(pressures of D, errors of the turbine's speed [rad/s]); the shift begins at the ratio of its source."""
    name, n = f"{source}-{target}", 60
    phases = [phase("torque", 0.05, D={"law": "bar", "end": 1.6}), phase("inertia", 0.4, "synchronised", D=law)]
    runner = ShiftRunner(config(phases, name), name, source, target, dict.fromkeys(FILE.elements, 1.6), LEARNT)
    first, last = FILE.gears[source].ratio, FILE.gears[target].ratio
    for _ in range(10):
        runner.step(Measured(300.0, first * W_OUT, W_OUT, 0.4, lever="D"), torque, LINE)
    pressures, errors = [], []
    for k in range(n):
        wanted = (first + (last - first) * (k + 1) * DT / 0.4) * W_OUT
        error = 3.0 * np.sin(0.3 * k) if k else first * W_OUT - wanted
        pressures.append(runner.step(Measured(300.0, wanted + error, W_OUT, 0.4, lever="D"), torque, LINE)["D"])
        errors.append(error)
    return pressures, errors


@pytest.mark.parametrize(("pulls", "source", "target", "torque"), [
    # the element pulls the turbine down in a shift up and up in a shift down; the drag of the engine helps in the one,
    # its drive in the other
    ("down", "3", "4", 150.0), ("down", "3", "4", -90.0), ("up", "6", "5", 150.0), ("up", "6", "5", -90.0),
])  # fmt: skip
@pytest.mark.parametrize("room", [5.0, 0.03])
def test_the_regulated_element_follows_its_formula(
    pulls: str, source: str, target: str, torque: float, room: float
) -> None:
    """T = T_e + c (J |dw_ref/dt| - max(0, what the turbine's torque does of it)) +- (kp e + ki int e dt), within limits
    that have so much room around its first part, in multiples of the torque of the element."""
    c = FILE.gears[target].torque["D"]
    k_bar, kiss = FILE.elements["D"].torque_per_bar_Nm, FILE.elements["D"].kiss_bar - 0.05
    way = 1.0 if pulls == "up" else -1.0
    rate = (FILE.gears[target].ratio - FILE.gears[source].ratio) * W_OUT / 0.4
    assert way * rate > 0.0, "the way to the new speed is the way in which it pulls"
    first = (1.6 - kiss) * k_bar + c * (J * abs(rate) - max(0.0, way * torque))
    steady = c * max(abs(torque), FILE.torque_min_Nm)
    least, most = max(0.0, first / steady - room), first / steady + room
    law = {"law": "regulate", "pulls": pulls, "min": least, "max": most, "kp_Nm_per_radps": 2.0, "ki_Nm_per_rad": 30.0}
    pressures, errors = regulated(law, source, target, torque)
    integral, seen = 0.0, set()
    for pressure, error in zip(pressures, errors, strict=True):
        grown = integral - way * 30.0 * error * DT
        wanted = first - way * 2.0 * error + grown
        place = "low" if wanted <= least * steady else "high" if wanted >= most * steady else "inside"
        seen.add(place)
        # at a limit the integral goes on only where the error leads away from it
        if place == "inside" or (way * error > 0.0 if place == "high" else way * error < 0.0):
            integral = grown
        limited = min(max(wanted, least * steady), most * steady)
        assert pressure == pytest.approx(kiss + limited / k_bar, rel=1e-9)
    assert seen == ({"inside"} if room > 1.0 else {"inside", "low", "high"})


def ended(until: str, source: str, target: str, turbine_rpm: float, duration_s: float = 0.1) -> tuple[int, int]:
    """(periods of a phase that waits for the turbine, timeouts): the turbine is so far above the speed of the old gear
    (ratio_left) or of the new one."""
    name = f"{source}-{target}"
    phases = [phase("filling", 0.01), phase("inertia", duration_s, until, D={"law": "hold"}), phase("closing", 0.1)]
    runner = ShiftRunner(config(phases, name), name, source, target, dict.fromkeys(FILE.elements, 2.0))
    ratio = FILE.gears[source if until == "ratio_left" else target].ratio
    for _ in range(2):
        runner.step(Measured(300.0, FILE.gears[source].ratio * W_OUT, W_OUT, lever="D"), 100.0, LINE)
    now, periods = Measured(300.0, ratio * W_OUT + turbine_rpm * np.pi / 30.0, W_OUT, lever="D"), 0
    while runner.stage != "closing":
        runner.step(now, 100.0, LINE)
        periods += runner.stage == "inertia"
    return periods, runner.timeouts


@pytest.mark.parametrize(("until", "source", "target", "turbine_rpm", "reached"), [
    ("ratio_left", "3", "4", -61.0, True), ("ratio_left", "3", "4", -59.0, False), ("ratio_left", "3", "4", 61.0, True),
    # synchronous within 40 rpm; between forward gears also a turbine that has gone past the new speed
    ("synchronised", "3", "4", 39.0, True), ("synchronised", "3", "4", 41.0, False),
    ("synchronised", "3", "4", -300.0, True), ("synchronised", "6", "5", -39.0, True),
    ("synchronised", "6", "5", -41.0, False), ("synchronised", "6", "5", 300.0, True),
    # out of neutral the turbine has the speed of the gear or has not
    ("synchronised", "N", "4", 39.0, True), ("synchronised", "N", "4", -39.0, True),
    ("synchronised", "N", "4", -41.0, False), ("synchronised", "N", "4", 41.0, False),
])  # fmt: skip
def test_a_phase_ends_when_the_turbine_has_left_or_reached_a_speed(
    until: str, source: str, target: str, turbine_rpm: float, reached: bool
) -> None:
    """Without it, the phase ends duration and timeout later, and this is counted."""
    assert ended(until, source, target, turbine_rpm) == ((1, 0) if reached else (round(0.6 / DT), 1))


def test_a_filling_ends_with_the_last_element_that_is_filled() -> None:
    """C and D have 0.12 s each; D has learnt 0.02 s more, so the phase lasts 0.14 s and its own 0.03 s."""
    both = phase("filling", 0.03, "filled", C={"law": "fill"}, D={"law": "fill"})
    runner = ShiftRunner(config([both]), "3-4", "3", "4", dict.fromkeys(FILE.elements, 0.0), LEARNT)
    now, rows = Measured(300.0, OLD * W_OUT, W_OUT, lever="D"), list[dict[str, float]]()
    while not runner.done:
        rows.append(runner.step(now, 100.0, LINE))
    assert len(rows) == 34 + 1
    assert [sum(row[name] == 1.55 for row in rows) for name in ("C", "D")] == [24, 28]


def test_a_flare_is_the_turbine_above_the_old_speed() -> None:
    runner = ShiftRunner(config(SHIFT), "3-4", "3", "4", dict.fromkeys(FILE.elements, 2.0), LEARNT)
    for k in range(60):
        flare = 12.0 if k == 50 else 20.0 if k == 3 else -5.0 if k > 50 else 0.0
        runner.step(Measured(300.0, OLD * W_OUT + flare, W_OUT, lever="D"), 100.0, LINE)
    assert runner.observed.flare == pytest.approx(12.0, abs=1e-9), "that of the filling does not count"


def test_a_shift_that_is_over_stays_what_it_was() -> None:
    runner = ShiftRunner(config([phase("torque", 0.1)]), "3-4", "3", "4", dict.fromkeys(FILE.elements, 2.0))
    while not runner.done:
        runner.step(Measured(300.0, OLD * W_OUT, W_OUT, lever="D"), 100.0, LINE)
    runner.continue_as("3-4", 100.0)
    assert runner.done and runner.name == "3-4"


def test_at_walking_pace_the_old_speed_is_that_of_the_old_gear() -> None:
    """Below 5 rad/s at the output the measured ratio is nothing: 4 rad/s are 8.4 rad/s of the turbine in 3rd."""
    runner = ShiftRunner(config([phase("torque", 0.1)]), "3-4", "3", "4", dict.fromkeys(FILE.elements, 2.0))
    runner.step(Measured(90.0, 30.0, 4.0, lever="D"), 100.0, LINE)
    assert runner.observed.flare == pytest.approx(30.0 - 4.0 * OLD)


def test_pressures_stay_within_those_that_the_regulator_has() -> None:
    runner = ShiftRunner(config(SHIFT), "3-4", "3", "4", dict.fromkeys(FILE.elements, 2.0), LEARNT)
    found = runner.step(Measured(300.0, OLD * W_OUT, W_OUT, lever="D"), 1e5, 30.0)
    assert max(found.values()) == FILE.line_pressure.max_bar and min(found.values()) == 0.0


@pytest.mark.parametrize("torque", [150.0, -150.0, 5.0])
def test_a_shift_that_goes_on_as_another_one_begins_its_ramps_from_where_the_pressures_are(torque: float) -> None:
    """In the tenth period of the filling: C goes from its torque then to 1.35 times it within 0.03 s."""
    data = FILE.model_dump()
    data["shifts"]["3-4.coast"] = {"phases": [phase("filling", 0.03, "filled", D={"law": "fill"}), *SHIFT[1:]]}
    data["shifts"]["3-4"] = {"phases": SHIFT}
    pressures = {**dict.fromkeys(FILE.elements, 0.0), "C": 3.0}
    runner = ShiftRunner(validate(data, TcuConfig, "x.toml"), "3-4.coast", "3", "4", pressures, LEARNT)
    now = Measured(300.0, OLD * W_OUT, W_OUT, 0.4, lever="D")
    for _ in range(10):
        assert runner.step(now, torque, LINE)["C"] == 3.0, "not named: it stays"
    runner.continue_as("3-4", torque)
    e = Elements(torque, {"C": 3.0, "D": 0.0})
    x = e.multiple("C")
    for k in range(1, 10):
        wanted = e.of("C", x + (1.35 - x) * min(1.0, k * DT / 0.03))
        assert runner.step(now, torque, LINE)["C"] == pytest.approx(wanted, rel=1e-9)
    assert runner.name == "3-4"
