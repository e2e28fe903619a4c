"""Names and words of signals: abbreviations of makers, gears and levers by their numbers; the flag that ends a loop."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from torqueloop.hil.common.levers import word_value, words_of
from torqueloop.hil.common.signal_words import gear_words, plain_words
from torqueloop.hil.common.stop_flag import StopFlag

NAMES = {
    "TrnsInptShftSpd": "trns input shft speed", "N_Mot": "speed engine", "AccelPdlPosn": "accelerator pedal posn",
    "BrkPdlActl": "brake pedal actual", "EngTrqDmd": "engine torque demand", "VehSpd": "vehicle speed",
    "CltchCmd": "clutch command", "TrbSpd": "turbine speed", "OutpRpm": "output speed",
    "DrvrRqTq": "driver request torque",
    "RdctnLim": "reduction limit", "CLTEngmt": "clutch engagement", "n_turbine": "speed turbine",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_abbreviations_are_written_out(name: str) -> None:
    assert plain_words(name) == NAMES[name]


def test_gears_and_levers_have_the_numbers_of_the_signals() -> None:
    """A gear is its number, R is -1, N is 0 and P is -2; the lever counts as the value table of the database does."""
    assert [word_value("gearbox.gear", word) for word in ("P", "R", "N", "1", "8", "12")] == [-2, -1, 0, 1, 8, 12]
    assert [word_value("driver.lever", word) for word in ("P", "R", "N", "D", "4", "1", "M")] == [0, 1, 2, 3, 4, 7, 8]
    assert words_of("box.gear")["3"] == 3.0 and words_of("driver.lever")["3"] == 5.0
    gears = {"1": 1, "2": 2, "3": 3}
    assert gear_words({0: "no request", 9: "none", **{k: str(k) for k in (1, 2, 3)}}) == {"N": 0, **gears}


@pytest.fixture
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_or_the_event_of_the_caller_ends_a_loop(number: signal.Signals, handlers: None) -> None:
    outer = threading.Event()
    alone, both = StopFlag(), StopFlag(outer)
    assert not alone.is_set() and not both.is_set()
    outer.set()
    assert both.is_set() and not alone.is_set()
    outer.clear()
    os.kill(os.getpid(), number)
    assert both.is_set(), "the last flag has the signals"
