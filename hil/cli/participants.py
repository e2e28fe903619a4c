"""Commands that start a participant of a rig: the soft control unit, the vehicle."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from torqueloop.core.describe.errors import ConfigError, did_you_mean
from torqueloop.hil.cli.common import command, print_json
from torqueloop.hil.cli.control import KeyOption, ServerKeyOption
from torqueloop.hil.common.locate import locate

TcuName = Annotated[str, typer.Argument(help="TCU file, or the bare name of an installed one.")]
VehicleName = Annotated[str, typer.Argument(help="Vehicle file, or the bare name of an installed one.")]
DurationOption = Annotated[float | None, typer.Option("--duration", metavar="S", help="Seconds; default: no limit.")]
LockstepOption = Annotated[
    bool, typer.Option("--lockstep", help="One exchange per tick, for a rig with --clock virtual.")
]


@command
def tcu(
    config: TcuName = "soft_4hp22",
    rig: Annotated[str, typer.Option(help="Rig file the bus is described in, or an installed one.")] = "desk_4hp22",
    bus: Annotated[str | None, typer.Option(metavar="NAME", help="Which of its buses; default: the only one.")] = None,
    node: Annotated[str, typer.Option(help="Its node in the database of the bus.")] = "TCU",
    duration: DurationOption = None,
    interface: Annotated[str | None, typer.Option(help="Interface of python-can instead of the rig's.")] = None,
    channel: Annotated[str | None, typer.Option(help="Its channel, e.g. vcan0.")] = None,
    port: Annotated[int | None, typer.Option(help="UDP port instead of the rig's (udp_multicast).")] = None,
) -> None:
    """Run the simulated transmission control unit on a CAN bus of a rig file: schedule, pressures, lock-up."""
    from torqueloop.hil.ecu.control_unit import Bus, EcuSetup
    from torqueloop.hil.ecu.process import unit_loop
    from torqueloop.hil.record.run_folder import DURATION_MAX_S
    from torqueloop.hil.rig.resolve.plan import load_plan

    if duration is not None and not 0 < duration <= DURATION_MAX_S:
        allowed = f"> 0 .. {DURATION_MAX_S:g}"
        raise ConfigError("{key} = {value} s is not allowed", key="duration", value=duration, allowed=allowed)
    if (interface is None) != (channel is None):
        raise ConfigError("--interface and --channel go together", key="channel", value=channel)
    plan = load_plan(locate(rig, "rigs"))
    names = [planned.name for planned in plan.buses]
    if bus is None and len(names) != 1:
        raise ConfigError(f"{rig} has {len(names)} buses: which one?", key="bus", allowed=", ".join(names) or "none")
    if bus is not None and bus not in names:
        raise ConfigError(f"{rig} has no bus {{value}}", key="bus", value=bus, allowed=", ".join(names),
                          hint=did_you_mean(bus, names))  # fmt: skip
    planned = plan.bus(bus or names[0])
    place = planned.config.bus(planned.database.has_fd)
    if interface is not None and channel is not None:
        place = replace(place, interface=interface, channel=channel)
    place = place if port is None else replace(place, port=port)
    on = Bus(planned.name, planned.database.path, node, place, planned.database.node)
    setup = EcuSetup("tcu", plan.config.clock.tick_s, locate(config, "tcu"), (on,))
    print_json(unit_loop("soft_tcu", setup, duration))


@command
def vehicle(
    config: VehicleName = "bmw_528i_e28",
    endpoint: Annotated[str | None, typer.Option(help="Where the rig listens, e.g. tcp://127.0.0.1:5555.")] = None,
    lockstep: LockstepOption = False,
    key: KeyOption = None,
    server_key: ServerKeyOption = None,
) -> None:
    """Run the vehicle model, coupled to a rig over ZeroMQ: road, grade, air, brakes."""
    from torqueloop.hil.link.keys import client_keys
    from torqueloop.hil.vehicle.process import main_loop
    from torqueloop.hil.vehicle.vehicle_tables import load_vehicle_config

    curve = client_keys(key, server_key)
    stats = main_loop(load_vehicle_config(locate(config, "vehicles")), endpoint, lockstep, curve=curve)
    print_json(stats)
