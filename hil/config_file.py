"""Read a TOML file into a pydantic model; a mistake becomes a ConfigError that names its place and what is allowed."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from torqueloop.core.errors import ConfigError, MissingValueError, RangeError, UnknownKeyError, did_you_mean

Model = TypeVar("Model", bound="ConfigTable")


class BadValue(ValueError):
    """Raised by validators of config models; the place in the file is added by `validate`."""

    def __init__(
        self,
        problem: str,
        *,
        key: str | None = None,
        value: Any = None,
        allowed: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(problem)
        #: what becomes the user's error
        self.error = ConfigError(problem, key=key, value=value, allowed=allowed, hint=hint)


class ConfigTable(BaseModel):
    """A table of a configuration file: unknown keys are errors, values are not converted, numbers are finite."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    #: where the values of this table come from: one text, or key -> text
    source: str | dict[str, str] | None = None


def read_toml(path: str | Path) -> dict[str, Any]:
    """The file as nested dicts; ConfigError if it is missing or not TOML."""
    path = Path(path)
    try:
        with path.open("rb") as stream:
            return tomllib.load(stream)
    except FileNotFoundError:
        raise ConfigError("file not found", file=str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read: {error}", file=str(path)) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML: {error}", file=str(path)) from None


def load_config(path: str | Path, model: type[Model]) -> Model:
    """Read and check a configuration file."""
    return validate(read_toml(path), model, str(path))


def validate(data: dict[str, Any], model: type[Model], file: str) -> Model:
    """Check data as if read from `file`."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _translate(error, model, file) from None


def _translate(error: ValidationError, model: type[BaseModel], file: str) -> ConfigError:
    """The first mistake pydantic found as our error; how many more there are goes into the hint."""
    found = error.errors(include_url=False)
    first = found[0]
    # keys only: drop the tags pydantic adds for the branches of unions
    place = [
        str(part) for part in first["loc"] if not (isinstance(part, str) and part.startswith(("function-", "tagged-")))
    ]
    table, key = ".".join(place[:-1]) or None, place[-1] if place else None
    more = f"{len(found) - 1} more mistake(s) in this file" if len(found) > 1 else None
    where: dict[str, Any] = {"file": file, "table": table, "key": key}
    kind, context = first["type"], first.get("ctx", {})
    if kind == "extra_forbidden":
        known = _fields_at(model, first["loc"][:-1])
        return UnknownKeyError(
            "unknown key '{key}'", **where, value=first["input"], hint=_join(did_you_mean(str(key), known), more)
        )
    if kind == "missing":
        return MissingValueError("missing key '{key}'", **where, allowed=_allowed_at(model, first["loc"]), hint=more)
    if kind == "value_error":
        cause = context.get("error")
        if isinstance(cause, BadValue):
            if cause.error.key is not None:  # raised for the table as a whole
                table = ".".join(place) or None
            return cause.error.located(file=file, table=table, key=key)
        return ConfigError(f"{{key}}: {cause}", file=file, table=table, key=key, value=first["input"], hint=more)
    bounds = _bounds(context) or first["msg"].removeprefix("Input should be ")
    text = "{key} = {value} is not allowed" if key is not None else "wrong value"
    return RangeError(text, **where, value=first["input"], allowed=bounds, hint=more)


def _join(*texts: str | None) -> str | None:
    return "; ".join(text for text in texts if text) or None


def _bounds(context: dict[str, Any]) -> str | None:
    words = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    return ", ".join(f"{sign} {context[name]}" for name, sign in words.items() if name in context) or None


def _fields_at(model: Any, location: tuple[Any, ...]) -> list[str]:
    """Names of the keys the table at `location` knows."""
    found = _model_at(model, location)
    return [field.alias or name for name, field in found.model_fields.items()] if found is not None else []


def _allowed_at(model: Any, location: tuple[Any, ...]) -> str | None:
    found = _model_at(model, location[:-1])
    if found is None:
        return None
    for name, field in found.model_fields.items():
        if location[-1] in (name, field.alias):
            limits = ", ".join(str(item) for item in field.metadata)
            return f"{getattr(field.annotation, '__name__', field.annotation)} {limits}".strip()
    return None


def _model_at(model: Any, location: tuple[Any, ...]) -> type[BaseModel] | None:
    """Follow keys and indices through nested models, dicts and lists to the model that describes a table."""
    for part in location:
        if isinstance(model, type) and issubclass(model, BaseModel):
            fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
            model = fields.get(part)
        else:
            return None
        model = _inner_model(model)
    return model if isinstance(model, type) and issubclass(model, BaseModel) else None


def _inner_model(annotation: Any) -> Any:
    """list[M], dict[str, M], M | None -> M."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        inner = _inner_model(argument)
        if inner is not None and isinstance(inner, type):
            return inner
    return annotation if isinstance(annotation, type) else None
