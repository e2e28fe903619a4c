"""Mistakes in a rig file: found before anything is started, each named with file, table, key, value and what is
allowed."""

import pytest
from rig_help import DESK, rig_file

from torqueloop.core.describe.errors import (
    ConfigError,
    MissingValueError,
    RangeError,
    UnknownKeyError,
    UnknownNameError,
)
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.devices.registry import load_rig_config
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.schema.rig_file import driver_points


def test_desk_rig_is_complete():
    plan = load_plan(DESK)
    assert len(plan.in_copies) == 11 and len(plan.buses[0].send) == 3 and len(plan.buses[0].required) == 2
    assert {name for name, _ in plan.recorded} >= {"engine.w", "C11.tau", "car.v", "HIL_Speeds.n_output"}
    assert len(plan.reactions) == 9, "eight pressures and the pedal"


WRONG = {
    "unknown key": (
        "clock.max_catchup = 5",
        UnknownKeyError,
        ["max_catchup", "clock", "max_catch_up"],
    ),
    "out of range": ("clock.tick_s = 1.0", RangeError, ["tick_s", "1.0", "clock"]),
    "spin of more than half a tick": (
        "clock.spin_us = 501",
        ConfigError,
        ["spin_us", "501", "half a tick", "0 .. 500"],
    ),
    "wrong word": ('clock.policy = "hurry"', RangeError, ["policy", "hurry", "skip"]),
    "no such input": (
        'inputs."C44.p" = "TCU_Pressure_1.p_C4"\nwithout inputs."C4.p"',
        UnknownNameError,
        ["C44.p", "inputs", "C4.p"],
    ),
    "input without source": ('without inputs."C4.p"', MissingValueError, ["C4.p"]),
    "no such signal in the DBC": (
        'inputs."C4.p" = "TCU_Pressure_1.p_C9"',
        ConfigError,
        ["p_C9", "tcu_4hp22.dbc"],
    ),
    "no such message": (
        'inputs."C4.p" = "TCU_Pressur_1.p_C4"',
        ConfigError,
        ["TCU_Pressur_1", "TCU_Pressure_1"],
    ),
    "no such output": (
        'outputs."HIL_Speeds.n_turbine" = "turbin.w"',
        UnknownNameError,
        ["turbin.w", "turbine.w", "HIL_Speeds.n_turbine"],
    ),
    "units": (
        'outputs."HIL_Speeds.n_engine" = "car.v"',
        ConfigError,
        ["car.v", "m/s", "rad/s"],
    ),
    "sent signal left out": ('without outputs."HIL_Driver.T_oil"', MissingValueError, ["HIL_Driver.T_oil"]),
    "constant out of range": ('outputs."HIL_Driver.T_oil" = 500', RangeError, ["T_oil", "500"]),
    "wrong word of a value table": (
        'outputs."HIL_Driver.program".value = "eco"',
        ConfigError,
        ["eco", "winter, sport, economy", "outputs"],
    ),
    "received signal as output": (
        'outputs."TCU_Status.tau_limit" = 80',
        ConfigError,
        ["TCU_Status.tau_limit", "not sent"],
    ),
    "no such driver table": (
        'outputs."HIL_Driver.lever" = "driver.leaver"',
        UnknownNameError,
        ["driver.leaver", "driver.lever"],
    ),
    "lever position": ('driver.lever = [[0.0, "N"], [0.5, "S"]]', ConfigError, ["lever", "S", "P, R, N, D"]),
    "time goes back": ("driver.pedal = [[0.0, 0.0], [1.5, 0.0], [1.2, 1.0]]", ConfigError, ["pedal", "1.2"]),
    "timeout of a message we do not get": (
        "bus.powertrain.rx_timeout_s.TCU_Presure_2 = 0.3",
        ConfigError,
        ["TCU_Presure_2", "TCU_Pressure_2"],
    ),
    "period that is no multiple": ("clock.tick_s = 0.003", RangeError, ["cycle time", "3 ms"]),
    "limit": ('limits."car.v".max = -300.0', ConfigError, ["max", "-300"]),
    "unit of a limit": (
        'limits."car.v".unit = "rpm"',
        ConfigError,
        ["rpm", "m/s", "car.v"],
    ),
    "limit of nothing": (
        'limits."care.v" = { min = -60.0, max = 300.0, unit = "kmh" }\nwithout limits."car.v"',
        UnknownNameError,
        ["care.v", "car.v"],
    ),
    "public address": ('vehicle.endpoint = "tcp://0.0.0.0:4000"', ConfigError, ["0.0.0.0", "loopback"]),
    "no such mass": ('vehicle.car = "caravan"', ConfigError, ["caravan", "car"]),
    "overrun limit": ("safe_state.overrun_limit = 3", ConfigError, ["overrun_limit", "3", "max_catch_up"]),
    "address of no interface": (
        'bus.powertrain.local_address = "127.0.0"',
        ConfigError,
        ["local_address", "127.0.0", "[bus.powertrain]", "IPv4"],
    ),
    "powertrain missing": ('plant.powertrain = "../powertrains/car_9.toml"', ConfigError, ["car_9.toml", "rig"]),
    "recorded signal": ('record.signals = ["engine.n"]', UnknownNameError, ["engine.n", "engine.w"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistake_is_named(tmp_path, case):
    edit, kind, words = WRONG[case]
    with pytest.raises(kind) as caught:
        load_plan(rig_file(tmp_path, edit))
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_everything_of_the_bus_reaches_the_one_who_opens_it(tmp_path):
    more = ('local_address = "127.0.0.2"', "hop_limit = 1", "bitrate = 250000", "options = { fd = false }")
    bus = load_rig_config(rig_file(tmp_path, *(f"bus.powertrain.{line}" for line in more))).bus["powertrain"].bus()
    assert (bus.local_address, bus.hop_limit, bus.bitrate) == ("127.0.0.2", 1, 250_000)
    assert dict(bus.options) == {"fd": False}
    assert (bus.interface, bus.channel, bus.port) == ("udp_multicast", "239.74.163.2", 43113)


def test_missing_file_and_wrong_toml(tmp_path):
    with pytest.raises(ConfigError, match="not found"):
        load_rig_config(tmp_path / "nothing.toml")
    (tmp_path / "x.toml").write_text("[rig\n")
    with pytest.raises(ConfigError, match="not TOML"):
        load_rig_config(tmp_path / "x.toml")


def test_lever_changes_in_steps_not_through_the_positions_between():
    assert driver_points("lever", [[0.0, "P"], [1.0, "D"]]) == [(0.0, 0.0), (1.0, 0.0), (1.0, 3.0)]


MOVED = """
name = "moved"
connections = [["x.{flange}", "J.flange_a"]]
[components]
x = {{ {x} }}
J = {{ kind = "Inertia", J_kgm2 = 0.5 }}
"""


def rig_with(folder, x, inputs, flange="flange"):
    (folder / "moved.toml").write_text(MOVED.format(x=x, flange=flange))
    path = folder / "rig.toml"
    path.write_text(
        f'[rig]\nname = "r"\nduration_s = 0.02\n[plant]\npowertrain = "moved.toml"\n[driver]\nlever = [[0.0, "P"]]\n'
        f"pedal = [[0.0, 0.0], [1.0, 1.0]]\n[inputs]\n{inputs}\n"
    )
    return path


SIGNAL = '{ signal = "driver.pedal", gain = 1.0 }'


@pytest.mark.parametrize(
    ("x", "name", "remedy"),
    [
        ('kind = "Position", exact = true', "phi_ref", "exact = false | a Move (phi, w, a) instead | a constant"),
        ('kind = "Speed", exact = true', "w_ref", "exact = false"),
        ('kind = "ConstantSpeed", w_fixed_rpm = 100', "w_fixed", "a Move (phi, w, a) instead | a constant"),
        ('kind = "AngleToTorqueAdaptor", use_a = false', "w", "use_w = true and use_a = true"),
    ],
)
def test_exact_motions_from_signals_are_refused_with_the_remedy(tmp_path, x, name, remedy):
    more = f'"x.phi" = {SIGNAL}\n' if name == "w" else ""
    with pytest.raises(ConfigError) as caught:
        load_plan(rig_with(tmp_path, x, f'{more}"x.{name}" = {SIGNAL}'))
    kind = x.split('"')[1]
    for word in (f"{kind} 'x' needs x.{name}'", f"x.{name} = 'driver.pedal'", remedy, "[inputs]", "rig.toml"):
        assert word in str(caught.value), str(caught.value)


@pytest.mark.parametrize(
    ("x", "inputs"),
    [
        ('kind = "Speed", exact = true', '"x.w_ref" = { value = 10.0 }'),
        ('kind = "ConstantSpeed", w_fixed_rpm = 100', ""),
        ('kind = "Speed"', f'"x.w_ref" = {SIGNAL}'),
        ('kind = "Move"', "\n".join(f'"x.{n}" = {SIGNAL}' for n in ("phi", "w", "a"))),
    ],
)
def test_motions_a_rig_can_give_are_accepted(tmp_path, x, inputs):
    plan = load_plan(rig_with(tmp_path, x, inputs))
    assert plan.compiled.n == 1


def test_missing_inputs_are_those_one_gives_not_their_derivatives(tmp_path):
    with pytest.raises(MissingValueError, match=r"without a source: x\.phi_ref in") as caught:
        load_plan(rig_with(tmp_path, 'kind = "Position", exact = true', ""))
    assert "phi_ref'" not in str(caught.value)


def test_a_rig_starts_with_the_ratio_its_file_gives(tmp_path):
    """w_a = 10, ratio 2: b starts at 5. A ratio that comes from a signal is not known then: b starts at 0."""
    gear = 'kind = "VariableGear"'
    path = rig_with(tmp_path, gear, '"x.ratio" = { value = 2.0 }', "flange_a")
    powertrain = tmp_path / "moved.toml"
    text = powertrain.read_text().replace("J_kgm2 = 0.5", "J_kgm2 = 0.5, w0_radps = 10")
    powertrain.write_text(
        text.replace("]]", '], ["x.flange_b", "b.flange_a"]]') + 'b = { kind = "Inertia", J_kgm2 = 1 }\n'
    )
    plan = load_plan(path)
    speeds = dict(zip(plan.compiled.coordinates, build(plan, 0.02).state.u, strict=True))
    assert speeds == {"J": 10.0, "b": 5.0}
    plan = load_plan(path, {'inputs."x.ratio"': {"signal": "driver.pedal", "gain": 1.0}})
    assert dict(zip(plan.compiled.coordinates, build(plan, 0.02).state.u, strict=True)) == {"J": 10.0, "b": 0.0}
