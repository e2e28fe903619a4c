"""Faults of wires, coils and the supply in a rig: what each does to the current, its measurement and the pressure."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rig_help import rig_file
from test_unit_pins import ECHO

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.schema.fault_tables import COIL_KINDS

needs_cc = pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler")
U, R = 12.0, 5.0
COMMAND = {"EDS_C4": "TCU_Pressure_1.p_C4", "EDS_C11": "TCU_Pressure_2.p_C11"}
#: the clutch of the lever has a coil that a current is regulated in; the one of second gear is switched from the supply
UNIT = """kind = "hydraulics"
extends = "zf_4hp22_direct"
name = "with_coils"
without = ["solenoid.EDS_C4.coil_s", "solenoid.EDS_C11.coil_s"]
[solenoid.EDS_C4.coil]
resistance_ohm = 5.0
inductance_H = 0.01
drive = "current"
[solenoid.EDS_C11]
bar_over_command = [[0.0, 0.0], [2.4, 10.0]]
[solenoid.EDS_C11.coil]
resistance_ohm = 5.0
inductance_H = 0.01
side = "high"
"""
RIG = """kind = "rig"
extends = "desk_4hp22_solenoids"
[rig]
name = "with_coils"
[supply]
battery_V = [[0.0, 12.0]]
[hydraulics]
file = "with_coils.toml"
supply = "supply.terminal_30"
"""


def driven(folder: Path, *faults: dict[str, Any], duration: float = 1.0, **more: Any) -> tl.RecordedRun:
    """One second of the desk rig, in which the control unit closes C4 and C11."""
    (folder / "with_coils.toml").write_text(UNIT)
    (folder / "rig.toml").write_text(RIG)
    return tl.run(folder / "rig.toml", clock="virtual", duration=duration, out=folder / "run", html=False,
                  overrides={"faults": list(faults), "record.every": 1, **more})  # fmt: skip


def seen(run: tl.RecordedRun, solenoid: str, t: float) -> tuple[float, float]:
    """Current of the coil and what the output stage measures, at a time."""
    k = int(np.searchsorted(run.t, t))
    return float(run[f"hydraulics.{solenoid}.i"][k]), float(run[f"hydraulics.{solenoid}.sense"][k])


#: solenoid, kind and value of a fault; current of the coil and what the output stage measures
CURRENTS = [
    ("EDS_C4", "open", None, 0.0, 0.0),
    ("EDS_C4", "resistance", 200.0, U / 200.0, U / 200.0),
    # low side: the coil hangs on the supply, and the output stage sees nothing of its current
    ("EDS_C4", "short_to_ground", None, U / R, 0.0),
    ("EDS_C4", "short_to_battery", None, 0.0, 0.0),
    # high side
    ("EDS_C11", "open", None, 0.0, 0.0),
    ("EDS_C11", "short_to_battery", None, U / R, 0.0),
    ("EDS_C11", "short_to_ground", None, 0.0, 0.0),
]
#: words of the page for a current
WORDS = {"no current": 0.0, "U/R, whatever the command is": U / R, "current with this resistance at 20 °C": U / 200.0}


def test_the_page_has_these_currents() -> None:
    """The table of docs/hydraulics.md: a column for each side, and what the output stage measures."""
    page = (Path(__file__).resolve().parents[2] / "docs/hydraulics.md").read_text(encoding="utf-8")
    table = page[page.index('| `kind` | `side = "low"`') :].split("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    assert [row[0].split("`")[1] for row in rows] == list(COIL_KINDS)
    for kind, low, high, sense in ((row[0].split("`")[1], *row[1:]) for row in rows[:-1]):
        for solenoid, words in (("EDS_C4", low), ("EDS_C11", low if high == "the same" else high)):
            if (solenoid, kind) == ("EDS_C11", "resistance"):
                continue  # its stage is switched: the current also depends on the duty
            [(current, measured)] = [row[3:] for row in CURRENTS if row[:2] == (solenoid, kind)]
            assert WORDS[words] == current, (solenoid, kind)
            assert measured == {"0": 0.0, "the current": current}[sense], (solenoid, kind)


@pytest.mark.parametrize(("solenoid", "kind", "value", "current", "measured"), CURRENTS)
def test_an_electrical_fault_has_the_current_of_ohms_law(
    tmp_path: Path, solenoid: str, kind: str, value: float | None, current: float, measured: float
) -> None:
    fault = {"solenoid": solenoid, "kind": kind, "from_s": 0.6, "until_s": 0.8} | ({"value": value} if value else {})
    run = driven(tmp_path, fault)
    i, sense = seen(run, solenoid, 0.79)
    # from regulated to free-wheeling and back: many time constants of 2 ms
    assert i == pytest.approx(current, rel=1e-9, abs=1e-7) and sense == pytest.approx(measured, rel=1e-9, abs=1e-7)
    for t in (0.59, 0.99):
        i, sense = seen(run, solenoid, t)
        wanted = run[COMMAND[solenoid]][int(np.searchsorted(run.t, t))] * 1e-6
        if solenoid == "EDS_C11":
            # a duty, and the diode in between
            wanted = max(0.0, wanted * U - (1.0 - wanted) * 0.7) / R
        assert i == sense == pytest.approx(wanted, abs=0.01), "before and after it, the command"
        assert wanted > 0.05
    assert replay(run.path).difference is None


def test_a_stuck_valve_has_current_and_an_old_pressure(tmp_path: Path) -> None:
    run = driven(tmp_path, {"solenoid": "EDS_C4", "kind": "stuck_valve", "from_s": 0.0})
    assert run["hydraulics.EDS_C4.i"].max() > 0.14 and run["hydraulics.EDS_C4.p"].max() == 0.0


def test_a_crank_dip_and_a_fault_of_the_battery_reach_the_coils(tmp_path: Path) -> None:
    dip = [[0.0, 12.0], [0.4, 12.0], [0.405, 8.0], [0.42, 8.0], [0.47, 9.5], [0.7, 9.5], [0.74, 12.0]]
    run = driven(tmp_path, {"solenoid": "EDS_C11", "kind": "short_to_battery"},
                 {"signal": "supply.terminal_30", "kind": "value", "value": 5.0, "from_s": 0.8, "until_s": 0.9},
                 **{"supply.battery_V": dip})  # fmt: skip
    for t, u in ((0.39, 12.0), (0.69, 9.5), (0.89, 5.0), (0.99, 12.0)):
        assert seen(run, "EDS_C11", t)[0] == pytest.approx(u / R, rel=1e-6), t
    # in the ramp the current is late by the time constant of the coil; the voltage is held over a tick
    keep = math.exp(-1e-3 * R / 0.01)
    ramp = (run.t > 0.44) & (run.t < 0.465)
    late = run["supply.terminal_30"][ramp] - R * run["hydraulics.EDS_C11.i"][ramp]
    assert late == pytest.approx(1.5 / 0.05 * 1e-3 * keep / (1.0 - keep), rel=1e-4)


def test_terminal_30_is_the_battery_and_terminal_15_follows_the_ignition(tmp_path: Path) -> None:
    run = driven(tmp_path, **{"supply.ignition": [[0.0, 0.0], [0.5, 1.0]]})
    before, behind = run.t < 0.499, run.t > 0.501
    assert set(run["supply.terminal_30"]) == {12.0}
    assert set(run["supply.terminal_15"][before]) == {0.0} and set(run["supply.terminal_15"][behind]) == {12.0}


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ({"solenoid": "EDS_C5", "kind": "open"}, r"EDS_C5.*has no coil.*solenoid\.EDS_C5\.coil"),
        ({"solenoid": "EDS_C4", "kind": "resistance"}, "needs a value"),
        ({"solenoid": "EDS_C4", "kind": "resistance", "value": 0.0}, "out of range"),
        ({"solenoid": "EDS_C4", "kind": "open", "value": 1.0}, "takes no value"),
        ({"message": "HIL_Speeds", "kind": "short_to_ground"}, "no fault of kind"),
    ],
)
def test_mistakes_in_electrical_faults_are_named(tmp_path: Path, fault: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        driven(tmp_path, fault)


def test_a_rig_without_a_supply_for_its_coils_is_refused(tmp_path: Path) -> None:
    (tmp_path / "with_coils.toml").write_text(UNIT)
    (tmp_path / "rig.toml").write_text(RIG.replace('supply = "supply.terminal_30"\n', ""))
    with pytest.raises(ConfigError, match="supply.*EDS_C4"):
        tl.run(tmp_path / "rig.toml", clock="virtual", duration=0.1, out=tmp_path / "run", html=False)


@needs_cc
def test_the_broken_wire_of_a_shift_solenoid_keeps_the_valve_body_in_first_gear(tmp_path: Path) -> None:
    fault = {"solenoid": "Y3", "kind": "open"}
    for name, faults in (("whole", []), ("broken", [fault])):
        run = tl.run("desk_mb_7226_solenoids", clock="virtual", duration=7.5, out=tmp_path / name, html=False,
                     overrides={"faults": faults})  # fmt: skip
        assert "1 -> 2" in (tmp_path / name / "egs.log").read_text()
        closed = {e for e in ("K1", "B1") if run[f"{e}.p"][-1] > 3e5}
        assert closed == ({"B1"} if faults else {"K1"}), name
        assert (run["hydraulics.Y3.sense"].max() < 1e-6) == bool(faults)


OIL = "driver.oil = [[0.0, 293.15], [0.3, 293.15], [0.3, 353.15]]"
#: an oil temperature sensor at a pull-up, a speed sensor, a contact of the lever; a unit that gives back what it reads
SENSORS = """
[sensors.oil]
kind = "curve"
signal = "driver.oil"
points = [[253.15, 15400.0], [293.15, 2500.0], [353.15, 323.0], [393.15, 114.0]]
unit = "Ohm"
pull_up_ohm = 1000.0
[sensors.n]
kind = "teeth"
signal = "engine.w"
[sensors.contact]
kind = "curve"
signal = "driver.lever"
words = { P = 1, R = 0, N = 1, D = 0 }
[ecu.echo]
kind = "library"
bus = []
start = "echo.c"
options = { start_timeout_s = 60.0 }
sensors = { oil = "sensor.oil", n = "sensor.n", zero = "sensor.contact" }
actuators = { oil = "V", n = "rad/s" }
"""


def read_by_unit(folder: Path, *faults: dict[str, Any]) -> tl.RecordedRun:
    """Half a second of the desk rig; egs.oil and echo.n are what the unit has read: of n it gives 2 n - contact."""
    (folder / "echo.c").write_text(ECHO)
    rig = rig_file(folder, "record.every = 1", "driver.lever = 'R'", OIL, add=SENSORS)
    return tl.run(
        rig, clock="virtual", duration=0.5, out=folder / "run", html=False, overrides={"faults": list(faults)}
    )


@needs_cc
@pytest.mark.parametrize(
    ("sensor", "kind", "volts"),
    [("oil", "open", 5.0), ("oil", "short_to_ground", 0.0), ("oil", "short_to_battery", 5.0), ("n", "open", None),
     ("n", "short_to_ground", None), ("n", "short_to_battery", None)],
)  # fmt: skip
def test_the_unit_reads_a_voltage_divider_and_its_faulty_line(
    tmp_path: Path, sensor: str, kind: str, volts: float | None
) -> None:
    run = read_by_unit(tmp_path, {"signal": f"sensor.{sensor}", "kind": kind, "from_s": 0.4, "until_s": 0.45})
    at = {t: int(np.searchsorted(run.t, t)) for t in (0.2, 0.39, 0.44, 0.49)}
    for t, ohm in ((0.2, 2500.0), (0.39, 323.0), (0.49, 323.0)):
        assert run["echo.oil"][at[t]] == pytest.approx(5.0 * ohm / (ohm + 1000.0), rel=1e-12), t
        assert run["echo.n"][at[t]] == pytest.approx(2.0 * run["engine.w"][at[t]], rel=0.02), t
    if volts is None:
        assert run["echo.n"][at[0.44]] == 0.0 and run["sensor.n.edges"][at[0.44] - 5 : at[0.44]].max() == 0.0
        assert run["sensor.n.edges"][at[0.39] - 20 : at[0.39]].max() > 0.0
    else:
        assert run["echo.oil"][at[0.44]] == volts and run["echo.n"][at[0.44]] > 10.0
    assert replay(run.path).difference is None


@needs_cc
def test_other_faults_of_a_sensor_reach_a_unit_that_reads_it_alone(tmp_path: Path) -> None:
    run = read_by_unit(tmp_path, {"signal": "sensor.oil", "kind": "offset", "value": 0.5, "from_s": 0.4})
    k = int(np.searchsorted(run.t, 0.45))
    assert run["echo.oil"][k] == pytest.approx(0.5 + 5.0 * 323.0 / 1323.0, rel=1e-12)


@pytest.mark.parametrize(
    ("signal", "told"),
    [("sensor.contact", "pull_up_ohm"), ("driver.pedal", "no sensor of kind curve or teeth"), ("sensor.oli", "oli")],
)
def test_a_line_that_has_no_known_reading_is_refused(tmp_path: Path, signal: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_by_unit(tmp_path, {"signal": signal, "kind": "open"})


def test_a_pull_up_of_something_else_than_a_resistance_is_refused(tmp_path: Path) -> None:
    rig = rig_file(tmp_path, OIL, add=SENSORS.replace('unit = "Ohm"', 'unit = "K"'))
    with pytest.raises(ConfigError, match="pull_up_ohm"):
        tl.run(rig, clock="virtual", duration=0.1, out=tmp_path / "run", html=False)
