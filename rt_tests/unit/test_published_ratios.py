"""Ratios of tooth numbers against those that makers print, which are rounded or cut off to three decimals."""

from __future__ import annotations

from pathlib import Path

import pytest

import torqueloop as tl
from torqueloop.core.analyse.gearbox_report import agrees, gearbox_report
from torqueloop.hil.cli.file_check import check_file

CONFIGS = Path(tl.__file__).parent / "configs"


@pytest.mark.parametrize(
    ("ratio", "published", "how"),
    [
        (121 / 79, 1.532, "rounded"), (121 / 79, 1.531, "cut off"), (121 / 79, 1.530, None), (121 / 79, 1.533, None),
        (-2.0866, -2.087, "rounded"), (-2.0866, -2.086, "cut off"), (-2.0866, -2.085, None), (1.0, 1.0, "rounded"),
    ],
)  # fmt: skip
def test_a_published_ratio_may_be_rounded_or_cut_off(ratio: float, published: float, how: str | None) -> None:
    assert agrees(ratio, published) == how


def test_a_ratio_that_is_cut_off_is_accepted_and_said(tmp_path: Path) -> None:
    text = (CONFIGS / "gearboxes" / "zf_4hp22.toml").read_text()
    ratio = float(gearbox_report("zf_4hp22").gears["R"].ratio or 0)
    said = f"ratio = {gearbox_report('zf_4hp22').gears['R'].published}"
    for shown, remark in ((int(ratio * 1000) / 1000, "cut off"), (round(ratio - 2e-3, 3), "differs")):
        file = tmp_path / f"{remark.replace(' ', '_')}.toml"
        file.write_text(text.replace(said, f"ratio = {shown}"))
        assert remark in gearbox_report(file).text()
        assert check_file(file).ok == (remark == "cut off")
