"""The lever and the torque request of every maker's interface: the lever never asks for another direction of travel
than the driver does, and what stands on the bus at rest and during a request is what the makers' units send.

Codes are those of reference/can (recordings, makers' lists), written out here; frames are read by cantools.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cantools
import numpy as np
import pytest

import torqueloop as tl
from torqueloop.hil.ecu.interface import MakerBus, interface_database
from torqueloop.hil.ecu.interface_tables import NUMBERS, load_interface

CONFIGS = Path(tl.__file__).parent / "configs"
#: rig -> interface, database
FILES = {
    "desk_bmw_e9x": ("egs_bmw_e9x", "bmw_e9x"), "desk_bmw_f": ("egs_bmw_f", "bmw_f"),
    "desk_vw_pq": ("tcu_vw_pq", "vw_pq"), "desk_audi_c6": ("tcu_audi_c6", "audi_c6"),
    "desk_vw_mqb": ("tcu_vw_mqb", "vw_mqb"), "desk_hyundai": ("tcu_hyundai", "hyundai_ccan"),
    "desk_mb_egs52": ("egs52_mb", "mb_egs52"), "desk_j1939": ("tcu_j1939", "j1939_transmission"),
    "desk_vw_mlb": ("tcu_vw_mlb", "vw_mlb"), "desk_ram_dt": ("tcu_ram_dt", "ram_dt"),
}  # fmt: skip
DIRECTION = {"R": -1, "D": 1, "P": 0, "N": 0}
#: the driver at the desk, standing on the brake
DRIVER = [(0.0, "P"), (0.5, "R"), (1.0, "N"), (1.5, "D"), (2.0, "N"), (2.5, "R"), (3.0, "D"), (3.5, "P")]
DURATION, LATE = 4.2, 0.35


def words(codes: dict[int, str]) -> Callable[[int, str], str]:
    """A lever that sends positions."""
    return lambda code, at: codes[code]


def f_series(code: int, at: str) -> str:
    """The same in byte 2 of 0x197: 0E at rest, 1E, 2E, 3E, 4E."""
    return movement({0x0E: 0, 0x1E: 1, 0x2E: 2, 0x3E: 3, 0x4E: 4, 9: 9}[code], at)


def movement(code: int, at: str) -> str:
    """BMW: 1 one notch up (N or R), 2 two up (R), 3 one down (N or D), 4 two down (D), 9 the park button."""
    row = ["R", "N", "D"]
    place = row.index(at) if at in row else 1
    if code in (1, 3) and at == "P":
        return "N"
    return {0: at, 1: row[max(0, place - 1)], 2: "R", 3: row[min(2, place + 1)], 4: "D", 9: "P"}[code]


def ram(code: int, at: str) -> str:
    """Ram DT, DESIRED_GEAR: 13 P, 1 to 8 forward gears; R and N share 11, so there the echo alone tells them apart."""
    return {13: "P", 11: "R or N"}.get(code, "D" if 1 <= code <= 8 else "?")


#: rig -> message, signal, what its numbers ask for; VW and Ram have no lever on the bus: there the gearbox says where
#: it stands
LEVER: dict[str, tuple[str, str, Callable[[int, str], str]]] = {
    "desk_bmw_e9x": ("GearSelectorSwitch", "ShifterPosition", movement),
    "desk_bmw_f": ("Lever_GWS", "lever", f_series),
    "desk_vw_pq": ("Getriebe_1", "GE1_Wahl_Pos", words({8: "P", 7: "R", 6: "N", 5: "D"})),
    "desk_audi_c6": ("Getriebe_1", "GE1_Wahl_Pos", words({8: "P", 7: "R", 6: "N", 5: "D"})),
    "desk_vw_mqb": ("Getriebe_11", "GE_Fahrstufe", words({5: "P", 6: "R", 7: "N", 8: "D"})),
    "desk_hyundai": ("LVR11", "CF_Lvr_GearInf", words({0: "P", 7: "R", 6: "N", 5: "D"})),
    "desk_mb_egs52": ("EWM_230", "lever", words({8: "P", 7: "R", 6: "N", 5: "D"})),
    "desk_j1939": ("TC1", "RequestedGear", lambda g, at: "P" if g == 126 else "R" if g < 0 else "D" if g else "N"),
    "desk_vw_mlb": ("Getriebe_03", "GE_Waehlhebel", words({5: "P", 6: "R", 7: "N", 8: "D"})),
    "desk_ram_dt": ("TCM_1", "DESIRED_GEAR", ram),
}
#: what is heard where two positions share a number
SHARED = {"desk_ram_dt": {"R": "R or N", "N": "R or N"}}


@pytest.mark.parametrize("rig", LEVER)
def test_the_lever_never_asks_for_another_direction_than_the_driver(rig: str, tmp_path: Path) -> None:
    driver = {"driver.lever": [[t, word] for t, word in DRIVER], "driver.pedal": 0.0, "driver.brake": 0.4}
    run = tl.run(rig, clock="virtual", duration=DURATION, out=tmp_path / "run", html=False, overrides=driver)
    message_name, signal, reading = LEVER[rig]
    message = cantools.database.load_file(CONFIGS / "can" / f"{FILES[rig][1]}.dbc").get_message_by_name(message_name)
    at, code, heard = "P", 0, []
    for frame in run.frames():
        if frame["bus"] != 1 or int(frame["id"]) & 0x1FFFFFFF != message.frame_id:
            continue
        values = message.decode(frame["data"].tobytes()[: frame["dlc"]], decode_choices=False)
        now = 9 if values.get("ParkButtonFirst") == 1 or values.get("park") == 0xD5 else int(values[signal])
        if now != code or reading not in (movement, f_series):
            at, code = reading(now, at), now
        heard.append((1e-9 * float(frame["t_ns"]), at))
    assert len(heard) > 40
    for t, position in heard:
        wanted = {word for t0, word in asked_between(t - LATE, t)}
        # before and after a change either may be heard; between two changes only what the driver wants
        assert DIRECTION.get(position, 0) in {DIRECTION[w] for w in wanted} | {0}, (t, position, wanted)
    # every position of the driver arrives, and the control unit understands it so
    for k, (t0, word) in enumerate(DRIVER):
        t1 = DRIVER[k + 1][0] if k + 1 < len(DRIVER) else DURATION
        last = [p for t, p in heard if t0 + LATE < t < t1]
        assert last and set(last) == {SHARED.get(rig, {}).get(word, word)}, (t0, word, last)
        echo = run["TCU_Status.lever_echo"][int(np.searchsorted(run.t, t1 - 0.01)) - 1]
        assert ["P", "R", "N", "D"][int(echo)] == word, (t1, word)


def asked_between(t0: float, t1: float) -> list[tuple[float, str]]:
    """What the driver asked for at some time in between."""
    before = [pair for pair in DRIVER if pair[0] <= t0]
    return [pair for pair in DRIVER if t0 < pair[0] <= t1] + (before[-1:] or DRIVER[:1])


# --- requests: raw numbers at rest and while 120 Nm are asked for
def unit(rig: str) -> tuple[MakerBus, Any]:
    interface, database = FILES[rig]
    config = load_interface(CONFIGS / "interfaces" / f"{interface}.toml")
    path = CONFIGS / "can" / f"{database}.dbc"
    return MakerBus(config, interface_database(config, path, "TCU"), 5e-3, 1), cantools.database.load_file(path)


def sent(rig: str, **numbers: float) -> dict[str, list[dict[str, Any]]]:
    """Raw values of everything the unit sends in 400 ms, by message."""
    bus, database = unit(rig)
    said = {"gear_actual": "3", "gear_target": "3", "lever": "D", "lockup": "open", "mode": "normal"}
    found: dict[str, list[dict[str, Any]]] = {}
    for step in range(80):
        for frame in bus.frames(step, dict.fromkeys(NUMBERS, 0.0) | {"T_oil": 350.0} | numbers, said):
            message = database.get_message_by_frame_id(frame.can_id & 0x1FFFFFFF)
            found.setdefault(message.name, []).append(message.decode(frame.data, decode_choices=False, scaling=False))
    return found


#: signal, raw number without a request, raw number of 120 Nm (of 250 Nm, of 500 Nm where it is per cent)
REQUESTS = {
    "desk_bmw_e9x": [
        ("Torque_request_EGS.TORQ_TAR_EGS", -0x800, 240), ("Torque_request_EGS.TORQ_TAR_ADJR_POS_EGS", -0x800, 240),
        ("Torque_request_EGS.ST_TORQ_TAR_EGS", 0, 2),
    ],
    # (raw - 1999) / 2 Nm, 4095: unlimited
    "desk_bmw_f": [
        ("TorqueLimits_EGS.B0_ShiftCeil", 4095, 2239), ("TorqueLimits_EGS.B0_T1", 4095, 4095),
        ("TorqueLimits_EGS.B0_T3", 4095, 4095),
    ],
    "desk_vw_pq": [
        ("Getriebe_1.GE1_Soll_Mo", 254, 123), ("Getriebe_1.GE1_EGS_Anf", 0, 1),
        ("Getriebe_2.Gradientenbegrenzung", 255, 255), ("Getriebe_2.Synchronisations_Wunschdrehzahl", 0, 0),
    ],
    "desk_audi_c6": [
        ("Getriebe_1.GE1_Soll_Mo", 254, 62), ("GME.GME_Dyn_Moment", 1022, 120), ("GME.GME_Dyn_Status", 0, 1),
        ("GME.GME_Lang_Moment", 1022, 1022), ("Getriebe_2.Gradientenbegrenzung", 255, 255),
    ],
    "desk_vw_mqb": [
        ("Getriebe_11.GE_MMom_Soll_02", 1022, 629), ("Getriebe_11.GE_MMom_Vorhalt_02", 1022, 629),
        ("Getriebe_11.GE_MMom_Status", 0, 1), ("Getriebe_12.GE_Mom_Begr_Gradient", 255, 255),
    ],
    "desk_hyundai": [("TCU11.TQI_TCU", 254, 61), ("TCU11.TQI_TCU_INC", 0, 0), ("TCU13.CF_Tcu_TqGrdLim", 255, 255)],
    "desk_mb_egs52": [
        ("GS_218.torque_request", 0, 2480), ("GS_218.request_min", 0, 1), ("GS_218.request_max", 0, 0),
    ],
    "desk_j1939": [("TSC1.OverrideControlMode", None, 3), ("TSC1.RequestedTorque", None, 149)],
    "desk_vw_mlb": [
        ("Getriebe_01.GE_MMom_Soll", 1022, 120), ("Getriebe_01.GE_MMom_Vorhalt", 1022, 120),
        ("Getriebe_01.GE_MMom_Status", 0, 1), ("Getriebe_01.GE_Freig_Mmom_Soll", 0, 1),
    ],
    # its request is not public: what is on the bus says nothing of it
    "desk_ram_dt": [("TCM_1.DESIRED_GEAR", 3, 3)],
}  # fmt: skip


@pytest.mark.parametrize("rig", LEVER)
def test_no_request_and_a_request_are_the_numbers_of_the_maker(rig: str) -> None:
    rest, active = sent(rig), sent(rig, torque_limit=120.0, torque_limit_active=1.0)
    for name, none, asked in REQUESTS[rig]:
        message, _, signal = name.partition(".")
        if none is None:
            assert message not in rest, "sent while torque is asked for alone"
        else:
            assert {values[signal] for values in rest[message]} == {none}, name
        assert {values[signal] for values in active[message]} == {asked}, name


def test_the_request_of_the_egs52_toggles_every_40_ms_with_its_parity() -> None:
    for numbers, toggles in (({}, [0] * 20), ({"torque_limit": 57.25, "torque_limit_active": 1.0}, [0, 0, 1, 1] * 5)):
        frames = sent("desk_mb_egs52", **numbers)["GS_218"]
        # one every 20 ms
        told = [values["request_toggle"] for values in frames]
        assert len(told) == 20 and told in (toggles, toggles[1:] + toggles[:1]), told
        for v in frames:
            word = v["request_toggle"] << 15 | v["request_min"] << 14 | v["request_max"] << 13 | v["torque_request"]
            assert v["request_parity"] == word.bit_count() % 2


@pytest.mark.parametrize("rig", LEVER)
def test_nothing_that_means_an_error_is_sent(rig: str) -> None:
    """In any gear and position, at rest and while torque is asked for."""
    bus, database = unit(rig)
    tried = 0
    for gear in ("P", "N", "R", "1", "4"):
        for lever in ("P", "R", "N", "D", "M"):
            for active in (0.0, 1.0):
                said = {"gear_actual": gear, "gear_target": gear, "lever": lever, "lockup": "closed", "mode": "normal"}
                numbers = dict.fromkeys(NUMBERS, 0.0) | {
                    "T_oil": 350.0, "ratio": 3.0, "w_turbine": 600.0, "w_synchron": 300.0 * active,
                    "torque_limit": 120.0 * active, "torque_limit_active": active,
                }  # fmt: skip
                for step in range(40):
                    for frame in bus.frames(step, numbers, said):
                        message = database.get_message_by_frame_id(frame.can_id & 0x1FFFFFFF)
                        for signal, value in message.decode(frame.data).items():
                            tried += 1
                            named = str(value)
                            assert named not in ("error", "invalid", "Failure", "undefined", "not available") or (
                                message.name in ("TSC1", "ETC1", "ETC2", "ETC7") and named == "not available"
                            ), (message.name, signal, named)
    assert tried >= 4_000, "the Ram has one message of ten signals"
    assert sum(m["saturated"] for m in bus.codec.tx.counters().values()) == 0, "a value was beyond its limits"
