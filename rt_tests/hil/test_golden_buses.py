"""Every field of every message between a rig and its control units, against a second definition (golden_fields.py)."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_fields import Fields, fields_of
from golden_metrics import Golden
from golden_recorded import Recorded
from golden_runs import KINDS, chosen, golden_run
from rig_help import CONFIGS

#: rigs without a soft control unit (the one in C has tests of its own), or whose bus is not in software
NOT = {"desk_mb_7226_solenoids", "vcan_4hp22"}
OTHERS = sorted({p.stem for p in (CONFIGS / "rigs").glob("*.toml")} - {*KINDS, *NOT})


@pytest.mark.parametrize("rig", chosen(OTHERS))
def test_every_field_on_the_buses_is_what_the_plant_says(rig: str) -> None:
    g = Golden(Recorded.of(Path(golden_run(rig).path)))
    judged = Fields(g).judge()
    unseen = [name for name in fields_of(g) if not judged.seen[name]]
    assert not unseen and not judged.undefined, "without a second definition: write it in golden_fields.py"
    assert not judged.wrong, (len(judged.wrong), judged.wrong[:10])
    assert sum(judged.seen.values()) > 10_000
