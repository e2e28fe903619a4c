"""I/O devices in the tick: values on the pins, every way out with safe values, replay; on both clocks."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from io_help import CARD, SAFE, TIME, VALUE, card, run, written
from rig_help import rig_file

import torqueloop
import torqueloop as tl
from torqueloop.configs import installed
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.cli.file_check import check_file
from torqueloop.hil.ecu.c_header import INCLUDE
from torqueloop.hil.io.library import STRUCTS, Channel, IoSetup, OpenDevice
from torqueloop.hil.link.endpoints import PeerError
from torqueloop.hil.rig.devices.device import RigPlan
from torqueloop.hil.rig.devices.io import IoCards
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.live_run import StartError
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import RunSpec, run_rig

CONFIGS = Path(torqueloop.__file__).parent / "configs"


def test_pins_have_the_scaled_signal_of_each_tick_and_are_read_in_the_next_one(tmp_path: Path) -> None:
    result = run(card(tmp_path, file=str(tmp_path / "pins")))
    signals = tl.read_run(result.out)
    speed, volts = signals.signal("engine.w"), signals.signal("io.card.volts")
    rows = written(tmp_path)
    assert np.ptp(speed) > 1.0 and len(rows) == 500 + 2
    # opened and made ready with the safe value, which the run writes again before and after
    assert rows[0][VALUE] == rows[-1][VALUE] == SAFE
    np.testing.assert_array_equal(signals.signal("io.card.speed"), [row[VALUE] for row in rows[1:501]])
    np.testing.assert_allclose(volts[1:], 0.01 * speed[:-1], rtol=1e-15)
    np.testing.assert_allclose(signals.signal("io.card.time"), np.arange(500) * 1e-3, atol=1e-12)
    io = result.stats.io["card"]
    assert (io.reads, io.writes, io.failed, io.stale_ticks, io.limited, io.slow) == (500, 500, 0, 0, 0, 0)
    assert io.read_us is not None and io.read_us.count == 500
    assert replay(result.out).hash_equal


def test_what_is_read_moves_the_model_and_can_be_disturbed_like_what_comes_from_a_bus(tmp_path: Path) -> None:
    add = '\n[inputs]\n"engine.pedal" = { signal = "io.card.volts", gain = 0.1 }\n'
    add += '\n[[faults]]\nsignal = "io.card.speed"\nkind = "value"\nvalue = 5.0\nfrom_s = 0.2\n'
    result = run(card(tmp_path, add=add))
    signals = tl.read_run(result.out)
    volts, pedal, sent = (signals.signal(n) for n in ("io.card.volts", "input.engine.pedal", "io.card.speed"))
    np.testing.assert_allclose(pedal, 0.1 * volts, rtol=1e-15)
    assert np.all(sent[200:] == 5.0) and np.all(volts[201:] == 5.0) and not np.any(volts[:201] == 5.0)
    assert replay(result.out).hash_equal
    assert "engine.pedal" in load_plan(tmp_path / "rig.toml").config.inputs


#: mode from 0.2 s on -> words, tick that latches
WAYS = {
    "fail_read": ("reading has failed", 200), "fail_write": ("writing has failed", 200),
    "nan": ("a value is not finite", 200), "stale": ("its values are old", 202),
}  # fmt: skip


@pytest.mark.parametrize("mode", WAYS)
def test_a_device_that_fails_latches_by_name_and_its_pins_are_safe(tmp_path: Path, mode: str) -> None:
    edits = ("safe_state.stop_after_s = 0.05",)
    result = run(card(tmp_path, *edits, file=str(tmp_path / "pins"), mode=mode, at_s="0.2"))
    safe = result.stats.safe_state
    assert safe.latched and safe.kind == "io"
    assert f"card: {WAYS[mode][0]}" in safe.cause and safe.step == WAYS[mode][1]
    after = [row[VALUE] for row in written(tmp_path) if row[TIME] > safe.step * 1e-3 + 1e-9]
    before = [row[VALUE] for row in written(tmp_path) if 0.0 < row[TIME] <= 0.2 - 1e-9]
    assert len(after) >= 50 and set(after) == {SAFE} and SAFE not in before
    # what is recorded is what the pins have had
    shown = tl.read_run(result.out).signal("io.card.speed")
    assert set(shown[safe.step + 2 :]) == {SAFE}
    assert replay(result.out).hash_equal


def test_a_value_outside_the_range_of_its_channel_is_held_to_it_and_counted(tmp_path: Path) -> None:
    result = run(card(tmp_path, mode="outside", at_s="0.4"))
    volts = tl.read_run(result.out).signal("io.card.volts")
    assert np.all(volts[400:] == 10.0) and result.stats.io["card"].limited == 100
    assert not result.stats.safe_state.latched


def test_a_written_value_outside_the_range_is_held_to_it_and_counted(tmp_path: Path) -> None:
    path = card(tmp_path, file=str(tmp_path / "pins"))
    path.write_text(path.read_text().replace("gain = 0.01", "gain = 1.0"))
    result = run(path)
    assert max(row[VALUE] for row in written(tmp_path)) == 10.0
    assert result.stats.outputs_limited["io.card.speed"] > 400


@pytest.mark.parametrize("driver", sorted(installed("examples/io")))
def test_a_driver_of_the_package_is_used_by_name_and_refuses_the_virtual_clock(tmp_path: Path, driver: str) -> None:
    path = card(tmp_path, library=Path(driver))
    assert check_file(path).error is None
    with pytest.raises(StartError, match="tl_io_open refuses: needs the real clock"):
        run(path)
    # an option that it does not have, as a session on the real clock would see it
    planned = load_plan(path).device(IoCards).setups(tmp_path, simulated=False)["card"]
    with pytest.raises(PeerError, match="unknown key speed; allowed: "):
        OpenDevice(replace(planned, options={"speed": "1"}))


MISTAKES = {
    "a driver that is not installed": ('library = "', 'library = "gpoi" #', "no driver of an I/O device of this name"),
    "a file that is not there": ('library = "', 'library = "/no/such', "no such file"),
    "a range that does not rise": ('"s", high = 1000.0', '"s", high = 0.0', "high = 0.0 is not above low"),
    "a safe value outside": ("safe = 0.125", "safe = 11.0", "safe = 11.0 is outside the range"),
    "a signal that is none": ("engine.w", "engine.v", "unknown signal|did you mean"),
    "a unit without a gain": ("gain = 0.01, ", "", "engine.w is in rad/s, the channel in 'V'"),
    "a name twice": ("speed = {", "volts = {", "'volts' is no name of a channel"),
    "a pin of two outputs": (
        'pin = "ao0", signal',
        'signal = "engine.w", unit = "rad/s", high = 9.0, pin = "x" }\nmore = { pin = "x", signal',
        "'x' is the pin of two outputs",
    ),
    "an unknown key": ("stale_ticks", "stail_ticks", "unknown key 'stail_ticks'"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found_before_anything_runs(tmp_path: Path, mistake: str) -> None:
    old, new, text = MISTAKES[mistake]
    path = card(tmp_path)
    path.write_text(path.read_text().replace(old, new, 1))
    checked = check_file(path)
    assert checked.error is not None
    with pytest.raises(ConfigError, match=text):
        raise checked.error


def test_a_source_is_compiled_into_a_run_folder_that_is_named_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = card(tmp_path, file=str(tmp_path / "pins"))
    monkeypatch.chdir(tmp_path)
    assert run_rig(path, RunSpec("virtual", 0.05, Path("here"))).stats.io["card"].reads == 50
    assert (tmp_path / "here" / "io_card.so").is_file()


def test_a_source_that_does_not_compile_is_named_with_the_words_of_the_compiler(tmp_path: Path) -> None:
    broken = tmp_path / "broken.c"
    broken.write_text(CARD.read_text().replace("return c;", "return d;", 1))
    with pytest.raises(ConfigError, match=r"library = .* does not compile: .*‘?'?d'?’? undeclared.*\[io.card\]"):
        run(card(tmp_path, library=broken))


@pytest.mark.parametrize(("old", "new", "text"), [
    ("return TORQUELOOP_IO_ABI;", "return 99;", "was built for ABI version 99; this program has 1"),
    ("int32_t tl_io_read", "int32_t tl_io_raed", "does not export tl_io_read"),
    ('"mode") == 0', '"mood") == 0', "tl_io_open refuses: no key mode"),
    ('"missing") == 0', '"ao0") == 0', "channel speed: the card has no such pin"),
])  # fmt: skip
def test_a_library_that_does_not_fit_is_refused(tmp_path: Path, old: str, new: str, text: str) -> None:
    other = tmp_path / "other.c"
    other.write_text(CARD.read_text().replace(old, new, 1))
    with pytest.raises(StartError, match=rf"I/O device card: .*{text}.*\[io.card\]"):
        run(card(tmp_path, library=other, mode="loop"))


def test_a_recording_replays_without_the_library(tmp_path: Path) -> None:
    library = tmp_path / "mine.c"
    library.write_text(CARD.read_text())
    result = run(card(tmp_path, library=library))
    library.unlink()
    for file in result.out.glob("*.so"):
        file.unlink()
    assert replay(result.out).hash_equal


def test_the_driver_on_the_page_is_complete(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "io.md").read_text(encoding="utf-8")
    library = tmp_path / "page.c"
    library.write_text(page.split("```c\n", 1)[1].split("```", 1)[0])
    signals = tl.read_run(run(card(tmp_path, library=library)).out)
    np.testing.assert_allclose(signals.signal("io.card.volts")[1:], 0.01 * signals.signal("engine.w")[:-1], rtol=1e-15)


def test_the_structures_are_those_of_the_header(tmp_path: Path) -> None:
    lines = ["#include <stddef.h>", "#include <stdio.h>", '#include "torqueloop_io.h"', "int main(void) {"]
    for name, image in STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field in image._fields_:
            lines.append(f'printf("{name}.{field[0]} %zu\\n", offsetof({name}, {field[0]}));')
    source = tmp_path / "layout.c"
    source.write_text("\n".join([*lines, "return 0; }"]))
    subprocess.run(["cc", f"-I{INCLUDE}", str(source), "-o", str(tmp_path / "layout")], check=True)
    told = subprocess.run([str(tmp_path / "layout")], check=True, capture_output=True, text=True).stdout.split("\n")
    found = dict(line.rsplit(" ", 1) for line in told if line)
    for name, image in STRUCTS.items():
        assert int(found[name]) == ctypes.sizeof(image)
        for field in image._fields_:
            assert int(found[f"{name}.{field[0]}"]) == getattr(image, field[0]).offset


#: two cards of which every number is another one
TWO = """
[io.one]
library = "one.so"
options = { rate = 0.1, on = true, off = false, word = "x" }
inputs.volts = { pin = "ai0", unit = "V", low = -2.0, high = 5.0 }
inputs.n = { low = 3.0, high = 9.0 }
inputs.T = { unit = "K", low = -9.0, high = -4.0 }

[io.one.outputs.speed]
pin = "ao0"
signal = "engine.w"
gain = 0.01
offset = 0.5
unit = "V"
low = -10.0
high = 15.0
safe = 0.125
slew = 50.0

[io.two]
library = "one.so"
stale_ticks = 4
inputs = { a = {} }
outputs = { w = { signal = "engine.w", low = -1.0, high = 600.0, safe = 2.0 } }
"""


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> RigPlan:
    folder = tmp_path_factory.mktemp("two")
    (folder / "one.so").touch()
    return load_plan(rig_file(folder, add=TWO))


def test_a_channel_begins_in_its_range_and_is_written_scaled_and_within_its_limits(planned: RigPlan) -> None:
    slot, initial = planned.table.slot, planned.table.initial
    # 0 is in the range of volts; n begins at its lower end, T at its upper one
    starts = {"one.volts": 0.0, "one.n": 3.0, "one.T": -4.0, "one.speed": 0.125, "two.a": 0.0, "two.w": 2.0}
    assert {name: initial.get(slot(f"io.{name}"), 0.0) for name in starts} == starts
    copies = {dst: (src, gain, offset) for src, dst, gain, offset in planned.out_copies}
    assert copies[slot("io.one.speed")] == (slot("engine.w"), 0.01, 0.5)
    assert copies[slot("io.two.w")] == (slot("engine.w"), 1.0, 0.0)
    guards = {g.name: (g.lo, g.hi, g.slew, g.tol) for g in planned.guards if g.name.startswith("io.")}
    # a billionth of the range is rounding
    assert guards["io.one.speed"] == pytest.approx((-10.0, 15.0, 50.0, 25e-9), rel=1e-12)
    assert guards["io.two.w"] == pytest.approx((-1.0, 600.0, 0.0, 601e-9), rel=1e-12)


def test_a_driver_is_given_its_channels_with_unit_and_range(planned: RigPlan, tmp_path: Path) -> None:
    setups = planned.device(IoCards).setups(tmp_path, simulated=True)
    one, two = setups["one"], setups["two"]
    assert one.inputs == (Channel("volts", "ai0", "V", -2.0, 5.0), Channel("n", "n", "1", 3.0, 9.0),
                          Channel("T", "T", "K", -9.0, -4.0))  # fmt: skip
    assert one.outputs == (Channel("speed", "ao0", "V", -10.0, 15.0, 0.125),)
    assert two.outputs == (Channel("w", "w", "rad/s", -1.0, 600.0, 2.0),), "the unit of its signal"
    assert one.options == {"rate": "0.1", "on": "1", "off": "0", "word": "x"}
    assert (one.tick_s, one.simulated, two.folder) == (1e-3, True, str(planned.path.parent))
    assert IoSetup.of(one.plain()) == one


def test_a_cause_names_the_device_and_what_is_wrong_with_it(planned: RigPlan) -> None:
    cards = planned.device(IoCards)
    # the reason stands in the lower three bits, the number of the device above them
    assert cards.cause("io", 0 * 8 + 1) == "one: reading has failed"
    assert cards.cause("io", 1 * 8 + 3) == "two: its values are old"
    assert cards.cause("limit", 1) == ""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("low = -2.0", "low = 6.0", ("high = 5.0 is not above low", "allowed: > 6.0")),
        ("safe = 0.125", "safe = 16.0", ("safe = 16.0 is outside the range", "allowed: -10.0 .. 15.0")),
        ("safe = 0.125", "safe = -11.0", ("safe = -11.0 is outside the range", "allowed: -10.0 .. 15.0")),
    ],
)
def test_a_range_that_is_wrong_is_refused_with_the_range_that_is_right(
    tmp_path: Path, old: str, new: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_plan(rig_file(tmp_path, add=TWO.replace(old, new)))
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(("unit", "compared"), [("V", False), ("1", True)])
def test_a_pedal_in_volts_is_not_compared_with_the_share_that_is_made_of_it(
    tmp_path: Path, unit: str, compared: bool
) -> None:
    """A card that measures 0.5 .. 4.5 V is not wrong because the engine receives 0 .. 1."""
    link = 'inputs."engine.pedal" = { signal = "io.card.pedal", gain = 0.25, offset = -0.125 }'
    pedal = f'[io.card.inputs.pedal]\npin = "ai1"\nunit = "{unit}"\nhigh = 5.0\n'
    plan = load_plan(card(tmp_path, link, add=pedal))
    assert (("input.engine.pedal", "io.card.pedal") in plan.monitors.pedals) is compared
