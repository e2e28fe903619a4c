"""The life of a rig in any order: ticks, overrides, faults, checkpoints, restores, arming, the safe state, the end.

Hypothesis draws the orders. The model beside the rig is a handful of rules of docs/safe_state.md and docs/control.md:
which state the rig is in, which tick comes next, which signals are held, and what each checkpoint keeps. At the end of
each life the run is replayed from its recording, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from rig_help import rig_file

from torqueloop.hil.control.messages import RequestError
from torqueloop.hil.results.files import read_run_info
from torqueloop.hil.rig.run.replay import replay
from torqueloop.hil.testing.holder import Holder

#: a fault that is switched by hand
FAULT = """
[[faults]]
name = "weak"
kind = "gain"
signal = "driver.pedal"
value = 0.5
switch = "weak"
"""
#: ticks of the ramp of the safe state and of disarming; of a life at most
RAMP, DURATION = 200, 6000
#: signals that are held, with values of their range
HELD = {"driver.pedal": (0.0, 1.0), "driver.brake": (0.0, 1.0), "driver.brake_switch": (0.0, 1.0)}


@dataclass(frozen=True)
class Kept:
    """What a checkpoint keeps: its tick, what is held, and all signals after the tick that follows."""

    tick: int
    held: dict[str, float]
    fault: float
    after: list[float]


class RigLife(RuleBasedStateMachine):
    """One run on the virtual clock, held between its ticks, beside a model of its life."""

    @initialize()
    def start(self) -> None:
        self.folder = TemporaryDirectory()
        out = Path(self.folder.name) / "run"
        path = rig_file(Path(self.folder.name), "safe_state.stop_after_s = -1.0", add=FAULT, own_bus=True)
        self.holder = Holder(path, "virtual", out, duration_s=DURATION * 1e-3)
        self.control = self.holder.live.control
        self.rig = self.holder.live.parts.rig
        self.state, self.tick, self.left = "armed", 0, math.inf
        self.held: dict[str, float] = {}
        self.fault = 0.0
        self.kept: dict[str, Kept] = {}
        self.ticks = 0
        self.wanted = ""

    # --- the model ----------------------------------------------------------------------------------------------------
    def passed(self, ticks: int) -> None:
        """What ticks do: commands take effect in the first, ramps end."""
        for _ in range(ticks):
            if self.wanted == "safe" and self.state != "safe":
                self.state = "safe"
            elif self.wanted == "disarm" and self.state == "armed":
                self.state, self.left = "disarming", RAMP + 1
            elif self.wanted == "arm" and self.state in ("disarming", "disarmed"):
                self.state, self.left = "armed", math.inf
            self.wanted = ""
            if self.state == "disarmed":
                continue
            self.tick += 1
            self.ticks += 1
            self.left -= 1
            if self.state == "disarming" and self.left == 0:
                self.state = "disarmed"

    def ask(self, wanted: str) -> None:
        """The last of arming and disarming before a tick counts; the safe state counts before both."""
        if "safe" not in (self.wanted, self.state):
            self.wanted = wanted

    @property
    def over(self) -> bool:
        """So near to the end of the run that nothing is begun."""
        return self.ticks >= DURATION - RAMP

    def refused(self, ask: Callable[[], object]) -> None:
        """A request that the rig does not carry out, for it is not armed."""
        with pytest.raises(RequestError):
            ask()

    # --- what may happen ----------------------------------------------------------------------------------------------
    @precondition(lambda self: not self.over and (self.state != "disarmed" or self.wanted == "arm"))
    @rule(ticks=st.integers(1, 150))
    def time_passes(self, ticks: int) -> None:
        """A disarmed rig makes no tick until it is armed, so no more pass than there are until then."""
        if self.state == "armed" and self.wanted == "disarm":
            ticks = min(ticks, RAMP + 1)
        elif self.state == "disarming" and not self.wanted:
            ticks = min(ticks, int(self.left))
        self.holder.pass_ticks(ticks)
        self.passed(ticks)

    @precondition(lambda self: not self.over and self.state == "armed" and not self.wanted)
    @rule(name=st.sampled_from(sorted(HELD)), value=st.sampled_from([0.0, 0.25, 1.0]))
    def hold(self, name: str, value: float) -> None:
        self.control.override({name: value})
        self.passed(1)
        self.held[name] = value

    @precondition(lambda self: not self.over and self.state == "armed" and not self.wanted and self.held)
    @rule()
    def release(self) -> None:
        self.control.release(())
        self.passed(1)
        self.held = {}

    @precondition(lambda self: not self.over and self.state == "armed" and not self.wanted)
    @rule(on=st.booleans())
    def switch_the_fault(self, on: bool) -> None:
        self.control.set({"fault.weak": float(on)})
        self.passed(1)
        self.fault = float(on)

    @precondition(lambda self: not self.over and not self.wanted and self.state in ("armed", "safe", "disarmed"))
    @rule(name=st.sampled_from(["a", "b"]))
    def checkpoint(self, name: str) -> None:
        if self.state != "armed":
            self.refused(lambda: self.control.checkpoint(name))
            return
        answer = self.control.checkpoint(name)
        assert answer["tick"] == self.tick
        self.passed(1)
        self.kept[name] = Kept(self.tick, dict(self.held), self.fault, self.signals())

    @precondition(lambda self: not self.over and not self.wanted and self.state in ("armed", "safe", "disarmed"))
    @rule(name=st.sampled_from(["a", "b"]))
    def restore(self, name: str) -> None:
        if self.state != "armed" or name not in self.kept:
            self.refused(lambda: self.control.restore(name))
            return
        kept = self.kept[name]
        assert self.control.restore(name)["tick"] == kept.tick - 1
        self.passed(1)
        self.tick, self.held = kept.tick, dict(kept.held)
        # a fault that is switched by hand stays as its switch is
        other = self.differing(kept.after) if self.fault == kept.fault else {}
        assert not other, f"after the restore these are not what they were after the checkpoint: {other}"

    @precondition(lambda self: not self.over)
    @rule()
    def disarm(self) -> None:
        self.control.disarm()
        self.ask("disarm" if self.state == "armed" else "")

    @precondition(lambda self: not self.over)
    @rule()
    def arm(self) -> None:
        self.control.arm()
        self.ask("arm" if self.state != "armed" else "")

    @precondition(lambda self: not self.over and self.state != "disarmed")
    @rule()
    def ask_for_the_safe_state(self) -> None:
        self.control.safe()
        self.wanted = "safe" if self.state != "safe" else ""

    # --- what always holds --------------------------------------------------------------------------------------------
    def signals(self) -> list[float]:
        table = self.holder.live.plan.table
        return list(self.rig.values(list(range(len(table)))))

    def differing(self, before: list[float]) -> dict[str, tuple[float, float]]:
        """Signals that are not what they were."""
        names = self.holder.live.plan.table.names
        pairs = zip(names, before, self.signals(), strict=True)
        return {name: (a, b) for name, a, b in pairs if a != b and not (math.isnan(a) and math.isnan(b))}

    @invariant()
    def the_rig_is_where_the_model_is(self) -> None:
        if not hasattr(self, "rig"):
            return
        status = self.control.status()
        assert (status["tick"], status["ticks"]) == (self.tick, self.ticks)
        assert status["held"] == self.held
        assert self.control.faults() == {"fault.weak": self.fault}
        if not self.wanted:
            assert status["state"] == self.state
            assert status["safe"] == (self.state == "safe") and bool(status["cause"]) == (self.state == "safe")

    def teardown(self) -> None:
        if not hasattr(self, "holder"):
            return
        with self.folder:
            result = self.holder.end()
            info = read_run_info(result.out)
            assert info is not None and info.state == "ended"
            assert result.stats.clock.ticks == self.ticks
            assert result.stats.safe_state.latched == (self.state == "safe")
            if self.ticks:
                again = replay(result.out)
                assert again.passed and again.hash_equal and again.ticks == self.ticks, again


TestRigLife = RigLife.TestCase
TestRigLife.settings = settings(
    derandomize=True, deadline=None, database=None, max_examples=12, stateful_step_count=25,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
