"""What is checked of a rig beyond its own file before anything is started: companions, identifiers, gates."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from torqueloop.core.errors import ConfigError
from torqueloop.hil.can.database import check_owners
from torqueloop.hil.gates import Gate, parse_gates, unknown_name
from torqueloop.hil.report.collect import Run
from torqueloop.hil.report.metrics import build_metrics
from torqueloop.hil.rig.config import relative
from torqueloop.hil.rig.parts import RigParts
from torqueloop.hil.rig.plan import RigPlan
from torqueloop.hil.rig.run_stats import Energy, run_stats
from torqueloop.hil.tcu.config import TcuConfig, load_tcu_config
from torqueloop.hil.tcu.soft_tcu import load_tcu_database
from torqueloop.hil.vehicle.config import load_vehicle_config

#: metrics of links, peers and recorder: their names are known when they have run
_LATER = ("peers_", "can_gateway_", "can_native_", "vehicle_", "recording_")


def check_companions(plan: RigPlan) -> TcuConfig | None:
    """Read the files of the companions, and see that nobody else sends our identifiers."""
    c = plan.config
    if c.vehicle is not None and c.vehicle.start is not None:
        file = _file(plan, "vehicle", c.vehicle.start)
        body = load_vehicle_config(file).body
        mass = plan.vehicle["momentum"][0][2]
        if abs(body.mass_kg - mass) > 1e-6 * mass:
            raise ConfigError(
                f"{file} has mass_kg = {body.mass_kg:g}, the powertrain's {c.vehicle.car!r} {mass:g} kg",
                file=str(plan.path),
                table="vehicle",
                key="start",
                value=c.vehicle.start,
                allowed="the same mass on both sides",
            )
    if c.tcu is None:
        return None
    assert plan.database is not None and c.can is not None
    config = load_tcu_config(_file(plan, "tcu", c.tcu.start), c.can.place() if c.tcu.bus == "rig" else None)
    check_owners([plan.database, load_tcu_database(config)])
    ours, theirs = c.can.place(), config.can.place()
    for key, value in ours.items():
        if theirs.get(key) != value:
            raise ConfigError(
                f"rig and control unit are on different buses: {key} = {value!r} here, {theirs.get(key)!r} in "
                f"{relative(plan.path, c.tcu.start)}",
                file=str(plan.path),
                table="can",
                key=key,
                value=value,
            )
    return config


def _file(plan: RigPlan, table: str, name: str) -> Path:
    path = relative(plan.path, name)
    if not path.is_file():
        problem = f"start = {name!r}: no such file"
        raise ConfigError(problem, file=str(plan.path), table=table, key="start", value=name)
    return path


def check_gates(plan: RigPlan, parts: RigParts, gates: Iterable[Gate]) -> None:
    """GateError for a gate on a metric that a run of this rig cannot have: a slip must not cost the run."""
    stats = run_stats(plan, parts, Energy(plan, parts), [], {})
    known = build_metrics(Run(Path(), {}, None, [], ""), stats, [])
    for gate in gates:
        for name in gate.names:
            if name not in known and not name.startswith(_LATER):
                raise unknown_name(gate, name, known)


def own_gates(plan: RigPlan) -> list[Gate]:
    """The gates of the rig file."""
    return parse_gates(dict(plan.config.gates), f"{plan.path} [gates]")
