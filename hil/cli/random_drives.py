"""`torqueloop scenario --random N --seed S`: random sequences, the shortest that fails."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.cli.common import FAILED, OK, error_console, out_console, print_json
from torqueloop.hil.common.locate import locate

#: rig when none is named
DEFAULT_RIG = "desk_4hp22"


def random_drives(
    count: int, seed: int, scenarios: Sequence[str], rig: str | None, overrides: dict[str, Any], out: Path, jobs: int,
    as_json: bool,
) -> int:  # fmt: skip
    """Run them, shrink the first that fails, leave shrunk.toml and junit.xml; the exit status."""
    from torqueloop.hil.report.junit import Case, Suite, write_suites
    from torqueloop.hil.scenario.random_drive import (
        Move,
        SequenceResult,
        prepare,
        run_random,
        run_sequence,
        scenario_text,
        shrink,
    )
    from torqueloop.hil.scenario.scenario_tables import load_scenario

    if len(scenarios) > 1:
        raise ConfigError("{key}: {value} scenarios are named", key="random", value=len(scenarios),
                          allowed="one, whose rig, values and checks on the whole run are taken, or none")  # fmt: skip
    scenario = locate(scenarios[0], "scenarios") if scenarios else None
    if scenario is not None and rig is None:
        own = load_scenario(scenario).of_rig
    else:
        own = locate(rig or DEFAULT_RIG, "rigs")
    drive = prepare(own, scenario, overrides)
    began, simulated, failed, cases = time.monotonic(), 0.0, [], []
    for result in run_random(drive, count, seed, out, jobs):
        simulated += result.duration_s
        words = "; ".join(f"{name}: {text}" for name, text in result.failed.items())
        cases.append(Case(f"sequence {result.number} of seed {seed}", words or None))
        if result.failed:
            failed.append(result)
            if not as_json:
                out_console.print(Text.assemble(("failed", "bold red"), f" sequence {result.number}: {words}"),
                                  soft_wrap=True, highlight=False)  # fmt: skip
        if error_console.is_terminal:
            error_console.print(f"{result.number} of {count}, {len(failed)} failed", end="\r", highlight=False)
    took = time.monotonic() - began
    out.mkdir(parents=True, exist_ok=True)
    write_suites(out / "junit.xml", "torqueloop random sequences", [Suite(f"seed {seed}", cases)])
    numbers = [r.number for r in failed]
    told: dict[str, Any] = {"passed": not failed, "sequences": count, "seed": seed, "failed": numbers,
                            "simulated_s": simulated, "took_s": took}  # fmt: skip
    if failed:
        first = failed[0]

        def again(moves: Sequence[Move], folder: str = "shrinking") -> SequenceResult:
            return run_sequence(drive, first.number, moves, out / folder, True, hills)

        # on the level road, where it fails there as well
        hills: Sequence[tuple[float, float]] = ()
        if first.hills and not set(again(first.moves).failed) & set(first.failed):
            hills = first.hills
        best, runs = shrink(first, again)
        kept = again(best.moves, "shrunk")
        (out / "shrunk.toml").write_text(scenario_text(drive, kept, str(own.resolve())), encoding="utf-8")
        told |= {"shrunk": [str(m) for m in kept.moves], "shrunk_from": len(first.moves), "shrink_runs": runs,
                 "shrunk_fails": kept.failed, "file": str(out / "shrunk.toml")}  # fmt: skip
    if as_json:
        print_json(told)
        return FAILED if failed else OK
    if failed:
        words = f"sequence {first.number}: {len(first.moves)} moves shrunk to {len(kept.moves)} in {runs} runs"
        out_console.print(f"{words}, {out / 'shrunk.toml'}:", soft_wrap=True, highlight=False)
        for move in kept.moves:
            out_console.print(f"  {move}", soft_wrap=True, highlight=False)
        for name, text in kept.failed.items():
            out_console.print(f"  fails: {name}: {text}", soft_wrap=True, highlight=False)
    verdict = ("passed", "bold green") if not failed else ("failed", "bold red")
    counts = f": {count - len(failed)} of {count} sequences of seed {seed}; {simulated:.0f} s simulated in {took:.0f} s"
    out_console.print(Text.assemble(verdict, counts), soft_wrap=True, highlight=False)
    return FAILED if failed else OK
