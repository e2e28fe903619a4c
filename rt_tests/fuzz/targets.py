"""The fuzz targets: every reader of what clients and users write."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import fuzz_bus
import fuzz_codec
import fuzz_logs
import fuzz_pages
import fuzz_runs
import msgpack
import mutate
import numpy as np
import schema_files
from engine import DRAWING_S, Target

import torqueloop
from torqueloop.core.describe.errors import ConfigError, TorqueloopError
from torqueloop.core.describe.tables import table_from_config
from torqueloop.cython_kernels.tick.conditions import Watched
from torqueloop.hil.cli.file_check import check_file
from torqueloop.hil.common.conditions import parse_condition
from torqueloop.hil.control.messages import Request, RequestError, decode_answer, decode_request, encode_request
from torqueloop.hil.ecu.messages import decode_answer as ecu_answer
from torqueloop.hil.ecu.messages import pack
from torqueloop.hil.ecu.tcu_tables import read_columns
from torqueloop.hil.link.messages import ByeMessage, SchemaError, StateMessage, StepMessage, decode, encode
from torqueloop.hil.results.gates import compute, evaluate, parse_gates

#: with FD frames, J1939, checksums of several makers; with multiplexers, one in another, and numbers as floats
MULTIPLEXED = Path(__file__).parent / "multiplexed.dbc"
DATABASES = (
    "can/tcu_4hp22.dbc",
    "can/cruise_fd.dbc",
    "can/j1939_transmission.dbc",
    "can/tcu_zf_8hp70.dbc",
    "can/vw_mqb.dbc",
)
#: with faults of all kinds, limits of monitors, outputs, a safe state
RIGS = (Path(__file__).parents[1] / "hil" / "golden_faults.toml",)
#: with checks of all kinds, steps, parameters, what differs on a rig; of a driveline alone
SCENARIOS = tuple(f"scenarios/{n}.toml" for n in ("tip_in_out", "kick_down", "coast_down", "steering_gear"))
#: kinds whose files have the schema of another kind
SCHEMAS = {"gearbox": "driveline", "powertrain": "driveline", "drive": "driveline"}
CONFIGS = Path(torqueloop.__file__).parent / "configs"


@cache
def _tree() -> Path:
    """A copy of all configurations, so that references in a mutated file lead somewhere."""
    folder = Path(tempfile.mkdtemp(prefix="torqueloop-fuzz-"))
    return Path(shutil.copytree(CONFIGS, folder / "configs", ignore=shutil.ignore_patterns("__pycache__")))


def _files(*names: str) -> Callable[[], list[bytes]]:
    return lambda: [(CONFIGS / name).read_bytes() for name in names]


def _check(data: bytes, beside: str) -> None:
    """`torqueloop check` of a file that stands beside one of the configurations."""
    path = _tree() / beside
    place = path.with_name("fuzzed" + path.suffix)
    place.write_bytes(data)
    checked = check_file(place)
    # an error says where; its text is made of anything the file holds
    assert checked.error is None or (str(checked.error) and "fuzzed" in str(checked) + str(checked.error))


def _configuration(kind: str, *names: str, daily: int, more: tuple[Path, ...] = ()) -> Target:
    """Files of one kind."""

    change = schema_files.mutator(SCHEMAS.get(kind, kind), Path(names[0]).name)
    return Target(kind, _files(*names, *map(str, more)), lambda data: _check(data, names[0]), change, daily)


def _csv(data: bytes) -> None:
    path = _tree() / "fuzzed.csv"
    path.write_bytes(data)
    for read in (
        lambda: read_columns(path, ("speed_radps", "wot_Nm", "closed_throttle_Nm")),
        lambda: table_from_config({"columns": ["speed_radps", "wot_Nm"], "csv": "fuzzed.csv"}, path.parent),
        lambda: table_from_config({"columns": ["speed_radps", "wot_Nm"], "csv": "fuzzed.csv", "scales": [2, 0.5]},
                                  path.parent),
    ):  # fmt: skip
        try:
            read()
        except TorqueloopError:
            pass


def _pack(value: Any) -> bytes:
    return bytes(msgpack.packb(value))


def messages(data: bytes, rng: random.Random) -> bytes:
    """A message with a key or value exchanged, or with bytes changed."""
    try:
        body = msgpack.unpackb(data, strict_map_key=False)
    except Exception:  # mutated before
        return mutate.binary(data, rng)
    if not isinstance(body, dict) or rng.random() < 0.4:
        return mutate.binary(data, rng)
    odd: list[Any] = [None, True, -1, 2**53, 2**63, 2**64 - 1, float("nan"), float("inf"), 1e300, "", "x" * 300, b"",
                      b"\xff", [], {}, [[]], {b"": 0}, {"": {}}, [1] * 100, {"a": [float("nan")]},
                      msgpack.Timestamp(1, 1)]  # fmt: skip
    keys = [*list(body), b"", b"\xff", "", 0, None, "carrier", "at", "values", "names"]
    for _ in range(rng.choice((1, 1, 2, 3))):
        key = rng.choice(keys)
        if rng.random() < 0.2:
            body.pop(key, None)
        else:
            body[key] = rng.choice(odd)
    return _pack(body)


def _vehicle_message(data: bytes) -> None:
    try:
        message = decode(data)
    except SchemaError:
        return
    # what was taken is finite and in range: it comes back the same
    assert decode(encode(message)) == message


def _control_message(data: bytes) -> None:
    try:
        request = decode_request(data)
        assert decode_request(encode_request(request)) == request
    except RequestError:
        pass
    try:
        decode_answer(data, 1)
    except RequestError:
        pass


def _ecu_message(data: bytes) -> None:
    try:
        ecu_answer(data)
    except SchemaError:
        pass


METRICS = {"missed": 0, "clock": "real", "nothing": None, "p99_us": 1e308, "bad": float("nan")}
#: signals of conditions, with their units; `lever` has words
SIGNALS = {"car.v": "m/s", "engine.w": "rad/s", "lever": "1", "x": "1"}


def _gate(data: bytes) -> None:
    try:
        gates = parse_gates(data.decode("utf-8", "replace"), "fuzz")
    except ConfigError:
        return
    evaluate(gates, METRICS)


def _formula(data: bytes) -> None:
    try:
        value = compute(data.decode("utf-8", "replace"))(METRICS)
    except TorqueloopError:
        return
    assert isinstance(value, float)


def _unit(name: str) -> str:
    if name not in SIGNALS:
        raise ConfigError("there is no such signal", value=name)
    return SIGNALS[name]


def _word(name: str, word: str) -> float:
    if name != "lever" or word not in ("P", "R", "N", "D"):
        raise ConfigError("there is no such word", value=word)
    return float("PRND".index(word))


def _condition(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    try:
        condition = parse_condition(text).resolved(_unit, _word)
        code = condition.code(list(SIGNALS).index)
    except ConfigError:
        return
    # the tick and a report see the same
    watched = Watched(len(SIGNALS), code)
    for value in (0.0, 3.0, -1e300):
        assert watched.holds(np.full(len(SIGNALS), value)) == condition.met(dict.fromkeys(SIGNALS, value))


VEHICLE_SEEDS = [
    encode(StepMessage(5, 0.005, 100.0, 0.5, 3.0, 0.1, 0.2)),
    encode(StateMessage(5, 7, 0.005, 3.0, 0.1, -50.0, 200.0, 0.01, {"body": [1.0, 2.0]})),
    encode(ByeMessage("done")),
]
CONTROL_SEEDS = [
    encode_request(Request("set", 3, values={"car.m": 1600.0}, at=5)),
    encode_request(Request("get", 4, names=("a", "b"))),
    encode_request(Request("checkpoint", 5, name="x")),
    _pack({"v": 1, "id": 1, "ok": True, "tick": 5}),
    _pack({"v": 1, "id": 1, "ok": False, "reason": "type", "error": "no"}),
]
ECU_SEEDS = [
    pack("out", step=3, frames=[(0, 0x210, 0, bytes(8))], actuators=[1.0]),
    pack("ready"),
    pack("state", state={"a": [1, b"x"]}),
    pack("bye", counts={"refused": 3}),
    pack("error", text="no"),
]
GATE_SEEDS = [
    b"missed == 0, p99_us < 200",
    b"abs(missed - 1) / 2 >= max(1, 2) and not clock == 'real'",
    b"-nothing < bad",
    b"p99_us < 0.2 ms or missed <= 3 and min(p99_us, 5 us) > 1e-3 ms,",
    b"clock != real, unknown == 1, p99_us < 2 km/h, 1 < missed < 3 != 4",
    b"missed / 0 > 1, p99_us * p99_us > 1, clock < 3, not (missed == 0 or missed > 5)",
]
FORMULA_SEEDS = [
    b"18.0 + missed / 2",
    b"-abs(p99_us) * 2 - min(missed, 3, 4 ms)",
    b"max(1 us, 2 ms) / 3 s + 5 %",
    b"nothing + 1",
    b"p99_us * p99_us * p99_us",
    b"unknown + missd",
]
CONDITION_SEEDS = [
    b"car.v > 60 km/h and engine.w < 3000 rpm",
    b"lever == R or lever != 'D' and abs(car.v) < 1 km/h",
    b"not (x == 2 or -x >= max(3, x / 2, 1))",
    b"min(car.v, 3) + 2 m/s <= 5 - car.v * x, ",
    b"1 < x < 3",
    b"lever > R",
    b"car.v == engine.w",
]


def _seeds(found: list[bytes]) -> Callable[[], list[bytes]]:
    return lambda: list(found)


TARGETS = {
    t.name: t
    for t in (
        _configuration("gearbox", "gearboxes/zf_4hp22.toml", "gearboxes/lepelletier_6hp26.toml", daily=40),
        _configuration("powertrain", "powertrains/drive_4hp22.toml", "powertrains/car_4hp22.toml", daily=40),
        _configuration("scenario", "scenarios/wot_4hp22.toml", *SCENARIOS, daily=40),
        _configuration("vehicle", "vehicles/bmw_528i_e28.toml", daily=300),
        _configuration("tcu", "tcu/soft_4hp22.toml", daily=60),
        _configuration("rig", "rigs/desk_4hp22.toml", "rigs/two_buses_4hp22.toml", more=RIGS, daily=20),
        Target("dbc", _files(*DATABASES, str(MULTIPLEXED)), lambda data: _check(data, DATABASES[0]), mutate.text, 40),
        _configuration("hydraulics", "hydraulics/zf_4hp22_direct.toml", "hydraulics/mb_7226_valves.toml", daily=100),
        _configuration("interface", "interfaces/egs52_mb.toml", "interfaces/tcu_j1939.toml", daily=60),
        _configuration("sketch", "sketches/zf_8hp70.toml", "sketches/mb_7226.toml", daily=60),
        _configuration("study", "studies/shift_3_4.toml", "studies/robust_3_4.toml", daily=20),
        _configuration("tree", "trees/body_mounted_actuator.toml", "trees/tilting_platform.toml", daily=30),
        _configuration("drive", "drives/drive_528i.toml", daily=30),
        Target("bus_log", fuzz_logs.logs, fuzz_logs.read_log, fuzz_logs.changed, 200),
        Target("csv", lambda: [(CONFIGS / "engines/bmw_m30b28.csv").read_bytes()], _csv, mutate.text, 300),
        Target("vehicle_messages", _seeds(VEHICLE_SEEDS), _vehicle_message, messages, 5000),
        Target("control_messages", _seeds(CONTROL_SEEDS), _control_message, messages, 5000),
        Target("ecu_messages", _seeds(ECU_SEEDS), _ecu_message, messages, 5000),
        Target("gates", _seeds(GATE_SEEDS), _gate, mutate.binary, 3000),
        Target("formulas", _seeds(FORMULA_SEEDS), _formula, mutate.binary, 1000),
        Target("conditions", _seeds(CONDITION_SEEDS), _condition, mutate.binary, 1000),
        Target("page", fuzz_pages.requests, fuzz_pages.read_request, fuzz_pages.changed, 2000),
        Target("frames", fuzz_codec.seeds, fuzz_codec.read, fuzz_codec.mutated, 1500),
        Target("tick", fuzz_bus.frames, fuzz_bus.read_frames, fuzz_bus.disturbed, 400),
        Target("packets", fuzz_bus.packets, fuzz_bus.read_packet, messages, 5000),
        Target("recording", fuzz_runs.recordings, fuzz_runs.read_recording, fuzz_runs.damaged, 30, DRAWING_S),
        Target("streams", fuzz_runs.streams, fuzz_runs.read_streams, fuzz_runs.damaged, 400),
        Target("checkpoint", fuzz_runs.checkpoints, fuzz_runs.read_checkpoint, fuzz_runs.forged, 40),
    )
}
