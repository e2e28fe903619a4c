"""Words of lever and gear in [driver] and [outputs], as in interface files; what reaches the bus, read by cantools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cantools
import pytest

import torqueloop as tl
from torqueloop.configs import installed
from torqueloop.hil.common.levers import GEARS, LEVERS, word_value

#: what the driver asks for, and when
GEAR = [[0.0, "N"], [0.3, "1"], [0.6, "3"], [0.8, "R"]]
PROGRAM = {"1": "winter", "3": 1, "R": "economy"}


def on_the_bus(out: Path, outputs: dict[str, Any]) -> tuple[list[tuple[float, int, int]], tl.RecordedRun]:
    """(time, program, lever) of each HIL_Driver frame."""
    overrides = {f'outputs."{name}"': link for name, link in outputs.items()}
    overrides |= {"driver.gear": GEAR, "driver.lever": [[0.0, "N"], [0.5, "D"]]}
    run = tl.run("desk_4hp22", clock="virtual", out=out, duration=1.0, html=False, overrides=overrides)
    message = cantools.database.load_file(installed("can")["tcu_4hp22"]).get_message_by_name("HIL_Driver")
    seen = []
    for frame in run.frames():
        if int(frame["id"]) == message.frame_id:
            values = message.decode(frame["data"].tobytes()[: message.length], decode_choices=False)
            seen.append((1e-9 * float(frame["t_ns"]), int(values["program"]), int(values["lever"])))
    return seen, run


def test_words_of_a_gear_and_a_lever_are_sent_as_the_rig_file_says(tmp_path: Path) -> None:
    """The gear changes in steps at its times, and words that are not listed send `otherwise`."""
    seen, run = on_the_bus(tmp_path / "run", {
        "HIL_Driver.program": {"signal": "driver.gear", "words": PROGRAM, "otherwise": 2},
        "HIL_Driver.lever": {"signal": "driver.lever", "words": {"N": "D", "D": 2}, "otherwise": "invalid"},
    })  # fmt: skip
    assert seen and run.passed
    asked = {0.0: 2, 0.3: 2, 0.6: 1, 0.8: 0}  # N is no word of PROGRAM, 1 is winter
    for t, program, lever in seen:
        # a frame is made up to one cycle of 20 ms before
        if min(abs(t - edge) for edge in (0.3, 0.5, 0.6, 0.8)) > 0.03:
            assert program == asked[max(e for e in asked if e <= t)], t
            assert lever == (3 if t < 0.5 else 2), t
    gears = run["driver.gear"]
    assert set(gears.tolist()) == {0.0, 1.0, 3.0, -1.0} and gears[run.t > 0.85].max() == -1.0


def test_words_that_are_none_are_named(tmp_path: Path) -> None:
    def outputs(link: dict[str, Any]) -> dict[str, Any]:
        return {'outputs."HIL_Driver.program"': link}

    for overrides, words in (
        (outputs({"signal": "driver.lever", "words": {"X": 1}}), "words: 'X' is no word of driver.lever"),
        (outputs({"signal": "driver.gear", "words": {"D": 1}}), "words: 'D' is no word of driver.gear"),
        (outputs({"signal": "driver.gear", "words": {"1": "summer"}}), "has no value 'summer'"),
        ({"driver.gear": [[0.0, "D"]]}, "driver table gear: 'D' is no gear"),
        (outputs({"signal": "driver.gear", "words": {"N": 0, "1": 1}}) | {"driver.gear": [[0.0, "N"], [5.0, "3"]]},
         "words: '3', which .driver. has, is missing"),
    ):  # fmt: skip
        with pytest.raises(tl.ConfigError, match=words):
            tl.run("desk_4hp22", clock="virtual", out=tmp_path / "run", duration=0.1, overrides=overrides)
    assert word_value("monitor.gear", "R") == GEARS["R"] == -1.0
    assert word_value("driver.lever", "R") == LEVERS.index("R")
    with pytest.raises(tl.ConfigError, match="is no value of out.w"):
        word_value("out.w", "R")
