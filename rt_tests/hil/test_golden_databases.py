"""Every message and signal of every shipped database as a rig has it, against cantools and a second table of units."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cantools
import numpy as np
import pytest
from golden_units import UNITS, si
from rig_help import CONFIGS

from torqueloop.hil.can.database import CanDatabase

DATABASES = sorted((CONFIGS / "can").glob("*.dbc"))
#: a message is silent after so many of its cycles, where the rig file says nothing
CYCLES = 10


@pytest.mark.parametrize("path", DATABASES, ids=lambda p: p.stem)
def test_a_database_has_the_units_limits_and_times_of_its_file(path: Path) -> None:
    read: Any = cantools.database.load_file(path, strict=False)
    messages = {m.name: m for m in read.messages}
    seen = 0
    for node in [n.name for n in read.nodes][:6]:
        database = CanDatabase.load(path, node)
        for spec in (*database.rx_messages, *database.tx_messages):
            of = messages[spec.name]
            assert (spec.can_id, spec.length, spec.receive) == (of.frame_id, of.length, node not in of.senders)
            assert spec.cycle_ns == round((of.cycle_time or 0) * 1e6), spec.name
            assert spec.timeout_ns == (CYCLES * spec.cycle_ns if spec.receive else 0), spec.name
        for signal in database.signals:
            wanted = messages[signal.message].get_signal_by_name(signal.name)
            if (wanted.unit or "") not in UNITS:
                continue  # a unit that nobody asks for is kept
            seen += 1
            ranges = [None if x is None else si(float(x), wanted.unit) for x in (wanted.minimum, wanted.maximum)]
            assert [signal.minimum, signal.maximum] == [None if x is None else pytest.approx(x, 1e-12) for x in ranges]
            steps = [si(float(wanted.scale) * raw + float(wanted.offset), wanted.unit) for raw in (0, 1)]
            assert signal.offset == pytest.approx(steps[0], rel=1e-12, abs=1e-12)
            assert signal.scale == pytest.approx(steps[1] - steps[0], rel=1e-9)
            low, high = (x if x is not None else 1e300 * sign for x, sign in zip(ranges, (-1, 1), strict=True))
            raw = wanted.raw_initial
            start = float(np.clip(0.0, low, high)) if raw is None else signal.offset + raw * signal.scale
            assert signal.start == pytest.approx(start, rel=1e-12, abs=1e-12), signal.full_name
    assert seen > 10
