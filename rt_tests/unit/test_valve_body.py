"""The valve body of the 722.6 by itself: which elements are pressed in each gear follows from three solenoids that are
switched on and off, and a shift that fails leaves the old gear."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.rig.devices.hydraulics import HydraulicsTable, add_signals, make_hydraulics, plan_hydraulics
from torqueloop.hil.rig.devices.signals import SignalTable
from torqueloop.hil.rig.schema.hydraulic_unit import load_hydraulics

FILE = Path(tl.__file__).parent / "configs" / "hydraulics" / "mb_7226_valves.toml"
#: pressed in each gear, with engine braking, as configs/gearboxes/mb_7226.toml has them
PRESSED = {
    "N": "B1 K3",
    "1": "B1 K3 B2",
    "2": "K1 K3 B2",
    "3": "K1 K2 B2",
    "4": "K1 K2 K3",
    "5": "B1 K2 K3",
    "R": "B1 K3 B3",
}
#: the published map of the pressure solenoids at 60 and 150 degC: pressure [bar], currents [A]
MAP_BAR = (0.05, 0.6, 1.0, 2.35, 5.6, 6.6, 7.7)
MAP_60, MAP_150 = (1.0, 0.835, 0.78, 0.65, 0.4, 0.288, 0.0), (0.975, 0.795, 0.745, 0.625, 0.37, 0.26, 0.0)


def current(bar: float) -> float:
    """Current that gives a pressure at 80 degC, linear between both temperatures."""
    at_80 = [a + (b - a) * 20.0 / 90.0 for a, b in zip(MAP_60, MAP_150, strict=True)]
    return float(np.interp(bar, MAP_BAR, at_80))


ELEMENTS = ("K1", "K2", "K3", "B1", "B2", "B3")


class Body:
    """The unit with its commands as plain signals."""

    def __init__(self) -> None:
        self.unit = load_hydraulics(FILE)
        self.table = SignalTable()
        self.table.add("pump", "rad/s")
        self.table.add("battery", "V", 13.5)
        for name in self.unit.solenoid:
            self.table.add(f"u.{name}", "1")
        first = add_signals(self.table, self.unit)
        given = HydraulicsTable(
            file="mb_7226_valves",
            speed="pump",
            supply="battery",
            solenoids={n: {"signal": f"u.{n}"} for n in self.unit.solenoid},
        )  # type: ignore[arg-type]
        planned = plan_hydraulics(self.table, given, self.unit, first, 1e-3, "test")
        self.kernel = make_hydraulics(planned, len(self.table))
        self.sig = np.zeros(len(self.table))
        for slot, value in self.table.initial.items():
            self.sig[slot] = value
        self["pump"] = 200.0
        # the regulator: 10 bar x 0.592 - 1.828 bar; no shift pressure
        self["u.MPC"], self["u.SPC"] = current(10.0 * 0.592 - 1.828), 1.0
        self.run(0.5)

    def __setitem__(self, name: str, value: float) -> None:
        self.sig[self.table.slot(name)] = value

    def __getitem__(self, name: str) -> float:
        return float(self.sig[self.table.slot(name)])

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 1e3)):
            self.kernel.tick(self.sig)

    def shift(self, solenoid: str, top_bar: float = 14.0) -> None:
        """A shift phase with rising shift pressure."""
        self[f"u.{solenoid}"] = 1.0
        for k in range(20):
            self["u.SPC"] = current(0.5 * top_bar * (k + 1) / 20.0)
            self.run(0.05)
        self[f"u.{solenoid}"], self["u.SPC"] = 0.0, 1.0
        self.run(0.3)

    def pressed(self) -> set[str]:
        """Elements at main pressure; all others are empty."""
        line = self["hydraulics.line"]
        on = {e for e in ELEMENTS if self[f"hydraulics.{e}.p"] > 0.95 * line}
        assert all(self[f"hydraulics.{e}.p"] < 0.1 * line for e in ELEMENTS if e not in on)
        return on


def gear(name: str) -> set[str]:
    return set(PRESSED[name].split())


def test_three_solenoids_make_five_gears_and_back() -> None:
    body = Body()
    # half of the hysteresis of 0.05 bar, doubled: the current has come down to it
    assert body["hydraulics.line"] == pytest.approx(10e5, abs=0.06e5) and body.pressed() == gear("N")
    body["u.LEVER_D"] = 1.0
    for solenoid, to in (("Y4", "1"), ("Y3", "2"), ("Y5", "3"), ("Y4", "4"), ("Y3", "5"),
                         ("Y3", "4"), ("Y4", "3"), ("Y5", "2"), ("Y3", "1")):  # fmt: skip
        body.shift(solenoid)
        assert body.pressed() == gear(to), to
    body["u.LEVER_D"], body["u.LEVER_R"] = 0.0, 1.0
    body.run(0.5)
    assert body.pressed() == gear("R")


def test_in_the_shift_phase_one_comes_as_the_other_goes() -> None:
    body = Body()
    body["u.LEVER_D"] = 1.0
    for solenoid in ("Y4", "Y3", "Y5"):
        body.shift(solenoid)
    assert body.pressed() == gear("3")
    body["u.Y4"] = 1.0
    for wanted in (1.0, 2.0, 2.5):
        body["u.SPC"] = current(0.5 * wanted)
        body.run(0.5)
        coming, going = body["hydraulics.K3.p"] / 1e5, body["hydraulics.B2.p"] / 1e5
        # 0.05 bar of hysteresis, doubled; overlap falls with the pressure that comes
        assert coming == pytest.approx(wanted, abs=0.1)
        assert going == pytest.approx(max(0.0, body["hydraulics.line"] / 1e5 + 4.0 - 5.0 * coming), abs=0.05)
        # the holding valve is held, whatever the pressures do
        assert body["hydraulics.H34.position"] == 1.0


def test_a_shift_that_fails_leaves_the_old_gear() -> None:
    body = Body()
    body["u.LEVER_D"] = 1.0
    body.shift("Y4")
    body.shift("Y3", top_bar=0.9)
    assert body.pressed() == gear("1")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('valve = "C12" }\nhold_K1', 'valve = "C99" }\nhold_K1', "C99"),
        ('of = ["hold_B1", "move_B1"]', 'of = ["to_K3", "move_B1"]', "to_K3"),
        ('held_by = "C12"', 'held_by = "H12"', "H12"),
        ('supply = ["to_K1"]', 'supply = ["to_K9"]', "to_K9"),
        ('of = ["exhaust", "line"], valve = "H12"', 'of = ["exhaust", "line", "shift"], valve = "H12"', "two sources"),
        ('pilot = "K1"', 'pilot = "K7"', "K7"),
    ],
)
def test_mistakes_are_named(old: str, new: str, named: str, tmp_path: Path) -> None:
    text = FILE.read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "body.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        load_hydraulics(path)
    assert named in str(error.value)
