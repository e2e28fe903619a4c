"""Instructions that channels of I/O devices add to a tick, counted by callgrind.

    python scripts/bench/bench_io.py

The rig has one driveline of two blocks and one device, the driver of docs/io.md with more room, that loops outputs to
inputs. Each count is the difference to the same rig without the device, per tick and per channel; those of the driver
are apart. "changing": all values change in each tick, so the tick also keeps them in its input record.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from instruction_counts import Profile, start_counting, under_callgrind

from torqueloop.hil.io.library import OpenDevice
from torqueloop.hil.rig.assemble.parts import build
from torqueloop.hil.rig.devices.io import IoCards
from torqueloop.hil.rig.resolve.plan import load_plan

ROOT = Path(__file__).resolve().parents[2]
#: ticks that are counted
TICKS = 400
#: inputs and outputs of the device
COUNTS = (0, 4, 16, 64)
RIG = """kind = "rig"
[rig]
name = "bench_io"
[plant]
powertrain = "{plant}"
[inputs]
"u1.f" = {{ value = 0.0 }}
"u2.f" = {{ value = 0.0 }}
"""


def write_rig(folder: Path, count: int, source: str) -> Path:
    """A rig with so many inputs and outputs; source: signal of all outputs."""
    page = (ROOT / "docs" / "io.md").read_text(encoding="utf-8")
    driver = page.split("```c\n", 1)[1].split("```", 1)[0].replace("out[16]", "out[64]").replace("16", "64")
    (folder / "driver.c").write_text(driver, encoding="utf-8")
    lines = [RIG.format(plant=ROOT / "configs" / "examples" / "two_blocks.toml")]
    if count:
        lines += ["[io.card]", 'library = "driver.c"', "[io.card.inputs]"]
        lines += [f"i{k} = {{ high = 1e9 }}" for k in range(count)]
        lines += ["[io.card.outputs]"]
        lines += [f'o{k} = {{ signal = "{source}", gain = 2.0, unit = "1", high = 1e9 }}' for k in range(count)]
    path = folder / f"rig_{count}_{source}.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def worker(folder: Path, switch: str) -> int:
    """Under callgrind: the ticks of each rig, in a forked process."""
    failed = 0
    for source in ("rig.time", "input.u1.f"):
        for number, count in enumerate(COUNTS):
            plan = load_plan(write_rig(folder, count, source))
            parts = build(plan, 1.0)
            made = parts.made[IoCards]
            if made is not None:
                opened = OpenDevice(plan.device(IoCards).setups(folder, simulated=True)["card"])
                made.connect(0, device=opened.device or 0, watch=opened.watch, limit_s=0.0, **opened.functions)
            child = os.fork()
            if child == 0:
                start_counting(switch)
                parts.state.warm()
                parts.rig.begin(0)
                os._exit(0 if parts.rig.ticks(TICKS, 0) == TICKS else 1)
            failed |= os.waitpid(child, 0)[1]
            print(f"{number} {child}", flush=True)
    return 1 if failed else 0


def per_tick(profile: Profile) -> tuple[float, float]:
    """Instructions of a tick: of the rig, of the driver."""
    driver = sum(cost for name, cost in profile.items() if "tl_io_" in name)
    return (sum(profile.values()) - driver) / TICKS, driver / TICKS


def main() -> int:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", nargs=2, metavar=("DIR", "SWITCH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(Path(options.worker[0]), options.worker[1])
    with tempfile.TemporaryDirectory() as folder:
        command = [str(Path(__file__).resolve()), "--worker", folder]
        profiles = under_callgrind(command, "*tick_rig_tick", Path(folder), lambda: None)
    for name in ("changing", "constant"):
        own, profiles = profiles[: len(COUNTS)], profiles[len(COUNTS) :]
        without, _ = per_tick(own[0])
        print(f"{name}: {without:.0f} instructions a tick without a device")
        for count, profile in zip(COUNTS[1:], own[1:], strict=True):
            rig, driver = per_tick(profile)
            each = (rig - without) / (2 * count)
            print(f"  {count:3} inputs, {count:3} outputs: {rig - without:6.0f} more, {each:5.1f} per channel; "
                  f"driver {driver:.0f}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
