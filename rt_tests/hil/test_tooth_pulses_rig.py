"""Tooth pulses of a rig at the pin of a card: what a generator makes of the frequencies that the card is given."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from io_help import VALUE, card, run, written
from rig_help import rig_file

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.online.rig_control import RigControl
from torqueloop.hil.rig.resolve.plan import load_plan

needs_cc = pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler")
T, Z, RESOLUTION = 1e-3, 60, 0.05
SENSORS = f"""
[io.card.outputs.pulses]
signal = "sensor.of_angle.frequency"
unit = "Hz"
high = 20000.0

[sensors.of_angle]
kind = "teeth"
signal = "engine.phi"
teeth = {Z}
resolution_Hz = {RESOLUTION}

[sensors.of_speed]
kind = "teeth"
signal = "engine.w"
teeth = {Z}
"""


@needs_cc
def test_the_card_gets_each_tooth_of_the_shaft_once_and_in_whole_steps_of_its_frequency(tmp_path: Path) -> None:
    signals = tl.read_run(run(card(tmp_path, add=SENSORS, file=str(tmp_path / "pins")), 3.0).out)
    pin = np.array([values[VALUE + 1] for values in written(tmp_path)][1:-1])
    steps = pin / RESOLUTION
    assert np.abs(steps - np.round(steps)).max() < 1e-6 and pin.max() > 2000.0
    # the generator: a phase in steps of resolution * tick, which is a whole part of a tooth
    parts = round(1.0 / (RESOLUTION * T))
    phase = np.cumsum(np.round(steps).astype(int))
    phi = signals.signal("engine.phi")
    turned = (phi - phi[0]) * Z / (2.0 * math.pi)
    begin = signals.signal("sensor.of_angle.angle")[0] + signals.signal("sensor.of_angle.tooth")[0]
    assert turned[-1] > 2000.0 and len(phi) == len(phase)
    error = phase / parts - (turned + begin - math.floor(begin * parts) / parts)
    assert -1.001 / parts < error.min() <= error.max() < 1e-7
    # the speed alone says the same to a fraction of a tooth: its integral over a tick is that of a straight line
    by_speed = signals.signal("sensor.of_speed.tooth") + signals.signal("sensor.of_speed.angle")
    assert np.abs(by_speed - by_speed[0] - turned).max() < 0.05


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('signal = "driver.pedal"', "a speed in rad/s or an angle in rad"),
        ('signal = "engine.w"\nresolution_Hz = 0.3', "1000 Hz over a whole number"),
        ('signal = "engine.w"\nresolution_Hz = 0.001', "down to 0.00763 Hz"),
        ('signal = "engine.w"\nmissing = 60', "no tooth is left"),
        ('signal = "engine.w"\njitter = 0.3\nrun_out = 0.2', "half a tooth"),
    ],
)
def test_what_would_lose_the_phase_or_an_edge_is_refused_with_what_is_allowed(
    tmp_path: Path, keys: str, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_plan(rig_file(tmp_path, add=f'[sensors.n]\nkind = "teeth"\n{keys}\n'))
    assert words in str(caught.value)


#: the table of docs/car_side.md; a lever that sends movements has its own signal only
SHOWN = {"", ".count", ".edges", ".period", ".age", ".direction", ".tooth", ".angle", ".frequency", ".amplitude",
         ".pulses", ".width"}  # fmt: skip
LEVER = '[sensors.lever]\nkind = "moves"\nsignal = "driver.lever"\nmoves = { P = 1, R = 0, N = 0, D = 0 }\n'


def test_what_only_the_next_tick_of_a_sensor_reads_is_recorded_and_listed_by_name_only(tmp_path: Path) -> None:
    add = SENSORS.partition("[sensors.of_angle]")
    path = rig_file(tmp_path, add=add[1] + add[2] + LEVER)
    plan = load_plan(path)
    own = {f"sensor.{name}{end}" for name in ("of_angle", "of_speed") for end in SHOWN} | {"sensor.lever"}
    assert {name for name, _ in plan.recorded if name.startswith("sensor.")} == own
    control = RigControl(plan, build(plan, 1.0), tmp_path, "auto", real=False)
    assert {entry["name"] for entry in control.describe() if entry["name"].startswith("sensor.")} == own
    hidden = "sensor.of_speed.before"
    assert control.get([hidden])["values"] == {hidden: 0.0}
    named = load_plan(path, {"record.signals": [hidden, "engine.w"]})
    assert [name for name, _ in named.recorded] == [hidden, "engine.w"]
