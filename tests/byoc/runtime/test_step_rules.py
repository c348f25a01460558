"""Steps of every kind whose operands, attributes or post-ops do not fit: refused by name before they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from broken_steps import BROKEN, attrs
from sound_steps import SOUND, Sound

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.core.program import program as ir


@pytest.mark.parametrize("name", SOUND)
def test_what_is_sound_is_taken(name: str) -> None:
    """Or the cases below would show nothing."""
    program, constants = SOUND[name].program()
    (info,) = library.describe(program).steps
    assert not info.error
    library.create_module("rules", program, constants)["mxplan.prepare"]()


def test_every_kind_has_a_case() -> None:
    assert {ir.KIND_OF[type(sound.attrs)] for sound in SOUND.values()} == set(ir.STEP_KINDS)
    assert {ir.KIND_OF[type(SOUND[name].attrs)] for name, _, _ in BROKEN} == set(ir.STEP_KINDS)


@pytest.mark.parametrize(("name", "change", "message"), BROKEN)
def test_what_is_broken_is_refused_by_name(name: str, change: Callable[[Sound], Sound], message: str) -> None:
    program, constants = change(SOUND[name]).program()
    kind = program.steps[0].kind
    (info,) = library.describe(program).steps
    assert info.error.startswith(f"{kind} s0: ")
    assert message in info.error
    with pytest.raises(tvm_mxplan.InvalidInputError) as error:
        library.create_module("rules", program, constants)["mxplan.prepare"]()
    assert f"region rules: {kind} s0: " in str(error.value)
    assert message in str(error.value)


_ANY = ("cast", "integers", "product", "quantization")
"""Steps that take an int8 operand."""


@pytest.mark.parametrize("name", [name for name in SOUND if name not in _ANY])
def test_every_operand_has_a_type(name: str) -> None:
    """An int8 result would be overrun fourfold, an int8 operand read past its end."""
    program, _ = SOUND[name].program()
    for operand in program.steps[0].operands:
        where = (name, operand.role)
        if where == ("extreme_index", "src"):  # of any type
            continue
        (info,) = library.describe(program.with_value(operand.value, dtype="int8")).steps
        named = operand.role in ("indices", "condition", "order")
        named |= where in (("compare", "dst"), ("extreme_index", "dst"))
        wanted: tuple[str, ...] = ("expected int64, got int8", "expected bool, got int8")
        if not named:
            wanted = ("expected int8, got float32", "float32 or bfloat16, got int8", "float32, got int8")
            wanted += ("expected uint8, got int8", "expected int32, got int8")
        assert any(text in info.error for text in wanted)


_OF_THE_HOST = {
    "eltwise": Sound(ir.Eltwise("erf", 0.0, 0.0), (3, 6), {"src": (3, 6)}, library="host"),
    "binary": replace(SOUND["binary"], library="host"),
    "reduction": replace(SOUND["reduction"], library="host"),
    "resize": SOUND["resize"],
    "reorder": Sound(ir.Reorder(), (3, 6), {"src": (3, 6)}, library="host"),
}


@pytest.mark.parametrize("name", _OF_THE_HOST)
def test_the_host_library_computes_in_one_type(name: str) -> None:
    """An operand of two bytes was read, or written, as one of four."""
    program, _ = _OF_THE_HOST[name].program()
    assert not library.describe(program).steps[0].error
    for operand in program.steps[0].operands:
        (info,) = library.describe(program.with_value(operand.value, dtype="bfloat16")).steps
        assert "as dst has it, got" in info.error or "element type bfloat16" in info.error


HUGE = 2**31 - 1


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("pooling", attrs(kernel=(HUGE, 2))),
        ("pooling", attrs(kernel=(3, 2), dilation=(HUGE // 2, 1))),
        ("convolution", lambda s: replace(attrs(padding=(2**28, 0, 1, 2))(s), dst=(2, 5, 2**27 + 4, 9))),
        ("deconvolution", lambda s: replace(attrs(strides=(2**27, 2))(s), dst=(2, 5, 2**30 + 1, 22))),
    ],
)
def test_windows_and_padding_stay_within_32_bits(name: str, change: Callable[[Sound], Sound]) -> None:
    """The library's kernels count so: more of it made them read foreign memory."""
    program, _ = change(SOUND[name]).program()
    (info,) = library.describe(program).steps
    assert "expected at most 2^31 - 1 bytes" in info.error


@pytest.mark.parametrize("layout", ["A16a", "Ab16a"])
def test_vectors_have_no_blocks(layout: str) -> None:
    name = "inner_product" if len(layout) == 4 else "row"
    program, _ = SOUND[name].program()
    program = program.with_value(program.steps[0].operand("bias"), layout=layout)
    (info,) = library.describe(program).steps
    assert f"bias: expected a layout without blocks, got {layout}" in info.error


def test_a_row_product_leaves_no_tail_behind() -> None:
    """A result with a tail is the library's to zero."""
    program, _ = SOUND["inner_product"].program()
    (plain,) = library.describe(program).steps
    (blocked,) = library.describe(program.with_value(program.steps[0].dst, layout="aB16b")).steps
    assert plain.implementation == "row_product" != blocked.implementation
