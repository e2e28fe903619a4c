"""When the soft TCU sends the messages of a maker's bus: every cycle time of the database, in whole control steps."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from torqueloop.core.describe.errors import RangeError
from torqueloop.hil.ecu.interface import MakerBus


def planned(period_s: float, *cycles_ms: float) -> list:
    messages = [SimpleNamespace(name=f"M{k}", can_id=k, extended=False, fd=False, cycle_ns=round(1e6 * c))
                for k, c in enumerate(cycles_ms)]  # fmt: skip
    bus = SimpleNamespace(_claim=None, config=SimpleNamespace(only_active=["M1"]),
                          database=SimpleNamespace(tx_messages=messages, path="x.dbc"))  # fmt: skip
    return MakerBus._plan(bus, period_s)  # type: ignore[arg-type]


@pytest.mark.parametrize("period_ms", [1, 2, 5, 10])
def test_every_message_is_sent_after_each_of_its_cycles_in_a_step_of_its_own(period_ms: int) -> None:
    """Also where a cycle over the period is no whole number as a double: 45 ms over 1 ms, 90 ms over 2 ms."""
    cycles = [period_ms * n for n in (1, 2, 3, 23, 45, 46, 91, 105, 200)]
    made = planned(period_ms * 1e-3, *cycles)
    for k, (message, cycle) in enumerate(zip(made, cycles, strict=True)):
        steps = [step for step in range(1000) if step % message.every == message.offset]
        n = cycle // period_ms
        assert steps == list(range(k % n, 1000, n)), cycle
    assert [m.only_active for m in made] == [False, True] + 7 * [False]


@pytest.mark.parametrize(("period_ms", "cycle_ms"), [(5.0, 12.0), (10.0, 4.0), (2.0, 5.0)])
def test_a_cycle_that_is_no_multiple_of_the_control_period_is_refused(period_ms: float, cycle_ms: float) -> None:
    with pytest.raises(RangeError) as refused:
        planned(period_ms * 1e-3, cycle_ms, period_ms)
    assert (refused.value.value, refused.value.allowed) == (
        cycle_ms, f"a multiple of the control period of {period_ms:g} ms")  # fmt: skip
