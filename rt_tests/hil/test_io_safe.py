"""I/O devices: each channel in its place; safe values on every way out, also of a process that dies or stands still."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
import time
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from control_help import Running
from io_help import (
    BEATS,
    CARD,
    PROCESS,
    SAFE,
    STATE,
    TIME,
    VALUE,
    card,
    on_own_bus,
    patient_edits,
    real,
    run,
    started,
    until_written,
    written,
)
from rig_help import rig_file
from waiting import PATIENCE_S, wait_for

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.control.client import connect
from torqueloop.hil.io.guardian import make_safe
from torqueloop.hil.io.library import IDLE, RUNS, OpenDevice
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.assemble.parts import RigParts, build
from torqueloop.hil.rig.devices.io import IoCards
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import RunSpec, run_rig

MS = 1_000_000
#: state of the watch word: the rig writes safe values
IN_SAFE_STATE = 2
#: two cards, three outputs each: name -> (card, signal, gain, offset, low, high, safe); a safe value may be an end
CHANNELS = {
    "a": ("one", "engine.w", -0.02, 3.0, -5.0, 10.0, -5.0),
    "b": ("one", "engine.tau", 0.5, -0.25, -400.0, 1e4, -0.5),
    "c": ("one", "turbine.w", 0.01, 0.0, 0.0, 20.0, 2.5),
    "d": ("two", "turbine.w", 0.04, 1.0, 0.0, 20.0, 3.5),
    "e": ("two", "engine.w", 0.001, 0.0, 0.0, 1.0, 0.75),
    "f": ("two", "rig.time", 1.0, 0.5, 0.0, 100.0, 4.5),
}  # fmt: skip


def two_cards(
    folder: Path, *edits: str, mode: str = "loop", on: str = "two", add: str = "", limit_us: float = 0.0,
    nap_s: str = "0",
) -> Path:  # fmt: skip
    """The desk rig with both cards, which read back what they are given; `on` follows `mode` from 0.2 s on."""
    tables = []
    for name in ("one", "two"):
        outputs = {key: c for key, c in CHANNELS.items() if c[0] == name}
        tables.append(f'[io.{name}]\nlibrary = "{CARD}"\nstale_ticks = 3\nlimit_us = {limit_us}')
        tables.append(f"[io.{name}.options]")
        tables.append(f'file = "{folder / name}"\nmode = "{mode if name == on else "loop"}"\nat_s = "0.2"')
        tables.append(f'nap_s = "{nap_s}"')
        tables.append(f"[io.{name}.inputs]")
        tables += [f"back_{key} = {{ unit = '1', low = {c[4]}, high = {c[5]} }}" for key, c in outputs.items()]
        tables.append(f"[io.{name}.outputs]")
        for key, (_, source, gain, offset, low, high, safe) in outputs.items():
            tables.append(f'{key} = {{ signal = "{source}", gain = {gain}, offset = {offset}, unit = "1", low = {low}, '
                          f"high = {high}, safe = {safe} }}")  # fmt: skip
    return rig_file(folder, "record.every = 1", "driver.pedal = 0.4", *edits, add="\n".join([*tables, add]))


def test_each_channel_of_each_card_has_its_own_place_scale_and_sign(tmp_path: Path) -> None:
    result = run(two_cards(tmp_path))
    signals = tl.read_run(result.out)
    for key, (name, source, gain, offset, low, high, safe) in CHANNELS.items():
        place = VALUE + [k for k, c in CHANNELS.items() if c[0] == name].index(key)
        pin = np.array([row[place] for row in written(tmp_path, name)])
        expected = np.clip(gain * signals.signal(source) + offset, low, high)
        assert np.ptp(expected) > 1e-3
        np.testing.assert_allclose(pin[1:-1], expected, rtol=1e-14, err_msg=key)
        np.testing.assert_array_equal(signals.signal(f"io.{name}.back_{key}")[1:], pin[1:-2], err_msg=key)
        assert pin[0] == pin[-1] == safe
    assert np.all(signals.signal("io.one.a") <= 3.0), "the speed of the engine has a negative gain"
    assert replay(result.out).hash_equal


@pytest.mark.parametrize("on", ["one", "two"])
def test_the_cause_names_the_card_that_has_failed_and_all_cards_are_safe(tmp_path: Path, on: str) -> None:
    result = run(two_cards(tmp_path, "safe_state.stop_after_s = 0.05", mode="fail_read", on=on))
    safe = result.stats.safe_state
    assert f"{on}: reading has failed" in safe.cause and safe.step == 200
    for name in ("one", "two"):
        values = [c[6] for c in CHANNELS.values() if c[0] == name]
        after = [row[VALUE:] for row in written(tmp_path, name) if row[TIME] > 0.201 + 1e-9]
        assert len(after) >= 50 and all(row == values for row in after)
    assert replay(result.out).hash_equal


def test_a_replay_has_values_that_only_the_last_channel_of_the_last_card_changes(tmp_path: Path) -> None:
    add = '\n[inputs]\n"engine.pedal" = "io.two.back_f"\n'
    result = run(two_cards(tmp_path, mode="last", add=add))
    pedal = tl.read_run(result.out).signal("input.engine.pedal")
    np.testing.assert_allclose(pedal[201:], np.arange(201, 500) * 1e-3, atol=1e-9)
    assert replay(result.out).hash_equal


def test_a_replay_has_the_values_of_the_second_card_when_the_first_one_has_nothing_new(tmp_path: Path) -> None:
    add = '\n[inputs]\n"engine.pedal" = "io.two.back_f"\n'
    result = run(two_cards(tmp_path, mode="still", on="one", add=add))
    assert set(tl.read_run(result.out).signal("io.one.back_b")[201:]) == {0.25}
    assert replay(result.out).hash_equal


def test_old_values_latch_only_when_there_are_stale_ticks_of_them_in_a_row(tmp_path: Path) -> None:
    stats = run(two_cards(tmp_path, mode="often_stale")).stats
    assert stats.io["two"].stale_ticks == 200 and not stats.safe_state.latched


def test_an_output_that_is_not_finite_latches_and_its_pin_has_the_safe_value(tmp_path: Path) -> None:
    add = '\n[[faults]]\nsignal = "io.one.a"\nkind = "nan"\nfrom_s = 0.2\n'
    result = run(two_cards(tmp_path, "safe_state.stop_after_s = 0.05", add=add))
    assert "one: a value is not finite" in result.stats.safe_state.cause and result.stats.safe_state.step == 200
    after = [row[VALUE] for row in written(tmp_path, "one") if row[TIME] > 0.2005]
    assert len(after) > 50 and set(after) == {CHANNELS["a"][6]}
    shown = tl.read_run(result.out).signal("io.one.a")
    assert set(shown[200:]) == {CHANNELS["a"][6]}, "what is recorded is what the pin has had"


def test_a_value_below_the_range_of_its_channel_is_held_to_the_lower_end(tmp_path: Path) -> None:
    result = run(two_cards(tmp_path, mode="below", on="one"))
    assert set(tl.read_run(result.out).signal("io.one.back_a")[200:]) == {-5.0}
    assert result.stats.io["one"].limited == 300 and result.stats.io["two"].limited == 0


def connected(path: Path, folder: Path) -> tuple[RigParts, OpenDevice]:
    """A rig that is ticked by the test, with its card."""
    plan = load_plan(path)
    parts, cards = build(plan, 60.0), plan.device(IoCards)
    opened = OpenDevice(cards.setups(folder, simulated=True)["card"])
    made = parts.made[IoCards]
    made.connect(0, device=opened.device or 0, watch=opened.watch, limit_s=0.0, **opened.functions)
    return parts, opened


PATIENT = ("bus.powertrain.rx_timeout_s.TCU_Pressure_1 = 9.0", "bus.powertrain.rx_timeout_s.TCU_Pressure_2 = 9.0",
           "vehicle.age_limit_s = 9.0")  # fmt: skip


def test_pins_are_safe_while_disarming_and_have_their_signal_again_when_armed_again(tmp_path: Path) -> None:
    path = card(tmp_path, *PATIENT, file=str(tmp_path / "pins"))
    parts, opened = connected(path, tmp_path)
    rig = parts.rig
    rig.begin(0)
    rig.ticks(10, 0)
    rig.disarm()
    rig.ticks(50, 10 * MS)
    assert rig.value(load_plan(path).table.slot("io.card.speed")) == SAFE, "the signal is what the pin has"
    rig.arm()
    rig.ticks(10, 60 * MS)
    opened.close()
    values = [row[VALUE] for row in written(tmp_path)][1:-1]
    states = [row[STATE] for row in written(tmp_path)][1:-1]
    assert set(values[10:60]) == {SAFE} and SAFE not in values[:10] and SAFE not in values[60:]
    assert states == [RUNS] * 10 + [IN_SAFE_STATE] * 50 + [RUNS] * 10
    assert [row[BEATS] for row in written(tmp_path)][1:-1] == list(range(1, 71))


def test_pins_are_safe_when_the_physics_is_frozen(tmp_path: Path) -> None:
    path = card(tmp_path, *PATIENT, file=str(tmp_path / "pins"))
    parts, opened = connected(path, tmp_path)
    rig = parts.rig
    rig.begin(0)
    rig.ticks(10, 0)
    assert rig.request_safe("solver", 2)
    rig.ticks(20, 10 * MS)
    opened.close()
    assert rig.cause()["frozen"]
    values = [row[VALUE] for row in written(tmp_path)][1:-1]
    assert len(values) == 30 and set(values[10:]) == {SAFE} and SAFE not in values[:10]


@pytest.mark.usefixtures("multicast")
def test_on_the_real_clock_the_same_device_runs_and_ends_with_safe_values(tmp_path: Path) -> None:
    result = real(on_own_bus(tmp_path))
    rows = written(tmp_path)
    # made ready by the session; written by each tick; safe by the loop that ends, and by the session that closes
    assert result.stats.io["card"].writes == result.stats.clock.ticks == len(rows) - 3
    assert rows[0][VALUE] == rows[-2][VALUE] == rows[-1][VALUE] == SAFE and len({row[PROCESS] for row in rows}) == 1
    assert [row[BEATS] for row in rows[1:-2]] == list(range(1, len(rows) - 2))
    assert {row[STATE] for row in rows[1:-2]} == {RUNS} and rows[0][STATE] == rows[-1][STATE] == IDLE
    assert replay(result.out).hash_equal


@pytest.mark.usefixtures("multicast")
def test_a_rig_that_begins_disarmed_has_safe_pins_and_no_tick_until_a_client_arms_it(tmp_path: Path) -> None:
    going = Running(on_own_bus(tmp_path), tmp_path / "run", 1.0, clock="real", disarmed=True)
    with connect(going.endpoint(), timeout_s=PATIENCE_S) as client:
        wait_for(lambda: getattr(read_run_info(tmp_path / "run"), "state", "") == "running")
        # time for ticks, which do not come
        time.sleep(0.3)
        status = client.status()
        assert (status["state"], status["ticks"], status["counters"]["tx_frames"]) == ("off", 0, 0)
        assert [row[VALUE] for row in written(tmp_path)] == [SAFE]
        client.arm()
    result = going.join()
    values = [row[VALUE] for row in written(tmp_path)]
    assert result.stats.clock.ticks == 1000 and not result.stats.safe_state.latched
    assert values[0] == values[-1] == SAFE and SAFE not in values[1:-2] and replay(result.out).hash_equal


@pytest.mark.parametrize(("clock", "control", "text"), [
    ("virtual", "tcp://127.0.0.1:0", "needs the real clock"), ("real", None, "this one has none"),
])  # fmt: skip
def test_a_rig_that_nobody_could_arm_does_not_begin_disarmed(
    tmp_path: Path, clock: Literal["real", "virtual"], control: str | None, text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        run_rig(on_own_bus(tmp_path), RunSpec(clock, 1.0, tmp_path / "run", control=control, disarmed=True))
    assert not (tmp_path / "run").exists()


#: what a call may take [us], and what the slow one takes [s]: a call that a busy machine interrupts stays below
LIMIT_US, NAP_S = 500_000.0, "0.7"


@pytest.mark.usefixtures("multicast")
@pytest.mark.parametrize("mode", ["pause", "pause_write"])
def test_a_slow_call_latches_on_the_real_clock(tmp_path: Path, mode: str) -> None:
    edits = ("clock.grace_s = 0.0", "safe_state.stop_after_s = 0.1")
    path = on_own_bus(tmp_path, *edits, limit_us=LIMIT_US, mode=mode, at_s="0.3", nap_s=NAP_S)
    result = real(path)
    safe = result.stats.safe_state
    assert safe.kind == "io" and "card: a call took longer than limit_us" in safe.cause
    assert safe.step in (300, 301) and result.stats.io["card"].slow == 1
    assert written(tmp_path)[-3][VALUE] == SAFE


@pytest.mark.usefixtures("multicast")
def test_the_time_of_a_slow_card_is_not_that_of_the_next_one(tmp_path: Path) -> None:
    edits = (*patient_edits(), "clock.grace_s = 0.0", "safe_state.stop_after_s = 0.1")
    result = real(two_cards(tmp_path, *edits, mode="pause", on="one", limit_us=LIMIT_US, nap_s=NAP_S))
    assert "one: a call took longer than limit_us" in result.stats.safe_state.cause
    assert (result.stats.io["one"].slow, result.stats.io["two"].slow) == (1, 0)


@pytest.mark.usefixtures("multicast")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_ends_with_safe_values_of_its_own(tmp_path: Path, number: int) -> None:
    with started(on_own_bus(tmp_path)) as process:
        until_written(tmp_path, 100, process)
        process.send_signal(number)
        process.communicate(timeout=PATIENCE_S)
    rows = written(tmp_path)
    assert {row[PROCESS] for row in rows} == {process.pid}, "the rig itself, not its guardian"
    assert [row[VALUE] for row in rows[-2:]] == [SAFE, SAFE] and rows[-3][VALUE] != SAFE


@pytest.mark.usefixtures("multicast")
@pytest.mark.parametrize("way", ["killed", "crash"])
def test_a_rig_that_dies_leaves_safe_values_to_its_guardian(tmp_path: Path, way: str) -> None:
    path = on_own_bus(tmp_path, mode="crash" if way == "crash" else "loop", at_s="0.5")
    with started(path) as process:
        until_written(tmp_path, 100, process)
        if way == "killed":
            process.kill()
        process.wait(PATIENCE_S)
        # the end of its messages: the guardian has ended as well
        said = process.communicate()[0].decode()
    rows = written(tmp_path)
    assert rows[-1][PROCESS] != rows[1][PROCESS] and rows[-1][VALUE] == SAFE and rows[-3][VALUE] != SAFE
    assert "I/O device card: the rig has died, its outputs are safe" in said


#: the loop may stand still for twice this before its guardian acts [s]; a shorter one would take a pause of a busy
#: machine for the loop's own, and a rig that is in its safe state by itself leaves its guardian nothing to do
SHORT = "safe_state.watchdog_s = 2.0"


def seen_safe(folder: Path, other_than: int) -> None:
    """Wait until a process other than that of the rig has written the safe value."""
    wait_for(lambda: (row := written(folder)[-1])[PROCESS] != other_than and row[VALUE] == SAFE, pause_s=0.02)


@pytest.mark.usefixtures("multicast")
def test_a_rig_that_is_stopped_has_safe_values_and_keeps_them_when_it_goes_on(tmp_path: Path) -> None:
    path = on_own_bus(tmp_path, SHORT, "safe_state.stop_after_s = 0.2")
    with started(path) as process:
        until_written(tmp_path, 500, process)
        os.kill(process.pid, signal.SIGSTOP)
        try:
            seen_safe(tmp_path, process.pid)
        finally:
            os.kill(process.pid, signal.SIGCONT)
        said = process.communicate(timeout=PATIENCE_S)[0].decode()
    assert "I/O device card: the rig stands still, its outputs are safe" in said
    rows = written(tmp_path)
    first = next(k for k, row in enumerate(rows) if row[PROCESS] != process.pid)
    # it may have been stopped in the middle of a write
    after = [row[VALUE] for row in rows[first:]]
    assert len(after) > 100 and after.count(SAFE) >= len(after) - 1
    assert {row[VALUE] for row in rows[1:first]}.isdisjoint({SAFE})
    info = read_run_info(tmp_path / "run")
    assert info is not None and info.stats is not None and info.stats.safe_state.latched
    assert "its guardian has written the safe values" in info.stats.safe_state.cause


@pytest.mark.usefixtures("multicast")
def test_a_stopped_rig_whose_device_belongs_to_one_process_is_killed(tmp_path: Path) -> None:
    with started(on_own_bus(tmp_path, SHORT, only="1")) as process:
        until_written(tmp_path, 500, process)
        os.kill(process.pid, signal.SIGSTOP)
        seen_safe(tmp_path, process.pid)
        assert process.wait(PATIENCE_S) == -signal.SIGKILL
        said = process.communicate()[0].decode()
    assert "card: the rig stands still: io_card.so: tl_io_open refuses: another process has the card" in said
    assert "I/O device card: the rig has died, its outputs are safe" in said


def test_a_device_that_a_dying_process_has_not_let_go_yet_is_asked_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process that dies closes its files one by one: the guardian sees its end before the card is free."""
    path = card(tmp_path, *PATIENT, file=str(tmp_path / "pins"), only="1")
    plan = load_plan(path)
    setups = plan.device(IoCards).setups(tmp_path, simulated=True)
    with (tmp_path / "pins").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert not make_safe(setups.values(), "has died")
        assert "asked again" not in capsys.readouterr().err
        threading.Timer(0.2, lambda: fcntl.flock(held, fcntl.LOCK_UN)).start()
        assert make_safe(setups.values(), "has died", 30.0)
    # said at once: a reader of the messages does not have to wait for the end of the attempts
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and said[0].endswith("another process has the card; it is asked again for 30 s")
    assert said[1] == "I/O device card: the rig has died, its outputs are safe"
    assert written(tmp_path)[-1][VALUE] == SAFE


@pytest.mark.usefixtures("multicast")
def test_a_device_that_never_returns_has_safe_values_from_the_guardian(tmp_path: Path) -> None:
    with started(on_own_bus(tmp_path, SHORT, mode="hang", at_s="0.5")) as process:
        until_written(tmp_path, 500, process)
        seen_safe(tmp_path, process.pid)
        assert process.poll() is None, "safe before the rig has given up"
        assert process.wait(PATIENCE_S) == 1
    assert read_run_info(tmp_path / "run").state == "hung"


@pytest.mark.usefixtures("multicast")
def test_a_tick_that_hung_and_returns_writes_safe_values_itself(tmp_path: Path) -> None:
    # longer than what the watchdog needs, shorter than what the guardian waits, by a second each: a machine may take it
    edits = ("safe_state.watchdog_s = 2.5", "safe_state.stop_after_s = 0.1")
    result = real(on_own_bus(tmp_path, *edits, mode="pause", at_s="0.5", nap_s="3.7"))
    assert result.stats.safe_state.kind == "hung" and result.stats.safe_state.step == 500
    after = [row for row in written(tmp_path) if row[TIME] > 0.5005]
    assert len(after) >= 100 and {row[VALUE] for row in after} == {SAFE}
    assert len({row[PROCESS] for row in written(tmp_path)}) == 1, "before the guardian had to act"


@pytest.mark.usefixtures("multicast")
def test_a_guardian_that_has_died_is_told(tmp_path: Path) -> None:
    with started(on_own_bus(tmp_path)) as process:
        until_written(tmp_path, 100, process)
        os.kill(guardian_of(process.pid), signal.SIGKILL)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    info = read_run_info(tmp_path / "run")
    assert info is not None and info.stats is not None
    assert "the guardian of the I/O devices has ended before the rig" in info.stats.degraded
    assert written(tmp_path)[-1][VALUE] == SAFE


def guardian_of(pid: int) -> int:
    """Process number of the guardian of a rig."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and "torqueloop.hil.io.guardian" in (entry / "cmdline").read_text():
                if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                    return int(entry.name)
        except OSError:
            continue
    raise AssertionError("no guardian")
