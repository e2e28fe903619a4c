"""torqueloop wire: the pin list of a rig, against its file and against what a run writes to the pins."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
from io_help import VALUE, run, written
from test_io_safe import CHANNELS, two_cards
from typer.testing import CliRunner

import torqueloop as tl
from torqueloop.hil.cli import app

ADD = '\n[inputs]\n"engine.pedal" = { signal = "io.two.back_f", gain = 0.1, offset = -0.05 }\n'


def listed(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["wire", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_run_writes_to_the_pins_what_the_list_says(tmp_path: Path) -> None:
    path = two_cards(tmp_path, add=ADD)
    rows = {row["signal"]: row for row in json.loads(listed(str(path), "--json"))}
    signals = tl.read_run(run(path).out)
    for key, (name, source, gain, offset, low, high, safe) in CHANNELS.items():
        row = rows[f"io.{name}.{key}"]
        assert (row["device"], row["pin"], row["direction"]) == (f"io.{name}", key, "from the rig")
        assert (row["low"], row["high"], row["safe"], row["unit"]) == (low, high, safe, "1")
        # the words say the scaling: evaluated, they give what is on the pin
        words = row["linked"][0].replace("·", "*").replace(source, "x")
        expected = np.clip(eval(words, {"x": signals.signal(source)}), low, high)
        place = VALUE + [k for k, c in CHANNELS.items() if c[0] == name].index(key)
        pin = [values[place] for values in written(tmp_path, name)][1:-1]
        np.testing.assert_allclose(pin, expected, rtol=1e-12, err_msg=f"{key}: {gain}, {offset}")
        back = rows[f"io.{name}.back_{key}"]
        assert back["direction"] == "into the rig" and back["safe"] is None
    assert rows["io.two.back_f"]["linked"] == ["inputs.engine.pedal = 0.1 · io.two.back_f - 0.05"]
    assert len(rows) == 12


def test_pins_of_a_program_name_the_solenoids_that_read_them() -> None:
    rows = {row["pin"]: row for row in json.loads(listed("desk_mb_7226_solenoids", "--json"))}
    assert rows["mpc"]["linked"] == ["hydraulics.solenoids.MPC"] and rows["mpc"]["unit"] == "A"
    assert rows["n3"]["signal"] == "sensor.n3" and rows["n3"]["direction"] == "from the rig"
    assert [row["direction"] for row in rows.values()] == ["from the rig"] * 3 + ["into the rig"] * 6


def test_the_table_and_the_picture_have_every_pin_and_its_plug(tmp_path: Path) -> None:
    path = two_cards(tmp_path, add=ADD)
    path.write_text(path.read_text().replace("e = { signal", 'e = { plug = "X32.<14>", signal'))
    text = listed(str(path), "--draw", str(tmp_path / "pins.svg"))
    assert "12 pins" in text and "X32.<14>" in text
    root = ET.parse(tmp_path / "pins.svg").getroot()
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    arrows = [node.attrib["d"] for node in root.iter("{http://www.w3.org/2000/svg}path")]
    assert len(arrows) == 12 and "X32.<14>" in texts and "0.001 · engine.w" in texts
    # outputs point from the device to the control unit: to the left
    row = texts[4::4].index("X32.<14>")
    begin, end = (float(arrows[row].split(sep)[1].split(" ")[0].split("m")[0]) for sep in ("M", "H"))
    assert end < begin


def test_a_rig_without_pins_has_an_empty_list() -> None:
    assert "0 pins" in listed("desk_4hp22")
