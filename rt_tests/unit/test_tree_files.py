"""Trees of bodies from files, clutches and brakes on them, and a tree as a peer of a rig."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import torqueloop
from torqueloop.core.compile.compiler import compile_driveline
from torqueloop.core.components import Brake, Clutch, FreeWheel, Inertia, LaminarClutch, Torque
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import CompileError, ConfigError
from torqueloop.core.multibody import Body, Carried, Coupled, Stepper, Tree, integrate
from torqueloop.core.signals import Constant, Signal, Table
from torqueloop.hil.multibody import unit
from torqueloop.hil.multibody.__main__ import main
from torqueloop.hil.multibody.build import load_tree
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.rig.run.session import RunSpec, run_rig
from torqueloop.hil.runs.recorded_run import read_run

CONFIGS = Path(torqueloop.__file__).parent / "configs"
TREES = CONFIGS / "trees"
with_pinocchio = pytest.mark.skipif(
    importlib.util.find_spec("pinocchio") is None, reason="Pinocchio is not installed (pip install pin)"
)
#: inertia of a flywheel with what turns in it at rest
WHEEL = Body("wheel", 1.0, (1.0, 1.0, 1.5, 0, 0, 0))
NO_WEIGHT = (0.0, 0.0, 0.0)
#: a start that is no attitude
JOINED = 'joint = "spherical"\nquaternion = [1.0, 0.1, 0.0, 0.0]'

#: a component with a table in a file
LINING = """[driveline.drive.components]
lining = { kind = "BearingFriction", tau_pos = { columns = ["speed_radps", "torque_Nm"], csv = "lining.csv" } }"""


def on_the_wheel(line: Driveline, **inputs: Signal) -> Coupled:
    named = {key.replace("__", "."): value for key, value in inputs.items()}
    drive = Carried("d", compile_driveline(line), "wheel", (0, 0, 1), named)
    return Coupled(Tree((WHEEL,), NO_WEIGHT), [drive])


@with_pinocchio
def test_a_tree_with_components_of_its_own_may_be_extended(tmp_path: Path) -> None:
    """Found by rt_tests/fuzz/fuzz tree: the components were looked for in the file that extends the other one."""
    path = tmp_path / "mine.toml"
    path.write_text(f'kind = "tree"\nextends = "{TREES / "body_mounted_actuator.toml"}"\ntree.name = "mine"\n')
    mine, given = load_tree(path), load_tree(TREES / "body_mounted_actuator.toml")
    assert mine.config.tree.name == "mine" and mine.system.row_names == given.system.row_names
    assert np.array_equal(mine.q, given.q) and np.array_equal(mine.v, given.v)


@with_pinocchio
def test_a_table_stands_beside_the_file_that_names_it(tmp_path: Path) -> None:
    """Also when a file in another folder extends that one."""
    base = tmp_path / "base"
    base.mkdir()
    text = (TREES / "body_mounted_actuator.toml").read_text()
    text = text.replace('["motor.flange", "rotor.flange_a"]', '["motor.flange", "lining.flange_a", "rotor.flange_a"]')
    (base / "arm.toml").write_text(text.replace("[driveline.drive.components]", LINING))
    (base / "lining.csv").write_text("speed_radps,torque_Nm\n0,3\n100,5\n")
    (tmp_path / "mine.toml").write_text('kind = "tree"\nextends = "base/arm.toml"\n')
    assert load_tree(tmp_path / "mine.toml").system.row_names == load_tree(base / "arm.toml").system.row_names


@with_pinocchio
def test_a_clutch_slides_until_its_slip_ends_inside_a_step() -> None:
    """Two rotors on a wheel that is free, 3 Nm at the clutch, 1 Nm at the motor; steps of 10 ms. Closed form."""
    line = Driveline()
    line.add("motor", Torque())
    line.add("a", Inertia(J=0.5, w0=20.0))
    line.add("c", Clutch(fn_max=100.0, mue_pos=0.3, cgeo=0.1))
    line.add("b", Inertia(J=0.25))
    line.connect("motor.flange", "a.flange_a")
    line.connect("a.flange_b", "c.flange_a")
    line.connect("c.flange_b", "b.flange_a")
    run = integrate(on_the_wheel(line, motor__tau=Constant(1.0), c__f_normalized=Constant(1.0)), 1.5, 0.01)
    # a: 0.5 (dw + z) = 1 - 3, b: 0.25 (dw + z) = 3, all: 1.5 z + 0.5 dw_a + 0.25 dw_b = 0; the slip: -20 + 16 t
    z, end = -4 / 3, 20 / 16
    a = 20 + (-4 - z) * end + (1 / 0.75 - z) * (1.5 - end)
    assert run.u[-1] == pytest.approx([a, a], rel=1e-10)
    assert run.v[-1, 0] == pytest.approx(z * 1.5, rel=1e-10)
    assert run.loss[-1] == pytest.approx(3.0 * 20 * end / 2, rel=1e-10) and run.books < 1e-9
    assert set(run.modes[run.t < end - 1e-9, 0]) == {-1.0} and set(run.modes[run.t > end + 1e-9, 0]) == {0.0}
    # stuck it carries what the second rotor takes: 0.25 (dw + z)
    assert run.frictions[-1, 0] == pytest.approx(0.25 / 0.75, rel=1e-9)


@with_pinocchio
@pytest.mark.parametrize("way", [1.0, -1.0])
@pytest.mark.parametrize("peak", [1.0, 1.5])
def test_a_brake_holds_up_to_its_limit_and_slides_from_there(peak: float, way: float) -> None:
    line = Driveline()
    line.add("motor", Torque())
    line.add("a", Inertia(J=0.5))
    line.add("brake", Brake(fn_max=100.0, mue_pos=0.2, cgeo=0.1, peak=peak))
    line.connect("motor.flange", "a.flange_a")
    line.connect("a.flange_b", "brake.flange_a")
    ramp = Table([[0.0, 0.0], [1.0, 4.0 * way], [2.0, 4.0 * way]])
    run = integrate(on_the_wheel(line, motor__tau=ramp, brake__f_normalized=Constant(1.0)), 1.0, 0.01)
    # 2 Nm sliding, peak as much at rest; then 0.5 (dw + z) = 4 t - 2 and 1.5 z + 0.5 dw = 0
    free = peak * 0.5
    assert np.abs(run.u[run.t < free - 1e-9]).max() == 0.0
    turned = ((2 - 2) - (2 * free**2 - 2 * free)) / (0.5 * (1 - 0.5 / 1.5))
    assert run.u[-1, 0] == pytest.approx(way * turned, rel=1e-8) and run.books < 1e-9
    assert run.modes[-1, 0] == way and run.modes[0, 0] == 0.0


@with_pinocchio
@pytest.mark.parametrize("count", [2, 8])
def test_brakes_on_one_shaft_share_what_they_hold_and_begin_to_slide_together(count: int) -> None:
    """All rest at the same time, more than there are speeds to hold. 2 Nm each, the torque rises by 4 Nm each in 1 s:
    they hold up to 0.5 s; then 0.5 (dw + z) = count (4 t - 2) and 1.5 z + 0.5 dw = 0."""
    line = Driveline()
    line.add("motor", Torque())
    line.add("a", Inertia(J=0.5))
    line.connect("motor.flange", "a.flange_a")
    pressed = {}
    for k in range(count):
        line.add(f"b{k}", Brake(fn_max=100.0, mue_pos=0.2, cgeo=0.1))
        line.connect("a.flange_b", f"b{k}.flange_a")
        pressed[f"b{k}__f_normalized"] = Constant(1.0)
    ramp = Table([[0.0, 0.0], [1.0, 4.0 * count], [2.0, 4.0 * count]])
    run = integrate(on_the_wheel(line, motor__tau=ramp, **pressed), 1.0, 0.01)
    holds = run.t < 0.5 - 1e-9
    assert np.abs(run.u[holds]).max() < 1e-12 and set(run.modes[holds].flat) == {0.0}
    assert run.frictions[holds] == pytest.approx(np.tile(-4.0 * run.t[holds, None], count), abs=1e-9)
    assert set(run.modes[-1]) == {1.0} and run.frictions[-1] == pytest.approx(-2.0)
    assert run.u[-1, 0] == pytest.approx(count * 0.5 / (0.5 * (1 - 0.5 / 1.5)), rel=1e-8) and run.books < 1e-9


@with_pinocchio
def test_a_clutch_that_breaks_away_lets_a_brake_go_with_it() -> None:
    """The clutch bears 3 Nm at rest and 2 sliding, the brake behind it 2 against 4.5 less what the clutch gives: 1.5
    before the clutch slides, 2.5 from there on. T = 2.6 + 0.8 t: it does so at 0.5 s."""
    line = Driveline()
    for name, part in (("motor", Torque()), ("a", Inertia(J=0.5)), ("b", Inertia(J=0.25)), ("load", Torque()),
                       ("c", Clutch(fn_max=100.0, mue_pos=0.2, cgeo=0.1, peak=1.5)),
                       ("brake", Brake(fn_max=100.0, mue_pos=0.2, cgeo=0.1))):  # fmt: skip
        line.add(name, part)
    line.connect("motor.flange", "a.flange_a")
    line.connect("a.flange_b", "c.flange_a")
    line.connect("c.flange_b", "b.flange_a")
    line.connect("b.flange_b", "brake.flange_a", "load.flange")
    inputs = {"motor__tau": Table([[0.0, 2.6], [2.0, 4.2]]), "load__tau": Constant(-4.5)}
    pressed = {"c__f_normalized": Constant(1.0), "brake__f_normalized": Constant(1.0)}
    run = integrate(on_the_wheel(line, **inputs, **pressed), 1.0, 0.01)
    assert np.abs(run.u[run.t < 0.5 - 1e-9]).max() < 1e-12
    # 0.5 (dw_a + z) = T - 2, 0.25 (dw_b + z) = 2 - 4.5 + 2, 1.5 z + 0.5 dw_a + 0.25 dw_b = 0
    s = 0.5
    turned = -(0.5 * s + 0.4 * s**2) / 0.75
    assert run.u[-1] == pytest.approx([2 * (s + 0.4 * s**2) - turned, -2 * s - turned], rel=1e-7)
    assert list(run.modes[-1]) == [-1.0, -1.0] and run.books < 1e-9


@with_pinocchio
def test_a_free_wheel_overruns_and_catches() -> None:
    """It blocks w_b < w_a: a torque on its first shaft drives the second; turned round, the first is left behind."""
    line = Driveline()
    line.add("motor", Torque())
    line.add("a", Inertia(J=0.5))
    line.add("f", FreeWheel())
    line.add("b", Inertia(J=0.25))
    line.connect("motor.flange", "a.flange_a")
    line.connect("a.flange_b", "f.flange_a")
    line.connect("f.flange_b", "b.flange_a")
    turn = Table([[0.0, 3.0], [0.105, 3.0], [0.105, -3.0], [1.0, -3.0]])
    run = integrate(on_the_wheel(line, motor__tau=turn), 0.2, 0.01)
    at = int(np.searchsorted(run.t, 0.1))
    assert run.u[at, 0] == pytest.approx(run.u[at, 1], rel=1e-12) and run.u[at, 0] > 0.3
    assert run.u[-1, 0] < run.u[-1, 1] - 0.5 and run.modes[-1, 0] != 0.0 and run.frictions[-1, 0] == 0.0
    assert run.books < 1e-9


def test_a_clutch_that_a_tree_cannot_press_is_named() -> None:
    line = Driveline()
    line.add("a", Inertia(J=1.0))
    line.add("c", LaminarClutch(faces=2, r_o=0.1, r_i=0.08, mue_pos=0.1, area=0.01))
    line.add("b", Inertia(J=1.0))
    line.connect("a.flange_b", "c.flange_a")
    line.connect("c.flange_b", "b.flange_a")
    with pytest.raises(CompileError, match="'act'|presses 'c'"):
        Carried("d", compile_driveline(line), "wheel", (0, 0, 1), {"c.p": Constant(0.0)})


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "examples" / "figures" / "body_mounted_actuator.py"
    if not path.is_file():
        pytest.skip("examples are in the repository only")
    spec = importlib.util.spec_from_file_location("body_mounted_actuator_script", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@with_pinocchio
def test_the_file_is_the_system_of_the_script(script: ModuleType) -> None:
    """body_mounted_actuator.py compares it with Pinocchio by SciPy and with MuJoCo; the same motion here."""
    built = load_tree(TREES / "body_mounted_actuator.toml")
    ours = integrate(built.system, 0.05, 1e-3, q=built.q, v=built.v)
    wanted, _ = script.ours(script.PARALLEL, 1e-3, 0.05)
    for name in ("q", "v", "z", "u", "multipliers", "wrenches"):
        assert getattr(ours, name) == pytest.approx(getattr(wanted, name), rel=1e-12, abs=1e-12), name


@with_pinocchio
def test_gear_constraint_and_actuated_joint_of_the_joint_drive(tmp_path: Path) -> None:
    """The brake holds the arm, a torque turns the two wheels on it: closed form over their common inertia."""
    out = tmp_path / "run.csv"
    files = ["--set", "tree.duration_s=0.34", "--set", "tree.step_s=0.02", "--out", str(out)]
    assert main(["joint_drive", *files]) == 0
    with out.open() as stream:
        rows = {float(r["t"]): {k: float(v) for k, v in r.items()} for r in csv.DictReader(stream)}
    held, moving = rows[min(rows, key=lambda t: abs(t - 0.2))], rows[max(rows)]
    assert held["arm.phi"] == 0.0 and held["drive.brake.mode"] == 0.0
    assert held["wheel.w"] == pytest.approx(0.5 * 0.02 * 0.2 / (0.002 + 0.003 / 4), rel=1e-9)
    assert held["tool.w"] == pytest.approx(held["wheel.w"] / 2, rel=1e-12)
    # the weight of the arm and what is on it, through the gear of 20, and no more: nothing else turns about its axis
    weight = 9.81 * (5 * 0.25 + 0.6 * 0.4 + 0.8 * 0.5)
    assert held["shoulder.tau"] == pytest.approx(weight, rel=0.02)
    assert held["drive.brake.tau"] == pytest.approx(held["shoulder.tau"] / 20, rel=1e-9)
    assert moving["arm.w"] == pytest.approx(moving["drive.shaft.w"] / 20, rel=1e-12) and abs(moving["arm.w"]) > 0.01


@with_pinocchio
@pytest.mark.parametrize(("old", "new", "words"), [
    ('joint_b = "tool"', 'joint_b = "tol"', ["gear.bevel", "joint_b", "'tol'", "column, arm, wheel, tool"]),
    ('joint_b = "tool"', 'joint_b = "column"', ["gear.bevel", "joint_b", "two joints on one housing"]),
    ("ratio = 2.0", "ratio = 0.0", ["gear.bevel", "ratio", "not 0"]),
    ('joint = "arm"', 'joint = "wheel"', ["actuator.shoulder", "flange", "'drive' is on 'column'", "'arm'"]),
    ('flange = "drive.output', 'flange = "drvie.output', ["actuator.shoulder", "flange", "drvie"]),
    ('flange = "drive.output', 'flange = "drive.outptu', ["shoulder", "outptu"]),
    ('body = "column"', 'body = "colum"', ["colum"]),
    ("mass_kg = 5.0", "mass = 5.0", ["body.arm", "mass"]),
    ("mass_kg = 5.0", "mass_kg = 0", ["body.arm", "mass_kg"]),
    ("w_radps = 0.8", "v_mps = 0.8", ["body.column", "v_mps", "angle_rad, w_radps"]),
    ("w_radps = 0.8", JOINED, ["body.column", "quaternion", "length"]),
    ("[0.02, 0.2, 0.2, 0.0", "[0.02, 0.2, 0.9, 0.0", ["arm", "inertia"]),
    ("J_kgm2 = 0.001 }", "J = 0.001 }", ["driveline.drive.components.shaft", "J_kgm2"]),
    ('"shaft.flange_b", "brake', '"shaft.flange_c", "brake', ["driveline.drive", "shaft.flange_c"]),
    ('"wheel.tau_Nm"', '"wheel.tau"', ["inputs", "wheel.tau", "unit"]),
    ('"drive.motor.tau_Nm" = -0.5', "", ["inputs", "drive.motor.tau"]),
    ('"drive.motor.tau_Nm"', '"drive.engine.tau_Nm"', ["inputs", "drive.engine.tau_Nm"]),
    ('[driveline.drive]\n', '[driveline.drive]\nfile = "x.toml"\n', ["driveline.drive", "file"]),
])  # fmt: skip
def test_mistakes_in_the_file_are_named(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    text = (TREES / "joint_drive.toml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "tree.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        load_tree(path)
    assert all(word in str(error.value) for word in ["tree.toml", *words]), str(error.value)


@with_pinocchio
def test_a_tree_goes_back_to_a_saved_state() -> None:
    built = load_tree(TREES / "joint_drive.toml")
    stepper = Stepper(built.system, q=built.q, v=built.v)
    stepper.advance(0.0, 0.3)
    data = stepper.save()
    stepper.advance(0.3, 0.02, 2)
    first = stepper.state
    stepper.load(data)
    stepper.advance(0.3, 0.02, 2)
    assert np.array_equal(first.v, stepper.state.v) and np.array_equal(first.z, stepper.state.z)
    with pytest.raises(ValueError, match="another tree"):
        stepper.load({**data, "v": [0.0]})


@with_pinocchio
def test_a_tree_as_a_peer_of_the_rig(tmp_path: Path) -> None:
    """Flywheel in the tick, platform and arm in the tree: angular momentum about the vertical is kept, a tick late; the
    arm falls meanwhile as a pendulum with a moving foot does; the recording replays without the tree."""
    rig = CONFIGS / "examples" / "external" / "flywheel_on_tree.toml"
    result = run_rig(rig, RunSpec("virtual", 0.4, tmp_path / "run"))
    assert result.exit_status == 0
    run = read_run(tmp_path / "run")
    w, W, phi = run["rotor.w"], run["tree.platform.w_z"], run["tree.arm.phi"]
    assert abs(phi[-1] - phi[0]) > 0.1
    # of platform, arm and rotor at rest about the vertical, as the arm stands now: its far end goes in and out
    out = 0.2 + 0.4 * np.cos(phi)
    inertia = 2.0 + 3.0 * out**2 + 0.15 * np.cos(phi) ** 2 + 0.01 * np.sin(phi) ** 2
    momentum = inertia * W + 0.25 * w
    assert abs(W[-1]) > 0.3
    assert np.abs(momentum).max() < 5e-3 * np.abs(0.25 * w).max()
    assert replay(tmp_path / "run").hash_equal


@with_pinocchio
@pytest.mark.parametrize(("old", "new", "words"), [
    ('"platform.t_x" = "platform.t_x", ', '"platfrom.t_x" = "platform.t_x", ', ["no input", "platfrom.t_x"]),
    ('"arm.phi" = "rad"', '"arm.psi" = "rad"', ["ecu.tree.actuators", "arm.psi"]),
    ('"arm.phi" = "rad"', '"arm.phi" = "rad/s"', ["ecu.tree.actuators", "arm.phi", "another unit"]),
    ("period_s = 1e-3", "period = 1e-3", ["ecu.tree.options", "period"]),
])  # fmt: skip
def test_pins_of_a_tree_are_checked(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    text = (CONFIGS / "examples" / "external" / "flywheel_on_tree.toml").read_text(encoding="utf-8")
    assert old in text
    text = text.replace(old, new).replace("../../trees", str(TREES))
    text = text.replace("../flywheel", str(CONFIGS / "examples" / "flywheel"))
    (tmp_path / "rig.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        run_rig(tmp_path / "rig.toml", RunSpec("virtual", 0.01, tmp_path / "run"))
    assert all(word in str(error.value) for word in words), str(error.value)


STEPS = [(1e-3, 1e-3, 1), (5e-3, 1e-3, 5), (5e-3, 2e-3, 3), (1e-3, 2e-3, 1), (0.0025, 1e-3, 3), (0.1, 1e-3, 100)]


@pytest.mark.parametrize(("period_s", "step_s", "steps"), STEPS)
def test_a_tree_makes_as_few_steps_in_a_period_as_its_longest_step_allows(
    period_s: float, step_s: float, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[float, float, int]] = []
    stepper = SimpleNamespace(advance=lambda t, h, n: made.append((t, h, n)))
    monkeypatch.setattr(unit, "Stepper", lambda system, q, v: stepper)
    monkeypatch.setattr(unit, "readers", lambda system: {})
    told: list[tuple[float, float]] = []
    built = SimpleNamespace(system=None, q=None, v=None, config=SimpleNamespace(tree=SimpleNamespace(step_s=step_s)),
                            told={"x": SimpleNamespace(tell=lambda t, value: told.append((t, value)))})  # fmt: skip
    tree = unit.TreeUnit(built, period_s, ("x",), ())  # type: ignore[arg-type]
    for k in range(3):
        tree.step(SimpleNamespace(t_s=k * period_s, sensors=(7.0 + k,)))  # type: ignore[arg-type]
    assert made == [(0.0, pytest.approx(period_s), steps), (period_s, pytest.approx(period_s), steps)]
    assert told == [(k * period_s, 7.0 + k) for k in range(3)] and tree.stop().reported == {"exchanges": 3}
