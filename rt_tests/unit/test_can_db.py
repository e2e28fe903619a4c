"""CAN databases: the rig's own one, units, names, owners, protection, and whole round trips."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import cantools
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import torqueloop.configs
from torqueloop.core.describe.errors import ConfigError
from torqueloop.cython_kernels.probes.bench import benchmark_ns
from torqueloop.hil.can.database import CanDatabase, E2ESettings, check_owners
from torqueloop.hil.can.python_code import python_code
from torqueloop.hil.can.units import si_unit, to_si

DBC = Path(torqueloop.configs.__path__[0]) / "can" / "tcu_4hp22.dbc"


@pytest.fixture
def hil() -> CanDatabase:
    return CanDatabase.load(DBC, "HIL")


@pytest.fixture
def tcu() -> CanDatabase:
    return CanDatabase.load(DBC, "TCU")


# --- the rig's database ---


def test_own_database_is_strict_complete_and_protected(hil: CanDatabase) -> None:
    db = cantools.database.load_file(str(DBC), strict=True)
    assert {m.name: (m.frame_id, m.cycle_time, m.senders) for m in db.messages} == {
        "TCU_Pressure_1": (0x210, 5, ["TCU"]), "TCU_Pressure_2": (0x211, 5, ["TCU"]),
        "TCU_Status": (0x212, 10, ["TCU"]),
        "HIL_Speeds": (0x110, 10, ["HIL"]), "HIL_Driver": (0x111, 10, ["HIL"]), "HIL_Engine": (0x112, 10, ["HIL"]),
    }  # fmt: skip
    ids = [m.dbc.attributes["E2EDataID"].value for m in db.messages]
    assert len(set(ids)) == len(ids)
    assert "BSD-3-Clause" in DBC.read_text()
    assert all(m.comment and m.receivers == {"HIL": {"TCU"}, "TCU": {"HIL"}}[m.senders[0]] for m in db.messages)
    assert {m.e2e for m in hil.messages} == {"AUTOSAR_P01_1A"} and not hil.skipped
    assert len(hil.rx_messages) == len(hil.tx_messages) == 3
    assert hil.own_ids == {0x110, 0x111, 0x112}
    # a frame has at most 135 bits with all stuff bits
    load = sum(135 / (m.cycle_time * 1e-3) for m in db.messages) / 500e3
    assert load < 0.3


def test_database_units_become_si(hil: CanDatabase) -> None:
    p = hil.signal("TCU_Pressure_1.p_C4")
    assert (p.unit, p.si_unit, p.scale, p.maximum) == ("bar", "Pa", 500.0, 20e5)
    assert hil.signal("HIL_Speeds.n_engine").scale == 0.25 * math.pi / 30.0
    t = hil.signal("HIL_Driver.T_oil")
    assert (t.si_unit, t.minimum, t.start) == ("K", 233.15, 353.15)
    assert hil.signal("HIL_Driver.pedal").maximum == 1.0
    assert hil.signal("HIL_Driver.v_vehicle").scale == pytest.approx(1 / 3.6)
    raw = CanDatabase.load(DBC, "HIL", units="database")
    assert raw.signal("TCU_Pressure_1.p_C4").maximum == 20 and raw.signal("HIL_Driver.T_oil").start == 80


def test_unit_strings() -> None:
    cases = (("km/h", 36, 10.0), (" U/min ", 30, math.pi), ("°C", -273.15, 0.0), ("%", 50, 0.5), ("kPa", 1, 1e3))
    for text, value, si in cases:
        unit = si_unit(text)
        assert unit is not None and to_si(value, unit, with_offset=True) == pytest.approx(si, abs=1e-12)
    assert si_unit("furlong") is None
    # the decimals of the database are taken exactly
    bar = si_unit("bar")
    assert bar is not None and all(to_si(n / 1000, bar, with_offset=True) == 100.0 * n for n in range(3000))


def test_two_nodes_talk_in_si_and_words(hil: CanDatabase, tcu: CanDatabase) -> None:
    a, b = hil.codec(), tcu.codec()
    for _ in range(20):
        data = a.encode("HIL_Driver", {"pedal": 0.305, "lever": "D", "T_oil": 363.15})
        status, values = b.decode(a.can_id("HIL_Driver"), data)
        assert status == "ok" and values["pedal"] == pytest.approx(0.305) and values["T_oil"] == pytest.approx(363.15)
        assert tcu.signal("HIL_Driver.lever").word_of(values["lever"]) == "D"
        assert "CRC_5" not in values and "Alive_5" not in values
    # signals that are not given keep their value
    assert b.decode(0x111, a.encode("HIL_Driver", {}))[1]["pedal"] == pytest.approx(0.305)
    assert b.message_of(0x111) == "HIL_Driver" and b.message_of(0x210) is None
    assert b.decode(0x210, bytes(8)) == ("unknown", {})
    assert b.decode(0x111, bytes(8)) == ("crc", {})
    assert b.counters()["HIL_Driver"]["ok"] == 21 and b.counters()["HIL_Driver"]["crc"] == 1


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_frames_equal_those_of_cantools(data: st.DataObject) -> None:
    """All messages of the database, with values anywhere in range: the bits of cantools."""
    db = cantools.database.load_file(str(DBC))
    for node in ("HIL", "TCU"):
        database = CanDatabase.load(DBC, node, units="database")
        codec = database.codec()
        for message in database.tx_messages:
            reference = db.get_message_by_name(message.name)
            raws = {}
            for s in message.signals:
                info = database.signals[s.slot]
                lo, hi = (round((x - s.offset) / s.scale) for x in (info.minimum, info.maximum))
                raws[s.name] = data.draw(st.integers(lo, hi))
            values = {s.name: raws[s.name] * s.scale + s.offset for s in message.signals}
            frame = codec.encode(message.name, values)
            decoded = reference.decode(frame, decode_choices=False, scaling=False)
            assert {n: decoded[n] for n in raws} == raws
            full = {**raws, **{n: decoded[n] for n in decoded if n not in raws}}
            assert reference.encode(full, scaling=False) == frame


def test_timeouts_come_from_cycles_or_from_the_caller(hil: CanDatabase) -> None:
    assert hil.message("TCU_Pressure_1").timeout_ns == 50_000_000
    assert hil.message("TCU_Status").timeout_ns == 100_000_000
    own = CanDatabase.load(DBC, "HIL", timeouts_s={"TCU_Status": 0.0, "*": 0.02})
    assert own.message("TCU_Status").timeout_ns == 0 and own.message("TCU_Pressure_2").timeout_ns == 20_000_000
    codec = own.codec()
    codec.arm(1.0)
    assert codec.silent(1.019) == []
    assert codec.silent(1.021) == ["TCU_Pressure_1", "TCU_Pressure_2"]


def test_nan_and_wrong_names_are_refused_with_the_closest_name(tcu: CanDatabase) -> None:
    codec = tcu.codec()
    with pytest.raises(ValueError, match=r"NaN in p_C4"):
        codec.encode("TCU_Pressure_1", {"p_C4": math.nan})
    for call, text in (
        (lambda: codec.encode("TCU_Pressure_1", {"p_c4": 1.0}), "did you mean 'p_C4'"),
        (lambda: codec.encode("TCU_Presure_1", {}), "did you mean 'TCU_Pressure_1'"),
        (lambda: codec.encode("HIL_Speeds", {}), "received by TCU"),
        (lambda: codec.encode("TCU_Status", {"gear_actual": "5"}), "no value '5'"),
        (lambda: tcu.slot("HIL_Driver.Pedal"), "did you mean 'HIL_Driver.pedal'"),
    ):
        with pytest.raises(ConfigError) as error:
            call()
        assert text in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"node": "HIl"}, "did you mean 'HIL'"),
        ({"needed": ["TCU_Pressure_1.p_c4"]}, "did you mean 'p_C4'"),
        ({"needed": ["TCU_Pressure_1.p_C8"]}, "it is in message TCU_Pressure_2"),
        ({"needed": ["TCU_Presure_1.p_C4"]}, "did you mean 'TCU_Pressure_1'"),
        ({"needed": ["p_C4"]}, "Message.signal"),
        ({"needed": ["TCU_Pressure_1.CRC_1"]}, "the codec owns it"),
        ({"timeouts_s": {"TCU_Sttus": 1.0}}, "did you mean 'TCU_Status'"),
        ({"timeouts_s": {"TCU_Status": -1.0}}, "0 (off)"),
        ({"e2e": {"TCU_Status": E2ESettings("P99")}}, "AUTOSAR_P01_1A"),
        ({"units": "imperial"}, "SI, database"),
    ],
)
def test_mistakes_of_the_caller_are_named(arguments: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError) as error:
        CanDatabase.load(DBC, **{"node": "HIL", **arguments})  # type: ignore[arg-type]
    assert text in str(error.value)


# --- databases with faults ---


def edited(tmp_path: Path, *changes: tuple[str, str]) -> Path:
    text = DBC.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "edited.dbc"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('CM_ "CAN between', 'BO_TX_BU_ 272 : HIL,TCU;\nCM_ "CAN between', "several owners: HIL, TCU"),
        ('"E2EProfile" BO_ 528 "AUTOSAR_P01_1A"', '"E2EProfile" BO_ 528 "AUTOSAR_P1"', "allowed: NONE, AUTOSAR_P01_1A"),
        ('"E2ECrcSignal" BO_ 528 "CRC_1"', '"E2ECrcSignal" BO_ 528 "CRC1"', "did you mean 'CRC_1'"),
        ('"E2ECounterSignal" BO_ 528 "Alive_1"', '"E2ECounterSignal" BO_ 528 "Alive"', "no signal of the message"),
        ('BA_ "E2ECrcSignal" BO_ 528 "CRC_1";', "", "E2ECrcSignal: AUTOSAR_P01_1A needs the signal"),
        ("SG_ CRC_1 : 0|8@1+", "SG_ CRC_1 : 0|7@1+", "must fill one byte"),
        ("SG_ p_C5 : 28|12@1+", "SG_ p_C5 : 27|12@1+", "overlaps"),
        ('SG_ p_C4 : 16|12@1+ (0.005,0) [0|20] "bar"', 'SG_ p_C4 : 16|12@1+ (0.005,0) [0|20] "atm"', "unit 'atm'"),
        (
            "SG_ Mode_1 : 12|4@1+",
            "SG_ Mode_1 m0 : 12|4@1+",
            "needed (signal p_C4), but its signal Mode_1 is multiplexed",
        ),
        ("SG_ Mode_1 : 12|4@1+", "SG_ Mode_1 m0 : 12|4@1+", "no signal is its multiplexer"),
        ("VERSION", "VERSIN", "cannot be read"),
    ],
)
def test_faults_of_the_database_are_named(tmp_path: Path, old: str, new: str, text: str) -> None:
    changes = [(old, new)]
    if "M :" in new:
        changes.append(("SG_ p_C5 :", "SG_ p_C5 m1 :"))
    path = edited(tmp_path, *changes)
    logging.getLogger("cantools").setLevel(logging.ERROR)
    with pytest.raises(ConfigError) as error:
        CanDatabase.load(path, "HIL", needed=["TCU_Pressure_1.p_C6", "TCU_Pressure_1.p_C4"])
    assert text in str(error.value) and "edited.dbc" in str(error.value)


def test_faulty_messages_that_nobody_needs_are_skipped_with_the_reason(tmp_path: Path) -> None:
    path = edited(tmp_path, ("SG_ p_C5 : 28|12@1+", "SG_ p_C5 : 27|12@1+"))
    database = CanDatabase.load(path, "HIL", needed=["TCU_Pressure_2.p_C8"])
    assert list(database.skipped) == ["TCU_Pressure_1"] and "overlaps" in database.skipped["TCU_Pressure_1"]
    assert [s.slot for s in database.signals] == list(range(len(database.signals)))
    assert len(database.initial_table()) == database.tables.n_slots


def small(tmp_path: Path, name: str, *messages: tuple[int, str, str]) -> Path:
    """A database of nodes A, B, C with these (identifier, message, sender)."""
    text = ['VERSION ""', "BU_: A B C", ""]
    for can_id, message, sender in messages:
        text += [f"BO_ {can_id} {message}: 8 {sender}", ' SG_ s : 0|8@1+ (1,0) [0|0] "" A,B,C', ""]
    path = tmp_path / name
    path.write_text("\n".join(text))
    return path


def test_one_identifier_has_one_owner_in_a_database(tmp_path: Path) -> None:
    twice = small(tmp_path, "twice.dbc", (5, "M1", "A"), (5, "M2", "B"))
    with pytest.raises(ConfigError, match=r"0x5 has two owners: M1 \(A\) and M2 \(B\)"):
        CanDatabase.load(twice, "A")
    # 11-bit and 29-bit identifiers of equal number are different ones
    both = CanDatabase.load(small(tmp_path, "both.dbc", (5, "M1", "A"), (5 | 0x80000000, "M2", "B")), "C")
    codec = both.codec()
    assert codec.message_of(5) == "M1" and codec.message_of(5 | 0x80000000) == "M2"
    assert codec.decode(5 | 0x80000000, bytes([7] + 7 * [0])) == ("ok", {"s": 7.0})


def test_one_identifier_has_one_owner_on_the_bus(tmp_path: Path, hil: CanDatabase, tcu: CanDatabase) -> None:
    check_owners([hil, tcu])
    rest_bus = CanDatabase.load(small(tmp_path, "rest.dbc", (0x111, "Brake", "B")), "B")
    with pytest.raises(ConfigError, match=r"0x111 has two owners: HIL_Driver of node HIL .* and Brake of node B"):
        check_owners([hil, tcu, rest_bus])


def test_received_message_without_our_node_as_receiver_is_taken_when_needed(tmp_path: Path) -> None:
    text = DBC.read_text().replace('"bar" HIL', '"bar" Vector__XXX').replace('[0|14] "" HIL', '[0|14] "" Vector__XXX')
    text = text.replace('[0|255] "" HIL', '[0|255] "" Vector__XXX').replace('[0|3] "" HIL', '[0|3] "" Vector__XXX')
    path = tmp_path / "x.dbc"
    path.write_text(text)
    assert "TCU_Pressure_1" not in {m.name for m in CanDatabase.load(path, "HIL").messages}
    needed = CanDatabase.load(path, "HIL", needed=["TCU_Pressure_1.p_C4"])
    assert needed.message("TCU_Pressure_1").receive


def test_protection_given_by_the_caller_replaces_attributes(tcu: CanDatabase) -> None:
    other = E2ESettings("SAE_J1850_ID", data_id=1, crc_signal="CRC_1", counter_signal="Alive_1", max_delta=1)
    strict = CanDatabase.load(DBC, "HIL", e2e={"TCU_Pressure_1": other})
    assert strict.codec().decode(0x210, tcu.codec().encode("TCU_Pressure_1", {})) == ("crc", {})
    sender = CanDatabase.load(DBC, "TCU", e2e={"TCU_Pressure_1": other}).codec()
    assert strict.codec().decode(0x210, sender.encode("TCU_Pressure_1", {}))[0] == "ok"


def test_tick_functions_agree_with_python_on_all_messages(hil: CanDatabase, tcu: CanDatabase) -> None:
    """The nogil path takes every frame of a long run; its time is printed, not judged."""
    for sender, receiver in ((tcu, hil), (hil, tcu)):
        encode_ns, decode_ns = benchmark_ns(sender.tables, receiver.tables, sender.initial_table(), 2000)
        print(f"{sender.node}: encode {encode_ns:.0f} ns, {receiver.node}: decode {decode_ns:.0f} ns per frame")
        assert np.isfinite(encode_ns + decode_ns)


# --- numbers of a database, worked out by hand ---


def one(tmp_path: Path, signal: str, more: str = "", unit: str = "", length: int = 2) -> Path:
    """A database of one message of A with a signal X, for node B."""
    path = tmp_path / "one.dbc"
    path.write_text(
        f'VERSION ""\nBU_: A B\nBO_ 5 M: {length} A\n SG_ X : 4|8@1+ {signal} "{unit}" B\n'
        'BA_DEF_ SG_ "GenSigStartValue" FLOAT 0 1e9;\nBA_DEF_DEF_ "GenSigStartValue" 0;\n'
        'BA_DEF_ BO_ "GenMsgCycleTime" INT 0 9999;\nBA_DEF_DEF_ "GenMsgCycleTime" 0;\n' + more
    )
    return path


PI = math.pi
#: unit -> a value in it, the same in SI, a difference of 1 in SI
UNITS = {
    "": (3.0, 3.0, 1.0), "%": (30.0, 0.3, 0.01), "Pa": (7.0, 7.0, 1.0), "mbar": (13.0, 1300.0, 100.0),
    "hPa": (13.0, 1300.0, 100.0), "kPa": (2.0, 2e3, 1e3), "MPa": (2.0, 2e6, 1e6), "bar": (1.5, 1.5e5, 1e5),
    "rpm": (60.0, 2 * PI, PI / 30), "1/min": (15.0, PI / 2, PI / 30), "rad/s": (4.0, 4.0, 1.0),
    "deg/s": (90.0, PI / 2, PI / 180), "rpm/s": (30.0, PI, PI / 30), "deg": (-180.0, -PI, PI / 180),
    "rad": (2.0, 2.0, 1.0),
    "degC": (26.85, 300.0, 1.0), "K": (300.0, 300.0, 1.0), "Nm": (5.0, 5.0, 1.0), "kNm": (5.0, 5e3, 1e3),
    "Nm/s": (5.0, 5.0, 1.0), "N": (5.0, 5.0, 1.0), "kN": (5.0, 5e3, 1e3), "km/h": (90.0, 25.0, 1 / 3.6),
    "m/s": (3.0, 3.0, 1.0), "mph": (100.0, 44.704, 0.44704), "m/s2": (3.0, 3.0, 1.0), "s": (3.0, 3.0, 1.0),
    "ms": (20.0, 0.02, 1e-3), "us": (20.0, 2e-5, 1e-6), "m": (3.0, 3.0, 1.0), "km": (1.5, 1500.0, 1e3),
    "mm": (5.0, 0.005, 1e-3), "kg": (3.0, 3.0, 1.0), "W": (3.0, 3.0, 1.0), "kW": (85.0, 85e3, 1e3),
    "A": (3.0, 3.0, 1.0),
    "mA": (950.0, 0.95, 1e-3), "V": (12.0, 12.0, 1.0), "mV": (12.0, 0.012, 1e-3), "Hz": (3.0, 3.0, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("text", UNITS)
def test_every_unit_of_a_database_in_si(text: str) -> None:
    unit, (value, si, step) = si_unit(text), UNITS[text]
    assert unit is not None
    assert to_si(value, unit, with_offset=True) == pytest.approx(si, rel=1e-14)
    assert to_si(1.0, unit, with_offset=False) == pytest.approx(step, rel=1e-14)
    told = {"rpm": "rad/s", "deg": "rad", "km/h": "m/s", "bar": "Pa", "degC": "K", "mA": "A", "rpm/s": "rad/s2"}
    assert unit.symbol == told.get(text, unit.symbol)


@pytest.mark.parametrize(("value", "si"), [(1e308, math.inf), (-1e308, -math.inf), (-math.inf, -math.inf)])
def test_what_no_number_can_hold_in_si_keeps_its_sign(value: float, si: float) -> None:
    unit = si_unit("kNm")
    assert unit is not None and to_si(value, unit, with_offset=True) == si


@pytest.mark.parametrize(
    ("signal", "unit", "limits", "start"),
    [
        # without a start value: 0, or the limit that is nearer
        ("(0.5,0) [-10|20]", "bar", (-10e5, 20e5), 0.0),
        ("(0.5,0) [2|20]", "bar", (2e5, 20e5), 2e5),
        ("(0.5,-40) [-40|-5]", "bar", (-40e5, -5e5), -5e5),
        ("(1,-40) [-40|80]", "degC", (233.15, 353.15), 233.15),
    ],
)
def test_limits_and_start_of_a_signal(
    tmp_path: Path, signal: str, unit: str, limits: tuple[float, float], start: float
) -> None:
    info = CanDatabase.load(one(tmp_path, signal, unit=unit), "B").signal("M.X")
    assert (info.minimum, info.maximum) == pytest.approx(limits)
    assert info.start == pytest.approx(start)


def test_words_numbers_and_invalid_values_of_a_signal(tmp_path: Path) -> None:
    """Raw numbers 2, 3, 200 and 255 are -39, -38.5, 60 and 87.5; the last one is outside of its range."""
    words = 'VAL_ 5 X 2 "cold" 3 "cool" 200 "hot" 255 "error" ;\n'
    database = CanDatabase.load(one(tmp_path, "(0.5,-40) [-39|60]", words, "degC"), "B")
    info, (spec,) = database.signal("M.X"), database.message("M").signals
    assert (info.scale, info.offset) == (0.5, pytest.approx(233.15))
    assert [info.value_of(word) for word in ("cold", "cool", "hot")] == pytest.approx([234.15, 234.65, 333.15])
    assert [info.word_of(x) for x in (234.15, 234.6, 333.15, 300.0)] == ["cold", "cool", "hot", None]
    assert info.in_si(60.0) == pytest.approx(333.15) and info.in_si(60.0, with_offset=False) == 60.0
    assert spec.invalid == (255,) and (spec.start, spec.length, spec.big_endian) == (4, 8, False)


@pytest.mark.parametrize(
    ("unit", "low", "high", "text"),
    [
        ("degC", 233.15, 353.15, "-40 .. 80 degC"), ("rpm", -100 * PI, 200 * PI, "-3000 .. 6000 rpm"),
        ("km/h", None, 25.0, "any .. 90 km/h"), ("bar", 0.0, math.inf, "0 .. any bar"), ("", 1.0, 3.0, "1 .. 3"),
    ],
)  # fmt: skip
def test_a_range_in_si_is_told_in_the_unit_of_the_database(
    tmp_path: Path, unit: str, low: float | None, high: float | None, text: str
) -> None:
    info = CanDatabase.load(one(tmp_path, "(1,0) [0|0]", unit=unit), "B").signal("M.X")
    assert info.range_text(low, high) == text


KCD = """<NetworkDefinition xmlns="http://kayak.2codeornot2code.org/1.0"><Document name="one"/>
<Node id="1" name="A"/><Node id="2" name="B"/><Bus name="bus"><Message id="0x5" name="M" length="1">
<Producer><NodeRef id="1"/></Producer><Signal name="X" offset="0" length="8"><Consumer><NodeRef id="2"/></Consumer>
<Value LIMIT/><LabelSet><Label name="low" value="3"/><Label name="high" value="250"/></LabelSet></Signal></Message>
</Bus></NetworkDefinition>"""


@pytest.mark.parametrize(("limit", "invalid"), [('min="100"', (3,)), ('max="99"', (250,)), ("", ())])
def test_a_range_with_one_end_makes_words_beyond_it_invalid(
    tmp_path: Path, limit: str, invalid: tuple[int, ...]
) -> None:
    path = tmp_path / "one.kcd"
    path.write_text(KCD.replace("LIMIT", limit))
    assert CanDatabase.load(path, "B").message("M").signals[0].invalid == invalid


@pytest.mark.parametrize("factor", [1.4e6, -1.4e6, 1.99e6, 2.01e6, -2.01e6])
def test_a_factor_may_be_as_large_as_the_range_of_its_quantity(tmp_path: Path, factor: float) -> None:
    """The range of an angular velocity is -1e6 to 1e6 rad/s, a step of a whole range is its width."""
    path = one(tmp_path, f"({factor * 30 / PI!r},0) [0|0]", unit="rpm")
    if abs(factor) < 2e6:
        assert CanDatabase.load(path, "B").signal("M.X").scale == pytest.approx(factor)
    else:
        with pytest.raises(ConfigError, match="out of range"):
            CanDatabase.load(path, "B")


def test_times_of_a_message(tmp_path: Path) -> None:
    """In milliseconds in the database; timeouts of ten cycles, for messages that are received."""
    timing = "".join(
        f'BA_DEF_ BO_ "{name}" INT 0 9999;\nBA_DEF_DEF_ "{name}" 0;\nBA_ "{name}" BO_ 5 {value};\n'
        for name, value in (("GenMsgStartDelayTime", 30), ("GenMsgDelayTime", 7), ("GenMsgNrOfRepetition", 2))
    )
    path = one(tmp_path, "(1,0) [0|0]", 'BA_ "GenMsgCycleTime" BO_ 5 20;\n' + timing)
    sent, received = CanDatabase.load(path, "A").message("M"), CanDatabase.load(path, "B").message("M")
    assert (sent.cycle_ns, sent.start_ns, sent.gap_ns, sent.repeats) == (20_000_000, 30_000_000, 7_000_000, 2)
    assert (received.cycle_ns, received.timeout_ns, sent.timeout_ns) == (20_000_000, 200_000_000, 0)
    other = CanDatabase.load(path, "A", cycles_s={"M": 0.05}).message("M")
    assert other.cycle_ns == 50_000_000


def test_a_timeout_counts_from_the_last_frame() -> None:
    codec = CanDatabase.load(DBC, "HIL", timeouts_s={"*": 0.0, "TCU_Status": 0.02}).codec()
    sender = CanDatabase.load(DBC, "TCU").codec()
    codec.arm(1.0)
    assert codec.silent(1.019) == [] and codec.silent(1.021) == ["TCU_Status"]
    assert codec.decode(0x212, sender.encode("TCU_Status", {}), 1.05)[0] == "ok"
    assert codec.silent(1.069) == [] and codec.silent(1.071) == ["TCU_Status"]


def test_a_codec_goes_on_where_it_was_saved(hil: CanDatabase, tcu: CanDatabase) -> None:
    """Counters of both directions and the last values: a copy sends and takes what the first one does."""
    a, other = hil.codec(), tcu.codec()
    for n in range(5):
        a.encode("HIL_Speeds", {"n_engine": 10.0 * n})
        a.decode(0x212, other.encode("TCU_Status", {}))
    b = hil.codec()
    b.load(a.save())
    assert b.counters() == a.counters() and b.counters()["TCU_Status"]["ok"] == 5
    assert b.table.tolist() == a.table.tolist()
    assert b.encode("HIL_Speeds", {}) == a.encode("HIL_Speeds", {}) != hil.codec().encode("HIL_Speeds", {})
    late = other.encode("TCU_Status", {})
    assert [b.decode(0x212, late)[0] for _ in range(2)] == [a.decode(0x212, late)[0] for _ in range(2)]
    with pytest.raises(ConfigError, match="did you mean 'TCU_Status'"):
        hil.message("TCU_Sttus")


def test_the_python_of_a_message_says_its_times_lengths_and_ranges(tmp_path: Path) -> None:
    cycle = 'BA_ "GenMsgCycleTime" BO_ 5 20;\n'
    text = python_code(one(tmp_path, "(0.5,-40) [-40|60]", cycle, "degC", length=3), "B")
    assert '"""M, 0x5, 3 bytes, received every 20 ms."""' in text
    assert "    #: 233.15 .. 333.15 K\n    X: float = " in text
    text = python_code(one(tmp_path, "(1,0) [0|0]"), "A")
    assert '"""M, 0x5, 2 bytes, sent."""' in text and "    #: ? .. ? 1\n    X: float = 0.0" in text
