"""JSON schemas of the files a run leaves, as docs/schemas/ publishes them.

python -m torqueloop.hil.report.schemas DIR        write them
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from torqueloop.hil.report.write import ReportFile
from torqueloop.hil.results.files import schema
from torqueloop.hil.results.run import RunInfo


def schemas() -> dict[str, dict[str, Any]]:
    """File name -> schema."""
    return {
        "run.schema.json": schema(RunInfo, "run.json: which run this is, and its numbers"),
        "report.schema.json": schema(ReportFile, "report.json: a run and its judgement"),
    }


def text(made: dict[str, Any]) -> str:
    """A schema as it is published."""
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def main(folder: str) -> None:
    """Write all of them."""
    for name, made in schemas().items():
        (Path(folder) / name).write_text(text(made), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
