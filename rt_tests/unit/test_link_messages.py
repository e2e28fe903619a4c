"""Messages of fixed form of the vehicle link: the bytes of msgpack; nothing is taken that a check by keys refuses."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torqueloop.cython_kernels.link.form import Form
from torqueloop.hil.link import messages
from torqueloop.hil.link.messages import MAX_STEP, SchemaError, StateMessage, StepMessage, decode, encode

Message = StepMessage | StateMessage
STEP = StepMessage(7, 0.007, 3000.0, 21.0, 0.5, 0.01, 0.25)
STATE = StateMessage(7, 8, 0.007, 0.5, 1.5, -120.0, 300.0, 0.02)
#: where the shortest form of a whole number changes, and the ends
WHOLES = st.one_of(
    st.sampled_from([0, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, MAX_STEP - 1]), st.integers(0, MAX_STEP - 1)
)


def numbers(keys: dict[str, tuple[float, float]]) -> dict[str, st.SearchStrategy[float]]:
    return {key: st.sampled_from([low, high, -0.0]) | st.floats(low, high) for key, (low, high) in keys.items()}


MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(StepMessage, step=WHOLES, **numbers(messages.STEP_KEYS)),
    st.builds(StateMessage, step=WHOLES, own_step=WHOLES, **numbers(messages.STATE_KEYS)),
)


def body(message: Message) -> dict[str, Any]:
    """The map of the message, as docs/vehicle_link.md has it."""
    values = asdict(message)
    carrier = values.pop("carrier")
    kind = "step" if isinstance(message, StepMessage) else "state"
    return {"v": 1, "kind": kind, **values, **({"carrier": carrier} if carrier else {})}


def one_by_one(data: bytes) -> object:
    """The message, or why it is refused, key by key."""
    try:
        return messages._decode(data)
    except SchemaError as error:
        return error.reason, str(error)


def whole(data: bytes) -> object:
    try:
        return decode(data)
    except SchemaError as error:
        return error.reason, str(error)


@given(MESSAGES)
def test_the_bytes_are_those_of_msgpack_and_come_back(message: Message) -> None:
    data = encode(message)
    assert data == msgpack.packb(body(message), use_bin_type=True)
    back = decode(data)
    assert back == message and back == messages._decode(data) and list(vars(back)) == list(vars(message))
    signs = [math.copysign(1.0, x) for x in vars(message).values() if isinstance(x, float)]
    assert [math.copysign(1.0, x) for x in vars(back).values() if isinstance(x, float)] == signs


@given(MESSAGES, st.data())
def test_damaged_bytes_are_judged_as_key_by_key(message: Message, choose: st.DataObject) -> None:
    data = bytearray(encode(message))
    at = choose.draw(st.integers(0, len(data) - 1), "where")
    how = choose.draw(st.sampled_from(["byte", "cut", "more"]), "how")
    if how == "byte":
        data[at] = choose.draw(st.integers(0, 255), "byte")
    changed = bytes(data) if how == "byte" else bytes(data[:at]) if how == "cut" else bytes(data) + b"\x00"
    found, wanted = whole(changed), one_by_one(changed)
    assert found == wanted and type(found) is type(wanted)


@pytest.mark.parametrize("message", [STEP, STATE], ids=["step", "state"])
def test_every_number_out_of_its_range_is_refused(message: Message) -> None:
    for key, value in vars(message).items():
        if key == "carrier":
            continue
        low, high = (messages.STEP_KEYS | messages.STATE_KEYS).get(key, (0, MAX_STEP - 1))
        bad = [math.nan, math.inf, math.nextafter(high, math.inf)] if isinstance(value, float) else [MAX_STEP]
        bad += [math.nextafter(low, -math.inf)] if isinstance(value, float) else [-2]
        for wrong in bad:
            with pytest.raises(SchemaError, match=f"key {key} = "):
                decode(encode(replace(message, **{key: wrong})))


@pytest.mark.parametrize("message", [STEP, STATE], ids=["step", "state"])
def test_what_is_right_in_another_form_is_taken_too(message: Message) -> None:
    plain = body(message)
    backwards = msgpack.packb(dict(reversed(plain.items())))
    single = msgpack.packb(plain, use_single_float=True)
    whole_numbers = msgpack.packb(plain | {"t": 3})
    assert decode(backwards) == message and decode(whole_numbers) == replace(message, t=3.0)
    assert decode(single).speed == 0.5
    carried = replace(message, carrier={"body": [1.0, 2.0]})
    assert encode(carried) == msgpack.packb(body(carried)) and decode(encode(carried)) == carried


def test_a_state_before_the_first_step_travels_as_well() -> None:
    before = replace(STATE, step=-1)
    assert decode(encode(before)) == before


def test_whole_numbers_are_packed_as_numbers() -> None:
    """A model of somebody else's may answer with integers or NumPy's floats."""
    data = encode(replace(STATE, F=-120, grade=0))
    assert data == encode(replace(STATE, grade=0.0))
    with pytest.raises(TypeError):
        encode(replace(STATE, F="much"))


def test_a_form_says_what_it_cannot_be() -> None:
    for head_fields, fields, text in [
        (2, [], "0 fields beside 2"),
        (2, [("x", 0.0, 1.0)] * 14, "14 fields beside 2, allowed: 1 to 14, 15 in all"),
        (0, [("", 0.0, 1.0)], "key ''"),
        (0, [("k" * 32, 0.0, 1.0)], "allowed: 1 to 31 bytes"),
    ]:
        with pytest.raises(ValueError, match=text):
            Form(StepMessage, b"", head_fields, fields)
    with pytest.raises(ValueError, match="head of 2000 bytes"):
        Form(StepMessage, b"x" * 2000, 1, [("x", 0.0, 1.0)])
    with pytest.raises(TypeError):
        Form(StepMessage, b"", 0, [("x", 0.0, 1.0)]).unpack(None)  # type: ignore[arg-type]
