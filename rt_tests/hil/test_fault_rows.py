"""Faults of a rig file as the tick gets them: units, times, ways and random numbers, computed here by hand."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
from rig_help import rig_file

from torqueloop.cython_kernels.tick.fault_rows import FaultRow
from torqueloop.hil.rig.devices.faults import FaultInjection
from torqueloop.hil.rig.resolve.plan import load_plan

RPM = math.pi / 30.0
#: the plant's clutches: springs and highest pressure of the gearbox file [Pa]
P_RETURN, P_MAX = 0.8e5, 10.3e5


def rows(folder: Path, *tables: str) -> list[tuple[FaultRow, ...]]:
    plan = load_plan(rig_file(folder, add="\n".join(f"[[faults]]\n{table}" for table in tables)))
    return [planned.rows for planned in plan.device(FaultInjection).planned]


#: table, (kind of row, its value)
VALUES: list[tuple[str, str, float]] = [
    ('signal = "HIL_Speeds.n_engine"\nkind = "offset"\nvalue = 300.0', "offset", 300.0 * RPM),
    ('signal = "HIL_Speeds.n_engine"\nkind = "value"\nvalue = 300.0', "value", 300.0 * RPM),
    ('signal = "HIL_Speeds.n_engine"\nkind = "gain"\nvalue = 1.25', "gain", 1.25),
    ('signal = "HIL_Speeds.n_engine"\nkind = "ramp"\nvalue = 300.0', "ramp", 300.0 * RPM * 1e-3),
    ('signal = "HIL_Speeds.n_engine"\nkind = "lag"\nvalue = 0.02', "lag", 1.0 - math.exp(-1e-3 / 0.02)),
    ('signal = "HIL_Driver.T_oil"\nkind = "value"\nvalue = 20.0', "value", 293.15),
    ('signal = "HIL_Driver.T_oil"\nkind = "offset"\nvalue = 20.0', "offset", 20.0),
    ('signal = "HIL_Driver.T_oil"\nkind = "ramp"\nvalue = 20.0', "ramp", 0.02),
    ('signal = "TCU_Pressure_1.p_C4"\nkind = "offset"\nvalue = 2.0', "offset", 2e5),
    ('element = "C4"\nkind = "leak"\nvalue = 0.3', "gain", 0.7),
    ('element = "C4"\nkind = "worn"\nvalue = 0.6', "gain", 0.6),
    ('element = "C4"\nkind = "slow_fill"\nvalue = 0.05', "lag", 1.0 - math.exp(-1e-3 / 0.05)),
    ('element = "C4"\nkind = "stuck_closed"', "value", P_MAX),
    ('element = "C4"\nkind = "stuck_closed"\nvalue = 3e5', "value", 3e5),
    ('element = "C4"\nkind = "stuck_open"', "value", 0.0),
    ('message = "HIL_Speeds"\nkind = "delay"\nvalue = 0.0234', "delay", 23.0),
    ('message = "HIL_Speeds"\nkind = "jitter"\nvalue = 1e-5', "jitter", 1.0),
    ('message = "HIL_Speeds"\nkind = "duplicate"', "duplicate", 1.0),
    ('message = "HIL_Speeds"\nkind = "duplicate"\nvalue = 3', "duplicate", 3.0),
    ('message = "HIL_Speeds"\nkind = "dlc"', "dlc", -1.0),
    ('message = "HIL_Speeds"\nkind = "dlc"\nvalue = 4', "dlc", 4.0),
    # 8 bytes, 11 bit: 34 + 64 + 13 + 97 // 4 bits of a frame
    ('bus = "powertrain"\nkind = "load"\nvalue = 0.5\nbitrate = 250000', "load", 0.5 * 250.0 / 135.0),
    ('bus = "powertrain"\nkind = "babble"\nvalue = 0.25\nbitrate = 500000', "load", 0.25 * 500.0 / 135.0),
]  # fmt: skip


def test_values_are_given_in_the_unit_of_their_signal_and_kind(tmp_path: Path) -> None:
    for (table, kind, value), found in zip(VALUES, rows(tmp_path, *(t for t, *_ in VALUES)), strict=True):
        assert [r.kind for r in found] == [kind] * len(found) and found, table
        assert found[0].value == pytest.approx(value, rel=1e-12), table
        if 'kind = "worn"' in table:
            assert found[0].offset == pytest.approx(P_RETURN), "the spring is not worn"
    can_ids = [r.can_id for found in rows(tmp_path, VALUES[-2][0], VALUES[-1][0]) for r in found]
    assert can_ids == [0x7FF, 0x000], "a load loses against all others, a babbling node wins"


#: keys of time, fields of the row: a fault acts from the first tick that does not begin before its time
TIMES: list[tuple[str, dict[str, Any]]] = [
    ("from_s = 0.5", {"from_tick": 500, "until_tick": None}),
    ("from_s = 0.5005\nuntil_s = 0.7001", {"from_tick": 501, "until_tick": 701}),
    ('when = "car.v > 36 km/h"\nlasts_s = 0.25\ntimes = 3', {"lasts_ticks": 250, "times": 3, "from_tick": 0}),
    ('when = "car.v > 36 km/h"\nlasts_s = 1e-5\ncount = 4\nevery = 5', {"lasts_ticks": 1, "count": 4, "every": 5}),
    ('switch = "b"', {"switch": 0, "times": 0}),
    ('switch = "a"\nback_s = 0.0304\nchance = 0.25', {"switch": 1, "back_ticks": 30, "chance": 0.25}),
    ('switch = "b"\nback_s = 0.5', {"switch": 0, "back_ticks": 500}),
]


def test_times_become_ticks_and_switches_keep_their_number(tmp_path: Path) -> None:
    head = 'signal = "HIL_Speeds.n_engine"\nkind = "gain"\nvalue = 1.1\n'
    made = rows(tmp_path, *(head + keys for keys, _ in TIMES))
    for (keys, wanted), found in zip(TIMES, made, strict=True):
        assert {name: getattr(found[0], name) for name in wanted} == wanted, keys
    conditions = [found[0].when for found in made]
    assert conditions[2] == conditions[3] and conditions[2][1] == ("number", 0, pytest.approx(10.0))
    assert not conditions[0] and not conditions[4]
    slots = [found[0].slot for found in made]
    assert len(set(slots)) == len(slots) and 0 not in slots


def test_every_row_has_random_numbers_of_its_own_that_its_seed_decides(tmp_path: Path) -> None:
    silent = 'node = "TCU"\nkind = "silent"\nchance = 0.5'
    seeds = [
        [r.seed for found in rows(tmp_path, silent, silent, f"{silent}\nseed = {n}") for r in found] for n in (0, 7)
    ]
    n = len(seeds[0]) // 3
    assert n > 2 and all(len(set(some)) == 3 * n for some in seeds)
    assert seeds[0][: 2 * n] == seeds[1][: 2 * n] and not set(seeds[0][2 * n :]) & set(seeds[1][2 * n :])


def test_faults_of_neighbouring_seeds_do_not_draw_each_others_numbers(tmp_path: Path) -> None:
    """The tick draws by splitmix64, whose state grows by an odd number with each draw: the difference of two starts,
    divided by it modulo 2^64, is the number of draws after which one fault repeats the other."""
    silent = 'node = "TCU"\nkind = "silent"\nchance = 0.5'
    found = [rows(tmp_path, f"{silent}\nseed = {n}", silent) for n in range(6)]
    # the second fault is the same six times
    starts = [r.seed for first, _ in found for r in first] + [r.seed for r in found[0][1]]
    draws = pow(0x9E3779B97F4A7C15, -1, 2**64)
    apart = [(a - b) * draws % 2**64 for a, b in itertools.permutations(starts, 2)]
    assert len(starts) > 10 and min(min(n, 2**64 - n) for n in apart) > 1e12


def test_checksums_are_inverted_unless_a_pattern_is_given(tmp_path: Path) -> None:
    head = 'message = "TCU_Pressure_1"\nkind = "crc"'
    assert [found[0].raw for found in rows(tmp_path, head, f"{head}\nvalue = 0x31")] == [0xFF, 0x31]
