"""python -m torqueloop.hil.catalogue docs        write the pages, and the schemas into docs/schemas

A test holds that docs/ has what this writes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from torqueloop.hil.catalogue import monitor_page
from torqueloop.hil.catalogue.pages import pages
from torqueloop.hil.catalogue.schema import schemas


def generated() -> dict[str, str]:
    """Path below the folder -> content."""
    return {**pages(), **monitor_page.pages(), **{f"schemas/{name}": made for name, made in schemas().items()}}


def main(folder: Path) -> None:
    """Write all of it."""
    for name, content in generated().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
