"""Our databases against the facts (reference/can): every field, every frame of a real bus, and planted errors.

Frames are decoded by our codec to the values that their source gives, and packed again to the same bytes where all
bits that are set belong to a signal. Places and scalings come from the facts, never from our databases.
"""

from __future__ import annotations

import copy
import sys
from functools import cache
from pathlib import Path
from typing import Any

import cantools
import pytest

from torqueloop.hil.can.database import CanDatabase

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "rt_tests" / "judges"))

from judgetools.facts import SOURCES, Fact, differences, facts, known  # noqa: E402

sys.path.append(str(Path(__file__).parent))

from test_can_frames import frames  # noqa: E402

CONFIGS = ROOT / "configs" / "can"
#: interface of the frames -> database
DATABASE = {table: name for name, (_, table) in SOURCES.items() if table} | {
    "j1939": "j1939_transmission", "mercedes_egs52": "mb_egs52",
}  # fmt: skip
#: J1939 has numbers for its parameters; the frames say them in words
WORDS = {
    "driver demand torque": "SPN512", "actual torque": "SPN513", "engine speed": "SPN190",
    "driveline engaged": "SPN560", "lockup engaged": "SPN573", "shift in process": "SPN574",
    "output shaft speed": "SPN191", "clutch slip": "SPN522",
    "input shaft speed": "SPN161", "controlling SA": "SPN1482", "override mode": "SPN695", "priority": "SPN897",
    "speed": "SPN898", "torque": "SPN518",
}  # fmt: skip
#: signals that no table of the facts has, by the name of the frames alone; E65's lever has the value of byte 0
OWN = {"BR1_Rad_kmh", "MO_Fahrpedalrohwert_01", "MO_Solldrehz_Leerlauf", "ESP_v_Signal", "REQ_GEAR"}
VALUED = [f for f in frames() if "values" in f]


@cache
def of(name: str) -> Any:
    """A database as cantools reads it."""
    if name == "opel":
        opendbc = pytest.importorskip("opendbc")
        return cantools.database.load_file(Path(opendbc.__file__).parent / "dbc" / "opel_omega_2001.dbc", strict=False)
    return cantools.database.load_file(CONFIGS / f"{name}.dbc")


def found(frame: dict[str, Any], database: str, name: str) -> str:
    """Name of our signal for a value of a frame: through place and name of the facts."""
    from judgetools.facts import ALIASES

    plain = name.partition(" [")[0].partition(" (raw")[0]
    plain = plain.removesuffix("_Nm") if database == "mb_egs52" else plain
    plain = WORDS[plain] if database == "j1939_transmission" else plain
    names = ALIASES.get(database, {}).get(plain, plain).split()
    if plain.startswith("WHL_SPD_") or plain in OWN:
        return plain
    message = next(m for m in facts(database) if m.can_id == int(frame["id"], 16))
    fact = next(f for f in message.fields if set(f.name.split()) & set(names))
    ours = of(database).get_message_by_frame_id(message.can_id)
    return next(s.name for s in ours.signals if s.name in names and (s.start, s.length) == (fact.start, fact.length))


def loaded(name: str, frame: dict[str, Any], *, send: bool) -> CanDatabase:
    """Our codec for one message, as its receiver or its sender."""
    ours = of(name).get_message_by_frame_id(int(frame["id"], 16))
    needed = [f"{ours.name}.{s.name}" for s in ours.signals if s.is_multiplexer]
    path = CONFIGS / f"{name}.dbc"
    if send:
        return CanDatabase.load(path, ours.senders[0], units="database", check_limits=False, send=[ours.name],
                                needed=needed)  # fmt: skip
    nodes = [n.name for n in of(name).nodes if n.name not in ours.senders]
    return CanDatabase.load(path, nodes[0], units="database", check_limits=False, receive=[ours.name], send=[])


def ids(frame: dict[str, Any]) -> str:
    """Name of a case."""
    return f"{frame['message']} {frame['data']}"


@pytest.mark.parametrize("name", SOURCES)
def test_every_field_is_where_the_facts_say(name: str) -> None:
    assert sum(len(m.fields) for m in facts(name)) >= 14
    assert differences(name, of(name).messages) == []


@pytest.mark.parametrize("frame", VALUED, ids=ids)
def test_a_frame_of_a_real_bus_has_the_values_of_its_source(frame: dict[str, Any]) -> None:
    data = bytes.fromhex(frame["data"])
    if frame["interface"] == "opel_omega_b_2001":
        # no interface of ours: opendbc's database through our loader
        from opendbc import DBC_PATH

        path = Path(DBC_PATH) / "opel_omega_2001.dbc"
        message = cantools.database.load_file(path, strict=False).get_message_by_frame_id(int(frame["id"], 16))
        database = CanDatabase.load(path, "SAS", units="database", check_limits=False, receive=[message.name], send=[])
        status, got = database.codec().decode(message.frame_id, data)
        assert status == "ok"
        for name, value in frame["values"].items():
            assert got[name.partition(" [")[0]] == value, name
        return
    name = DATABASE[frame["interface"]]
    extended = 0x80000000 if len(frame["id"]) > 5 else 0
    status, got = loaded(name, frame, send=False).codec().decode(int(frame["id"], 16) | extended, data)
    assert status == "ok"
    message = of(name).get_message_by_frame_id(int(frame["id"], 16))
    for said, value in frame["values"].items():
        signal = found(frame, name, said)
        raw = message.get_signal_by_name(signal)
        mine = (got[signal] - raw.offset) / raw.scale if "(raw)" in said else got[signal]
        assert mine == pytest.approx(value, abs=1e-4), said


def determined() -> list[dict[str, Any]]:
    """Frames without a bit that is set and belongs to no signal."""
    found = []
    for frame in VALUED:
        if frame["interface"] in DATABASE:
            message = of(DATABASE[frame["interface"]]).get_message_by_frame_id(int(frame["id"], 16))
            data = bytes.fromhex(frame["data"])
            if message.encode(message.decode(data, decode_choices=False), padding=False, strict=False) == data:
                found.append(frame)
    return found


def test_most_frames_are_determined() -> None:
    assert len(determined()) > 40


@pytest.mark.parametrize("frame", determined(), ids=ids)
def test_a_frame_that_is_determined_is_packed_to_the_same_bytes(frame: dict[str, Any]) -> None:
    name, data = DATABASE[frame["interface"]], bytes.fromhex(frame["data"])
    message = of(name).get_message_by_frame_id(int(frame["id"], 16))
    values = message.decode(data, decode_choices=False, scaling=True)
    codec = loaded(name, frame, send=True).codec()
    free = {s.name for s in codec.database.signals if s.message == message.name}
    # the frame whose alive counter is the recorded one is among the next 16
    packed = [codec.encode(message.name, {k: v for k, v in values.items() if k in free}) for _ in range(16)]
    # a number that means "invalid" or "not available" is never sent as a value
    limits = [(s, values[s.name]) for s in message.signals if s.name in values and s.minimum is not None]
    invalid = any(not s.minimum - 1e-9 <= value <= s.maximum + 1e-9 for s, value in limits)
    assert (data in packed) is not invalid


def planted() -> list[tuple[str, int, int, str]]:
    """(database, identifier, number of the field, error): every field of the facts with every error it can have."""
    cases = []
    for name in SOURCES:
        for message in facts(name):
            for k in range(len(message.fields)):
                cases += [(name, message.can_id, k, error) for error in ("shifted", "sign", "scale", "swapped")]
    return cases


def our_signal(fact: Fact, message: Any) -> Any:
    """The signal for a fact, where it is now."""
    return next(s for s in message.signals if s.name in fact.name.split() and s.start == fact.start)


def test_every_planted_error_is_seen() -> None:
    unseen, tried, open_fields = [], 0, set()
    for name, can_id, k, error in planted():
        fact_message = next(m for m in facts_of(name) if m.can_id == can_id)
        fact = fact_message.fields[k]
        message = copy.deepcopy(of(name).get_message_by_frame_id(fact_message.can_id))
        signal = our_signal(fact, message)
        signed, scale, _ = known(fact, signal)
        names = fact.name.split()
        other = next((s for s in message.signals if s.length == signal.length and s.name not in names), None)
        if error == "shifted":
            signal.start += 1 if signal.start < 63 else -1
        elif error == "swapped":
            if other is None:
                continue
            signal.name, other.name = other.name, signal.name
        elif scale is None:
            # the scalings of MLB and Ram are those of opendbc's databases: hil/test_interfaces.py compares them
            if name not in ("vw_mlb", "ram_dt"):
                open_fields.add((message.name, signal.name))
            continue
        elif error == "sign":
            signal.is_signed = not signal.is_signed
        else:
            signal.conversion = cantools.database.conversion.BaseConversion.factory(
                scale=2 * signal.scale, offset=signal.offset
            )
        tried += 1
        one = [line for line in differences_of(name, fact_message, message) if "0x" in line]
        if not one:
            unseen.append((message.name, fact.name, error))
    assert tried > 1300 and unseen == []
    # what only a frame could show: percentages whose scaling the facts leave to the reader, and GearRatio
    assert len(open_fields) < 25, sorted(open_fields)


@cache
def facts_of(name: str) -> list[Any]:
    """The facts, read once."""
    return facts(name)


def differences_of(name: str, fact_message: Any, message: Any) -> list[str]:
    """Differences of one message."""
    from judgetools import facts as module

    return [f"0x {line}" for one in fact_message.fields for line in module._compared(one, message)]


def test_another_length_period_and_range_of_the_counter_are_seen() -> None:
    for name in SOURCES:
        for fact in facts_of(name):
            messages = {"length": lambda m: setattr(m, "_length", m.length + 1),
                        "period": lambda m: setattr(m, "_cycle_time", 7)}  # fmt: skip
            for what, change in messages.items():
                if (fact.length if what == "length" else fact.period_ms) is None:
                    continue
                message = copy.deepcopy(of(name).get_message_by_frame_id(fact.can_id))
                change(message)
                assert any(fact.name in line for line in differences(name, [message])), (what, fact.name)
            counter = [f for f in fact.fields if f.counter_max is not None]
            message = copy.deepcopy(of(name).get_message_by_frame_id(fact.can_id))
            if counter and "E2ECounterMax" in message.dbc.attributes:
                message.dbc.attributes["E2ECounterMax"].value += 1
                assert any("counter up to" in line for line in differences(name, [message])), fact.name
