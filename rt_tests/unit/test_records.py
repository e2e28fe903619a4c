"""One description of every kind of element: what is made from it agrees, and nothing is left unfilled."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kernel_models import Sketch

from torqueloop.core.compile import record_sources
from torqueloop.cython_kernels.kernel.kernel import KernelModel, c_layout
from torqueloop.cython_kernels.model import derive, model_arrays, model_sizes, records
from torqueloop.cython_kernels.model.model_arrays import ModelArrays, check_layout, completed, given
from torqueloop.cython_kernels.model.records import KINDS, Field, Record

ROOT = Path(__file__).resolve().parents[2]


def test_generated_files_are_those_of_the_records() -> None:
    if not (ROOT / "docs").is_dir() or not (ROOT / "cython_kernels").is_dir():
        pytest.skip("no checkout")
    for path, text in record_sources.targets(ROOT).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run {record_sources.__name__}"


def test_c_structs_have_the_layout_of_the_dtypes() -> None:
    layout = c_layout()
    check_layout(layout)
    for kind, record in KINDS.items():
        size, places = layout[kind]
        assert size == record.dtype.itemsize and list(places) == list(record.dtype.names or ())


def test_kernels_built_from_other_records_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    lin = KINDS["lin"]
    more = replace(lin, fields=(*lin.fields, Field("fresh", "f8", "", "one that no kernel knows")))
    monkeypatch.setattr(model_arrays, "KINDS", KINDS | {"lin": more})
    with pytest.raises(TypeError, match=r"\['lin'\] are not those the kernels were built with"):
        check_layout(c_layout())
    unknown = Record("new", "nnew", "new elements", "none", (Field("row", "i4", "", "row"),))
    monkeypatch.setattr(model_arrays, "KINDS", KINDS | {"new": unknown})
    with pytest.raises(TypeError, match=r"\['new'\]"):
        check_layout(c_layout())


def test_a_field_that_nobody_fills_is_named() -> None:
    with pytest.raises(TypeError, match=r"fields of lin without a value.*\['d'\]"):
        given("lin", row=[0], c=[1.0], phi0=[0.0])
    with pytest.raises(TypeError, match=r"does not have: \['q'\]"):
        given("lin", row=[0], c=[1.0], d=[0.0], phi0=[0.0], q=[1.0])
    element = given("act", **{name: np.zeros(1) for name in KINDS["act"].given.names or ()})
    with pytest.raises(TypeError, match=r"fields of act without a value.*\['E'\]"):
        completed("act", element)
    with pytest.raises(ValueError, match="lin: columns of"):
        given("lin", row=[0], c=[1.0, 2.0], d=[0.0], phi0=[0.0])
    with pytest.raises(ValueError, match="poly.k has shape"):
        given("poly", row=[0], k=[[1.0, 2.0]])


def test_a_matrix_that_nobody_fills_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = model_sizes.Array("extra", "f8", "n", "one that is not filled")
    monkeypatch.setattr(derive, "ARRAYS", (*model_sizes.ARRAYS, extra))
    with pytest.raises(TypeError, match=r"without a value.*\['extra'\]"):
        KernelModel(Sketch([1.0]).arrays(), 1e-3)


def test_elements_of_a_kind_without_a_record_are_refused() -> None:
    arrays = Sketch([1.0]).arrays()
    with pytest.raises(TypeError, match=r"without a record: \['xx'\]"):
        replace(arrays, elements={"xx": np.zeros(1)})
    with pytest.raises(TypeError, match="lin: fields"):
        replace(arrays, elements={"lin": np.zeros(1)})
    with pytest.raises(AttributeError, match="compiled arrays have no 'xx'"):
        _ = arrays.xx


def test_every_record_reaches_the_kernel() -> None:
    """Numbers put into the records come back from the C structs (through the sizes of the model)."""
    arrays: ModelArrays = Sketch([1.0]).arrays()
    model = KernelModel(arrays, 1e-3)
    assert model.sizes["compliances"] == 0
    spring = given("lin", row=[0], c=[2.0], d=[0.5], phi0=[0.1])
    assert KernelModel(replace(arrays, elements={"lin": spring}), 1e-3).sizes["compliances"] == 1


def test_a_record_whose_law_is_in_no_step_fails_the_build(tmp_path: Path) -> None:
    """Each law taken out of the step in turn: the build names it."""
    shutil.copytree(ROOT / "cython_kernels" / "step", tmp_path / "step", ignore=shutil.ignore_patterns("*.so", "*.c"))
    record_sources.check_laws(tmp_path)
    whole = {p: p.read_text(encoding="utf-8") for p in (tmp_path / "step").glob("*.pxi") if p.name != "sizes.pxi"}
    for record in records.RECORDS:
        if record.kind in records.READ_ONLY:
            continue
        for path, text in whole.items():
            for word in record_sources.loop_words(record):
                text = text.replace(word, "range(0)")
            path.write_text(text, encoding="utf-8")
        with pytest.raises(LookupError, match=re.escape(record.title)):
            record_sources.check_laws(tmp_path)
        for path, text in whole.items():
            path.write_text(text, encoding="utf-8")
