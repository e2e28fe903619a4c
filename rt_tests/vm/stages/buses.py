"""Stages of the machine about buses: the rest of three buses, and interfaces of makers through all gears."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from interface_drives import driven

from stages.inside import CONFIGS, run, say, tcu_stats, unit_process
from stages.restbus_rig import SIZES, frames_per_s, write_restbus
from torqueloop.hil.catalogue.interfaces import BUS, RIGS
from torqueloop.hil.rig.resolve.plan import load_plan

#: the brakes of the desk's cars at full pedal, rolling resistance [N]; air and rest as a damping [N s/m]
BRAKES_N, ROLLING_N, DRAG = 16_000.0, 200.0, 15.0


def _sent(channel: str) -> int:
    """Frames that the kernel has sent on an interface, by its own count."""
    return int(Path(f"/sys/class/net/{channel}/statistics/tx_packets").read_text())


def restbus(folder: Path, seconds: float) -> dict[str, Any]:
    """200 protected messages on three interfaces, each through the tick's own socket."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["ip", "link", "add", "dev", "vcan2", "type", "vcan"], check=True)
    subprocess.run(["ip", "link", "set", "vcan2", "mtu", "72", "txqueuelen", "100", "up"], check=True)
    channels = [f"vcan{k}" for k in range(3)]
    places = [f'interface = "socketcan"\nchannel = "{channel}"' for channel in channels]
    rig = write_restbus(folder, CONFIGS / "examples" / "two_blocks.toml", places)
    before = [_sent(channel) for channel in channels]
    stats = run(rig, seconds, folder / "out")
    clock, compute = stats.clock, stats.clock.compute_us
    assert compute is not None
    sent = [_sent(channel) - n for channel, n in zip(channels, before, strict=True)]
    # the other stages have the two that the machine begins with
    subprocess.run(["ip", "link", "delete", "vcan2"], check=True)
    return {
        "messages": sum(SIZES),
        "ticks": clock.ticks,
        "missed": clock.missed,
        "overruns": clock.overruns,
        "margin_min_us": clock.margin_min_us,
        "degraded": stats.degraded,
        # counted time: 1 ns is an instruction, the kernel's of sending included
        "compute_ns": {k: 1e3 * getattr(compute, k) for k in ("mean", "p50", "p99", "max")},
        "buses": {
            name: {"due": rate * seconds, "sent": n, "tx_frames": bus.tx_frames,
                   "lost": bus.native.tx_lost if bus.native else None}
            for (name, bus), n, rate in zip(stats.buses.items(), sent, frames_per_s(), strict=True)
        },
    }  # fmt: skip


def interface_rig(folder: Path, name: str) -> Path:
    """A maker's rig on vcan0 and vcan1, its road and brakes in the tick: nothing of Python but the control unit runs
    beside the loop."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        f'extends = "{CONFIGS / "rigs" / name}.toml"',
        'without = ["vehicle", "gates", "bus.car.port"]',
        'bus.powertrain.interface = "socketcan"',
        'bus.powertrain.channel = "vcan0"',
        f'bus.{BUS}.interface = "socketcan"',
        f'bus.{BUS}.channel = "vcan1"',
        f"""inputs.'road.F' = {{ signal = "car.v", gain = -{DRAG} }}""",
        f"""inputs.'road.F_hold' = {{ signal = "driver.brake", gain = {BRAKES_N}, offset = {ROLLING_N} }}""",
    ]
    path = folder / "rig.toml"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def interfaces(folder: Path, rigs: Sequence[str] = RIGS) -> dict[str, Any]:
    """Each maker's rig through all gears up and down."""
    found = {}
    for name in rigs:
        rig = interface_rig(folder / name, name)
        plan = load_plan(rig)
        with unit_process(folder / name, plan):
            stats = run(rig, plan.config.rig.duration_s, folder / name / "out")
        found[name] = driven(folder / name / "out", name, stats, tcu_stats(folder / name))
        found[name] |= {"degraded": stats.degraded, "overruns": stats.clock.overruns}
        say(f"  {name}: {found[name]}")
        shutil.rmtree(folder / name / "out")
    return found
