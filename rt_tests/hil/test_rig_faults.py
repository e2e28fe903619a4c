"""Each detector of the safe state, provoked: cause, reaction, and that nothing else was disturbed."""

import numpy as np
import pytest
from rig_help import DESK, Car, Unit, rig_file, run

from torqueloop.hil.run_data import read_run_json, read_signals
from torqueloop.hil.session import StartError, run_rig

PRESSURES = [f"input.{n}.p" for n in ("C4", "C5", "C6", "C7", "C8", "C11", "C12", "lockup")]


def test_nan_from_the_vehicle_is_refused_counted_and_latches_after_the_limit(tmp_path):
    result = run(DESK, tmp_path / "r", 3.0, Car("nan", 2.0))
    safe = result.stats["safe_state"]
    assert safe["latched"] and safe["kind"] == "vehicle_data" and 2000 <= safe["step"] <= 2020
    assert result.stats["vehicle"]["refused"] >= 10
    signals = read_signals(result.out)
    assert np.isfinite(signals.records["out"]).all(), "the NaN must not get in"
    assert result.exit_status == 1


def test_silent_vehicle_is_held_then_ramped_then_latches(tmp_path):
    result = run(DESK, tmp_path / "r", 4.0, Car("silent", 3.0))
    signals = read_signals(result.out)
    force = signals["input.road.F"]
    k = 2999  # the last tick with a fresh value
    assert force[k] < -0.5
    held = force[k : k + 300]  # age limit 0.1 s and hold 0.2 s
    np.testing.assert_array_equal(held, held[0])
    np.testing.assert_allclose(force[k + 400], 0.5 * held[0], rtol=0.02)  # in the middle of the ramp of 0.2 s
    assert force[k + 510] == 0.0
    safe = result.stats["safe_state"]
    assert safe["kind"] == "vehicle_silent" and abs(safe["step"] - (k + 500)) <= 2
    assert "500 ms" in safe["cause"]


def test_silent_control_unit_at_speed_opens_all_clutches_and_closes_the_pedal(tmp_path):
    result = run(DESK, tmp_path / "r", 4.5, unit=Unit("silent", 3.0))
    safe = result.stats["safe_state"]
    assert safe["kind"] == "tcu_silent" and "TCU_Pressure_1" in safe["cause"]
    assert abs(safe["step"] - 3296) <= 1  # last frame at 2.995 s, timeout 0.3 s
    signals = read_signals(result.out)
    assert signals["car.v"][safe["step"]] > 1.0
    assert max(signals[n][safe["step"] - 1] for n in PRESSURES) > 1e5
    for name in [*PRESSURES, "input.engine.pedal"]:
        after = signals[name][safe["step"] : safe["step"] + 202]
        assert (np.diff(after) <= 0).all() and after[-1] == 0.0, name
    assert len(signals.tick) == safe["step"] + 1001, "one second is shown, then the run ends"
    assert signals["HIL_Driver.rig_status"][-1] == 3.0


@pytest.mark.parametrize(("fault", "counter"), [("crc", "crc"), ("counter", "repeat"), ("length", "length")])
def test_bad_frames_change_nothing_but_counters_then_latch_as_refused(tmp_path, fault, counter):
    result = run(DESK, tmp_path / "r", 3.5, unit=Unit(fault, 2.0))
    rx = result.stats["can"]["rx"]["TCU_Pressure_1"]
    assert rx[counter] > 50
    signals = read_signals(result.out)
    held = signals["TCU_Pressure_1.p_C4"][2010:2290]
    np.testing.assert_array_equal(held, held[0])
    assert result.stats["safe_state"]["kind"] in ("tcu_frames", "tcu_silent")
    assert 2290 <= result.stats["safe_state"]["step"] <= 2305


def test_a_short_burst_of_bad_frames_is_survived(tmp_path):
    result = run(DESK, tmp_path / "r", 2.5, unit=Unit("crc", 2.0, 2.1))
    assert result.stats["can"]["rx"]["TCU_Pressure_1"]["crc"] == 20
    assert not result.stats["safe_state"]["latched"]


def test_limit_names_the_signal(tmp_path):
    path = rig_file(tmp_path, ('"engine.w" = { min = -50.0, max = 7500.0', '"engine.w" = { min = -50.0, max = 1500.0'))
    result = run(path, tmp_path / "r", 3.0)
    assert result.stats["safe_state"]["kind"] == "limit" and "engine.w" in result.stats["safe_state"]["cause"]


def test_first_cause_stays(tmp_path):
    result = run(DESK, tmp_path / "r", 4.5, Car("silent", 3.0), Unit("silent", 3.1))
    assert result.stats["safe_state"]["kind"] == "tcu_silent"  # 3.095 + 0.3 comes before 3.0 + 0.5


def test_vehicle_that_never_answers_is_named_and_nothing_is_armed(tmp_path):
    path = rig_file(tmp_path, ('start = "../vehicles/bmw_528i_e28.toml"', "start_timeout_s = 0.3"))
    with pytest.raises(StartError, match="vehicle.*has not answered"):
        run_rig(path, "virtual", 1.0, tmp_path / "r", progress=False, html=False)
    info = read_run_json(tmp_path / "r")
    assert info["state"] == "failed" and "has not answered" in info["error"]


def test_vehicle_process_that_dies_at_once_is_reported_with_its_last_words(tmp_path):
    broken = tmp_path / "vehicle.toml"
    broken.write_text((DESK.parents[1] / "vehicles" / "bmw_528i_e28.toml").read_text() + "\n[wings]\nspan_m = 3.0\n")
    path = rig_file(tmp_path, ('start = "../vehicles/bmw_528i_e28.toml"', f'start = "{broken}"'))
    with pytest.raises(Exception, match="wings"):
        run_rig(path, "virtual", 1.0, tmp_path / "r", progress=False, html=False)
    assert not (tmp_path / "r").exists(), "a wrong input is found before anything is started"
