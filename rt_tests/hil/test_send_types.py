"""Messages sent by the clock, on a change, on an event, after a start delay: the ticks in which they go out."""

from __future__ import annotations

from pathlib import Path

import pytest
from rig_help import CONFIGS, alone, rig_file
from test_disturbances import DRIVER, MS, Receiver, values

from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.tick.control import Image
from torqueloop.hil.can.sending import send_kind
from torqueloop.hil.rig.assemble.parts import RigParts
from torqueloop.hil.rig.resolve.plan import load_plan

#: lever in ticks: N, from 100 D, from 105 R, from 112 D
LEVER = 'driver.lever = [[0.0, "N"], [0.1, "D"], [0.105, "R"], [0.112, "D"]]'
D, R, N = 3, 1, 2


def on(parts: RigParts, first: int, last: int, receiver: Receiver) -> Receiver:
    for tick in range(first, last):
        parts.rig.ticks(1, tick * MS)
        for can_id, data, _, _ in parts.buses[0].tx_ring.pop_all():
            receiver.take(tick, can_id, bytes(data))
    return receiver


def sent(tmp_path: Path, *edits: str, add: str = "") -> list[tuple[int, int]]:
    """(tick, lever) of all frames of HIL_Driver in 150 ticks; all of them right."""
    _, parts = alone(tmp_path, LEVER, *edits, add=add)
    parts.rig.begin(0)
    receiver = on(parts, 0, 150, Receiver())
    assert {f.verdict for f in receiver.frames} == {"ok"}
    return [(f.tick, int(values(f)["lever"])) for f in receiver.of(DRIVER)]


def sending(**entries: object) -> str:
    lines = [f"{k} = {v}" if isinstance(v, int | float | list) else f'{k} = "{v}"' for k, v in entries.items()]
    return "\n[bus.powertrain.sending.HIL_Driver]\n" + "\n".join(lines).replace("'", '"') + "\n"


NOW = "bus.powertrain.tx_offset_s.HIL_Driver = 0.0"


def test_on_change_sends_the_changes_and_the_start(tmp_path):
    lever = sending(type="on_change", signals=["lever"])
    assert sent(tmp_path, NOW, add=lever) == [(0, N), (100, D), (105, R), (112, D)]
    # a change of another signal is none
    assert sent(tmp_path, NOW, add=sending(type="on_change", signals=["T_oil"])) == [(0, N)]


def test_a_gap_keeps_the_newest_and_repetitions_follow(tmp_path):
    gap = sending(type="on_change", signals=["lever"], gap_s=0.01)
    assert sent(tmp_path, NOW, add=gap) == [(0, N), (100, D), (110, R), (120, D)]
    # each change begins its repetitions anew
    again = sending(type="on_change", signals=["lever"], gap_s=0.004, repeats=2)
    assert sent(tmp_path, NOW, add=again) == [
        (0, N), (100, D), (104, D), (108, R), (112, D), (116, D), (120, D),
    ]  # fmt: skip


def test_cyclic_and_on_change_keeps_the_clock(tmp_path):
    both = sent(tmp_path, NOW, add=sending(type="cyclic_and_on_change", signals=["lever"]))
    assert [t for t, _ in both] == [*range(0, 101, 10), 105, 110, 112, *range(120, 150, 10)]


def test_an_event_sends_once_each_time_it_comes(tmp_path):
    event = sending(type="on_event", when="driver.lever == D")
    assert sent(tmp_path, add=event) == [(100, D), (112, D)]
    both = sending(type="cyclic_and_on_change", signals=["T_oil"], when="driver.lever == R")
    assert [t for t, _ in sent(tmp_path, NOW, add=both)] == [*range(0, 101, 10), 105, *range(110, 150, 10)]


def test_nothing_is_sent_before_the_start_delay(tmp_path):
    late = "bus.powertrain.tx_offset_s.HIL_Driver = 0.103"
    assert sent(tmp_path, late, add=sending(type="on_change", signals=["lever"])) == [(103, D), (105, R), (112, D)]
    both = sent(tmp_path, late, add=sending(type="cyclic_and_on_change", signals=["lever"]))
    assert [t for t, _ in both] == [103, 105, 112, 113, 123, 133, 143]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Cyclic", "cyclic"), ("cyclicX", "cyclic"), ("", "cyclic"), ("NoMsgSendType", "cyclic"),
        ("cyclicIfActive", "cyclic"), ("spontanX", "on_change"), ("Event", "on_change"), ("OnWrite", "on_change"),
        ("cyclicAndSpontanX", "cyclic_and_on_change"), ("Periodic and on change", "cyclic_and_on_change"),
    ],
)  # fmt: skip
def test_the_words_of_databases(words, kind):
    assert send_kind(words) == kind and send_kind(None) == "cyclic"


def test_the_database_says_when(tmp_path):
    text = (CONFIGS / "can" / "tcu_4hp22.dbc").read_text(encoding="cp1252")
    added = """
BA_DEF_ BO_ "GenMsgSendType" ENUM "cyclic","spontaneous","cyclicAndSpontaneous";
BA_DEF_ BO_ "GenMsgDelayTime" INT 0 1000;
BA_DEF_ BO_ "GenMsgStartDelayTime" INT 0 1000;
BA_DEF_ BO_ "GenMsgNrOfRepetition" INT 0 100;
BA_DEF_DEF_ "GenMsgSendType" "cyclic";
BA_DEF_DEF_ "GenMsgDelayTime" 0;
BA_DEF_DEF_ "GenMsgStartDelayTime" 0;
BA_DEF_DEF_ "GenMsgNrOfRepetition" 0;
BA_ "GenMsgSendType" BO_ 273 1;
BA_ "GenMsgDelayTime" BO_ 273 8;
BA_ "GenMsgStartDelayTime" BO_ 273 20;
BA_ "GenMsgNrOfRepetition" BO_ 273 1;
"""
    (tmp_path / "car.dbc").write_text(text + added, encoding="cp1252")
    other = 'bus.powertrain.database = "car.dbc"'
    none = "bus.powertrain.tx_offset_s = { HIL_Engine = 0.002 }"
    got = sent(tmp_path, "without bus.powertrain.tx_offset_s", none, other)
    assert got == [(20, N), (100, D), (108, R), (116, D), (124, D)]


def test_an_image_holds_what_is_pending(tmp_path):
    add = sending(type="on_change", signals=["lever"], gap_s=0.01, repeats=1)
    plan, parts = alone(tmp_path, LEVER, NOW, add=add)
    parts.rig.begin(0)
    on(parts, 0, 107, Receiver())
    image = Image(parts.rig.image_sizes())
    parts.control.post([], target=image)
    wanted = [(f.tick, f.data) for f in on(parts, 107, 150, Receiver()).of(DRIVER)]
    assert [t for t, _ in wanted] == [110, 120, 130]
    other = alone(tmp_path, LEVER, NOW, add=add)[1]
    copy = Image(other.rig.image_sizes())
    copy.from_bytes(image.to_bytes())
    other.rig.begin(0)
    other.control.post([], source=copy, links=True)
    assert [(f.tick, f.data) for f in on(other, 107, 150, Receiver()).of(DRIVER)] == wanted


def test_mistakes_name_their_place(tmp_path):
    for add, words in (
        (sending(type="on_chance"), "on_change"),
        (sending(type="on_event"), "do not fit"),
        (sending(type="on_change", when="driver.lever == D"), "do not fit"),
        (sending(type="on_event", when="driver.lever = D"), "cannot be read"),
        (sending(type="on_event", when="driver.levr == D"), "driver.levr"),
        (sending(type="on_change", signals=["levr"]), "did you mean 'lever'"),
        (sending(type="cyclic", signals=["lever"]), "sent on change"),
        (sending(type="on_change", gap_s=-1), "gap_s"),
        (sending(type="on_change").replace("HIL_Driver", "HIL_Drivr"), "did you mean 'HIL_Driver'"),
    ):
        with pytest.raises(ConfigError, match=words) as raised:
            load_plan(rig_file(tmp_path, add=add))
        assert "sending" in str(raised.value), raised.value
