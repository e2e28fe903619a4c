"""The file of a tree of bodies -> the coupled system; mistakes become errors with file, table, key and value."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from torqueloop.core.compile.compiler import CompiledModel, compile_driveline
from torqueloop.core.components import KINDS
from torqueloop.core.components.files import load
from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.driveline import Driveline
from torqueloop.core.describe.errors import ConfigError, TorqueloopError, UnknownNameError, did_you_mean
from torqueloop.core.describe.toml_front import read_component
from torqueloop.core.multibody import (
    Body,
    BodyShaft,
    Carried,
    Coupled,
    PointHeld,
    Row,
    Tree,
    actuated_revolute,
    gear_constraint,
)
from torqueloop.core.signals import Constant, Signal
from torqueloop.hil.common.config_layers import load_config
from torqueloop.hil.common.locate import find
from torqueloop.hil.common.model_inputs import inputs_over_time
from torqueloop.hil.multibody.tree_tables import BodyTable, DrivelineTable, ShaftTable, TreeConfig

AXES = ("x", "y", "z")


class Told(Signal):
    """An input that a participant receives: linear between its last value and the present one."""

    def __init__(self) -> None:
        self.t0, self.t1, self.y0, self.y1 = 0.0, 0.0, 0.0, 0.0

    def tell(self, t: float, value: float) -> None:
        """The value at t."""
        self.t0, self.y0, self.t1, self.y1 = self.t1, self.y1, t, value

    def sample(self, t: np.ndarray, side: int = 0) -> np.ndarray:
        """Linear between the two, constant outside."""
        if self.t1 <= self.t0:
            return np.full(t.shape, self.y1)
        share = np.clip((t - self.t0) / (self.t1 - self.t0), 0.0, 1.0)
        found: np.ndarray = self.y0 + share * (self.y1 - self.y0)
        return found

    def value(self, t: float) -> float:
        """At t."""
        return float(self.sample(np.array([t]))[0])

    before = after = value


@dataclass(frozen=True, eq=False)
class BuiltFile:
    """A file that was read: the system, its start, and the inputs that it can receive."""

    config: TreeConfig
    path: Path
    system: Coupled
    q: np.ndarray
    v: np.ndarray
    told: Mapping[str, Told]


def load_tree(path: Path | str, told: Collection[str] = (), overrides: Mapping[str, Any] | None = None) -> BuiltFile:
    """Read a file of a tree. told: inputs that are received while it runs, instead of [inputs]. ConfigError, and any
    error of the system, with the file and the table."""
    path = Path(path)
    config = load_config(path, TreeConfig, overrides)
    models = {name: _model(path, config, name, table) for name, table in config.driveline.items()}
    units = _units(config, models)
    for name in told:
        if name not in units:
            raise UnknownNameError("the tree has no input {value}", file=str(path), value=name,
                                   hint=did_you_mean(name, units))  # fmt: skip
    optional = {*(name for name in units if name.split(".")[0] in config.body), *told}
    given = inputs_over_time(config.inputs, units, str(path), owner="the tree", optional=optional)
    given |= {name: Told() for name in told}
    with _placed(path):
        system = _system(config, models, given)
        q, v = _start(config, system)
    return BuiltFile(config, path, system, q, v, {name: s for name, s in given.items() if isinstance(s, Told)})


@contextmanager
def _placed(path: Path, table: str | None = None) -> Iterator[None]:
    """Errors of the system get the file, and the table where it is known."""
    try:
        yield
    except ConfigError as error:
        raise error.located(file=str(path), table=table) from None
    except TorqueloopError as error:
        raise ConfigError(str(error), file=str(path), table=table) from None


def _model(path: Path, config: TreeConfig, name: str, table: DrivelineTable) -> CompiledModel:
    where = f"driveline.{name}"
    if table.file is not None:
        try:
            file = find(path, table.file, "powertrains")
        except ConfigError as error:
            raise error.located(file=str(path), table=where, key="file") from None
        return compile_driveline(load(file))
    line = Driveline(name)
    for component, body in table.components.items():
        with _placed(path, f"{where}.components.{component}"):
            line.add(component, read_component(_exact(body), path.parent, KINDS))
    with _placed(path, where):
        for group in table.connections:
            line.connect(*group)
        return compile_driveline(line)


def _exact(value: Any) -> Any:
    """Numbers as they stand in the file: ratios and tooth numbers are exact."""
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_exact(item) for item in value]
    return Decimal(repr(value)) if isinstance(value, float) else value


def _units(config: TreeConfig, models: Mapping[str, CompiledModel]) -> dict[str, str]:
    """Everything that may be an input."""
    found = {
        f"{name}.{i}": unit
        for name, model in models.items()
        for i, unit in zip(model.input_names, model.input_units, strict=True)
    }
    for name, body in config.body.items():
        if body.joint in ("revolute", "prismatic"):
            short, unit = ("tau", "Nm") if body.joint == "revolute" else ("f", "N")
            found[f"{name}.{short}"] = unit
        found |= {f"{name}.t_{axis}": "Nm" for axis in AXES}
    return found


def _system(config: TreeConfig, models: Mapping[str, CompiledModel], given: Mapping[str, Signal]) -> Coupled:
    bodies = [_body(name, table) for name, table in config.body.items()]
    gravity = config.tree.gravity_mps2
    carried = []
    for name, table in config.driveline.items():
        axes = table.axes if isinstance(table.axes, dict) else _vector(table.axes)
        named = {k: _vector(x) for k, x in axes.items()} if isinstance(axes, dict) else axes
        own = {i: given[f"{name}.{i}"] for i in models[name].input_names}
        carried.append(Carried(name, models[name], table.body, named, own))
    rows: list[Row | PointHeld] = []
    for name, gear in config.gear.items():
        _one_housing(config, name, gear.joint_a, gear.joint_b)
        rows.append(gear_constraint(name, gear.joint_a, gear.joint_b, gear.ratio))
    for name, actuator in config.actuator.items():
        _on_the_parent(config, name, actuator.joint, actuator.flange)
        rows.append(actuated_revolute(name, actuator.joint, actuator.flange))
    for name, row in config.row.items():
        rows.append(Row(name, row.shafts, row.joints, {body: _vector(x) for body, x in row.rates.items()}))
    rows += [PointHeld(name, point.body, _vector(point.at_m)) for name, point in config.point.items()]
    joints = {n: given[k] for n in config.body for k in (f"{n}.tau", f"{n}.f") if k in given}
    none = Constant(0.0)
    moments = {
        n: (given.get(f"{n}.t_x", none), given.get(f"{n}.t_y", none), given.get(f"{n}.t_z", none))
        for n in config.body
        if any(f"{n}.t_{axis}" in given for axis in AXES)
    }
    shafts = [_shaft(name, table) for name, table in config.shaft.items()]
    return Coupled(Tree(tuple(bodies), _vector(gravity)), carried, rows, joints, moments, shafts)


def _vector(values: Sequence[float]) -> tuple[float, float, float]:
    x, y, z = values
    return x, y, z


def _body(name: str, t: BodyTable) -> Body:
    xx, yy, zz, xy, xz, yz = t.I_kgm2
    inertia = (xx, yy, zz, xy, xz, yz)
    return Body(name, t.mass_kg, inertia, _vector(t.com_m), t.parent, t.joint, _vector(t.axis), _vector(t.at_m))


def _shaft(name: str, t: ShaftTable) -> BodyShaft:
    return BodyShaft(
        name, t.flange_a, t.flange_b, _vector(t.n_a), _vector(t.n_b), _vector(t.at_a_m), _vector(t.at_b_m),
        t.c_Nm_per_rad, t.d_Nms_per_rad, t.joint_a, t.joint_b, math.radians(t.theta_deg), math.radians(t.phase_deg),
    )  # fmt: skip


def _one_housing(config: TreeConfig, name: str, a: str, b: str) -> None:
    for key, joint in (("joint_a", a), ("joint_b", b)):
        _revolute(config, f"gear.{name}", key, joint)
    if config.body[a].parent != config.body[b].parent:
        raise ConfigError(
            f"{{key}} = {{value}} is on {config.body[b].parent!r}, {a!r} on {config.body[a].parent!r}",
            table=f"gear.{name}", key="joint_b", value=b, allowed="two joints on one housing; else [row.NAME]",
        )  # fmt: skip


def _on_the_parent(config: TreeConfig, name: str, joint: str, flange: str) -> None:
    _revolute(config, f"actuator.{name}", "joint", joint)
    driveline = flange.partition(".")[0]
    if driveline not in config.driveline:
        raise UnknownNameError("{key} = {value}: there is no driveline of this name", table=f"actuator.{name}",
                               key="flange", value=flange, hint=did_you_mean(driveline, config.driveline))  # fmt: skip
    carrier, parent = config.driveline[driveline].body, config.body[joint].parent
    if carrier != parent:
        raise ConfigError(
            f"{{key}} = {{value}}: {driveline!r} is on {carrier!r}, the joint's parent is {parent!r}",
            table=f"actuator.{name}", key="flange", value=flange,
            allowed="a driveline on the parent of the joint; else [row.NAME]",
        )  # fmt: skip


def _revolute(config: TreeConfig, table: str, key: str, joint: str) -> None:
    if joint not in config.body or config.body[joint].joint != "revolute":
        known = [name for name, body in config.body.items() if body.joint == "revolute"]
        raise UnknownNameError("{key} = {value} is no revolute joint", table=table, key=key, value=joint,
                               allowed=", ".join(known) or "none")  # fmt: skip


def _start(config: TreeConfig, system: Coupled) -> tuple[np.ndarray, np.ndarray]:
    built = system.built
    q, v = np.array(built.pin.neutral(built.model)), np.zeros(system.nv)
    for name, body in config.body.items():
        joint = built.model.joints[built.index(name, "start")]
        if joint.nv == 1:
            q[joint.idx_q] = body.angle_rad or body.place_m or 0.0
            v[joint.idx_v] = body.w_radps or body.v_mps or 0.0
            continue
        if body.quaternion is not None:
            w, *xyz = body.quaternion
            q[joint.idx_q + joint.nq - 4 : joint.idx_q + joint.nq] = [*xyz, w]
        if body.omega_radps is not None:
            v[joint.idx_v + joint.nv - 3 : joint.idx_v + joint.nv] = body.omega_radps
    return q, v
