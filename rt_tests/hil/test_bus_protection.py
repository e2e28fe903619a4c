"""Protection of messages from the rig file instead of from the database."""

from __future__ import annotations

from pathlib import Path

import pytest
from rig_help import rig_file

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.rig.resolve.plan import load_plan

TABLE = """
[bus.powertrain.e2e.HIL_Speeds]
profile = "{profile}"
crc_signal = "{crc}"
counter_signal = "Alive_Speeds"
counter_max = 11
counter_skips = [3, 7]
"""


def test_a_message_of_the_rig_gets_the_rule_of_the_rig_file(tmp_path: Path) -> None:
    import cantools

    database = load_plan(rig_file(tmp_path)).buses[0].database
    given = cantools.database.load_file(database.path).get_message_by_name("HIL_Speeds").dbc.attributes
    crc, counter = given["E2ECrcSignal"].value, given["E2ECounterSignal"].value
    table = TABLE.format(profile="SUM_INVERTED", crc=crc).replace("Alive_Speeds", counter)
    plan = load_plan(rig_file(tmp_path, add=table))
    message = plan.buses[0].database.message("HIL_Speeds")
    assert (message.e2e, message.counter_max, message.counter_skips) == ("SUM_INVERTED", 11, (3, 7))
    codec = plan.buses[0].database.codec()
    frames = [codec.encode("HIL_Speeds", {}) for _ in range(11)]
    at = message.crc_bits[0] // 8
    assert all(f[at] == 255 - sum(f[:at] + f[at + 1 :]) % 256 for f in frames)


@pytest.mark.parametrize(("profile", "crc", "text"), [
    ("SUM_INVERTD", "CRC", "did you mean 'SUM_INVERTED'"), ("SUM", "CRC_X", "no signal of the message"),
])  # fmt: skip
def test_mistakes_are_named(tmp_path: Path, profile: str, crc: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        load_plan(rig_file(tmp_path, add=TABLE.format(profile=profile, crc=crc)))
