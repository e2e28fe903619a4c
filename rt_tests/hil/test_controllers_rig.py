"""Controllers in the tick of a rig: from a file, recorded, replayed, restored; mistakes named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from control_help import Running, SlowCar
from rig_help import CONFIGS, Car, Unit

import torqueloop as tl
from torqueloop.core.controls import CoolingFan, Driver2, FuelFlowController, IdleController
from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.controls.records import KINDS
from torqueloop.hil.rig.devices.controllers import Controllers
from torqueloop.hil.rig.resolve.plan import load_plan
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import RunSpec, run_rig

CYCLE = CONFIGS / "rigs" / "desk_4hp22_cycle.toml"


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> tl.Run:
    return tl.run("desk_4hp22_cycle", clock="virtual", duration=8.0, out=tmp_path_factory.mktemp("cycle") / "run",
                  html=False)  # fmt: skip


def test_a_driver_follows_a_cycle_and_an_idle_governor_holds_the_engine(driven: tl.Run) -> None:
    t, v, wanted = driven.t, driven["car.v"], driven["driver.v_set"]
    assert v[t > 7.5].min() > 6.0 and np.abs(v - wanted).max() < 3.0
    assert np.all(driven["controller.driver.accelerator"] * driven["controller.driver.brake"] == 0.0)
    # at rest in neutral or drive the brake is held, and the engine runs at about the speed it is to idle with
    rest = (t > 1.5) & (t < 2.0)
    assert np.all(driven["controller.driver.brake"][rest] == 0.5) and driven["engine.w"][rest].min() > 70.0
    # what the model was given is what the fuel controller said
    assert np.array_equal(driven["input.engine.pedal"], driven["controller.fuel.demand"])


def test_it_replays_to_the_same_hash_and_runs_to_it_again(driven: tl.Run, tmp_path: Path) -> None:
    again = replay(driven.path)
    assert again.passed and again.hash_equal and again.difference is None
    results = [
        run_rig(CYCLE, RunSpec("virtual", 1.5, tmp_path / kernel, kernel=kernel)) for kernel in ("auto", "generic")
    ]
    assert results[0].stats.hash == results[1].stats.hash


def test_what_the_tick_computed_is_what_the_classes_compute(driven: tl.Run) -> None:
    """Fed with what was recorded: the model as of the end of the tick before, all else as it came in the tick."""
    law = {"driver": Driver2(kp=0.3, ki=0.05), "idle": IdleController(), "fuel": FuelFlowController(),
           "fan": CoolingFan()}  # fmt: skip
    laws = {name: controller.law() for name, controller in law.items()}
    every = {"driver": 10, "idle": 10, "fuel": 1, "fan": 100}
    sources = {
        "driver": {"v_set": "driver.v_set", "v": "car.v"},
        "idle": {"w": "engine.w", "accelerator": "controller.driver.accelerator", "T_coolant": "driver.T_coolant"},
        "fuel": {"accelerator": "controller.driver.accelerator", "idle": "controller.idle.demand", "w": "engine.w"},
        "fan": {"v": "car.v", "T_coolant": "driver.T_coolant"},
    }
    signal = {name: driven[name] for name in {s for given in sources.values() for s in given.values()}}
    found = {f"controller.{name}.{c}": driven[f"controller.{name}.{c}"] for name in law for c in law[name].writes}
    last: dict[str, float] = {}
    for tick in range(8000):
        for name, compiled in laws.items():
            if tick % every[name] == 0:
                read = {}
                for short, source in sources[name].items():
                    # the first tick sees the model before any step, which is not recorded
                    outside = source.startswith(("driver.", "controller."))
                    read[short] = signal[source][tick if outside else max(0, tick - 1)]
                if tick == 0:
                    compiled.own = [driven[f"controller.{name}.{f.name}"][0] for f in KINDS[compiled.kind].own]
                else:
                    given = compiled.step(every[name] * 1e-3, read)
                    last |= {f"controller.{name}.{c}": value for c, value in given.items()}
        if tick % 50 == 0:
            assert all(found[name][tick] == value for name, value in last.items()), tick
    assert len(last) == 8


def test_a_run_from_a_checkpoint_ends_in_the_same_state(tmp_path: Path) -> None:
    """At a tick in which neither driver nor fan is called: what they hold and how long it is ago come back."""
    going = Running(CYCLE, tmp_path / "run", 0.9, vehicle=SlowCar(before=(633,)))
    with going.client() as client:
        client.checkpoint("here", at=633)
    whole = going.join()
    part = run_rig(
        CYCLE,
        RunSpec(
            "virtual",
            0.9 - 0.633,
            tmp_path / "part",
            vehicle=Car(),
            ecus={"tcu": Unit()},
            start_from=whole.out / "control" / "here.tlc",
        ),
    )
    assert part.stats.clock.ticks == 267 and part.stats.hash == whole.stats.hash
    assert replay(part.out).hash_equal


def test_gears_and_constants_and_own_units_from_a_file() -> None:
    shift = {"kind": "gearbox", "reads": {"throttle": 0.3, "v": {"signal": "car.v", "gain": 2.0}},
             "parameters": {"up": [[[0.0, 5.0], [1.0, 9.0]]], "down": [[[0.0, 3.0]]], "first": 2}}  # fmt: skip
    plan = load_plan(CYCLE, {"controllers.shift": shift})
    planned, names = plan.device(Controllers).planned, plan.table.names
    assert planned[-1].law.curves == (((0.0, 1.0), (5.0, 9.0), False), ((0.0,), (3.0,), False))
    first = names.index("controller.shift.gear")
    assert plan.table.initial[first] == plan.table.initial[first + 1] == 2.0
    assert planned[-1].reads == [(0, 0.0, 0.3), (plan.table.slot("car.v"), 2.0, 0.0)]
    assert plan.table.units[first + 3] == "Pa" and [c.name for c in planned[:2]] == [
        "driver",
        "idle",
    ]


WRONG = [
    ({"controllers.driver.kind": "robot"}, r"\[controllers.driver\].*'cooling_fan', 'driver'"),
    ({"controllers.driver.period_s": 0.0105}, r"period_s = 0.0105 does not fit.*controllers.driver\].*tick_s = 0.001"),
    ({"controllers.driver.period_s": 0.01000005}, r"period_s = 0.01000005 does not fit"),
    ({"controllers.driver.period_s": -1.0}, r"period_s"),
    ({"controllers.driver.reads.w": "engine.w"}, r"reads no w in \[controllers.driver.reads\].*v_set, v"),
    ({"controllers.driver.reads.v": "car.w"}, r"'car.w'.*\[controllers.driver.reads\]"),
    ({"controllers.driver.reads.v": "engine.w"}, r"v: 'engine.w' is in rad/s in \[controllers.driver.reads\].*in m/s"),
    ({"controllers.driver.reads": {"v": 0.0}}, r"nothing is wired to v_set in \[controllers.driver.reads\]"),
    ({"controllers.driver.reads.v": {"gain": 2.0}}, r"needs either signal or value"),
    ({"controllers.driver.parameters.kpp": 1.0}, r"driver has no kpp in \[controllers.driver.parameters\].*did you"),
    ({"controllers.driver.parameters.kp": -1.0}, r"kp = -1.0.*\[controllers.driver.parameters\].*allowed: > 0"),
    ({"controllers.driver.parameters.kp": "high"}, r"kp = 'high'.*\[controllers.driver.parameters\].*a number"),
    ({"controllers.driver.parameters.kp": True}, r"kp = True.*a number"),
    ({"controllers.fan.parameters": {"T_on": 350.0}}, r"T_off = 367.15.*\[controllers.fan.parameters\].*< T_on = 350"),
    ({"controllers.idle.parameters": {"w_idle": 80.0}}, r"w_idle = 80.0.*points \[\[x, y\], ...\]"),
    ({"controllers.idle.parameters": {"w_idle": [[1.0, 80.0], [1.0, 70.0]]}}, r"\[controllers.idle.parameters\]"),
    ({"controllers.x": {"kind": "gearbox", "reads": {}}}, r"missing key 'up' in \[controllers.x.parameters\]"),
    ({"controllers.x": {"kind": "gearbox", "reads": {}, "parameters": {"up": 1.0, "down": []}}}, r"up = 1.0.*list of"),
    ({"controllers.x": {"kind": "gearbox", "reads": {}, "parameters": {"up": [], "down": [], "first": 1.0}}},
     r"first = 1.0.*whole number"),
    ({"controllers.x-y": {"kind": "driver", "reads": {}}}, r"'x-y' is no name of a controller in \[controllers\]"),
    ({"ecu.controller": {"kind": "soft_tcu"}}, r"'controller' is no name of a bus or control unit"),
    ({"inputs": {"engine.pedal": "controller.idle.w_idle"}}, r"controller.idle.w_idle is in rad/s"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "said"), WRONG, ids=[said[:40] for _, said in WRONG])
def test_a_mistake_is_named_with_its_place(change: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        load_plan(CYCLE, change)
    assert "desk_4hp22_cycle.toml" in str(caught.value) or "--set" in str(caught.value)
