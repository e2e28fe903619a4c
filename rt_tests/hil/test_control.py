"""Control channel: what is set together takes effect together, and a replay does it again."""

import numpy as np
import pytest
from control_help import Running
from rig_help import DESK, UNHURRIED, rig_file, run
from waiting import wait_for

import torqueloop
from torqueloop.cython_kernels.tick.control import HOLD, RELEASE, SET, Control
from torqueloop.hil.control.client import ControlError, connect
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.replay import replay


@pytest.fixture
def rig():
    """A rig and its plan; ticks by hand."""
    plan = load_plan(DESK)
    parts = build(plan, 10.0)
    return plan, parts


def ticks(parts, n):
    for _ in range(n):
        parts.rig.ticks(1, parts.rig.tick * 1_000_000)


def test_a_transaction_waits_for_its_tick_and_says_which_one(rig):
    plan, parts = rig
    slot = plan.table.slot("HIL_Driver.T_oil")
    parts.rig.begin(0)
    parts.control.post([(slot, SET, 300.0)], at_tick=5)
    ticks(parts, 5)
    assert not parts.control.free and parts.rig.value(slot) != 300.0
    ticks(parts, 1)
    assert parts.control.free and parts.control.answer() == (5, True)
    assert parts.rig.value(slot) == 300.0


def test_a_held_signal_has_its_own_value_again_when_it_is_released(rig):
    plan, parts = rig
    driver, wired = plan.table.slot("driver.pedal"), plan.table.slot("input.engine.pedal")
    frame = plan.table.slot("TCU_Pressure_1.p_C4")
    parts.rig.begin(0)
    own = parts.rig.value(frame)
    parts.control.post([(driver, HOLD, 0.25), (frame, HOLD, 3e5)])
    ticks(parts, 3)
    assert parts.rig.value(driver) == parts.rig.value(wired) == 0.25
    assert parts.rig.value(plan.table.slot("input.C4.p")) == 3e5
    assert parts.control.held() == {driver: 0.25, frame: 3e5}
    parts.control.post([(frame, RELEASE, 0.0), (wired, HOLD, 0.75)])
    ticks(parts, 1)
    assert parts.rig.value(frame) == own and parts.rig.value(plan.table.slot("input.C4.p")) == own
    assert parts.rig.value(driver) == 0.25 and parts.rig.value(wired) == 0.75
    parts.control.post([(wired, RELEASE, 0.0), (driver, RELEASE, 0.0)])
    ticks(parts, 1)
    assert parts.control.held() == {} and parts.rig.value(driver) == parts.rig.value(wired) == 0.0


def test_a_transaction_nobody_takes_can_be_taken_back_and_another_one_is_refused_meanwhile():
    control = Control()
    control.post([(2, SET, 1.0)])
    with pytest.raises(RuntimeError, match="waiting"):
        control.post([])
    assert control.cancel() and control.free and not control.cancel()
    with pytest.raises(ValueError, match="at most"):
        control.post([(2, SET, 1.0)] * 1000)


@pytest.mark.proof
@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_signals_set_together_are_equal_in_every_recorded_sample(clock, tmp_path, request):
    if clock == "real":
        request.getfixturevalue("multicast")
    path = rig_file(tmp_path, *(UNHURRIED if clock == "real" else ()), own_bus=clock == "real")
    # on the real clock a busy machine serves a client slowly: long enough, and ended as soon as it has asked its fill
    going = Running(path, tmp_path / "run", 2.5 if clock == "virtual" else 60.0, clock=clock)
    pair = ("driver.kickdown", "driver.brake_switch")
    taken = []
    with going.client() as client:
        try:
            while len(taken) < 150:
                value = 0.001 * (1 + len(taken))
                taken.append((client.override(dict.fromkeys(pair, value)), value))
            client.stop()
        except ControlError as error:
            assert "ended" in str(error) or error.reason == "silent"
    result = going.join()
    assert len(taken) > 20, "hardly anything was set: the test proves nothing"
    signals = read_signals(result.out)
    first, second = (signals[name] for name in pair)
    begun = taken[0][0]
    assert begun < len(first) - 1
    np.testing.assert_array_equal(first[begun:], second[begun:])
    assert not np.array_equal(first[:begun], second[:begun])
    tick_of = {int(t): k for k, t in enumerate(signals.tick)}
    for tick, value in taken:
        if tick in tick_of:
            assert first[tick_of[tick]] == value, "the tick it is said to have taken effect in"
    again = replay(result.out)
    assert again.passed and again.hash_equal, again
    assert again.compared == again.ticks


def test_set_is_whole_and_checked(tmp_path):
    going = Running(DESK, tmp_path / "run", 1.5)
    with going.client() as client:
        before = client.get(["HIL_Driver.T_oil", "HIL_Engine.T_coolant"])
        with pytest.raises(ControlError, match="allowed: "):
            client.set({"HIL_Engine.T_coolant": 350.0, "HIL_Driver.T_oil": 1e6})
        assert client.get(before) == before
        for values, text in (
            ({"driver.pedal": 0.5}, "override"),
            ({"engine.w": 0.5}, "read only"),
            ({"engine.ww": 0.5}, "did you mean 'engine.w'"),
        ):
            with pytest.raises(ControlError, match=text):
                client.set(values)
        for values, text in (({"engine.w": 1.0}, "cannot be held"), ({"driver.pedal": 1.5}, "allowed: 0 .. 1")):
            with pytest.raises(ControlError, match=text):
                client.override(values)
        with pytest.raises(ControlError, match="not held"):
            client.release("driver.pedal")
        with pytest.raises(ControlError, match="allowed: a finite number"):
            client.set({"HIL_Driver.T_oil": float("nan")})
        client.set({"HIL_Driver.T_oil": 340.0})
        assert client["HIL_Driver.T_oil"] == 340.0
        status = client.status()
        assert status["state"] == "armed" and status["transactions"] == 1
        assert status["channel"]["rejected"] == {"refused": 7, "not_finite": 1}
    result = going.join()
    assert result.stats.control.transactions == 1
    assert read_signals(result.out)["HIL_Driver.T_oil"][-1] == 340.0


def test_a_client_sees_names_units_and_what_may_be_done(tmp_path):
    going = Running(DESK, tmp_path / "run", 1.0)
    with torqueloop.connect(going.endpoint()) as client:
        assert client.hello()["product"] == "torqueloop"
        names = {entry["name"]: entry for entry in client.list()}
        assert names["engine.w"]["unit"] == "rad/s" and names["engine.w"]["writable"] == ""
        assert names["driver.pedal"]["writable"] == "override" and names["driver.pedal"]["allowed"] == "0 .. 1 1"
        assert names["HIL_Driver.T_oil"]["writable"] == "set" and names["HIL_Driver.T_oil"]["unit"] == "K"
        assert names["car.m"]["kind"] == "parameter" and names["car.m"]["unit"] == "kg"
    going.join()


@pytest.mark.proof
def test_stop_and_safe_over_the_channel(tmp_path):
    going = Running(DESK, tmp_path / "safe", 20.0)
    with going.client() as client:
        client.safe()
        wait_for(lambda: client.status()["safe"])
        assert client.status()["cause"].startswith("requested by the operator")
    assert going.join().stats.safe_state.kind == "request"
    going = Running(DESK, tmp_path / "stop", 20.0)
    with going.client() as client:
        client.stop()
    assert 0 < going.join().stats.clock.ticks < 20000


def test_without_a_table_or_an_option_there_is_no_channel(tmp_path):
    result = run(DESK, tmp_path / "a", 0.1)
    assert read_run_info(result.out).control is None and result.stats.control is None
    path = rig_file(tmp_path, add='\n[control]\nendpoint = "tcp://127.0.0.1:0"\n')
    result = run(path, tmp_path / "b", 0.1)
    assert read_run_info(result.out).control.startswith("tcp://127.0.0.1:")


def test_nobody_there_is_said():
    with connect("tcp://127.0.0.1:9", timeout_s=0.3) as client, pytest.raises(ControlError, match="is a rig running"):
        client.hello()
