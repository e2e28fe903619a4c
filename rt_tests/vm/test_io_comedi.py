"""The comedi driver on the kernel's own simulated card (comedi_test), in the tick: what is written is read back.

The module loops the analogue outputs of its subdevice 1 to the inputs of subdevice 0, with 16 bits over -10 .. 10 V
(range 0) or -5 .. 5 V (range 1). Its kernel code and ours share nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import torqueloop
from torqueloop.hil.ecu.compiled import compiled
from torqueloop.hil.io.library import OpenDevice
from torqueloop.hil.link.endpoints import PeerError
from torqueloop.hil.rig.assemble.parts import RigParts, build
from torqueloop.hil.rig.devices.io import IoCards
from torqueloop.hil.rig.resolve.plan import RigPlan, load_plan

CARD = "/dev/comedi0"
CONFIGS = Path(torqueloop.__file__).parent / "configs"
DRIVER = CONFIGS / "examples" / "io" / "comedi.c"
STEP_V = 20.0 / 65535

pytestmark = pytest.mark.skipif(not os.path.exists(CARD), reason=f"no {CARD}: the module comedi_test is not loaded")

TABLE = """
extends = "{rig}"

[io.card]
library = "{driver}"
options = {{ device = "{card}" }}

[io.card.inputs]
back = {{ pin = "{pin}", unit = "V", low = -10.0, high = 10.0 }}

[io.card.outputs]
speed = {{ pin = "1:0:0", signal = "engine.w", gain = 0.05, unit = "V", low = -10.0, high = 10.0, safe = -1.5 }}
"""


@contextmanager
def on_the_card(folder: Path, pin: str = "0:0:0") -> Iterator[tuple[RigPlan, RigParts, OpenDevice]]:
    """A rig with the card, connected."""
    path = folder / "rig.toml"
    path.write_text(TABLE.format(rig=CONFIGS / "rigs" / "desk_4hp22.toml", driver=DRIVER, card=CARD, pin=pin))
    plan = load_plan(path)
    parts = build(plan)
    opened = OpenDevice(plan.device(IoCards).setups(folder, simulated=False)["card"])
    try:
        parts.made[IoCards].connect(0, device=opened.device, watch=opened.watch, limit_s=0.0, **opened.functions)
        yield plan, parts, opened
    finally:
        opened.close()


def test_each_tick_reads_what_the_tick_before_has_written_to_half_a_step_of_the_card(tmp_path: Path) -> None:
    with on_the_card(tmp_path) as (plan, parts, _):
        slots = [plan.table.slot(f"io.card.{name}") for name in ("back", "speed")]
        now = 10**15
        parts.rig.begin(now)
        rows = []
        for tick in range(200):
            parts.rig.ticks(1, now + tick * plan.period_ns)
            rows.append(parts.rig.values(slots))
        back, speed = np.array(rows).T
        assert back[0] == pytest.approx(-1.5, abs=STEP_V / 2 + 1e-9) and np.ptp(speed) > 10 * STEP_V
        assert np.max(np.abs(back[1:] - speed[:-1])) <= STEP_V / 2 + 1e-9
        counted = parts.made[IoCards].counters(0)
        assert counted["failed"] == 0 and counted["reads"] == counted["writes"] == 200
        print({key: counted[key] for key in ("read_us", "write_us")})


def test_safe_values_are_on_the_pin_in_the_safe_state(tmp_path: Path) -> None:
    with on_the_card(tmp_path) as (plan, parts, _):
        back = plan.table.slot("io.card.back")
        parts.rig.begin(10**15)
        parts.rig.ticks(50, 10**15)
        assert parts.rig.value(back) > 1.0
        parts.rig.request_safe("request")
        parts.rig.ticks(2, 10**15 + 50 * plan.period_ns)
        assert parts.rig.value(back) == pytest.approx(-1.5, abs=STEP_V / 2 + 1e-9)


@pytest.mark.parametrize(("pin", "text"), [
    ("0:99", "the card has no such pin"),
    ("9:0", "the card has no such pin"),
    ("1:0", "the subdevice has the other direction"),
    ("0:0:7", "the subdevice has no such range"),
    ("line 3", "a pin is written SUBDEVICE:CHANNEL"),
])  # fmt: skip
def test_a_pin_that_the_card_does_not_have_is_refused_by_name(tmp_path: Path, pin: str, text: str) -> None:
    with pytest.raises(PeerError, match=f"channel back, pin {pin}: {text}"), on_the_card(tmp_path, pin):
        pass


def test_the_driver_compiles_without_a_warning(tmp_path: Path) -> None:
    where = {"file": None, "table": "io.card", "key": "library"}
    assert compiled(DRIVER, tmp_path / "comedi.so", where).is_file()
