"""What is generated from the records of the kernel: C structs, their binding, the sizes of the step, and a page.

    python -m torqueloop.core.compile.record_sources

writes them; `setup.py` does so before every build. They are committed, so that a fresh checkout can be read, and a
test holds them equal.
"""

from __future__ import annotations

from pathlib import Path

from torqueloop.core.compile import step_files
from torqueloop.cython_kernels.controls.records import CONTROLLERS, MOST_READS, Controller
from torqueloop.cython_kernels.model.choices import CHOICES
from torqueloop.cython_kernels.model.model_sizes import ARRAYS, SIZES
from torqueloop.cython_kernels.model.records import KINDS, READ_ONLY, RECORDS, Field, Record

_HEAD = "Made from model/records.py by python -m torqueloop.core.compile.record_sources; do not edit."
_CHOICES = _HEAD.replace("model/records.py", "model/choices.py")
_CONTROLS = _HEAD.replace("model/records.py", "controls/records.py")
_C = {"i4": "int32_t", "f8": "double"}


def structs() -> str:
    """records.pxi: names of numbers, a struct for each kind of element, and tl_model."""
    out = [f"# {_HEAD}", "", "cdef enum:"]
    for choices in CHOICES:
        out += [f"    {name} = {choices[name]}".ljust(32) + f"  # {meaning}" for name, meaning in choices.of.items()]
        out.append("")
    for record in RECORDS:
        out += ["", f"cdef struct tl_{record.kind}:", f"    # {record.title}: {record.law}"]
        for f in record.fields:
            size = "" if f.count == 1 else f"[{f.count}]"
            out.append(f"    {_C[f.type]}{size} {f.name}".ljust(28) + f"  # {_meaning(f)}")
        out.append("")
    out += ["", "cdef struct tl_model:", "    # numbers of elements, sizes"]
    out += [f"    int32_t {record.count}".ljust(24) + f"  # {record.title}" for record in RECORDS]
    out += [f"    {size.type} {size.name}".ljust(24) + f"  # {size.meaning}" for size in SIZES]
    out.append("    tl_step_fn step_fn".ljust(24) + "  # generic or precompiled, same results to the bit")
    out.append("    tl_read_fn read_fn".ljust(24) + "  # precompiled outputs, the same to the bit; NULL: none")
    out.append("    # elements")
    out += [f"    const tl_{record.kind}* {record.kind}" for record in RECORDS]
    out.append("    # matrices and lists")
    for array in ARRAYS:
        note = f"({array.shape}) {array.meaning}" if array.shape else array.meaning
        out.append(f"    const {_C[array.type]}* {array.name}".ljust(32) + f"  # {note}".rstrip())
    out += ["    # curves and maps", "    const tl_table1* tab1", "    const tl_table2* tab2", ""]
    return "\n".join(out)


def numbers() -> str:
    """core/describe/kernel_numbers.py: the same names of numbers for components and compiler."""
    out = ['"""What whole numbers stand for in the kernel.', "", f"{_CHOICES}", '"""', ""]
    for choices in CHOICES:
        out += [f"{name} = {choices[name]}  # {meaning}" for name, meaning in choices.of.items()]
        out.append("")
    return "\n".join(out)


def binding() -> str:
    """records_bind.pxi: pointers and numbers of tl_model by name, and where C puts every field."""
    out = [f"# {_HEAD}", "", "cdef int bind_elements(tl_model* m, str kind, const void* at, int32_t count) except -1:"]
    for k, record in enumerate(RECORDS):
        out += [
            f"    {'if' if k == 0 else 'elif'} kind == {record.kind!r}:".replace("'", '"'),
            f"        m.{record.kind} = <const tl_{record.kind}*>at",
            f"        m.{record.count} = count",
        ]
    out += ["    else:", '        raise KeyError(f"no elements {kind}")', "    return 0", "", ""]
    out.append("cdef int bind_array(tl_model* m, str name, const void* at) except -1:")
    for k, array in enumerate(ARRAYS):
        out += [
            f'    {"if" if k == 0 else "elif"} name == "{array.name}":',
            f"        m.{array.name} = <const {_C[array.type]}*>at",
        ]
    out += ["    else:", '        raise KeyError(f"no array {name}")', "    return 0", "", ""]
    out.append("cdef int bind_size(tl_model* m, str name, value) except -1:")
    for k, size in enumerate(SIZES):
        out += [f'    {"if" if k == 0 else "elif"} name == "{size.name}":', f"        m.{size.name} = value"]
    out += ["    else:", '        raise KeyError(f"no size {name}")', "    return 0", "", ""]
    out += ["def c_layout():", '    """Per kind: size of its C struct, and the place of every field in it."""']
    out += [f"    cdef tl_{record.kind} one_{record.kind}" for record in RECORDS]
    out += ["    cdef const char* start", "    found = {}"]
    for record in RECORDS:
        one = f"one_{record.kind}"
        out += [f"    start = <const char*>&{one}", f'    found["{record.kind}"] = (sizeof({one}), {{']
        out += [f'        "{f.name}": <const char*>&{one}.{f.name} - start,' for f in record.fields]
        out.append("    })")
    out += ["    return found", ""]
    return "\n".join(out)


def sizes() -> str:
    """sizes.pxi: the sizes the step is written in; a precompiled step defines them as constants first."""
    names = [record.count for record in RECORDS] + ["n", "nhot", "nin", "nport"]
    out = [f"# {_HEAD}", "", "cdef extern from *:", '    """']
    read_only = [record.count for record in RECORDS if record.kind in READ_ONLY]
    out += [f"    #define TL_{name.upper()}(m) ((m)->{name})" for name in read_only]
    out.append("    #ifndef TL_SIZED")
    out += [f"    #define TL_{name.upper()}(m) ((m)->{name})" for name in names if name not in read_only]
    out += [f"    #define TL_{kind.upper()}_ROW(m, i) ((m)->{_row(kind)})" for kind in ROW_CONSTANTS]
    out += ["    #endif", '    """']
    out += [f"    int32_t TL_{name.upper()}(const tl_model* m) noexcept nogil" for name in names]
    out += [f"    int32_t TL_{kind.upper()}_ROW(const tl_model* m, int32_t i) noexcept nogil" for kind in ROW_CONSTANTS]
    return "\n".join([*out, ""])


#: what a precompiled step knows the rows of
ROW_CONSTANTS = ("port", "fr", "lin")


def _row(kind: str) -> str:
    return f"{kind}[i].row" if kind in KINDS else f"{kind}_row[i]"


def _meaning(f: Field) -> str:
    unit = f"{f.unit}: " if f.unit not in ("", "row") else ""
    return unit + f.meaning + (" (-1: none)" if f.optional else "")


def controls() -> str:
    """controls/records.pxi: a struct for the parameters of each controller, and the places of its numbers."""
    out = [f"# {_CONTROLS}", "", "", "cdef enum:", f"    MOST_READS = {MOST_READS}", "", "", "cdef enum:"]
    for k, c in enumerate(CONTROLLERS):
        out.append(f"    CONTROL_{c.kind.upper()} = {k}".ljust(32) + f"  # {c.record.title}")
    out.append("")
    for c in CONTROLLERS:
        for what, fields in (("reads", c.reads), ("own", c.own)):
            out += ["", f"# what a {c.kind} reads" if what == "reads" else "# its commands, then what it keeps"]
            out.append("cdef enum:")
            word = f"{c.kind}_{'read_' if what == 'reads' else ''}".upper()
            out += [f"    {word}{f.name.upper()} = {k}".ljust(40) + f"  # {_meaning(f)}" for k, f in enumerate(fields)]
            out.append("")
        out += ["", f"cdef struct tl_{c.kind}:", f"    # {c.record.title}: {c.record.law}"]
        out += [f"    double {f.name}".ljust(28) + f"  # {_meaning(f)}" for f in c.record.fields]
        out.append("")
    return "\n".join(out)


def _controller(c: Controller) -> list[str]:
    """Its section of the page."""
    out = [f"### {c.kind}: {c.record.title}", "", f"`{c.record.law}`", "", "| number | what | unit | meaning |"]
    out.append("|---|---|---|---|")
    curves = [Field(name, "", "", meaning) for name, meaning, _ in c.curves]
    groups = (("reads", c.reads), ("commands", c.commands), ("keeps", c.keeps), ("parameter", c.record.fields))
    for word, fields in (*groups, ("curve", curves)):
        for f in fields:
            meaning = f.meaning.replace("|", "\\|")
            out.append(f"| `{f.name}` | {word} | {f.unit} | {meaning} |")
    return [*out, ""]


def page() -> str:
    """docs/kernel_records.md."""
    out = [
        "# What the kernel knows about a driveline", "",
        "Made from `cython_kernels/model/records.py` by",
        "`python -m torqueloop.core.compile.record_sources`; do not edit.", "",
        "One record per element: `m.<kind>[i].<field>` in C, `model.arrays.<kind>[\"<field>\"]` in Python. Units: SI;",
        '"row" stands for N.m and rad/s where the row of the element is a rotation, N and m/s where a translation.',
        "*Derived* fields depend on the step or save work in it (`derive.py`), the compiler fills the others",
        "(`core/compile/element_arrays.py`).", "",
    ]  # fmt: skip
    for record in RECORDS:
        out += [f"## {record.kind}: {record.title}", "", f"`{record.law}`", ""]
        out += ["| field | type | unit | meaning |", "|---|---|---|---|"]
        for f in record.fields:
            kind = {"i4": "int", "f8": "float"}[f.type] + (f"[{f.count}]" if f.count > 1 else "")
            note = f.meaning.replace("|", "\\|") + (" (-1: none)" if f.optional else "")
            out.append(f"| `{f.name}` | {kind} | {f.unit} | {note}{', *derived*' if f.derived else ''} |")
        out.append("")
    out += ["## Matrices and lists", "", "| name | type | shape | meaning |", "|---|---|---|---|"]
    for array in ARRAYS:
        out.append(f"| `{array.name}` | {array.type} | {array.shape} | {array.meaning} |")
    out += ["", "## Sizes", "", "| name | meaning |", "|---|---|"]
    out += [f"| `{record.count}` | number of {record.title} |" for record in RECORDS]
    out += [f"| `{size.name}` | {size.meaning} |" for size in SIZES]
    out += ["", "## Controllers", "", "From `cython_kernels/controls/records.py`; their use:"]
    out += ["[controllers.md](controllers.md).", ""]
    for c in CONTROLLERS:
        out += _controller(c)
    return "\n".join(out)


def targets(root: Path) -> dict[Path, str]:
    """Every generated file of a checkout and its text."""
    kernels = root / "cython_kernels"
    return {
        kernels / "model" / "records.pxi": structs(),
        kernels / "model" / "records_bind.pxi": binding(),
        kernels / "step" / "sizes.pxi": sizes(),
        kernels / "controls" / "records.pxi": controls(),
        root / "core" / "describe" / "kernel_numbers.py": numbers(),
        root / "docs" / "kernel_records.md": page(),
        root / "docs" / "step_files.md": step_files.page(),
    }


def loop_words(record: Record) -> tuple[str, str]:
    """How the step writes the number of elements of a record."""
    return f"TL_{record.count.upper()}(m)", f"range(m.{record.count})"


def check_laws(kernels: Path) -> None:
    """LookupError when the step never evaluates the elements of a record: their force would be 0 unnoticed."""
    steps = [p for p in (kernels / "step").glob("*.pxi") if p.name != "sizes.pxi"]
    text = "".join(p.read_text(encoding="utf-8") for p in sorted(steps))
    forgotten = [
        r.title for r in RECORDS if r.kind not in READ_ONLY and not any(word in text for word in loop_words(r))
    ]
    if forgotten:
        raise LookupError(f"no part of the step has the law of {', '.join(forgotten)}: add it to {kernels / 'step'}")


def write(root: Path) -> None:
    """Write what differs; the page only where there is a docs/ (a source distribution has none). LookupError when the
    law of a record is in no step."""
    check_laws(root / "cython_kernels")
    for path, text in targets(root).items():
        if path.parent.is_dir() and (not path.exists() or path.read_text(encoding="utf-8") != text):
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).resolve().parents[2])
