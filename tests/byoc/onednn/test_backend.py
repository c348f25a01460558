"""oneDNN behind the protocol that passes know: what is handed on, and to whom."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tvm_mxplan.byoc.onednn import backend, library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.byoc.onednn.codegen import TRANSLATE
from tvm_mxplan.byoc.onednn.rewrites.integer_products import IntegerProducts
from tvm_mxplan.byoc.runtime_functions import RUNTIME
from tvm_mxplan.core.machine import default_rates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.errors import UnsupportedError


@pytest.fixture
def unrefused() -> Iterator[None]:
    library.forget_refusals()
    yield
    library.forget_refusals()


@pytest.mark.usefixtures("unrefused")
def test_refusals_reach_the_library() -> None:
    OneDNN().refuse("some step", "some code", "some reason")
    assert library.refusals() == [("some step", "some code", "some reason")]


@pytest.mark.parametrize(
    ("isa", "block"), [("avx512_core_amx", 16), ("avx512_core", 16), ("avx2", 8), ("sse41", 8)]
)
def test_blocks_are_as_wide_as_vectors(monkeypatch: pytest.MonkeyPatch, isa: str, block: int) -> None:
    monkeypatch.setattr(library, "isa", lambda: isa)
    backend = OneDNN()
    assert (backend.isa, backend.block) == (isa, block)


@pytest.mark.parametrize(
    ("isa", "integers"),
    [
        ("avx512_core_vnni", IntegerProducts.ALL),
        ("avx512_core_amx", IntegerProducts.ALL),
        ("avx2_vnni", IntegerProducts.ALL),
        ("avx512_core", IntegerProducts.NONE),
        ("avx2", IntegerProducts.OWN),
        ("avx", IntegerProducts.NONE),
    ],
)
def test_products_are_of_integers_where_there_are_instructions(
    monkeypatch: pytest.MonkeyPatch, isa: str, integers: IntegerProducts
) -> None:
    monkeypatch.setattr(library, "isa", lambda: isa)
    monkeypatch.setattr(backend, "fuse", lambda *arguments: arguments)
    fused = OneDNN()._fused("program", "constants", default_rates())  # type: ignore[arg-type]
    assert fused == ("program", "constants", integers, default_rates().private_bytes)


def test_the_library_is_loaded_once() -> None:
    library.load()
    loaded = list(library._loaded)
    library.load()
    assert library._loaded == loaded


def test_regions_with_steps_of_others_are_its_own() -> None:
    """They run on the runtime that all libraries of the processor share, and are fused as its own are."""
    backend = OneDNN()
    shares = backend.shares
    assert (shares.runtime, shares.leads, shares.table) == (RUNTIME, True, TRANSLATE)
    assert shares.finish == backend._fused


@pytest.mark.parametrize("number", [0.5, float("nan")])
def test_numbers_that_no_program_carries_are_refused(monkeypatch: pytest.MonkeyPatch, number: float) -> None:
    values = tuple(ir.Value(kind, (3,), "float32", kind, "a", 0) for kind in ("input", "output"))
    step = ir.Step("s", ir.Eltwise("relu", number, 0.0), (ir.Operand("src", 0), ir.Operand("dst", 1)))
    program = ir.Program("p", values, (step,))
    asked: list[object] = []

    def translating(*arguments: object) -> tuple[ir.Program, list[object]]:
        asked.extend(arguments)
        return program, []

    monkeypatch.setattr(sys.modules[OneDNN.__module__], "translate_region", translating)
    if number == number:
        assert OneDNN().translate("region", "name", default_rates()).program == program  # type: ignore[arg-type]
    else:
        with pytest.raises(UnsupportedError, match="s has a parameter of NaN"):
            OneDNN().translate("region", "name", default_rates())  # type: ignore[arg-type]
    assert asked == ["region", "name", "mxplan_onednn", TRANSLATE]


def test_what_onednn_is_called() -> None:
    backend = OneDNN()
    assert (backend.library, backend.name, backend.takes_arena) == ("onednn", "mxplan_onednn", True)
    assert library.describe(ir.Program("p", (), ())).steps == ()


def test_a_module_and_its_weights_are_exported() -> None:
    values = tuple(ir.Value(kind, (3,), "float32", kind, "a", 0) for kind in ("input", "output"))
    step = ir.Step("s", ir.Eltwise("relu", 0.5, 0.0), (ir.Operand("src", 0), ir.Operand("dst", 1)))
    module = OneDNN().create_module("p", ir.Program("p", values, (step,)), [])
    first, weights = OneDNN().modules_to_export(module)
    assert first.same_as(module) and not weights.same_as(module)
