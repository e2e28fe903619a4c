"""Interfaces of makers: each rig drives on its bus, and cantools reads there what the rig itself says; the control unit
needs that bus; addresses are claimed; the page is the actual one, and the databases are those of opendbc."""

from __future__ import annotations

import json
import re
import runpy
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cantools
import numpy as np
import pytest

import torqueloop as tl
from torqueloop.core.describe.errors import ConfigError, RangeError
from torqueloop.cython_kernels.can.codec_spec import MessageSpec
from torqueloop.hil.can.database import bus_id
from torqueloop.hil.can.frame import EXTENDED, Frame
from torqueloop.hil.catalogue.interfaces import RIGS, page, protection
from torqueloop.hil.ecu.interface import MakerBus, interface_database
from torqueloop.hil.ecu.interface_tables import load_interface
from torqueloop.hil.rig.run.replay import replay

sys.path.append(str(Path(__file__).resolve().parents[1] / "judges"))

from judgetools.facts import SOURCES, facts

CONFIGS = Path(tl.__file__).parent / "configs"
#: database of opendbc's package that ours was cut from
OPENDBC = {
    "bmw_e9x": "bmw_e9x_e8x", "vw_pq": "vw_pq", "audi_c6": "vw_pq", "vw_mqb": "vw_mqb",
    "hyundai_ccan": "hyundai_2015_ccan", "vw_mlb": "vw_mlb",
}  # fmt: skip
#: signals with another scaling than in opendbc on purpose: the inverted copy in its own steps
CHANGED = {"invertierte_Synchronisations_Wu", "Checksum_170", "KickDownPressed"}


def at(run: tl.RecordedRun, name: str, t: float) -> float:
    """A recorded signal at a time."""
    return float(run[name][int(np.searchsorted(run.t, t)) - 1])


def wheel_rpm(run: tl.RecordedRun, t: float) -> float:
    return at(run, "wheels.w", t) * 30.0 / np.pi


def rpm(name: str) -> Callable[[tl.RecordedRun, float], float]:
    return lambda run, t: at(run, name, t) * 30.0 / np.pi


#: rig -> message, signal, what it must say at time t of the run (number in the unit of the database), tolerance
SAID: dict[str, list[tuple[str, str, Callable[[tl.RecordedRun, float], float], float]]] = {
    "desk_bmw_e9x": [
        ("TransmissionData", "OutputShaftSpeed", rpm("HIL_Speeds.n_output"), 12.0),
        # 1 N, 2 R, 3 P, 5 to 10 the gears
        ("TransmissionData", "GearTar", lambda r, t: at(r, "TCU_Status.gear_target", t) + 4, 0.0),
        ("AccPedal", "EngineSpeed", rpm("engine.w"), 20.0),
    ],
    "desk_bmw_f": [
        ("Speeds_EGS", "tailshaft", rpm("HIL_Speeds.n_output"), 12.0),
        ("Torque_DME", "rpm", rpm("engine.w"), 20.0),
        ("Wheels_DSC", "wheel_RL", wheel_rpm, 3.0),
    ],
    "desk_vw_pq": [
        ("Getriebe_1", "GE1_Zielgang", lambda r, t: at(r, "TCU_Status.gear_target", t), 0.0),
        ("Motor_1", "Motordrehzahl", rpm("engine.w"), 20.0),
    ],
    "desk_audi_c6": [
        ("Getriebe_6", "GE6_Turbinendrehzahl", rpm("HIL_Speeds.n_turbine"), 60.0),
        ("Getriebe_1", "GE1_Zielgang", lambda r, t: at(r, "TCU_Status.gear_target", t), 0.0),
    ],
    "desk_vw_mqb": [
        ("Getriebe_13", "GE_Eingangsdrehz", rpm("HIL_Speeds.n_turbine"), 60.0),
        ("ESP_21", "ESP_v_Signal", lambda r, t: 3.6 * at(r, "car.v", t), 0.5),
    ],
    "desk_hyundai": [
        ("TCU11", "N_TC", rpm("HIL_Speeds.n_turbine"), 60.0),
        ("TCU12", "CUR_GR", lambda r, t: at(r, "TCU_Status.gear_actual", t), 0.0),
        ("EMS11", "VS", lambda r, t: 3.6 * at(r, "car.v", t), 1.1),
    ],
    "desk_mb_egs52": [
        ("GS_338", "turbine_rpm", rpm("HIL_Speeds.n_turbine"), 60.0),
        ("GS_218", "gear_actual", lambda r, t: at(r, "TCU_Status.gear_actual", t), 0.0),
        ("BS_208", "wheel_rear_left", wheel_rpm, 3.0),
    ],
    "desk_j1939": [
        ("ETC1", "OutputShaftSpeed", rpm("HIL_Speeds.n_output"), 30.0),
        ("ETC2", "CurrentGear", lambda r, t: at(r, "TCU_Status.gear_actual", t), 0.0),
        ("EEC1", "EngineSpeed", rpm("engine.w"), 20.0),
    ],
    "desk_vw_mlb": [
        ("Getriebe_03", "GE_Eingangsdrehz", rpm("HIL_Speeds.n_turbine"), 60.0),
        ("Getriebe_03", "GE_Zielgang", lambda r, t: at(r, "TCU_Status.gear_target", t), 0.0),
        ("Motor_03", "MO_Drehzahl_01", rpm("engine.w"), 20.0),
    ],
    "desk_ram_dt": [
        ("TCM_1", "ACTUAL_GEAR", lambda r, t: at(r, "TCU_Status.gear_actual", t) or 11.0, 0.0),
        ("TCM_1", "OUTPUT_SPEED", rpm("HIL_Speeds.n_output"), 30.0),
        ("ECM_1", "ENGINE_RPM", rpm("engine.w"), 20.0),
    ],
}


def read_by_cantools(run: tl.RecordedRun, name: str) -> dict[str, list[tuple[float, dict[str, Any]]]]:
    """Frames of the maker's bus by message, decoded by cantools."""
    database = cantools.database.load_file(CONFIGS / "can" / f"{name}.dbc")
    found: dict[str, list[tuple[float, dict[str, Any]]]] = {}
    for frame in run.frames():
        if frame["bus"] != 1:
            continue
        message = database.get_message_by_frame_id(int(frame["id"]) & 0x1FFFFFFF)
        values = message.decode(frame["data"].tobytes()[: frame["dlc"]], decode_choices=False)
        found.setdefault(message.name, []).append((1e-9 * float(frame["t_ns"]), values))
    return found


NAMES = (
    "bmw_e9x", "bmw_f", "vw_pq", "audi_c6", "vw_mqb", "hyundai_ccan", "mb_egs52", "j1939_transmission", "vw_mlb",
    "ram_dt",
)  # fmt: skip
DATABASE = dict(zip(RIGS, NAMES, strict=True))


@pytest.mark.proof
@pytest.mark.parametrize("rig", RIGS)
def test_it_drives_and_the_makers_bus_says_so(rig: str, tmp_path: Path) -> None:
    run = tl.run(rig, clock="virtual", duration=2.6, out=tmp_path / "run", html=False)
    assert run.metrics["safe_state_latched"] == 0 and run.metrics["energy_residual_rel"] < 1e-9
    told = run.stats.participants["tcu"].reported
    assert told["mode"] == "normal" and told["refused"] == {}
    assert at(run, "TCU_Status.gear_actual", 2.5) == 1 and at(run, "car.v", 2.5) > 0.01
    frames = read_by_cantools(run, DATABASE[rig])
    for message, signal, expected, tolerance in SAID[rig]:
        pairs = [(values[signal], expected(run, t)) for t, values in frames[message] if t > 1.0]
        assert len(pairs) > 10, message
        wrong = [p for p in pairs if abs(p[0] - p[1]) > tolerance]
        # a message shows a change at its next cycle, the one it is compared with at its own
        assert len(wrong) <= 0.03 * len(pairs), (message, signal, wrong[:3])
    if rig == "desk_vw_pq":
        values = [v for _, v in frames["Getriebe_2"]]
        wanted, inverted = "Synchronisations_Wunschdrehzahl", "invertierte_Synchronisations_Wu"
        assert all(abs(v[wanted] / 25.0 + v[inverted] - 255.0) <= 1.0 for v in values)
        counters = [
            [v[c] for _, v in frames[m]] for m, c in (("Getriebe_1", "COUNTER"), ("Getriebe_2", "Zahler_Getriebe_2"))
        ]
        assert len(counters[0]) > 200 and all(a == b for a, b in zip(*counters, strict=False)), "in step"
    if rig == "desk_j1939":
        # the first frame, and the answer to the engine's request
        assert [t for t, _ in frames["AddressClaimTCU"]][0] < 0.011 and len(frames["AddressClaimTCU"]) == 2
    if rig == "desk_vw_mqb":
        assert replay(run.path).difference is None


def test_without_the_makers_engine_the_control_unit_goes_to_limp_home(tmp_path: Path) -> None:
    fault = {"node": "Motor", "kind": "silent", "from_s": 1.0, "until_s": 1.7}
    run = tl.run(
        "desk_vw_pq", clock="virtual", duration=1.8, out=tmp_path / "run", html=False, overrides={"faults": [fault]}
    )
    modes = run.stats.participants["tcu"].reported["modes"]
    assert [m["mode"] for m in modes] == ["normal", "limp_home"]
    assert modes[1]["fault"] in ("driver lost", "speeds and driver lost") and 1.4 < modes[1]["t_s"] < 1.6


def claiming() -> MakerBus:
    config = load_interface(CONFIGS / "interfaces" / "tcu_j1939.toml")
    database = interface_database(config, CONFIGS / "can" / "j1939_transmission.dbc", "TCU")
    return MakerBus(config, database, 5e-3, 1)


def nothing() -> tuple[dict[str, float], dict[str, str]]:
    from torqueloop.hil.ecu.interface_tables import NUMBERS

    words = {"gear_actual": "N", "gear_target": "N", "lever": "N", "lockup": "open", "mode": "normal"}
    return dict.fromkeys(NUMBERS, 0.0), words


def test_the_lower_name_wins_the_address() -> None:
    own = 0x18EEFF03 | EXTENDED
    unit = claiming()
    first = unit.frames(0, *nothing())
    assert first[0].can_id == own and int.from_bytes(first[0].data, "little") == 1 | 3 << 40
    # a higher NAME: ours is said again, and goes on
    unit.receive(0.1, Frame(own, (99 | 200 << 40).to_bytes(8, "little"), 0, 1))
    again = [f for k in range(20, 24) for f in unit.frames(k, *nothing())]
    assert again[0] == first[0] and len(again) > 3 and not unit.address_lost
    # a lower one: "cannot claim", and silence
    unit.receive(0.2, Frame(own, bytes(8), 0, 1))
    lost = unit.frames(40, *nothing())
    assert [f.can_id for f in lost] == [0x18EEFFFE | EXTENDED] and unit.address_lost
    assert unit.frames(60, *nothing()) == []


def test_a_request_goes_out_while_torque_is_asked_for() -> None:
    unit = claiming()
    unit.frames(0, *nothing())
    numbers, words = nothing()
    tsc1 = unit.codec.can_id("TSC1")
    assert tsc1 not in [f.can_id for k in range(1, 5) for f in unit.frames(k, numbers, words)]
    numbers |= {"torque_limit": 200.0, "torque_limit_active": 1.0}
    data = next(f.data for k in range(5, 9) for f in unit.frames(k, numbers, words) if f.can_id == tsc1)
    # mode 3, 200 Nm of 500 Nm = 40 % -> raw 165; sum of bytes, counter and identifier, folded (SPN 4207)
    assert data[0] & 3 == 3 and data[3] == 165
    total = sum(data[:7]) + (data[7] & 15) + 0x0C + 0x00 + 0x00 + 0x03
    assert data[7] >> 4 == (((total >> 6) & 3) + (total >> 3) + total) & 7


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        ('pedal = "AccPedal.Pedal"', "Pedal"),
        ('rpm = "AccPedal.EngineSpeed"', "rpm"),
        ('lever = "GearSelectorSwitch.ShifterPosition"', "words"),
    ],
)
def test_a_wrong_interface_is_refused_by_name(edit: str, named: str, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(f'extends = "egs_bmw_e9x"\n[receive]\n{edit}\n')
    with pytest.raises(ConfigError) as error:
        interface_database(load_interface(path), CONFIGS / "can" / "bmw_e9x.dbc", "TCU")
    assert named in str(error.value)


def test_a_quantity_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('extends = "egs_bmw_e9x"\n[send]\n"TransmissionData.Shifting" = "shift"\n')
    with pytest.raises(ConfigError, match="shift.*shifting"):
        load_interface(path)


def test_the_page_is_the_actual_one() -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    drives = json.loads((docs / "interface_drives.json").read_text(encoding="utf-8"))
    told = "python -m torqueloop.hil.catalogue.interfaces docs/interface_drives.json > docs/interfaces.md"
    assert (docs / "interfaces.md").read_text(encoding="utf-8") == page(drives), told


@pytest.mark.parametrize(("profile", "keys", "text"), [
    ("AUTOSAR_P01_1A", {}, "checksum AUTOSAR_P01_1A, counter 0..14"),
    ("AUTOSAR_P02", {"data_ids": tuple(range(16))}, "checksum AUTOSAR_P02, counter 0..15"),
    ("NONE", {}, "counter 0..15"),
    ("NONE", {"counter_min": 1, "counter_max": 12, "counter_skips": (3, 4)}, "counter 1..12 without 3, 4"),
])  # fmt: skip
def test_the_page_tells_the_values_that_a_counter_takes(profile: str, keys: dict[str, Any], text: str) -> None:
    """AUTOSAR E2E: profile 1 leaves out 15, profile 2 does not (specification 428)."""
    assert protection(MessageSpec("M", 1, False, 8, True, (), profile, counter=(8, 4, False), **keys)) == text


def test_the_page_names_every_message_that_a_real_unit_refuses() -> None:
    """Read from the interface files by their own words: a message whose checksum is not public is on its line."""
    page_lines = (Path(__file__).resolve().parents[2] / "docs" / "interfaces.md").read_text(encoding="utf-8")
    table = page_lines.partition("## What would a real unit refuse today?")[2].partition("\n## ")[0]
    rows = {cells[1].strip(): cells[2:4] for line in table.splitlines() if len(cells := line.split("|")) == 5}
    counted = 0
    for path in (CONFIGS / "interfaces").glob("*.toml"):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        database = cantools.database.load_file(CONFIGS / "can" / f"{data['database']}.dbc")
        for name, known in data["known"].items():
            own = "TCU" in database.get_message_by_name(name).senders
            cell = rows[data["network"]][1 if own else 0]
            other = rows[data["network"]][0 if own else 1]
            if known.get("protection") == "not_public":
                assert re.search(rf"\b{name}\b[^;]*: checksum not public", cell), (path.name, name)
                counted += 1
            assert name not in re.findall(r"\w+", other)
    assert counted == 13


@pytest.mark.parametrize("ours", OPENDBC)
def test_messages_and_signals_are_those_of_opendbc(ours: str) -> None:
    opendbc = pytest.importorskip("opendbc")
    path = Path(opendbc.__file__).parent / "dbc" / f"{OPENDBC[ours]}.dbc"
    theirs = cantools.database.load_file(path, strict=False, encoding="cp1252")
    # what recordings and makers' lists say goes first: rt_tests/unit/test_can_facts.py compares with them
    corrected = facts(ours) if ours in SOURCES else []
    better = {(m.can_id, name) for m in corrected for f in m.fields for name in f.name.split()}
    lengths = {m.can_id for m in corrected if m.length is not None}
    count = 0
    for message in cantools.database.load_file(CONFIGS / "can" / f"{ours}.dbc", strict=True).messages:
        other = next((m for m in theirs.messages if m.frame_id == message.frame_id), None)
        if other is None:
            # of another source, which the facts hold
            assert message.frame_id in {m.can_id for m in facts(ours)}
            continue
        assert message.length == other.length or message.frame_id in lengths
        for signal in message.signals:
            same = next((s for s in other.signals if s.name == signal.name), None)
            # cantools drops signals of a multiplexer without a switch
            if same is None or (message.frame_id, signal.name) in better:
                continue
            assert (signal.start, signal.length) == (same.start, same.length)
            assert signal.byte_order == same.byte_order or signal.length == 1
            if signal.name not in CHANGED:
                assert (signal.scale, signal.offset, signal.is_signed) == (same.scale, same.offset, same.is_signed)
            count += 1
    assert count > 5


def test_the_ram_has_the_layouts_of_its_maker_and_its_own_identifiers() -> None:
    opendbc = pytest.importorskip("opendbc")
    folder = Path(opendbc.__file__).parent / "dbc" / "generator" / "chrysler"
    # opendbc's own reader takes number forms and repeated value tables that cantools refuses
    files = ((folder / name).read_text() for name in ("chrysler_ram_dt.dbc", "_stellantis_common.dbc"))
    texts = (re.sub(r"(?m)^VAL_.*$", "", text).replace("(.25", "(0.25") for text in files)
    sources = [cantools.database.load_string(text, "dbc", strict=False) for text in texts]
    moved = runpy.run_path(str(folder / "_stellantis_common_ram.py"))["chrysler_to_ram"]
    ids = moved["_stellantis_common_ram_dt_generated.dbc"]
    ours = cantools.database.load_file(CONFIGS / "can" / "ram_dt.dbc", strict=True)
    assert len(ours.messages) == 6
    for message in ours.messages:
        theirs = next(m for db in sources for m in db.messages if m.name == message.name)
        assert message.frame_id == ids.get(theirs.frame_id, theirs.frame_id) and message.length == theirs.length
        assert {s.name: (s.start, s.length, s.byte_order, s.scale, s.offset, s.is_signed) for s in message.signals} == {
            s.name: (s.start, s.length, s.byte_order, s.scale, s.offset, s.is_signed) for s in theirs.signals
        }


def test_a_restored_bus_goes_on_with_what_the_saved_one_has_heard() -> None:
    saved, restored = claiming(), claiming()
    saved.values = {"pedal": 0.25, "lever": "D"}
    saved.refused, saved._last_good, saved._last_move = {"crc": 3}, {"ETC1": 1.5}, 2.0
    saved._claim_due, saved.address_lost = False, True
    restored.load(saved.save())
    assert (restored.values, restored.refused) == ({"pedal": 0.25, "lever": "D"}, {"crc": 3})
    assert (restored._last_good, restored._last_move) == ({"ETC1": 1.5}, 2.0)
    assert (restored._claim_due, restored.address_lost) == (False, True)
    assert restored.save() == saved.save()


def test_a_silent_message_is_lost_behind_its_timeout_and_not_before() -> None:
    unit = claiming()
    limit = unit.config.rx_timeout_s
    for name in unit._wanted:
        unit._last_good[name] = 2.0
    assert unit.lost(2.0 + limit) == set() and unit.lost(2.0 + limit + 1e-3)
    assert unit.lost(0.0) == set(), "what has come after this time is not lost"


def test_a_cycle_time_beside_the_control_period_is_refused_in_milliseconds() -> None:
    config = load_interface(CONFIGS / "interfaces" / "tcu_j1939.toml")
    database = interface_database(config, CONFIGS / "can" / "j1939_transmission.dbc", "TCU")
    with pytest.raises(RangeError, match=r"cycle time 10(\.0)? ms.*multiple of the control period of 7 ms"):
        MakerBus(config, database, 7e-3, 1)


def test_messages_of_a_maker_come_in_their_cycle_times() -> None:
    unit = claiming()
    period, numbers_and_words = 5e-3, nothing()
    sent: dict[int, list[int]] = {}
    for step in range(400):
        for frame in unit.frames(step, *numbers_and_words):
            sent.setdefault(frame.can_id, []).append(step)
    cycles = {bus_id(m): m.cycle_ns * 1e-9 for m in unit.database.tx_messages}
    apart = {i: {b - a for a, b in zip(s, s[1:], strict=False)} for i, s in sent.items() if len(s) > 1}
    assert apart and all(steps == {round(cycles[i] / period)} for i, steps in apart.items())
