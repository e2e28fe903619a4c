"""Read a TOML file into a pydantic model; a mistake becomes a ConfigError that names its place and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Strict, ValidationError

from torqueloop.core.describe.classes import dataclass
from torqueloop.core.describe.errors import ConfigError, MissingValueError, RangeError, UnknownKeyError, did_you_mean
from torqueloop.core.describe.ranges import Range, as_written, range_of_key

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
        self.error: ConfigError = ConfigError(problem, key=key, value=value, allowed=allowed, hint=hint)


def _folder_name(name: str) -> str:
    if not 0 < len(name) <= 100 or name[0] == "." or not name.isprintable() or set(name) & set("/\\"):
        raise BadValue("{key} = {value} is no name", value=name,
                       allowed="1 .. 100 printable characters without / and \\, the first one not a dot")  # fmt: skip
    return name


#: a name that becomes part of the name of a folder
FolderName = Annotated[str, AfterValidator(_folder_name)]


#: (x, y); a file has lists, and numbers stay strict
Point = Annotated[tuple[float, float], Strict(False)]


def rising(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points of a curve; BadValue where their first numbers do not rise strictly."""
    for (a, _), (b, _) in pairwise(points):
        if not b > a:
            raise BadValue("{key}: the first numbers do not rise at {value}", value=b, allowed="strictly rising")
    return points


#: points of a curve over x
Curve = Annotated[list[Point], AfterValidator(rising)]


@dataclass(frozen=True)
class InFile:
    """Marks a text that names a file: a path relative to the file it stands in, or the bare name of an installed one.

    Annotated[str, InFile("gearboxes")]: `folder` is that of the installed configurations. Annotated[Any,
    InFile("", "csv")]: key `csv` of a table, if the value is one, names the file.
    """

    folder: str
    key: str | None = None


class ConfigTable(BaseModel):
    """A table of a configuration file: unknown keys are errors, values are not converted, numbers are finite."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True
    )
    #: folder of the installed files of this kind (models of whole files)
    FOLDER: ClassVar[str] = ""
    #: types of JSON that may stand for this table in a file, where a validator takes them
    SHORT_FORMS: ClassVar[tuple[str, ...]] = ()

    #: Where the values of this table come from: one text, or key -> text.
    source: str | dict[str, str] | None = None


def validate(
    data: dict[str, Any], model: type[Model], file: str, file_of: Callable[[tuple[str, ...]], str] | None = None
) -> Model:
    """Check data as if read from `file`; file_of: the file a place in it comes from, where there are several."""
    try:
        made = model.model_validate(data)
    except ValidationError as error:
        raise _translate(error, model, file, file_of) from None
    # the model has refused what it knows to be a number; it passes free tables (inputs of a scenario, options)
    found = _out_of_range(data)
    if found is not None:
        place, value, allowed = found
        *table, key = map(str, place)
        where = file if file_of is None else file_of(tuple(map(str, place)))
        raise RangeError("{key} = {value} is not allowed", file=where, table=".".join(table) or None, key=key,
                         value=value, allowed=allowed)  # fmt: skip
    return made


def read_table(data: Mapping[str, Any], model: type[Model], file: str, table: str) -> Model:
    """Check a table that another model of `file` leaves open (options of a kind)."""
    try:
        return validate(dict(data), model, file)
    except ConfigError as error:
        error.table = table + (f".{error.table}" if error.table else "")
        raise


def _out_of_range(
    value: Any, held: tuple[Range, float] | None = None, key: str = ""
) -> tuple[tuple[Any, ...], Any, str] | None:
    """Keys and indices to the first number that is not finite, or outside of the range of the unit that ends its key
    (or the key of its table), with what is allowed; None: there is none."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not math.isfinite(value):
            return (), value, "a finite number"
        if held is not None and not held[0].holds(value * held[1]):
            return (), value, as_written(*held, key)
        return None
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        own = range_of_key(name) if isinstance(name, str) else None
        below = (item, own, name) if own is not None else (item, held, key)
        if (found := _out_of_range(*below)) is not None:
            return (name, *found[0]), *found[1:]
    return None


def _translate(
    error: ValidationError,
    model: type[BaseModel],
    file: str,
    file_of: Callable[[tuple[str, ...]], str] | None = None,
) -> ConfigError:
    """The first mistake pydantic found as our error; how many more there are goes into the hint."""
    found = error.errors(include_url=False)
    # a key that is missing because it is misspelled, or has no unit: the one that is there says more
    first = next((e for e in found if e["type"] == "extra_forbidden"), found[0])
    # keys only: drop the tags pydantic adds for the branches of unions
    place = [
        str(part) for part in first["loc"] if not (isinstance(part, str) and part.startswith(("function-", "tagged-")))
    ]
    file = file if file_of is None else file_of(tuple(place))
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
                file = file if file_of is None else file_of((*place, cause.error.key))
            return cause.error.located(file=file, table=table, key=key)
        return ConfigError(f"{{key}}: {cause}", file=file, table=table, key=key, value=first["input"], hint=more)
    bounds = _bounds(context) or first["msg"].removeprefix("Input should be ")
    text = "{key} = {value} is not allowed" if key is not None else "wrong value"
    # an index belongs to its list: pedal[2][1], not key 1 of table pedal.2
    end = len(place)
    while end > 1 and place[end - 1].isdigit() and isinstance(first["loc"][-1], int):
        end -= 1
    if end < len(place):
        where["table"] = ".".join(place[: end - 1]) or None
        where["key"] = place[end - 1] + "".join(f"[{k}]" for k in place[end:])
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
            return _words(field)
    return None


def _words(field: Any) -> str:
    """Type and limits of a field: "a number > 0"."""
    names = {float: "a number", int: "a whole number", str: "a text", bool: "true or false"}
    kind = names.get(field.annotation, "")
    signs = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
    limits = [f"{sign} {getattr(m, key)}" for m in field.metadata for key, sign in signs.items() if hasattr(m, key)]
    return f"{kind} {', '.join(limits)}".strip() or "see the description of the file"


def _model_at(model: Any, location: tuple[Any, ...]) -> type[BaseModel] | None:
    """Follow keys and indices through nested models, dicts and lists to the model that describes a table."""
    for part in location:
        model = _entry(model, part)
    return _table_model(model)


def _entry(annotation: Any, key: Any) -> Any:
    """The annotation of what stands under a key or index: M -> field, dict[str, M] and list[M] -> M."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = {field.alias or name: field.annotation for name, field in annotation.model_fields.items()}
        return fields.get(key)
    arguments = get_args(annotation)
    if get_origin(annotation) is dict:
        return arguments[1]
    if get_origin(annotation) in (list, tuple):
        return arguments[0]
    # M | None, Annotated[M, ...]
    return next((found for a in arguments if (found := _entry(a, key)) is not None), None)


def _table_model(annotation: Any) -> type[BaseModel] | None:
    """M | None -> M."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (dict, list, tuple):
        return None
    return next((found for a in get_args(annotation) if (found := _table_model(a)) is not None), None)
