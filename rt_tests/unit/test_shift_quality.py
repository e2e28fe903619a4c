"""Criteria of shifts on signals whose answers are known: drawn by hand, closed forms, the table of ISO 2631-1."""

from __future__ import annotations

import numpy as np
import pytest

from torqueloop.core.describe.errors import TorqueloopError
from torqueloop.hil.record.signals import Signals, signal_dtype
from torqueloop.hil.report import shift_quality as sq
from torqueloop.hil.report.analysis import Shift, gear_bands, shifts
from torqueloop.hil.report.jerk import HALF_S, jerk
from torqueloop.hil.report.scenario_checks import verdicts
from torqueloop.hil.results.scenario import ScenarioInfo, StepSpec
from torqueloop.hil.scenario.scenario_tables import Check

TICK_S = 1e-3
RATIOS = {"1": 2.0, "2": 1.0}


def recorded(**columns) -> Signals:
    names = [name.replace("__", ".") for name in columns]
    records = np.zeros(len(next(iter(columns.values()))), signal_dtype(len(names)))
    records["tick"] = np.arange(len(records))
    records["out"] = np.array(list(columns.values())).T
    return Signals.of(names, dict.fromkeys(names, "1"), TICK_S, records)


def upshift(flare: float = 0.0, hole: float = 0.0) -> Signals:
    """4 s; command at 1 s, old ratio until 1.3 s, new one from 1.8 s on. Output at 100 rad/s; the on-coming clutch
    begins to carry at 1.2 s and slips until 1.8 s."""
    t = (np.arange(4000) + 1) * TICK_S
    w_out = np.full(4000, 100.0)
    w_in = np.interp(t, [0, 1.3, 1.35, 1.4, 1.8, 4], [200, 200, 200 + flare, 200, 100, 100])
    on = np.interp(t, [0, 1.2, 1.2001, 1.3, 4], [0, 0, 50, 100, 100])
    slip = np.interp(t, [0, 1.3, 1.8, 4], [100, 100, 0, 0])
    a = np.where(t < 1.8, 3.0, 2.0) - hole * ((t > 1.5) & (t < 1.6))
    return recorded(
        turbine__w=w_in, out__w=w_out, car__a=a, TCU__gear_target=np.where(t <= 1.0, 1.0, 2.0),
        B__mode=np.where(t < 1.8, 1.0, 0.0), B__tau=on, B__w_rel=slip, B__p=on * 1e4,
        B__heat=np.cumsum(on * slip) * TICK_S, car__v=t,
    )  # fmt: skip


def judged(signals: Signals) -> sq.ShiftQuality:
    [quality] = sq.shift_quality(signals, shifts(gear_bands(signals, RATIOS), signals), RATIOS)
    return quality


def test_times_of_a_shift() -> None:
    q = judged(upshift())
    assert q.name == "1-2" and q.begin_s == pytest.approx(1.001, abs=1e-9)
    # the ratio holds within 2 per mille and 0.2 rad/s
    assert q.time == pytest.approx(0.8, abs=0.005) and q.fill == pytest.approx(0.2, abs=0.003)


def test_a_command_belongs_to_a_shift_for_two_seconds() -> None:
    """Of the changes of the target the last before the old ratio ends; one long before it is another shift's."""
    signals = upshift()
    for command, begin in ((1.0, 1.001), (1.25, 1.251), (1.5, 1.501), (3.0, None)):
        columns = {name.replace(".", "__"): signals[name] for name in signals.names}
        columns["TCU__gear_target"] = np.where(signals.t <= command + 1e-9, 1.0, 2.0)
        late = judged(recorded(**columns))
        assert late.begin_s == pytest.approx(shifts(gear_bands(signals, RATIOS))[0].begin_s if begin is None else begin)
    long = {name.replace(".", "__"): np.repeat(signals[name], [2500, *[1] * 3999]) for name in signals.names}
    long["TCU__gear_target"] = np.where(np.arange(6499) < 100, 1.0, 2.0)
    (shift,) = shifts(gear_bands(recorded(**long), RATIOS))
    assert shift.begin_s > 2.5 and judged(recorded(**long)).begin_s == pytest.approx(shift.begin_s)


def test_flare_tie_up_and_heat() -> None:
    assert judged(upshift()).flare == 0.0 and judged(upshift(flare=35.0)).flare == pytest.approx(35.0, rel=1e-3)
    assert judged(upshift()).tie_up == 0.0 and judged(upshift(hole=1.5)).tie_up == pytest.approx(0.5)
    t = np.arange(1000, 2300) * TICK_S
    on, slip = np.interp(t, [1.2, 1.2001, 1.3], [0, 50, 100]), np.interp(t, [1.3, 1.8], [100, 0])
    assert judged(upshift()).energy == pytest.approx(float(np.trapezoid(on * slip, t)), rel=0.01)


def plain(signals: Signals, shift: Shift, begin_s: float, end_s: float) -> dict[str, float]:
    """The criteria of a shift by their definitions in docs/shift_quality.md, sample by sample; end_s: of its window."""
    t, near, ratios = signals.t, 1e-6, {"1": 2.0, "2": 1.0, "R": -3.0}

    def mean(x: np.ndarray, first_s: float, last_s: float) -> float:
        return float(np.mean([v for v, at in zip(x, t, strict=True) if first_s - near <= at < last_s - near]))

    inside = [k for k, at in enumerate(t) if begin_s - near <= at <= shift.end_s + near]
    window = [k for k, at in enumerate(t) if begin_s - near <= at <= end_s + near]
    w_in, w_out, a = signals["turbine.w"], signals["out.w"], signals["car.a"]
    most = max(abs(ratios[shift.gear_from]), abs(ratios[shift.gear_to]))
    levels = mean(a, begin_s - 0.1, begin_s), mean(a, shift.end_s + 2 * near, shift.end_s + 0.1 + 2 * near)
    heats = [signals[f"{e}.heat"][window[-1]] - signals[f"{e}.heat"][window[0]] for e in ("A", "B", "D")]
    slope = {k: float(np.polyfit(t[k - 29 : k + 30], a[k - 29 : k + 30], 1)[0]) for k in window}
    carried = {"A": np.abs(signals["A.tau"]), "B": np.abs(signals["B.tau"])}
    on = carried["A" if shift.gear_to == "R" else "B"][inside[0] : inside[-1] + 101]
    dose = sq.weighted_fore_and_aft(a[window[0] - 3000 : window[-1] + 3001], TICK_S)[3000:-3000]
    return {
        "time": shift.end_s - begin_s,
        "fill": t[inside[0] + next(k for k, x in enumerate(on) if x >= 0.05 * on.max())] - begin_s,
        "flare": max(0.0, *(abs(w_in[k]) - most * abs(w_out[k]) for k in inside)),
        "tie_up": max(0.0, min(levels) - min(a[inside[0] : inside[-1] + 1])),
        "jerk": max(abs(x) for x in slope.values()), "energy": sum(heats), "energy_max": max(heats),
        "vdv": float(np.sum(np.abs(dose) ** 4) * TICK_S) ** 0.25,
    }  # fmt: skip


def two_shifts(second_s: float = 5.1) -> tuple[Signals, list[Shift], list[float]]:
    """12 s: 1-2 from 4.3 to 4.8 s, commanded at 4 s; 2-R from 5.4 to 5.8 s, commanded at second_s, in a car that rolls
    backwards. The first window ends at the second command, the second one 0.5 s behind its sync."""
    t = (np.arange(12000) + 1) * TICK_S
    rng, none = np.random.default_rng(4), np.zeros(12000)
    a = np.convolve(rng.normal(size=12000 + 40), np.ones(41) / 10.0, "valid") + np.where(t > 5.0, -1.0, 2.0)
    a[4500:4550] -= 3.0
    a[5500:5550] -= 4.0
    a[4950:4960] += 20.0
    w_out = np.interp(t, [4.8, 5.4], [100.0, -100.0])
    w_in = np.interp(t, [0, 4.3, 4.4, 4.5, 4.8, 5.4, 5.5, 5.6, 5.8], [200, 200, 260, 200, 100, -100, -390, 250, 300])
    b_on = np.interp(t, [4.2, 4.2001, 4.3, 5.2, 5.3], [0, -4, -100, -100, 0])
    a_on = np.interp(t, [5.35, 5.45, 5.9], [0, 100, 400])
    slip_a, slip_b = np.interp(t, [5.4, 5.8], [-300, 0]), np.interp(t, [4.3, 4.8, 5.3, 5.4], [-100, 0, 0, 50])
    signals = recorded(
        engine__w=3 * w_in + 5, turbine__w=w_in, out__w=w_out, car__a=a,
        TCU__gear_target=np.where(t < 4.0005, 1.0, np.where(t < second_s + 5e-4, 2.0, -1.0)),
        A__mode=np.where(t < 5.8, 1.0, 0.0), A__tau=a_on, A__w_rel=slip_a, A__p=a_on * 1e4,
        A__heat=7.0 + np.cumsum(np.abs(a_on * slip_a)) * TICK_S,
        # sticks in the last sample in which an element is looked for, 0.1 s behind the sync
        B__mode=np.where(t < 4.8995, 1.0, 0.0), B__tau=b_on, B__w_rel=slip_b, B__p=-b_on * 1e4,
        B__heat=9.0 + np.cumsum(np.abs(b_on * slip_b)) * TICK_S,
        # closes with the shifts without a slip; not pressed; open: none of them comes on
        C__mode=np.where(t < 4.0, 1.0, 0.0), C__tau=none + 500.0, C__w_rel=none, C__p=none,
        F__mode=np.where(t < 4.8, 1.0, 0.0), F__tau=none + 500.0, F__w_rel=none + 50.0,
        # drags for ever, in the last sample as well
        D__mode=none + 1.0, D__tau=none + 2.0, D__w_rel=none + 30.0, D__p=none, D__heat=60.0 * t,
    )  # fmt: skip
    return signals, [Shift("1", "2", 4.3, 4.8), Shift("2", "R", 5.4, 5.8)], [4.001, second_s + 1e-3]


@pytest.mark.parametrize("second_s", [5.1, 4.6])
def test_every_criterion_of_two_shifts_is_that_of_its_definition(second_s: float) -> None:
    """The window of a shift ends with the next command, but not before the shift itself has ended."""
    signals, both, commands = two_shifts(second_s)
    found = sq.shift_quality(signals, both, {"1": 2.0, "2": 1.0, "R": -3.0})
    for q, shift, begin_s, end_s in zip(found, both, commands, (max(4.8, commands[1]), 6.3), strict=True):
        assert (q.name, q.begin_s, q.end_s) == (
            f"{shift.gear_from}-{shift.gear_to}",
            pytest.approx(begin_s),
            shift.end_s,
        )
        for criterion, value in plain(signals, shift, begin_s, end_s).items():
            assert getattr(q, criterion) == pytest.approx(value, rel=1e-9), (q.name, criterion)
        assert q.comfort == pytest.approx(10.0 - 3.0 * np.log10(q.vdv / 0.05))
    worst = sq.quality_metrics(found)
    assert worst["shift_quality_flare_worst_radps"] == max(q.flare or 0.0 for q in found) > 60.0
    assert worst["shift_quality_comfort_min"] == min(q.comfort or 0.0 for q in found)


def test_a_shift_at_either_end_of_a_recording_takes_what_there_is() -> None:
    """The recording begins 1 s before the first command, and ends 50 ms behind the second sync: less than the 0.1 s in
    which an element is looked for, and than the 0.5 s of the window."""
    signals, both, commands = two_shifts()
    cut = signals.part(3000, 5850)
    whole = sq.shift_quality(signals, both, {})
    for q, other, drag in zip(sq.shift_quality(cut, both, {}), whole, (0.0, 60.0 * 0.45), strict=True):
        assert (q.begin_s, q.time, q.flare) == (other.begin_s, other.time, None)
        assert q.fill == pytest.approx(other.fill, abs=0.005)  # of the largest torque that was recorded
        assert q.vdv == pytest.approx(other.vdv, rel=0.1) and q.energy == pytest.approx(other.energy - drag, rel=1e-9)
    # a shift whose command was not recorded begins where the old ratio ends; so does one that was asked for too early
    assert [q.begin_s for q in sq.shift_quality(signals.part(4100, 12000), both, {})] == [
        4.3,
        pytest.approx(commands[1]),
    ]
    # of two commands the one before the old ratio ends, up to 2 s before
    (q,) = sq.shift_quality(signals, [Shift("1", "2", 4.9, 6.1)], {})
    assert q.begin_s == pytest.approx(commands[0])
    late = [Shift("1", "2", 6.2, 6.9), Shift("2", "1", 7.3, 7.5)]
    assert [q.begin_s for q in sq.shift_quality(signals, late, {})] == [pytest.approx(commands[1]), 7.3]


def test_a_straight_line_goes_on_beyond_both_ends_of_a_recording() -> None:
    """The band limit at 0.4 Hz takes a constant and a slope away; a corner or a jump at an end would pass."""
    line = 3.0 - 0.7 * np.arange(20000) * TICK_S
    found = sq.weighted_fore_and_aft(line, TICK_S)
    assert len(found) == len(line) and np.abs(found).max() < 1e-6


def test_nothing_is_told_of_what_was_not_recorded() -> None:
    t = (np.arange(4000) + 1) * TICK_S
    bare = recorded(turbine__w=np.interp(t, [1.3, 1.8], [200, 100]), out__w=np.full(4000, 100.0))
    q = judged(bare)
    assert q.begin_s == pytest.approx(1.3, abs=0.01), "without a target gear: the end of the old ratio"
    assert (q.fill, q.jerk, q.vdv, q.energy, q.comfort) == (None,) * 5
    assert sq.quality_metrics([q])["shift_quality_jerk_worst_mps3"] is None
    assert sq.shift_quality(None, [], {}) == [] and set(sq.quality_metrics([]).values()) == {None}


@pytest.mark.parametrize("f", [0.5, 3.0, 10.0, 20.0])
def test_jerk_of_a_sine(f: float) -> None:
    """Amplitude: 2 pi f times 3 (sin x - x cos x) / x^3, x = 2 pi f HALF_S; samples stand for half a tick more."""
    t = np.arange(0, 4, TICK_S)
    x = 2 * np.pi * f * (HALF_S + TICK_S / 2)
    expected = 2 * np.pi * f * 3 * (np.sin(x) - x * np.cos(x)) / x**3
    found = jerk(np.sin(2 * np.pi * f * t), TICK_S)
    assert len(found) == len(t) and np.abs(found[100:-100]).max() == pytest.approx(expected, rel=0.01)


def test_jerk_of_a_ramp_and_of_few_samples() -> None:
    assert np.allclose(jerk(np.arange(500) * 0.004, TICK_S), 4.0)
    # at both ends the line through the first and the last samples
    a, n = np.cumsum(np.random.default_rng(3).normal(size=300)), round(HALF_S / TICK_S)
    found, t = jerk(a, TICK_S), np.arange(2 * n + 1) * TICK_S
    assert np.allclose(found[: n + 1], np.polyfit(t, a[: 2 * n + 1], 1)[0])
    assert np.allclose(found[-n - 1 :], np.polyfit(t, a[-2 * n - 1 :], 1)[0])
    assert np.allclose(jerk(np.array([1.0, 1.5, 2.0]), TICK_S), 500.0) and list(jerk(np.zeros(1), TICK_S)) == [0.0]


#: ISO 2631-1:1997, table 3: frequency [Hz], W_d
@pytest.mark.parametrize(("f", "weight"), [(0.5, 0.853), (1.0, 1.011), (2.0, 0.890), (4.0, 0.512), (8.0, 0.253)])
def test_weighting_is_that_of_the_standard(f: float, weight: float) -> None:
    t = np.arange(0, 20, TICK_S)
    found = sq.weighted_fore_and_aft(np.sin(2 * np.pi * f * t), TICK_S)[5000:-5000]
    assert np.sqrt(2 * np.mean(found**2)) == pytest.approx(weight, rel=0.01)


def test_constant_acceleration_is_no_dose_and_comfort_falls_with_it() -> None:
    assert np.abs(sq.weighted_fore_and_aft(np.full(5000, 3.0), TICK_S)).max() < 1e-6
    assert [sq.comfort(x) for x in (0.0, 0.05, 0.5, 5.0, 1e6)] == pytest.approx([10.0, 10.0, 7.0, 4.0, 1.0])


# --- in checks of scenarios ---------------------------------------------------------------------------------------


def verdict(quality: str, shift: str = "1-2", during: str = "", **more):
    check = Check(name="good", shift=shift, quality=quality, during=during, **more).spec()
    signals = upshift(flare=35.0)
    info = ScenarioInfo("s", steps=[StepSpec("drive")] if during else [], checks=[check])
    if during:
        step = {"scenario__step": np.where(signals.t < 2.5, 0.0, 1.0)}
        old = {n.replace(".", "__"): signals[n] for n in signals.names}
        signals = recorded(**old, **step)
    found = sq.shift_quality(signals, shifts(gear_bands(signals, RATIOS), signals), RATIOS)
    return verdicts(info, signals, found)[-1]


def test_a_check_of_shift_quality() -> None:
    assert verdict("time < 1 s and fill < 0.25 s and flare < 400 rpm").passed
    assert verdict("comfort > 1", "*").passed
    failed = verdict("time < 1 s and flare < 300 rpm")
    assert not failed.passed and failed.t_s == pytest.approx(1.001)
    assert failed.text == "1-2, time < 1 s and flare < 300 rpm: time = 0.798 s, flare = 35 rad/s"


def test_a_check_without_its_shift_fails_and_says_which_there_were() -> None:
    assert verdict("time < 1 s", "3-2").text == "no shift 3-2 in the run; shifts: 1-2 at 1.001 s"
    assert verdict("time < 1 s", "*", "drive").text.startswith("no shift while step 'drive' ran; shifts: 1-2")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"shift": "1-2", "quality": "flair < 3"}, "did you mean 'flare'"),
        ({"shift": "1-2", "quality": "flare < 3 bar"}, "flare is in rad/s, not in Pa"),
        ({"shift": "1-2", "quality": "flare < high"}, "no number"),
        ({"shift": "1-2"}, "belong together"),
        ({"quality": "flare < 3"}, "one of these"),
        ({"shift": "1-2", "quality": "flare < 3", "always": "car.v > 1"}, "one of these"),
    ],
)
def test_a_mistake_is_named(keys: dict, words: str) -> None:
    with pytest.raises((TorqueloopError, ValueError)) as caught:
        Check(name="x", **keys).spec()
    assert words in str(caught.value), str(caught.value)
