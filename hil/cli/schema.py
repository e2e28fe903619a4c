"""What editors need to complete and check configuration files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torqueloop.core.describe.errors import ConfigError
from torqueloop.hil.cli.common import command, out_console


@command
def schema(
    kind: Annotated[str | None, typer.Argument(metavar="[KIND]", help="rig, tcu, vehicle ...")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write all schemas there, and DIR/.taplo.toml.")
    ] = None,
) -> None:
    """Print the JSON schema of a kind of configuration file, for editors; or write all, with a set-up for taplo."""
    from torqueloop.hil.catalogue.schema import schemas, taplo

    made = schemas()
    if kind is not None and f"{kind}.schema.json" not in made:
        allowed = ", ".join(name.partition(".")[0] for name in made)
        raise ConfigError("there is no kind of file {value}", key="kind", value=kind, allowed=allowed)
    if (kind is None) == (out is None):
        raise ConfigError("needs either KIND or --out DIR", key="kind", value=kind)
    if kind is not None:
        typer.echo(made[f"{kind}.schema.json"], nl=False)
    if out is not None:
        (out / "schemas").mkdir(parents=True, exist_ok=True)
        for name, text in made.items():
            (out / "schemas" / name).write_text(text, encoding="utf-8")
        (out / ".taplo.toml").write_text(taplo("schemas"), encoding="utf-8")
        out_console.print(f"written: {len(made)} schemas in {out / 'schemas'}, {out / '.taplo.toml'}", soft_wrap=True)
