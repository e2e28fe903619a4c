"""The fuzz targets: every reader of what strangers write."""

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
import fuzz_runs
import msgpack
import mutate
from engine import DRAWING_S, Target

import torqueloop
from torqueloop.core.describe.errors import ConfigError, TorqueloopError
from torqueloop.core.describe.tables import table_from_config
from torqueloop.hil.cli.file_check import check_file
from torqueloop.hil.control.messages import Request, RequestError, decode_answer, decode_request, encode_request
from torqueloop.hil.ecu.messages import decode_answer as ecu_answer
from torqueloop.hil.ecu.messages import pack
from torqueloop.hil.ecu.tcu_tables import read_columns
from torqueloop.hil.link.messages import ByeMessage, SchemaError, StateMessage, StepMessage, decode, encode
from torqueloop.hil.results.gates import evaluate, parse_gates

CONFIGS = Path(torqueloop.__file__).parent / "configs"


@cache
def _tree() -> Path:
    """A copy of all configurations, so that references in a mutated file lead somewhere."""
    folder = Path(tempfile.mkdtemp(prefix="torqueloop-fuzz-"))
    return Path(shutil.copytree(CONFIGS, folder / "configs", ignore=shutil.ignore_patterns("__pycache__")))


def _configuration(kind: str, *names: str, daily: int) -> Target:
    """`torqueloop check` of files of one kind."""

    def read(data: bytes) -> None:
        path = _tree() / names[0]
        place = path.with_name("fuzzed" + path.suffix)
        place.write_bytes(data)
        checked = check_file(place)
        # an error says where; its text is made of anything the file holds
        assert checked.error is None or (str(checked.error) and "fuzzed" in str(checked) + str(checked.error))

    return Target(kind, lambda: [(CONFIGS / n).read_bytes() for n in names], read, mutate.text, daily)


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


def _gate(data: bytes) -> None:
    try:
        gates = parse_gates(data.decode("utf-8", "replace"), "fuzz")
    except ConfigError:
        return
    evaluate(gates, {"missed": 0, "clock": "real", "nothing": None, "p99_us": 1e308, "bad": float("nan")})


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
]


def _seeds(found: list[bytes]) -> Callable[[], list[bytes]]:
    return lambda: list(found)


TARGETS = {
    t.name: t
    for t in (
        _configuration("gearbox", "gearboxes/zf_4hp22.toml", "gearboxes/lepelletier_6hp26.toml", daily=40),
        _configuration("powertrain", "powertrains/drive_4hp22.toml", "powertrains/car_4hp22.toml", daily=40),
        _configuration("scenario", "scenarios/wot_4hp22.toml", "scenarios/steering_gear.toml", daily=40),
        _configuration("vehicle", "vehicles/bmw_528i_e28.toml", daily=300),
        _configuration("tcu", "tcu/soft_4hp22.toml", daily=60),
        _configuration("rig", "rigs/desk_4hp22.toml", daily=20),
        _configuration("dbc", "can/tcu_4hp22.dbc", daily=40),
        Target("csv", lambda: [(CONFIGS / "engines/bmw_m30b28.csv").read_bytes()], _csv, mutate.text, 300),
        Target("vehicle_messages", _seeds(VEHICLE_SEEDS), _vehicle_message, messages, 5000),
        Target("control_messages", _seeds(CONTROL_SEEDS), _control_message, messages, 5000),
        Target("ecu_messages", _seeds(ECU_SEEDS), _ecu_message, messages, 5000),
        Target("gates", _seeds(GATE_SEEDS), _gate, mutate.binary, 3000),
        Target("frames", fuzz_codec.seeds, fuzz_codec.read, fuzz_codec.mutated, 1500),
        Target("tick", fuzz_bus.frames, fuzz_bus.read_frames, fuzz_bus.disturbed, 400),
        Target("packets", fuzz_bus.packets, fuzz_bus.read_packet, messages, 5000),
        Target("recording", fuzz_runs.recordings, fuzz_runs.read_recording, fuzz_runs.damaged, 30, DRAWING_S),
        Target("checkpoint", fuzz_runs.checkpoints, fuzz_runs.read_checkpoint, fuzz_runs.forged, 40),
    )
}
