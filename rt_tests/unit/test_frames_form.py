"""Messages of control units in their usual form: the bytes of msgpack; nothing else is taken."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torqueloop.cython_kernels.link.frames_form import FramesForm
from torqueloop.hil.can.frame import FD_LENGTHS, Frame
from torqueloop.hil.ecu import messages
from torqueloop.hil.ecu.control_unit import EcuInputs, EcuOutputs
from torqueloop.hil.ecu.messages import (
    Out,
    decode_answer,
    frames_of,
    numbers_of,
    pack_out,
    pack_step,
    unpack,
    usual_step,
)
from torqueloop.hil.ecu.tcu_tables import Curve, interpolate
from torqueloop.hil.link.messages import SchemaError

#: where the shortest form of a whole number changes, and the ends
WHOLES = [0, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**53 - 1]
IDS = st.sampled_from([0, 0x7F, 0x80, 0x7FF, 0x1FFFFFFF, 0x80000000, 0x9FFFFFFF]) | st.integers(0, 0x1FFFFFFF)
FRAMES = st.builds(
    Frame,
    IDS,
    st.sampled_from(sorted(FD_LENGTHS)).flatmap(lambda n: st.binary(min_size=n, max_size=n)),
    st.integers(0, 255),
    st.integers(0, 255),
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
STEPS = st.sampled_from(WHOLES) | st.integers(0, 2**53 - 1)
MANY = st.lists(FRAMES, max_size=20).map(tuple)
INPUTS = st.builds(EcuInputs, NUMBERS, MANY, st.lists(NUMBERS, max_size=20).map(tuple))
OUTPUTS = st.builds(EcuOutputs, MANY, st.lists(NUMBERS, max_size=20).map(tuple))
FRAME = Frame(0x210, b"\x01\x02", 0, 1)


def plain(kind: str, step: Any, frames: Any, **rest: Any) -> bytes:
    """As docs/external_controllers.md has it."""
    t = {"t": rest.pop("t")} if "t" in rest else {}
    listed = [[f.bus, f.can_id, f.flags, f.data] for f in frames]
    return bytes(msgpack.packb({"v": 1, "kind": kind, "step": step, **t, "frames": listed, **rest}))


def plain_step(step: int, inputs: EcuInputs) -> bytes:
    return plain("step", step, inputs.frames, t=inputs.t_s, sensors=inputs.sensors)


def long_way(data: bytes) -> object:
    """The answer, or why it is refused, key by key."""
    body = unpack(data)
    messages._keys(body, "step", "frames", "actuators")
    if type(body["step"]) is not int:
        raise SchemaError("type", f"key step = {body['step']!r}, allowed: a whole number")
    return Out(body["step"], EcuOutputs(frames_of(body["frames"]), numbers_of(body["actuators"], "actuators")))


def judged(way: Any, data: bytes) -> object:
    try:
        return way(data)
    except SchemaError as error:
        return error.reason, str(error)


@given(STEPS, INPUTS)
@example(1, EcuInputs(0.5, (FRAME,) * 20, (1.0,) * 20))
def test_a_step_has_the_bytes_of_msgpack_and_comes_back(step: int, inputs: EcuInputs) -> None:
    data = pack_step(step, inputs)
    assert data == plain_step(step, inputs) == messages._STEP_FORM.pack(step, inputs.t_s, inputs.frames, inputs.sensors)
    found = usual_step(data)
    assert found == (step, inputs) and found is not None
    assert [type(x) for x in (found[1].frames, found[1].sensors, found[1].t_s)] == [tuple, tuple, float]
    signs = [math.copysign(1.0, x) for x in inputs.sensors]
    assert [math.copysign(1.0, x) for x in found[1].sensors] == signs
    assert [hash(f) for f in found[1].frames] == [hash(f) for f in inputs.frames]


@given(STEPS, OUTPUTS)
def test_an_answer_has_the_bytes_of_msgpack_and_comes_back(step: int, outputs: EcuOutputs) -> None:
    data = pack_out(step, outputs)
    assert data == plain("out", step, outputs.frames, actuators=outputs.actuators)
    assert decode_answer(data) == Out(step, outputs) == long_way(data)


@given(STEPS, OUTPUTS, st.data())
def test_damaged_bytes_are_judged_as_key_by_key(step: int, outputs: EcuOutputs, choose: st.DataObject) -> None:
    data = bytearray(pack_out(step, outputs))
    at = choose.draw(st.integers(0, len(data) - 1), "where")
    how = choose.draw(st.sampled_from(["byte", "cut", "more"]), "how")
    if how == "byte":
        data[at] = choose.draw(st.integers(0, 255), "byte")
    changed = bytes(data) if how == "byte" else bytes(data[:at]) if how == "cut" else bytes(data) + b"\x00"
    usual = messages._OUT_FORM.unpack(changed)
    if usual is not None:
        assert long_way(changed) == Out(usual[0], EcuOutputs(usual[2], usual[3]))
    if b"kind\xa3out" in changed:
        assert judged(decode_answer, changed) == judged(long_way, changed)


WRONG = [
    ("frames[0]: 9 data bytes", [FRAME.bus, FRAME.can_id, 0, b"x" * 9], ()),
    ("frames[0]: bus 256", [256, 1, 0, b""], ()),
    ("frames[0]: bus 0, id 0xFFFFFFFF", [0, 0xFFFFFFFF, 0, b""], ()),
    ("frames[0]: bus 0, id 0x1, flags 256", [0, 1, 256, b""], ()),
    ("frames[0]: allowed: [bus", [0, 1, 0, "text"], ()),
    ("frames[0]: allowed: [bus", [0, 1, 0], ()),
    ("key actuators: allowed: finite", [0, 1, 0, b""], (math.inf,)),
    ("key actuators: allowed: finite", [0, 1, 0, b""], (math.nan,)),
    ("key actuators: allowed: a list of numbers", [0, 1, 0, b""], ("much",)),
]


@pytest.mark.parametrize(("text", "frame", "actuators"), WRONG)
def test_what_is_wrong_is_named(text: str, frame: list[Any], actuators: tuple[Any, ...]) -> None:
    body = {"v": 1, "kind": "out", "step": 3, "frames": [frame], "actuators": actuators}
    data = msgpack.packb(body)
    with pytest.raises(SchemaError) as refused:
        decode_answer(data)
    assert str(refused.value).startswith(text)
    body = {"v": 1, "kind": "step", "step": 3, "t": 0.5, "frames": [frame], "sensors": actuators}
    assert usual_step(msgpack.packb(body)) is None


def test_what_is_right_in_another_form_is_taken_too() -> None:
    body = {"v": 1, "kind": "out", "step": 3, "frames": [[1, 0x210, 0, b"\x01\x02"]], "actuators": [1.0, 2.0]}
    wanted = Out(3, EcuOutputs((FRAME,), (1.0, 2.0)))
    usual = msgpack.packb(body)
    assert decode_answer(usual) == wanted and messages._OUT_FORM.unpack(usual) is not None
    for other in (
        msgpack.packb(dict(reversed(body.items()))),
        msgpack.packb(body, use_single_float=True),
        msgpack.packb(body | {"actuators": [1, 2]}),
    ):
        assert decode_answer(other) == wanted and messages._OUT_FORM.unpack(other) is None
    # identifiers beyond 29 bits that the check by keys lets pass
    odd = msgpack.packb(body | {"frames": [[0, 0x40000000, 0, b""]]})
    assert decode_answer(odd) == Out(3, EcuOutputs((Frame(0x40000000, b""),), (1.0, 2.0)))


def test_units_of_other_packages_may_answer_with_other_types() -> None:
    """Lists, whole numbers, NumPy's, an identifier of a subclass: msgpack has the word, as before."""
    for outputs in (
        EcuOutputs([FRAME], [1, 2.5]),  # type: ignore[arg-type]
        EcuOutputs((FRAME,), (True, 2)),
        EcuOutputs((Frame(0x210, bytearray(b"ab")),)),  # type: ignore[arg-type]
        EcuOutputs((Frame(2**40, b"ab", 300, 400),)),
        EcuOutputs(tuple(FRAME for _ in range(200)), tuple(map(float, range(500)))),
    ):
        assert pack_out(3, outputs) == plain("out", 3, outputs.frames, actuators=outputs.actuators)
    assert pack_out(-3, EcuOutputs()) == plain("out", -3, (), actuators=())
    assert pack_out(2**60, EcuOutputs()) == plain("out", 2**60, (), actuators=())
    assert pack_step(3, EcuInputs(0)) == plain("step", 3, (), t=0, sensors=())
    with pytest.raises(OverflowError):
        pack_out(2**70, EcuOutputs())


def test_a_form_says_what_it_cannot_be() -> None:
    with pytest.raises(ValueError, match="head of 12 fields, 0 bytes; allowed: 0 to 11, 256"):
        FramesForm(Frame, b"", 12, True, "sensors")
    with pytest.raises(ValueError, match="allowed: 1 to 31 bytes"):
        FramesForm(Frame, b"", 2, True, "s" * 32)
    with pytest.raises(TypeError):
        messages._OUT_FORM.unpack(None)  # type: ignore[arg-type]


CURVES: st.SearchStrategy[Curve] = st.lists(
    st.tuples(st.integers(-50, 50).map(float), st.floats(-1e3, 1e3)), min_size=1, max_size=9, unique_by=lambda p: p[0]
).map(sorted)


@given(CURVES, st.integers(-110, 110).map(lambda k: 0.5 * k) | st.floats())
@example([(0.0, 1.0), (1.0, 2.0)], math.nan)
def test_a_curve_is_read_between_the_two_points_around(curve: Curve, x: float) -> None:
    inside = [(a, b) for a, b in pairwise(curve) if a[0] < x <= b[0]]
    found = interpolate(curve, x)
    if inside:
        ((x0, y0), (x1, y1)) = inside[0]
        assert found == y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    else:
        assert found == curve[0 if x <= curve[0][0] else -1][1]
