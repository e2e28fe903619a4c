"""What elements of the gearbox bear, on drives whose numbers are known by hand."""

from __future__ import annotations

import numpy as np
import pytest
from test_drive_monitors import T, between, drive, moved_lever, seen

from torqueloop.hil.report.element_monitors import LININGS
from torqueloop.hil.results.monitors import ElementFacts, GearboxFacts, GearFacts


def test_friction_work_is_that_of_a_moving_window_over_the_lining() -> None:
    # A: 4 kJ at 5 s in 1 s, 3.3 kJ at 12 s in 3 s; B: 5 kJ in 10 s; linings of 1000 and 500 mm2
    heat = {"A.heat": np.interp(T, [5.0, 6.0, 12.0, 15.0], [100.0, 4100.0, 4100.0, 7400.0]),
            "B.heat": np.interp(T, [2.0, 12.0], [7.0, 5007.0])}  # fmt: skip
    elements = [ElementFacts("A", 1.0, 1000.0), ElementFacts("B", 1.0, 500.0), ElementFacts("C", 1.0, 500.0)]
    d = drive(column=heat.get)
    box = GearboxFacts(elements=elements)
    s = seen("heat", d, 5.0, gearbox=box)
    assert s is not None and not s.failed and s.worst == pytest.approx(4.0, rel=1e-2) and s.text.startswith("A: 4.0")
    # 3 J/mm2 are passed within the second of 4
    s = seen("heat", d, 3.0, gearbox=box)
    assert s is not None and s.failed and s.first_s == pytest.approx(5.76, abs=0.011) and s.worst == pytest.approx(4.0)
    s = seen("heat_minute", d, 100.0, gearbox=box)
    # of B's 10 J/mm2 those of the first 5 s belong to the driver's lever
    assert s is not None and s.worst == pytest.approx(7.3) and s.text.startswith("A:")
    # a gear engaged by the driver's lever is his: within 5 s behind it nothing is looked at
    s = seen("heat", drive(column=heat.get, lever=moved_lever(4.9)), 9.0, gearbox=box)
    assert s is not None and s.worst == pytest.approx(2.2, rel=1e-2) and s.text.startswith("A:")


def test_plates_are_as_hot_as_the_equation_of_heat_says() -> None:
    """Against conduction through half a plate (finite differences, 15 layers), cooled everywhere as by the oil:
    the surface, 11 K above the mean, within 5 K."""
    flux = np.where(between(6.0, 6.5), 1.0, 0.0) + np.where(between(10.0, 11.0), 0.1, 0.0)  # W/mm2
    heat = np.cumsum(flux) * 0.01 * 1000.0
    layers, half, c, k = 15, 1.5, 3.85e-3, 0.045
    dx, dt = half / layers, 1e-4
    w = np.zeros(layers)
    surface = []
    for q in flux:
        for _ in range(100):
            flow = np.concatenate(([q], -k * np.diff(w) / dx, [0.0]))
            w += dt * (-np.diff(flow) / (c * dx) - w / 20.0)
        surface.append(w[0])
    s = seen("temperature", drive(column={"A.heat": heat}.get), 1e9,
             gearbox=GearboxFacts(elements=[ElementFacts("A", 1.0, 1000.0)]))  # fmt: skip
    assert s is not None and s.worst is not None and not s.failed
    assert s.worst - 80.0 == pytest.approx(max(surface), abs=5.0) and s.text.startswith("A:")
    s = seen("temperature", drive(column={"A.heat": heat}.get), 200.0,
             gearbox=GearboxFacts(elements=[ElementFacts("A", 1.0, 500.0)]))  # fmt: skip
    assert s is not None and s.failed and 6.0 < (s.first_s or 0.0) < 6.5
    assert s.text.startswith("The plates of A are hotter than 200 °C at 6.")


def test_a_gear_that_needs_more_than_the_highest_pressure_gives_is_named() -> None:
    """1.5 Nm of B for each of the turbine, whose torque rises to 300 Nm; B holds 360 Nm: too much from 240 Nm on."""
    torque = np.interp(T, [0.0, 10.0], [0.0, 300.0])
    columns = {"tc.tau": torque, "A.capacity": np.full(len(T), 50.0), "B.capacity": np.full(len(T), 50.0)}
    box = GearboxFacts(elements=[ElementFacts("A", 10.0, full_Nm=1e3), ElementFacts("B", 10.0, full_Nm=360.0)],
                       gears=[GearFacts("2", 2, 2.0, ["A", "B"], {"A": 1.0, "B": 1.5})],
                       closed_as=[-1, -1, -1, 0])  # fmt: skip
    s = seen("overload", drive(column=columns.get), 1.0, gearbox=box, signals={"tau_in": "tc.tau"})
    assert s is not None and s.failed and s.first_s == pytest.approx(8.0, abs=0.03)
    assert s.worst == pytest.approx(450.0 / 360.0, rel=1e-3)
    assert s.text.startswith("B must carry 450 Nm in gear 2, from 8.0") and s.text.endswith("it holds 360 Nm.")
    columns["A.capacity"] = np.zeros(len(T))
    s = seen("overload", drive(column=columns.get), 1.0, gearbox=box, signals={"tau_in": "tc.tau"})
    assert s is None, "the gear is not closed"


def test_the_share_of_friction_power_is_a_mean_over_its_window() -> None:
    """2 W on 1 mm2 for 0.05 s is a mean of 1 W/mm2 over 0.1 s."""
    heat = np.cumsum(np.where(between(8.01, 8.05), 2.0 * 0.01, 0.0))
    box = GearboxFacts("box", [ElementFacts("A", 20.0, 1.0, 100.0, 2.0)])
    s = seen("heat_power", drive(column={"A.heat": heat}.get), 0.9, gearbox=box)
    assert s is not None and s.failed and s.worst == pytest.approx(1.0)
    s = seen("heat_power", drive(column={"A.heat": heat}.get), 1.1, gearbox=box)
    assert s is not None and not s.failed


#: J/mm2 at each of four times, area 1000 mm2: what is seen of A with the given limit
SENTENCES = [
    ("heat", 3.0, "A takes 4.0 J/mm² of friction work within 2 s at 5.75 s; its lining bears 3."),
    ("heat_minute", 5.0, "A takes 7.5 J/mm² of friction work within 60 s at 13.00 s; its lining bears 5."),
    ("heat_power", 3.5, "A takes 4.0 W/mm² of friction power for 0.1 s at 5.09 s; its lining bears 3.5."),
    ("heat", 4.5, "A: 4.00 J/mm²"), ("heat_minute", 8.0, "A: 7.50 J/mm²"), ("heat_power", 5.0, "A: 4.00 W/mm²"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "limit", "text"), SENTENCES)
def test_what_a_lining_takes_is_told_in_its_unit_with_its_window(name: str, limit: float, text: str) -> None:
    """4 J/mm2 from 5 s on within 1 s, then 3.5 J/mm2 from 12 s on within 3.5 s."""
    heat = np.interp(T, [5.0, 6.0, 12.0, 15.5], [0.0, 4000.0, 4000.0, 7500.0])
    s = seen(name, drive(column={"A.heat": heat}.get), limit,
             gearbox=GearboxFacts(elements=[ElementFacts("A", 1.0, 1000.0)]))  # fmt: skip
    assert s is not None and s.failed == text.endswith(".")
    at = [f" at {(s.first_s or 0.0) + shift:.2f} s" for shift in (-0.01, 0.0, 0.01)]  # of a sample
    assert s.text == text or any(s.text.replace(at[1], other) == text for other in at)


def test_friction_work_within_a_window_is_the_difference_of_the_heat_at_its_ends() -> None:
    rng = np.random.default_rng(6)
    heat = np.cumsum(rng.exponential(size=len(T)) * np.where(T > 6.0, 1.0, 0.0))
    work = np.diff(heat, prepend=heat[0])
    for name, window_s, unit in (("heat", 2.0, 1.0), ("heat_minute", 60.0, 1.0), ("heat_power", 0.1, 0.1)):
        before = np.interp(T - window_s, T, heat)
        found = LININGS[name].course(T, work, 3.0) * unit
        np.testing.assert_allclose(found, heat - before, atol=1e-9)


def test_an_overload_counts_as_a_mean_of_a_tenth_of_a_second_and_without_elements_of_unknown_strength() -> None:
    """100 Nm, 190 of which the lock-up clutch takes 90; 900 Nm for 10 ms are 80 Nm more in the mean over 0.1 s."""
    torque = np.full(len(T), 190.0) + np.where(between(10.0, 10.0), 800.0, 0.0)
    columns = {"tc.tau": torque, "lock.tau": np.full(len(T), 90.0), "A.capacity": np.full(len(T), 50.0),
               "B.capacity": np.full(len(T), 50.0), "C.capacity": np.full(len(T), 5.0)}  # fmt: skip
    elements = [ElementFacts("A", 10.0, full_Nm=200.0), ElementFacts("B", 10.0), ElementFacts("C", 10.0, full_Nm=1.0)]
    gears = [GearFacts("1", 1, 3.0, ["A"], {"A": 9.0}), GearFacts("2", 2, 2.0, ["A", "B"], {"A": 1.5, "B": 9.0})]
    box = GearboxFacts(elements=elements, gears=gears, closed_as=[-1, 0, -1, 1, -2, -2, -2, -2])
    signals = {"tau_in": "tc.tau", "tau_lockup": "lock.tau"}
    s = seen("overload", drive(column=columns.get), 1.3, gearbox=box, signals=signals)
    assert s is not None and s.failed and s.worst == pytest.approx(1.5 * 180.0 / 200.0)
    assert s.first_s == pytest.approx(10.0, abs=0.06)
    assert s.text.startswith("A must carry 270 Nm in gear 2, from 9.9") and s.text.endswith("it holds 200 Nm.")
    s = seen("overload", drive(column=columns.get), 1.4, gearbox=box, signals=signals)
    assert s is not None and not s.failed and s.text == "A in gear 2: 1.35"
