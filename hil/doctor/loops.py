"""Outputs of I/O devices that are wired to inputs: what the inputs read of them, how late, and what corrects it."""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from torqueloop.hil.doctor.finding import Finding
from torqueloop.hil.io.library import OpenDevice
from torqueloop.hil.link.endpoints import PeerError
from torqueloop.hil.rig.devices.io import IoCards, IoInput
from torqueloop.hil.rig.resolve.plan import RigPlan

#: values that are written, from the lower to the upper end that both channels have
LEVELS = 9
#: readings of each, whose mean and scatter count, and the time between two of them [s]
READINGS, BETWEEN_S = 25, 1e-3
#: a channel is given this long after a change [s]: outputs and filters of slow cards need some ms
SETTLE_S = 0.05
#: changes whose delay is measured, and the longest delay [s]
CHANGES, LATEST_S = 20, 0.5
#: a slope outside of this range is a wrong wire or a wrong scaling, and no inaccuracy
SLOPES = (0.8, 1.25)


class Loops:
    """The devices of a rig; outputs that are not driven have their safe values. PeerError: a device does not open."""

    def __init__(self, stack: ExitStack, plan: RigPlan, folder: Path, simulated: bool) -> None:
        self.cards = plan.device(IoCards)
        self.open = {name: OpenDevice(setup) for name, setup in self.cards.setups(folder, simulated).items()}
        for device in self.open.values():
            stack.callback(device.close)

    def write(self, output: str, value: float) -> None:
        """Drive one output, "CARD.NAME"."""
        card, _, name = output.partition(".")
        setup = self.open[card].setup
        self.open[card].write([value if c.name == name else c.safe for c in setup.outputs])

    def read(self, card: str, name: str, after_s: float = 0.0) -> float:
        """One input as the card gives it, after a time."""
        if after_s:
            time.sleep(after_s)
        setup = self.open[card].setup
        return self.open[card].read()[[c.name for c in setup.inputs].index(name)]

    def measured(
        self, card: str, name: str, channel: IoInput, output: str
    ) -> tuple[Finding, tuple[float, float] | None]:
        """One loop; None: it has no gain and offset that correct it."""
        other = self.cards.output(output)
        low, high = max(channel.low, other.low), min(channel.high, other.high)
        written = np.linspace(low, high, LEVELS)
        seen = []
        for value in written:
            self.write(output, float(value))
            time.sleep(SETTLE_S)
            seen.append([self.read(card, name, after_s=BETWEEN_S) for _ in range(READINGS)])
        means, noise = np.mean(seen, axis=1), float(np.std(seen, axis=1).max())
        label = f"loop {output} -> {card}.{name}"
        two_values = bool(np.isin(means, (channel.low, channel.high)).all()) and means[0] < means[-1]
        # of a digital channel only the ends count
        slope, offset = (
            np.polyfit(written, means, 1) if not two_values else ((means[-1] - means[0]) / (high - low), 0.0)
        )
        if not SLOPES[0] <= slope <= SLOPES[1]:
            text = f"reads {means[0]:.6g} .. {means[-1]:.6g} {channel.unit} of {low:g} .. {high:g}"
            return Finding(label, "fail", text, "is it wired, are pins exchanged, is the unit right?"), None
        delays = self.delays(card, name, output, (low, high), (float(means[0]), float(means[-1])))
        values = {"latency_p50_s": statistics.median(delays), "latency_max_s": max(delays)}
        late = f"latency {1e6 * values['latency_p50_s']:.0f} us, largest {1e6 * values['latency_max_s']:.0f} us"
        if two_values:
            return Finding(label, "ok", f"both values; {late}", values=values), None
        left = float(np.abs(means - (slope * written + offset)).max())
        # what is read is corrected: written = gain * read + offset
        gain, offset = float(1.0 / slope), float(-offset / slope)
        values |= {"gain": gain, "offset": offset, "noise": noise, "nonlinearity": left}
        text = (f"gain {gain:.6f}, offset {offset:+.4g} {channel.unit}, noise {noise:.2g} {channel.unit} rms, "
                f"{left:.2g} {channel.unit} beside the line; {late}")  # fmt: skip
        return Finding(label, "ok", text, values=values), (gain, offset)

    def delays(
        self, card: str, name: str, output: str, ends: tuple[float, float], read: tuple[float, float]
    ) -> list[float]:
        """Times from a written change to the first reading behind the middle [s]."""
        found, middle = [], 0.5 * (read[0] + read[1])
        for k in range(CHANGES + 1):
            up = k % 2 == 1
            begin = time.perf_counter()
            self.write(output, ends[up])
            while (self.read(card, name) > middle) != up:
                if time.perf_counter() - begin > LATEST_S:
                    raise PeerError(f"{card}.{name}: no change within {LATEST_S} s")
            found.append(time.perf_counter() - begin)
            time.sleep(SETTLE_S)
        # the first one begins from where the levels have ended
        return found[1:]


def loops(plan: RigPlan, folder: Path, simulated: bool, calibration: Path) -> list[Finding]:
    """Measure all loops that the rig file declares, and write their corrections: a rig file that extends this one."""
    found: list[Finding] = []
    lines = [f'kind = "rig"\nextends = "{plan.path.resolve()}"\n# written by torqueloop doctor --calibrate']
    wired = plan.device(IoCards).loops()
    if not wired:
        return [Finding("loops", "note", "no input has `loop`", "docs/io.md says how outputs are wired to inputs")]
    try:
        with ExitStack() as stack:
            all_loops = Loops(stack, plan, folder, simulated)
            for card, name, channel in wired:
                finding, correction = all_loops.measured(card, name, channel, str(channel.loop))
                found.append(finding)
                if correction is not None:
                    # of what the card gives: a correction that the rig has already is replaced
                    lines.append(f"[io.{card}.inputs.{name}]\ngain = {correction[0]!r}\noffset = {correction[1]!r}")
    except PeerError as error:
        return [*found, Finding("loops", "fail", str(error))]
    calibration.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [*found, Finding("calibration", "ok", f"{calibration}: run this file, it extends {plan.path.name}")]
