"""Databases of configs/can against the facts of rt_tests/reference/can, field by field: each difference is a line.

    python rt_tests/judges/can_facts.py [--configs FOLDER] [DATABASE ...]

Compared are identifiers, lengths, periods, places, signs and scalings that a recording, a maker's list or a second
public database gives. Status 1 when there is a difference.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import cantools
from judgetools.facts import ROOT, SOURCES, differences, facts


def main() -> int:
    """See the head of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("databases", nargs="*", metavar="DATABASE", help=f"default: {' '.join(SOURCES)}")
    parser.add_argument("--configs", type=Path, default=ROOT / "configs" / "can", help="folder of the databases")
    given = parser.parse_args()
    wrong = 0
    for name in given.databases or SOURCES:
        known = facts(name)
        database = cantools.database.load_file(given.configs / f"{name}.dbc", strict=False)
        found = differences(name, database.messages)
        wrong += len(found)
        n = sum(len(m.fields) for m in known)
        print(f"{name}: {len(known)} messages, {n} fields compared, {len(found)} differences")
        print("".join(f"  {line}\n" for line in found), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
