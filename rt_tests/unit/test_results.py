"""Results of a run: written, read again, under their schema and version; every check sees what it is for."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from synthetic_run import change, write_run

from torqueloop.cython_kernels.kernel.kernel import COUNTER_NAMES
from torqueloop.hil.record.recording import ChunkWriter
from torqueloop.hil.record.run_data import read_signals
from torqueloop.hil.report.metrics import OPEN, build_metrics
from torqueloop.hil.report.report import Report, analyse
from torqueloop.hil.report.run_checks import LOSS_MAX
from torqueloop.hil.report.schemas import schemas, text
from torqueloop.hil.report.write import report_json
from torqueloop.hil.results.clock import Timing
from torqueloop.hil.results.files import (
    VERSION,
    ResultError,
    ResultVersionError,
    adapter,
    plain,
    read_run_info,
    write_json_atomic,
    write_run_info,
)
from torqueloop.hil.results.links import (
    BusStats,
    GatewayStats,
    LinkStats,
    NativeStats,
    ParticipantStats,
    RxMessage,
    VehicleStats,
)
from torqueloop.hil.results.run import EnergyStats, RunInfo, RunStats, SafeState, SolverStats, StreamStats

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", duration_s=2.0)


# --- files -----------------------------------------------------------------------------------------------------------


def test_what_is_written_is_read_again(run_dir: Path) -> None:
    info = read_run_info(run_dir)
    assert info is not None and info.stats is not None
    wild = replace(
        info,
        overrides={"driver.pedal": [[0.0, 1.0]], "gates.x": None},
        stats=replace(
            info.stats, solver=SolverStats(events=3), clock=replace(info.stats.clock, lost_time_s=float("inf"))
        ),
    )
    write_run_info(run_dir, wild)
    assert read_run_info(run_dir) == wild
    assert json.loads((run_dir / "run.json").read_text())["format"] == VERSION


def test_every_field_of_the_tree_survives(tmp_path: Path) -> None:
    """All that may be None is given, so that a field that JSON loses is seen."""
    info = RunInfo("x", stats=RunStats(buses={"a": BusStats(gateway=GatewayStats(), native=NativeStats())},
                   energy=EnergyStats({"e": 1.0}), vehicles={"v": VehicleStats(link=LinkStats(sent=3))}))  # fmt: skip
    write_run_info(tmp_path, info)
    assert read_run_info(tmp_path) == info


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        ('{"rig": "desk", "stats": {"ticks": 5}}', ResultVersionError, "format 1.*reads 3.*version of torqueloop"),
        ('{"format": 4, "rig": "desk"}', ResultVersionError, "format 4.*a newer torqueloop"),
        ('{"format": 2, "rig": "desk", "tick_s": "soon"}', ResultError, "tick_s: .*number"),
        ('{"format": 2}', ResultError, "rig"),
        ("[1]", ResultError, "not a table"),
        ("{", ResultError, "run.json"),
    ],
)
def test_another_version_or_no_results_is_said(
    content: str, error: type[Exception], words: str, tmp_path: Path
) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(error, match=words):
        read_run_info(tmp_path)


@pytest.mark.parametrize("name", list(schemas()))
def test_the_published_schemas_are_the_actual_ones(name: str) -> None:
    """`python -m torqueloop.hil.report.schemas docs/schemas` writes them."""
    assert (ROOT / "docs" / "schemas" / name).read_text(encoding="utf-8") == text(schemas()[name])


def test_a_report_follows_its_schema(run_dir: Path) -> None:
    made = json.loads(json.dumps(plain(report_json(analyse(run_dir)))))
    _follows(made, schemas()["report.schema.json"], schemas()["report.schema.json"], "report")


def _follows(value: Any, rule: dict[str, Any], whole: dict[str, Any], place: str) -> None:
    """The part of JSON schema that ours use."""
    if "$ref" in rule:
        rule = whole["$defs"][rule["$ref"].rpartition("/")[2]]
    if "anyOf" in rule:
        errors = []
        for one in rule["anyOf"]:
            try:
                return _follows(value, one, whole, place)
            except AssertionError as error:
                errors.append(str(error))
        raise AssertionError(f"{place}: {errors}")
    if "const" in rule:
        assert value == rule["const"], place
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}
    if rule.get("type") in kinds:
        assert isinstance(value, kinds[rule["type"]]), f"{place}: {value!r} is no {rule['type']}"
    elif rule.get("type") == "number":
        assert isinstance(value, (int, float)) and not isinstance(value, bool), f"{place}: {value!r} is no number"
    if isinstance(value, dict):
        assert set(rule.get("required", ())) <= set(value), place
        known, more = rule.get("properties", {}), rule.get("additionalProperties")
        for key, one in value.items():
            assert key in known or more is not None, f"{place}: {key} is not in the schema"
            _follows(one, known.get(key, more if isinstance(more, dict) else {}), whole, f"{place}.{key}")
    if isinstance(value, list) and isinstance(rule.get("items"), dict):
        for k, one in enumerate(value):
            _follows(one, rule["items"], whole, f"{place}[{k}]")


def test_the_kernel_counts_what_the_results_name() -> None:
    assert tuple(f.name for f in dataclasses.fields(SolverStats)) == tuple(COUNTER_NAMES)


def test_numbers_that_json_does_not_know_are_strings_and_come_back() -> None:
    made = plain(Timing(1, mean=float("nan"), max=float("inf")))
    assert made["mean"] == "nan" and made["max"] == "inf"
    again = adapter(Timing).validate_python(made)
    assert again.mean != again.mean and again.max == float("inf")


# --- metrics ---------------------------------------------------------------------------------------------------------


def test_several_buses_have_metrics_together_and_each(run_dir: Path) -> None:
    one = BusStats({"A": RxMessage(ok=5, crc=1)}, rx_frames=6, gateway=GatewayStats(foreign_frames=2))
    two = BusStats({"B": RxMessage(ok=7)}, rx_frames=7, native=NativeStats(tx_lost=4))
    change(run_dir, stats={"buses": {"body": one, "drive": two}})
    m = analyse(run_dir).metrics
    assert (m["can_rx_ok"], m["can_rx_crc"], m["can_rx_frames"]) == (12, 1, 13)
    assert (m["can_foreign_frames"], m["can_tx_lost"]) == (2, 4)
    assert (m["can_body_rx_ok"], m["can_drive_rx_ok"], m["can_body_rx_A_crc"], m["can_rx_B_ok"]) == (5, 7, 1, 7)


def test_a_gate_on_what_was_not_measured_fails(tmp_path: Path) -> None:
    """A run that left no statistics has lost nothing only as far as anyone knows."""
    folder = write_run(tmp_path / "run", duration_s=2.0)
    info = read_run_info(folder)
    assert info is not None
    write_run_info(folder, replace(info, stats=None, gates={}))
    names = ("recording_lost", "can_rx_dropped", "vehicle_lost", "missed", "solver_fallbacks")
    for gate in [f"{name} == 0" for name in names]:
        (result,) = analyse(folder, gate).gates
        assert not result.passed and not result.unknown and "not measured" in result.cause, gate
    (result,) = analyse(folder, "vehicle_lsot == 0").gates
    assert result.unknown and "vehicle_lost" in result.cause
    assert OPEN == "participants_"


def test_metrics_of_a_run_are_known_before_it(run_dir: Path) -> None:
    """Names do not depend on what happened: a gate can be looked at before the run."""
    report = analyse(run_dir)
    before = set(build_metrics(replace(report.run, signals=None, modes=[]), RunStats(), []))
    open_ = {name for name in report.metrics if name.startswith((OPEN, "recording_signals", "energy_"))}
    messages = {name for name in report.metrics if name.startswith(("can_rx_TCU", "can_tx_HIL"))}
    assert set(report.metrics) - before <= open_ | messages


# --- checks: each sees what it is for --------------------------------------------------------------------------------


def judged(run_dir: Path, name: str) -> tuple[bool, bool, str]:
    """(passed, counts, text) of a check; the whole report agrees with it."""
    report: Report = analyse(run_dir)
    (check,) = [c for c in report.checks if c.name == name]
    assert report.passed == all(c.passed for c in report.checks if c.counts)
    return check.passed, check.counts, check.text


def cut(run_dir: Path) -> None:
    """A hole in the recorded signals."""
    _write_signals(run_dir, lambda records: records[[*range(900), *range(1000, len(records))]])


def spoil(run_dir: Path) -> None:
    def nan(records: Any) -> Any:
        records = records.copy()
        records["out"][500, 3] = float("nan")
        return records

    _write_signals(run_dir, nan)


def _write_signals(run_dir: Path, edit: Callable[[Any], Any]) -> None:
    signals = read_signals(run_dir)
    for file in (run_dir / "signals").iterdir():
        file.unlink()
    writer = ChunkWriter(run_dir / "signals", signals.header)
    writer.write(edit(signals.records).tobytes())
    writer.close()


def bus(**changes: Any) -> dict[str, Any]:
    good = BusStats({"TCU_Status": RxMessage(ok=1000)}, rx_frames=1000, tx_frames=1000, gateway=GatewayStats())
    return {"stats": {"buses": {"can": replace(good, **changes)}}}


def stream(**changes: Any) -> dict[str, Any]:
    return {"stats": {"recording": {"bus": StreamStats(**changes)}}}


def tcu(stats: ParticipantStats) -> dict[str, Any]:
    return {"stats": {"participants": {"tcu": stats}}}


def vehicle(**changes: Any) -> dict[str, Any]:
    return {
        "stats": {"vehicles": {"vehicle": VehicleStats(2000, link=LinkStats("latest value", accepted=1000, **changes))}}
    }


ENDED, LOST = "the run ended by itself", "no frame lost between tick and bus"
#: check, what is planted, whether it fails the run, words of it
PLANTED: list[tuple[str, dict[str, Any] | Callable[[Path], None], bool, str]] = [
    (ENDED, {"state": "interrupted"}, True, "interrupted"),
    (ENDED, {"state": "running", "ended": None}, True, "did not end by itself"),
    (ENDED, {"state": "hung"}, True, "hung"),
    (ENDED, {"state": "failed", "error": "StartError: x"}, True, "StartError"),
    ("no safe state", {"stats": {"safe_state": SafeState(True, "hot", "limit", 7)}}, True, "latched at step 7: hot"),
    ("recording without gaps", cut, True, "100 ticks missing"),
    ("recording without gaps", stream(lost_records=3), True, "bus: 3 records lost"),
    ("recording without gaps", stream(cause="OSError: full", discarded_bytes=9), True, "full, 9"),
    ("all recorded numbers finite", spoil, True, "NaN"),
    ("nobody else sends our CAN messages", bus(gateway=GatewayStats(foreign_frames=1), foreign="A (0x1)"),
     True, "first A"),
    ("nobody else sends our CAN messages", bus(gateway=None, native=NativeStats(foreign_frames=1)), True, "1 frames"),
    (LOST, bus(gateway=GatewayStats(rx_dropped=1)), False, "rx_dropped 1"),
    (LOST, bus(gateway=GatewayStats(kernel_drops=100)), True, "kernel_drops 100"),
    (LOST, bus(gateway=GatewayStats(tx_failed=100)), True, "tx_failed 100"),
    (LOST, bus(gateway=None, native=NativeStats(tx_enobufs=100)), True, "tx_enobufs 100"),
    (LOST, bus(tx_dropped=100), True, "tx_dropped 100"),
    (LOST, bus(rx_ring_dropped=100), True, "rx_ring_dropped 100"),
    ("CAN bus without errors", bus(gateway=None, native=NativeStats(bus_state_worst="passive")), False, "passive"),
    ("CAN bus without errors", bus(gateway=None, native=NativeStats(errors={"ack": 2})), False, "ack 2"),
    ("no frame of a control unit lost", bus(rx={"A": RxMessage(ok=1000, lost=1)}), False, "A 1"),
    ("no frame of a control unit lost", bus(rx={"A": RxMessage(ok=1000, lost=100)}), True, "A 100"),
    ("no received frame refused", bus(rx={"A": RxMessage(ok=9, crc=1)}, rx_bad=1), False, "A crc 1"),
    ("no answer of the vehicle lost", vehicle(gap=7935, lost=15_500), True, "15500 in 7935 gaps.*own_step numbers"),
    ("no answer of the vehicle lost", vehicle(gap=1, lost=1), False, "lost 1"),
    ("no answer of the vehicle lost", vehicle(duplicate=900), True, "duplicate 900"),
    ("no answer of the vehicle lost", vehicle(out_of_order=90), True, "out of order 90"),
    ("no answer of the vehicle lost", vehicle(rejected={"range": 90}), True, r"refused \(range\) 90"),
    ("tcu has lost and refused nothing", tcu(ParticipantStats.of("process", {"refused": {"crc": 4}})),
     True, r"refused \(crc\) 4"),
    ("tcu has lost and refused nothing", tcu(ParticipantStats("process", -9)), False, "status -9"),
    ("energy balance closes", {"stats": {"energy": EnergyStats({"engine": 1e3}, {"road": 999.0})}}, False, "residual"),
    ("energy balance closes", {"stats": {"energy": EnergyStats({"engine": 1e3}, {"road": 900.0})}}, True, "residual"),
    ("every tick on time", {"clock": {"missed": 3, "lost_time_s": 0.002}}, False, "3 of 2000 missed"),
    ("real time not degraded", {"stats": {"degraded": ["no rights"]}}, False, "no rights"),
    ("every step resolved", {"stats": {"solver": SolverStats(fallbacks=2)}}, False, "finished 2 steps"),
    ("every step resolved", {"stats": {"remarks": ["shaft: oscillates"]}}, False, "shaft: oscillates"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "planted", "counts", "words"), PLANTED)
def test_a_check_sees_what_it_is_for(
    name: str, planted: dict[str, Any] | Callable[[Path], None], counts: bool, words: str, run_dir: Path
) -> None:
    change(run_dir, **bus(), gates={})
    change(run_dir, stats={"degraded": [], "participants": {"tcu": ParticipantStats("process", 0)}})
    before = analyse(run_dir)
    assert before.passed and all(c.passed for c in before.checks if c.name == name), "nothing is planted yet"
    if callable(planted):
        planted(run_dir)
    else:
        change(run_dir, **planted)
    passed, counted, found = judged(run_dir, name)
    assert not passed and counted == counts, found
    assert re.search(words, found), found
    assert analyse(run_dir).passed is not counts


def test_every_check_is_planted(run_dir: Path) -> None:
    change(run_dir, **bus(gateway=None, native=NativeStats()))
    change(run_dir, stats={"participants": {"tcu": ParticipantStats("process", 0)}})
    assert {c.name for c in analyse(run_dir).checks} == {name for name, *_ in PLANTED}
    assert 0.0 < LOSS_MAX <= 0.01


def test_a_run_without_signals_does_not_pass(run_dir: Path) -> None:
    for file in (run_dir / "signals").iterdir():
        file.unlink()
    report = analyse(run_dir)
    assert not report.passed and [c.name for c in report.checks if not c.passed and c.counts] == ["signals recorded"]


def test_each_key_of_the_outer_tables_has_a_line_and_all_values_come_back(tmp_path: Path) -> None:
    value = {"a": {"b": {"c": {"d": [1, 2.5, None, True]}, "\u00e9": "\udcff"}, "empty": {}}, "nan": float("nan")}
    write_json_atomic(tmp_path / "x.json", value)
    text = (tmp_path / "x.json").read_text(encoding="utf-8")
    assert json.loads(text) == {**value, "nan": "nan"}
    assert [line.split(":")[0].strip() for line in text.splitlines()] == [
        "{", '"a"', '"b"', '"c"', '"\\u00e9"', "},", '"empty"', "},", '"nan"', "}",
    ]  # fmt: skip
