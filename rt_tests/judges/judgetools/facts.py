"""Facts about makers' messages (rt_tests/reference/can/*.yaml, each with its source) and how our databases differ.

A fact is a place, a scaling, a sign, a length or a period that a recording, a maker's list or a second database gives.
What a fact leaves open is not compared. Used by rt_tests/judges/can_facts.py and rt_tests/unit/test_can_facts.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
FACTS = ROOT / "rt_tests" / "reference" / "can"
#: our database -> file and table of the facts
SOURCES = {
    "bmw_e9x": ("interfaces.yaml", "bmw_e9x_e6x_egs"), "vw_pq": ("interfaces.yaml", "vw_pq_getriebe"),
    "audi_c6": ("next.yaml", "audi_c6_6hp"), "bmw_f": ("next.yaml", "bmw_f_8hp_egs"),
    "vw_mqb": ("interfaces.yaml", "vw_mqb_getriebe_11"), "hyundai_ccan": ("interfaces.yaml", "hyundai_tcu"),
    "j1939_transmission": ("j1939.yaml", ""), "mb_egs52": ("egs52.yaml", ""),
    "vw_mlb": ("next.yaml", "vw_mlb_8hp"), "ram_dt": ("next.yaml", "ram_dt_8hp"),
}  # fmt: skip
#: names of the facts -> names in the database, where these are those of its origin
ALIASES = {
    "bmw_e9x": {
        "Checksum": "Checksum_Torque_request_EGS Checksum_EngineAndBrake", "ALIV": "ALIV_TORQ_2_DME",
        "CHKSM": "CHKSM_TORQ_2_DME", "Counter": "Counter_464 Counter_408",
        "wheels": "Wheel_FL Wheel_FR Wheel_RL Wheel_RR",
    },
    "vw_pq": {
        "Zahler": "Zahler_Getriebe_2", "Leerlaufsolldrehzahl": "Leerlaufsolldrehzahl__Getriebe",
        "invertierte Wunschdrehzahl": "invertierte_Synchronisations_Wu",
        "Ganganzeige": "Ganganzeige_Kombi___Getriebe_Va", "Kickdown": "Kickdownschalter",
        "inneres_Moment_ohne_ext": "inneres_Motor_Moment_ohne_exter",
        "Fahrpedal": "Fahrpedalwert_oder_Drosselklapp", "Verlustmoment": "mechanisches_Motor_Verlustmomen",
        "mux": "MO2_Mp_Code", "max_Mo": "MO2_max_Mo", "Kuehlm_T": "MO2_Kuehlm_T", "BLS": "MO2_BLS",
        "Pedalwert": "MO3_Pedalwert", "Rad_Wu_Mo": "MO3_Rad_Wu_Mo", "WunschDz": "MO3_WunschDz",
        "Checksumme": "Checksumme_Motor_6", "Zaehler": "Zaehler_Motor_6",
    },
    "audi_c6": {
        "hold_speed": "GE1_Halte_Dz", "coding": "GE1_Codierung", "CHK": "GE6_CHK GME_CHK", "turbine speed":
        "GE6_Turbinendrehzahl", "ax_max": "GE6_ax_max", "loss torque": "GE6_Verlustmoment", "shift": "GME_Schaltung",
        "counter": "GE6_Zaehler GME_Zaehler", "dynamic request": "GME_Dyn_Moment", "dynamic status": "GME_Dyn_Status",
        "long-term status": "GME_Lang_Status", "long-term request": "GME_Lang_Moment", "quality": "GME_Guete",
        "gearbox loss": "GME_Verlustmoment", "ratio": "GME_Uebersetzung",
    },
    "vw_mlb": {
        "CHK": "Getriebe_01_CHK", "BZ": "Getriebe_01_BZ", "shift": "GE_Schaltvorgang", "clutch": "GE_Status_Kupplung",
        "MMom_Soll": "GE_MMom_Soll", "MMom_Status": "GE_MMom_Status", "shift phase": "GE_Status_Schaltablauf",
        "MMom_Vorhalt": "GE_MMom_Vorhalt", "sync speed": "GE_Synchro_Wunschdrehz", "sync time": "GE_Synchro_Zeit",
        "gradient": "GE_Mom_Begr_Gradient", "idle": "GE_Anheb_Solldrehz_Leerlauf MO_Solldrehz_Leerlauf",
        "precontrol torque": "GE_Vorsteuermoment", "ratio": "GE_Uefkt", "target gear": "GE_Zielgang",
        "long-term limit": "GE_Langfr_Schutzmom", "lever": "GE_Waehlhebel", "input speed": "GE_Eingangsdrehz",
        "limp": "GE_Notlauf", "loss": "GE_Verlustmoment MO_Mom_Verlust", "amax": "GE_amax_moeglich",
        "sump": "GE_Sumpftemperatur", "without": "MO_Mom_o_ex", "with intervention": "MO_Mom_m_ex",
        "limit": "MO_Mom_Begrenzung", "driver": "MO_Mom_Fahrerwunsch", "kickdown": "MO_Kickdown",
        "rpm": "MO_Drehzahl_01", "brake": "MO_Fahrer_bremst", "pedal": "MO_Fahrpedalrohwert_01",
    },
    "ram_dt": {"MAX": "ENGINE_TORQ_MAX", "MIN": "ENGINE_TORQ_MIN"},
    "bmw_f": {"drive torque": "drive_torque", "wheels": "wheel_RL wheel_RR wheel_FL wheel_FR"},
    "hyundai_ccan": {
        "Alive3": "CF_Tcu_Alive3", "ChkSum3": "CF_Tcu_ChkSum3", "mux": "MUL_CODE",
        "wheels": "WHL_SPD_FL WHL_SPD_FR WHL_SPD_RL WHL_SPD_RR",
        "AliveCounter": "AliveCounter WHL_SPD_AliveCounter_LSB WHL_SPD_AliveCounter_MSB",
        "Checksum": "Checksum WHL_SPD_Checksum_LSB WHL_SPD_Checksum_MSB",
    },
    "j1939_transmission": {
        "SPN695": "OverrideControlMode", "SPN696": "RequestedSpeedControlConditions", "SPN518": "RequestedTorque",
        "SPN897": "OverrideControlModePriority", "SPN898": "RequestedSpeed", "SPN3349": "TransmissionRate",
        "SPN3350": "ControlPurpose", "SPN4191": "RequestedTorqueHighResolution", "SPN4206": "MessageCounter",
        "SPN4207": "MessageChecksum", "SPN899": "EngineTorqueMode", "SPN4154": "ActualTorqueFraction",
        "SPN512": "DriverDemandTorque", "SPN513": "ActualEngineTorque", "SPN190": "EngineSpeed",
        "SPN1483": "ControllingSourceAddress", "SPN1675": "StarterMode", "SPN2432": "EngineDemandTorque",
        "SPN558": "LowIdleSwitch", "SPN559": "KickdownSwitch", "SPN2970": "LowIdleSwitch2", "SPN91": "AcceleratorPedal",
        "SPN92": "LoadAtSpeed", "SPN560": "DrivelineEngaged", "SPN573": "LockupEngaged", "SPN574": "ShiftInProcess",
        "SPN4816": "LockupTransitionInProcess", "SPN191": "OutputShaftSpeed", "SPN522": "ClutchSlip",
        "SPN606": "MomentaryOverspeedEnable", "SPN607": "ProgressiveShiftDisable", "SPN5015": "MomentaryMaxPowerEnable",
        "SPN161": "InputShaftSpeed", "SPN1482": "ControllingSourceAddress", "SPN524": "SelectedGear",
        "SPN526": "ActualRatio", "SPN523": "CurrentGear", "SPN162": "RequestedRange", "SPN163": "CurrentRange",
        "SPN3289": "RequestedGearFeedback", "SPN4261": "ReverseShiftInhibitStatus", "SPN5344": "WarningIndicator",
        "SPN6567": "Mode9Indicator", "SPN6568": "Mode10Indicator", "SPN6566": "AirSupplyIndicator",
        "SPN7696": "AutoNeutralFunction", "SPN8291": "ManualModeIndicator", "SPN684": "RequestedClutchSlip",
        "SPN525": "RequestedGear", "SPN2985": "ManualMode", "SPN84": "WheelBasedSpeed", "SPN597": "BrakeSwitch",
        "ETC7.1": "RangeBlank ServiceIndicator RequestedRangeBlank RequestedRangeFlash",
        "ETC7.2": "ReadyForBrakeRelease ActiveShiftConsole EngineCrankEnable ShiftInhibit",
        "ETC7.3": "Mode4Indicator Mode3Indicator Mode2Indicator Mode1Indicator",
        "ETC7.5": "Mode5Indicator Mode6Indicator Mode7Indicator Mode8Indicator",
        "TC1.1": "ShiftInhibit LockupDisable DisengageDriveline ReverseShiftInhibit",
        "TC1.4": "DifferentialLock1 DifferentialLock2 DifferentialLock3 DifferentialLock4",
        "TC1.5": "DifferentialLock5 DifferentialLock6 DifferentialLock7", "TC1.6": "Mode1 Mode2 Mode3 Mode4",
        "TC1.8": "Mode5 Mode6 Mode7 Mode8",
    },
}  # fmt: skip
#: facts that another one contains: kick-down is a bit of ST_CLCTR_V
CONTAINED = {"KickDownPressed", "REQ_GEAR"}


@dataclass(frozen=True)
class Fact:
    """A field of a message: its place, and what is known of its number. None: left open."""

    name: str
    start: int
    length: int
    big_endian: bool = False
    signed: bool | None = None
    scale: float | None = None
    offset: float | None = None
    #: its number is not known: a scaling is not compared. Else a field without scaling and unit is a whole number
    open: bool = False
    #: highest value of an alive counter
    counter_max: int | None = None


@dataclass
class FactMessage:
    """A message as the facts have it."""

    can_id: int
    name: str
    length: int | None = None
    period_ms: float | None = None
    #: recorded, assumed ..., in the words of the file
    period_source: str = ""
    fields: list[Fact] = field(default_factory=list)


def facts(database: str) -> list[FactMessage]:
    """The messages of a database as the facts have them."""
    file, table = SOURCES[database]
    text = yaml.safe_load((FACTS / file).read_text(encoding="utf-8"))
    read = {"interfaces.yaml": _listed, "next.yaml": _listed, "j1939.yaml": _j1939, "egs52.yaml": _egs52}[file]
    found: list[FactMessage] = []
    for message in read(text[table] if table else text):
        message.fields = [f for one in message.fields for f in _named(database, message, one)]
        found.append(message)
    return found


def _named(database: str, message: FactMessage, fact: Fact) -> Iterator[Fact]:
    """The fact by the name our database has for it."""
    aliases = ALIASES.get(database, {}).get(fact.name, fact.name).split()
    if fact.name in CONTAINED:
        return
    # one of several names: the one for this place or this message is found in the comparison
    yield replace(fact, name=" ".join(aliases))


def _listed(table: dict[str, Any]) -> Iterator[FactMessage]:
    """interfaces.yaml: "start|length signed xscale+offset unit ..." """
    for side in ("egs_tx", "tcu_tx", "egs_rx", "tcu_rx"):
        for entry in table.get(side, ()):
            period = str(entry.get("period_ms", "")).rpartition("..")[2]
            period_ms = float(period) if period else None
            made = FactMessage(int(entry["id"], 16), entry.get("name", ""), entry.get("dlc"), period_ms,
                               str(entry.get("period_src", "")))  # fmt: skip
            for name, text in entry["signals"].items():
                found = _places(name.split(" m")[0] if re.search(r" m\d$", name) else name, str(text))
                # "same": the scaling of the field before
                same = " same" in str(text) and made.fields
                made.fields += [replace(made.fields[-1], **_place_of(f)) for f in found] if same else found
            yield made


def _place_of(fact: Fact) -> dict[str, Any]:
    return {"name": fact.name, "start": fact.start, "length": fact.length}


def _places(name: str, text: str) -> list[Fact]:
    head = re.match(r"\d+\|\d+(@0)?(?: (?:low bits and )?\d+\|\d+)*", text)
    if head is None:
        return []
    places = [(int(a), int(b)) for a, b in re.findall(r"(\d+)\|(\d+)", head[0])]
    plain = re.sub(r"\([^)]*\)?", "", text[head.end() :])
    signed = bool(re.search(r"\b(signed|s) x", plain))
    scale = re.search(r"x([\d.]+)([+-][\d.]+)?", plain)
    offset = re.match(r" (?:raw)?([+-][\d.]+)", plain)
    over = re.match(r" /(\d+)", plain)
    minus = re.search(r"\(raw-(\d+)\)/(\d+)", text)
    if minus is not None:
        known: tuple[float | None, float | None] = (1.0 / int(minus[2]), -int(minus[1]) / int(minus[2]))
    elif "not verified" in text:
        known = None, None
    elif scale is not None:
        known = float(scale[1].rstrip(".")), float(scale[2] or 0)
    elif over is not None:
        known = 1.0 / float(over[1]), 0.0
    elif offset is not None:
        known = 1.0, float(offset[1])
    else:
        known = None, None
    counter = re.search(r"\(0\.\.(\d+)\)", text)
    return [
        Fact(name, a, b, head[1] is not None, signed if known[0] is not None else None, *known,
             open="not verified" in text, counter_max=int(counter[1]) if counter else None)
        for a, b in places
    ]  # fmt: skip


def _j1939(table: dict[str, Any]) -> Iterator[FactMessage]:
    """j1939.yaml: "byte.bit-byte.bit" from 1: "SPN... scale unit, offset" """
    for name, entry in table.items():
        if "signals" not in entry:
            continue
        period = re.match(r"\d+", str(entry.get("period_ms", "")))
        made = FactMessage(int(entry.get("id_example", "0"), 16), name, 8, float(period[0]) if period else None)
        if not made.can_id:
            made.can_id = {"CCVS1": 0x18FEF100}[name]
        for place, text in entry["signals"].items():
            first, _, last = str(place).partition("-")
            byte, _, bit = first.partition(".")
            start = 8 * (int(byte) - 1) + (int(bit or 1) - 1)
            if "2 bit each" in text:
                run = re.search(r"SPN(\d+)\.\.(\d+)", text)
                n = int(run[2]) - int(run[1]) + 1 if run and len(run[1]) == len(run[2]) else 4
                made.fields += [Fact(f"{name}.{byte}", start + 2 * k, 2) for k in range(n)]
                continue
            end_byte, _, end_bit = (last or first).partition(".")
            length = 8 * (int(end_byte) - 1) + int(end_bit or 8) - start
            number = re.search(r"([\d.]+) (?:rpm|%|km/h)", text)
            over = re.search(r"1/(\d+) km/h", text)
            offset = re.search(r"-125\b", text)
            scale = 1.0 / int(over[1]) if over else float(number[1]) if number else 1.0 if offset else None
            if "actual ratio" in text:
                scale = 0.001
            made.fields.append(Fact(text.split()[0], start, length, False, False, scale, -125.0 if offset else 0.0))
        yield made


def _egs52(table: dict[str, Any]) -> Iterator[FactMessage]:
    """egs52.yaml: bits counted from the most significant bit of byte 0."""
    for side in ("control_unit_tx", "control_unit_rx"):
        for can_id, entry in table[side].items():
            made = FactMessage(int(can_id, 16), entry["name"], 8, 20.0)
            for name, x in entry["signals"].items():
                at = int(x["start"])
                scale = x.get("scale", 0.5 if x.get("unit") == "0.5 rpm" else 1.0)
                ours, start = re.sub(r"_(Nm|C)$", "", name), 8 * (at // 8) + 7 - at % 8
                offset = float(x.get("offset", 0.0))
                made.fields.append(Fact(ours, start, x["length"], True, False, float(scale), offset))
            yield made


def differences(database: str, messages: list[Any]) -> list[str]:
    """What a database (cantools) has otherwise than the facts, one line each: message, what, ours, fact."""
    by_id = {m.frame_id: m for m in messages}
    found: list[str] = []
    for fact in facts(database):
        ours = by_id.get(fact.can_id)
        where = f"{fact.name} 0x{fact.can_id:X}"
        if ours is None:
            found.append(f"{where}: not there")
            continue
        if fact.name and ours.name != fact.name:
            found.append(f"{where}: called {ours.name}")
        if fact.length is not None and ours.length != fact.length:
            found.append(f"{where}: {ours.length} bytes, should be {fact.length}")
        if fact.period_ms is not None and (ours.cycle_time or 0) != fact.period_ms:
            found.append(f"{where}: every {ours.cycle_time} ms, should be {fact.period_ms:g} ({fact.period_source})")
        for one in fact.fields:
            found += [f"{where}: {line}" for line in _compared(one, ours)]
    return found


def known(fact: Fact, signal: Any) -> tuple[bool | None, float | None, float | None]:
    """Sign, scale and offset that a signal must have; None where the fact leaves it open."""
    if fact.scale is None and not fact.open and not signal.unit:
        return False, 1.0, 0.0
    return fact.signed, fact.scale, fact.offset


def _compared(fact: Fact, message: Any) -> Iterator[str]:
    signals = message.signals
    names = fact.name.split()
    place = (fact.start, fact.length, "big_endian" if fact.big_endian else "little_endian")
    there = [s for s in signals if (s.start, s.length) == place[:2] and (s.length == 1 or s.byte_order == place[2])]
    named = [s for s in signals if s.name in names]
    signal = next((s for s in there if s in named), None)
    if signal is None:
        ours = ", ".join(f"{s.name} at {s.start}|{s.length}" for s in named) or "no such signal"
        other = f"; there: {there[0].name}" if there else ""
        yield f"{names[0]}: {ours}, should be at {fact.start}|{fact.length}{other}"
        return
    given = message.dbc.attributes
    most = int(given["E2ECounterMax"].value) if "E2ECounterMax" in given else 15
    signed, scale, offset = known(fact, signal)
    for what, mine, theirs in (
        ("signed", signal.is_signed, signed),
        ("scale", signal.scale, scale),
        ("offset", signal.offset, offset),
        ("counter up to", most, fact.counter_max),
    ):
        if theirs is not None and abs(float(mine) - float(theirs)) > 1e-9 * abs(float(theirs)):
            yield f"{signal.name}: {what} {mine}, should be {theirs}"
