"""The vehicle of the virtual clock over the memory it shares with the rig: the same without Python on the way and with
it, also where an answer is late, unusual or does not come."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from waiting import PATIENCE_S

from torqueloop.cython_kernels.rings.ring import LatestSlot
from torqueloop.hil.link import pair as pairs
from torqueloop.hil.link.carriers import Carriers
from torqueloop.hil.link.lockstep import LockstepClient, PairServer
from torqueloop.hil.link.messages import MAX_STEP, StateMessage, StepMessage
from torqueloop.hil.link.pair import Gone, Pair
from torqueloop.hil.rig.assemble.virtual_links import VirtualVehicle
from torqueloop.hil.vehicle.model import VehicleModel
from torqueloop.hil.vehicle.vehicle_tables import load_vehicle_config

CONFIG = load_vehicle_config(Path(__file__).resolve().parents[2] / "configs/vehicles/bmw_528i_hill.toml")


class Late(VehicleModel):
    """Takes longer than a rig waits without looking whether it is alive, now and then."""

    def _active(self, speed: float, slope: float) -> float:
        if self.own_step in (10, 40, 61):
            time.sleep(1.5 * pairs.SLICE_S)
        return super()._active(speed, slope)


class Odd(VehicleModel):
    """Answers in another form now and then, which is right, too; at last wrongly, as it is told."""

    wrong: dict[str, Any] = {}

    def step(self, message: StepMessage) -> StateMessage:
        found = super().step(message)
        if message.step % 7 == 3:
            return replace(found, carrier={"body": [1.0]})
        return replace(found, **self.wrong) if message.step == 44 else found


class Drive:
    """A rig of nothing but its two slots, and a vehicle at the other end of a pair, in a thread."""

    def __init__(self, model: VehicleModel, quick: bool, timeout_s: float = PATIENCE_S) -> None:
        pair, theirs = Pair.make()
        self.client = LockstepClient("", timeout_s, transport=pair, peer_dead=lambda: self.ended)
        self.ended: str | None = None
        if not quick:
            self.client.peer = None
        asked = model if quick and model.asked_by_numbers() else None
        self.server = PairServer(Pair.inherited(theirs.detach()), asked)
        self.model, self.stop = model, threading.Event()
        self.aside = threading.Thread(target=self._serve, daemon=True)
        self.aside.start()
        self.parts: Any = SimpleNamespace(
            carriers=Carriers(), carrier_in=None, vehicle_out=LatestSlot(7), vehicle_in=LatestSlot(8)
        )
        self.vehicle = VirtualVehicle(self.parts, self.client.exchange, self.client)

    def _serve(self) -> None:
        try:
            while not self.stop.is_set():
                self.server.serve_one(self.model.step)
        except Gone:
            pass
        finally:
            self.server.close()

    def tick(self, k: int, speed: float = 3.0) -> tuple[float, ...]:
        self.parts.vehicle_out.write((k, 1e-3 * k, 400.0, 0.4 * k, speed, 0.0, 0.1 if k > 20 else 0.0))
        self.vehicle.before_tick(1000 * k)
        return tuple(self.parts.vehicle_in.read()[2])

    def close(self) -> None:
        self.client.close()
        self.aside.join(PATIENCE_S)
        assert not self.aside.is_alive()


@pytest.fixture
def drives() -> Iterator[list[Drive]]:
    made: list[Drive] = []
    yield made
    for drive in made:
        drive.stop.set()
        drive.close()


@pytest.mark.parametrize("kind", [VehicleModel, Late, Odd])
def test_both_ways_give_the_same_states_and_books(kind: type[VehicleModel], drives: list[Drive]) -> None:
    drives += [Drive(kind(CONFIG), quick) for quick in (True, False)]
    told = [[drive.tick(k) for k in range(60)] for drive in drives]
    assert told[0] == told[1]
    # the rig goes back to a step that was late, then is told to go on from another state
    again = [drive.tick(40, speed=1.0) for drive in drives]
    assert again[0] == again[1] and again[0][3] == 1.0
    for drive in drives:
        assert not drive.vehicle.load(None)
    assert len({drive.tick(0, speed=2.0) for drive in drives}) == 1
    for drive in drives:
        drive.stop.set()
        drive.aside.join(PATIENCE_S)
    stats = [replace(drive.client.stats(), wait_max_ms=None) for drive in drives]
    assert stats[0] == stats[1] and {drive.server.exchanges for drive in drives} == {stats[0].exchanges} == {62}
    assert [drive.vehicle.failure for drive in drives] == [None, None]
    late = [1e-3 * (drive.client.stats().wait_max_ms or 0.0) > pairs.SLICE_S for drive in drives]
    assert late == [kind is Late] * 2 or kind is not Late


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"step": 43}, "step 44: answered step 43, allowed: the step it was asked"),
        ({"F": float("nan")}, "step 44: answer refused: key F = nan, allowed: a finite number"),
        ({"own_step": MAX_STEP}, r"step 44: answer refused: key own_step = .*, allowed: 0 .. 2\^53 - 1"),
    ],
)
def test_a_wrong_answer_is_named_the_same_on_both_ways(wrong: dict[str, Any], text: str, drives: list[Drive]) -> None:
    failures = []
    for quick in (True, False):
        model = Odd(CONFIG)
        model.wrong = wrong
        drives.append(Drive(model, quick))
        for k in range(50):
            drives[-1].tick(k)
        failures.append(drives[-1].vehicle.failure)
    assert failures[0] == failures[1] and failures[0] is not None
    assert re.search(text, failures[0])
    assert drives[0].parts.vehicle_in.version == drives[1].parts.vehicle_in.version == 44


@pytest.mark.parametrize("quick", [True, False])
def test_who_hangs_or_has_gone_is_named_with_the_step(quick: bool, drives: list[Drive]) -> None:
    drives.append(drive := Drive(VehicleModel(CONFIG), quick))
    drive.tick(0)
    drive.stop.set()
    drive.aside.join(PATIENCE_S)
    drive.ended = "has ended with status 3"
    drive.tick(2)
    assert drive.vehicle.failure == "vehicle at shared memory has ended with status 3 (step 2)"
    # nobody takes what is asked
    pair, theirs = Pair.make()
    with theirs:
        client = LockstepClient("", 0.12, transport=pair)
        if not quick:
            client.peer = None
        vehicle = VirtualVehicle(drive.parts, client.exchange, client)
        vehicle.before_tick(0)
        assert (
            vehicle.failure is not None and "has not answered within 0.12 s (step 2): is it started?" in vehicle.failure
        )
    client.close()
