"""What a run was asked to show: the steps of its scenario and the checks on them, as run.json keeps them."""

from __future__ import annotations

from dataclasses import field

from torqueloop.core.describe.classes import dataclass

#: what a check asks of its condition: at every instant, at no instant, at one (or for `for_s`), at the last
KINDS = ("always", "never", "eventually", "at_end")
#: a check of another kind: its condition is one on the criteria of shifts (hil/report/shift_quality.py)
SHIFT = "shift"


@dataclass(frozen=True)
class StepSpec:
    """One step."""

    name: str
    #: condition that begins it; "": none
    when: str = ""
    for_s: float = 0.0
    #: time after the end of the step before by which it must have begun [s]
    within_s: float = 60.0


@dataclass(frozen=True)
class CheckSpec:
    """One check."""

    name: str
    #: one of KINDS, or SHIFT
    kind: str
    #: condition on signals (hil/common/conditions.py)
    condition: str
    #: step in which it is looked at; "": in the whole run
    during: str = ""
    #: part of that time, counted from its beginning [s]; until_s None: to its end
    from_s: float = 0.0
    until_s: float | None = None
    #: eventually: it must hold so long without a break [s]
    for_s: float = 0.0
    #: SHIFT: which shifts, "3-2", or "*" for all
    shift: str = ""


@dataclass(frozen=True)
class ScenarioInfo:
    """The scenario of a run."""

    name: str
    #: file it was read from
    file: str = ""
    #: values of its parameters in this run
    parameters: dict[str, float] = field(default_factory=dict)
    steps: list[StepSpec] = field(default_factory=list)
    checks: list[CheckSpec] = field(default_factory=list)
