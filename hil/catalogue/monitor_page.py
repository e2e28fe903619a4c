"""docs/monitors.md: what every drive is held to by itself, from the catalogue of the monitors."""

from __future__ import annotations

from torqueloop.hil.monitors.catalogue import CLOSED_SHARE, GEAR_S, MONITORS, PERIOD_S, SETTLE_S, Monitor

PAGE = """# Monitors

Made by `python -m torqueloop.hil.catalogue docs`; do not edit.

Monitors judge every run by the files of gearbox, car and rig. You write nothing for this. The files say which elements
are closed in which gear, what the control unit reports and requests, and what it receives. Monitors are active on the
real and on the virtual clock, in scenarios, in studies and in offline runs. The report begins with one sentence that
says what the gearbox did. Then it shows the gears over time, the shifts, and the monitors that failed.

    In D the car drove backwards from 2.45 s on: A+B+D are closed, which is R.

## Verdict

| state | meaning |
|---|---|
| passed | The monitor had something to judge, and its limit was kept. |
| failed | The run fails (exit status 1). |
| follows | It failed because of an earlier failure, which the text names. The run fails because of that one. |
| waived | It failed, and the rig file gives a reason why this does not count. The report shows the reason. |
| not reached | There was nothing to judge: no signal of this kind, or no such situation in the run. |

Each monitor is a case in the suite `monitors` of `junit.xml`; follows, waived and not reached are skipped cases.

    [monitors]
    limit = {{ shift_hard = 4.0 }}                             # another limit
    waive = {{ lock_up = "this car has no lock-up clutch" }}   # its failure does not count
    reaches = "top"                                          # the whole run must reach the highest gear

[rig_file.md](rig_file.md) lists all keys. `reaches` applies to a whole run with the driver of the rig file. It does not
apply to a shorter run, a scenario or another driver. Use gates for limits that only you know.

## In the tick

The tick of a rig computes these monitors every {period:g} ms. They take 269 of its 9 319 instructions at the start of a
drive and 298 of 8 889 in a shift (`python scripts/bench/step_baseline.py`). `monitor.NAME` is a signal that is 0 and
latches at 1. `monitor.gear` is the engaged gear (-1: reverse, 0: none). Conditions of steps, checks, faults and tests
may use these signals: `when = "monitor.tie_up == 1"`. The report computes the monitors anew from the recording, by the
code of the tick.

An element is closed from {share:g} % of its largest capacity on. The ideal gear train of the gearbox file decides what
a set of closed elements is: a gear, too few elements (the output is not driven), too many elements (they work against
each other), or another ratio. A free wheel counts while it blocks. A gear is engaged if
|w_in - i w_out| <= 0.002 |w_in| + 0.2 rad/s for {gear:g} ms. With too few closed elements, a gear can stay engaged but
not become engaged. At standstill, and while a free wheel is overrun, the closed elements alone decide. After a change
of the lever, the elements have {settle:g} s before they are judged.

{online}
## From the recording

{recorded}
A run with injected faults is judged like any other, except that a speed which such a fault changes is not compared with
the true one. In the safe state the rig itself opens the elements, so nothing is judged, and the report begins with the
cause of the safe state. If the machine interrupted the run, the first sentence begins with "Inconclusive"
([safe_state.md](safe_state.md)). A monitor whose signals are not recorded (`[record] signals`) is "not reached".

## How they are tested

`python rt_tests/hil/planted.py` plants 31 defects, one after the other, in control units in C and in soft ones. It
prints which monitors fail and with which sentence; each defect must fail exactly one monitor. `--clock real` runs them
in real time, and repeats a run that the machine interrupted. `torqueloop scenario --random 200 --seed 7 --rig
desk_6hp26` drives a rig at random, over hills in every second drive, and no monitor may fail.
"""


def pages() -> dict[str, str]:
    """File name -> page."""
    online = _table([m for m in MONITORS if m.online])
    recorded = _table([m for m in MONITORS if not m.online])
    text = PAGE.format(share=100 * CLOSED_SHARE, gear=1e3 * GEAR_S, period=1e3 * PERIOD_S, settle=SETTLE_S,
                       online=online, recorded=recorded)  # fmt: skip
    return {"monitors.md": text}


def _table(monitors: list[Monitor]) -> str:
    rows = ["| monitor | judged quantity | limit | longer than | reason |", "|---|---|---|---|---|"]
    for m in monitors:
        unit = "" if m.unit == "1" else f" {m.unit}"
        hold = f"{m.hold_s:g} s" if m.hold_s else ""
        rows.append(f"| `{m.name}` | {m.value} | {m.limit:g}{unit} | {hold} | {m.reason} |")
    return "\n".join(rows) + "\n"
