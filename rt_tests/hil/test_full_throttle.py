"""The 3 to 4 shift of Otter, Dempsey, Schlegel 2000, section 7: what happens to C11, in the order the paper tells."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "figures"))

from full_throttle import drive, moments


def test_c11_turns_slides_and_reaches_full_slip_as_the_paper_tells() -> None:
    """Fig. 12: commanded from 18 s, slides at 18.53 s, full slip at 18.65 s, command 0 at 18.7 s (another car)."""
    r = drive()
    found = moments(r)
    assert 18.0 < found.falls_s <= 18.002
    assert found.falls_s < found.turns_s < found.slides_s < found.full_slip_s < found.gone_s
    assert abs(found.slides_s - 18.53) < 0.1 and abs(found.full_slip_s - 18.65) < 0.1
    assert r["C11.tau"].min() < -50.0, "the change of sign that optimal control would avoid"
    assert r.energy().relative_residual < 1e-9
