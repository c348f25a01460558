"""Attributes that travel on the IR: dispatch by function, programs and constants by region."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
import tvm
from agreeable_backend import Agreeable
from region_passes import region_passes
from relax_programs import parse
from tvm import relax

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.description import Description, StepInfo, ValueInfo
from tvm_mxplan.core.program import codec
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import Symbol
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.passes.annotations import dispatch_of, with_changed_dispatch, with_dispatch
from tvm_mxplan.passes.region.annotate import annotate
from tvm_mxplan.passes.region.attached import (
    PROGRAM,
    _Decoder,
    attach,
    carries_program,
    constants_of,
    fused_of,
    map_programs,
    program_of,
    regions,
    rounding_in,
    with_fused,
    with_rounding,
)

NAME = "mxplan_onednn"
X = 'x: R.Tensor((2, 6, 8, 8), "float32")'


def module(lines: str) -> tvm.IRModule:
    passes = region_passes(OneDNN())
    return tvm.transform.Sequential(passes)(parse(lines, X))


def two_regions() -> tvm.IRModule:
    return module("a = R.nn.relu(x)\nb = R.floor(a)\nreturn R.exp(b)")


# --- dispatch ----------------------------------------------------------------------------------------------


def test_dispatch_is_written_on_functions() -> None:
    mod = parse("return R.exp(x)", X)
    function = mod["main"]
    assert dispatch_of(function) == {}
    assert with_dispatch(function, {}).same_as(function)
    written = with_dispatch(function, {"exp_0": "onednn"})
    assert dispatch_of(written) == {"exp_0": "onednn"}
    mod.update_func(mod.get_global_var("main"), written)
    changed = with_changed_dispatch(mod, {"exp_0": "llvm", "other_1": "llvm"})
    assert dispatch_of(changed["main"]) == {"exp_0": "llvm"}
    assert dispatch_of(mod["main"]) == {"exp_0": "onednn"}
    tvm.ir.assert_structural_equal(with_changed_dispatch(mod, {"other_1": "llvm"}), mod)


# --- programs ----------------------------------------------------------------------------------------------


def test_regions_are_those_of_one_backend() -> None:
    mod = two_regions()
    assert len(list(regions(mod, NAME))) == 2
    assert list(regions(mod, "another")) == []


def test_functions_without_attributes_are_no_regions() -> None:
    mod = two_regions()
    bare = relax.Function([], relax.SeqExpr([], relax.const(1.0)), relax.TensorType((), "float32"))
    assert not bare.attrs
    mod.update_func(tvm.ir.GlobalVar("bare"), bare)
    assert len(list(regions(mod, NAME))) == 2


def test_a_region_carries_its_program_and_constants() -> None:
    mod = module(
        "return R.add(x, R.const([[[1.5]], [[2.0]], [[3.0]], [[4.0]], [[5.0]], [[6.0]]], 'float32'))"
    )
    ((_, region),) = regions(mod, NAME)
    (constant,) = constants_of(region)
    np.testing.assert_array_equal(constant.numpy().ravel(), [1.5, 2, 3, 4, 5, 6])
    renamed = replace(program_of(region), name="another")
    again = attach(region, renamed)
    assert program_of(again) == renamed
    assert len(constants_of(again)) == 1
    strided = np.arange(12, dtype="float32").reshape(3, 4).T
    (kept,) = constants_of(attach(region, renamed, [strided]))
    np.testing.assert_array_equal(kept.numpy(), strided)


def test_what_runs_inside_others_is_told() -> None:
    ((_, region), _) = regions(two_regions(), NAME)
    assert fused_of(region) == {}
    assert with_fused(region, {}).same_as(region)
    assert fused_of(with_fused(region, {"relu_0": "conv2d_0"})) == {"relu_0": "conv2d_0"}


def test_programs_are_mapped_and_refused_ones_go_back() -> None:
    mod = two_regions()
    names = sorted(gvar.name_hint for gvar, _ in regions(mod, NAME))

    def change(program: ir.Program) -> ir.Program:
        if program.name == names[1]:
            raise UnsupportedError("not this one")
        return replace(program, arena_bytes=77)

    mapped, refused = map_programs(mod, NAME, change)
    ((gvar, region),) = regions(mapped, NAME)
    assert (gvar.name_hint, program_of(region).arena_bytes) == (names[0], 77)
    assert refused and all("not this one" in reason for reason in refused.values())
    assert len(list(regions(mod, NAME))) == 2, "the module itself stays"
    same, refused = map_programs(mod, NAME, lambda program: program)
    assert refused == {}
    tvm.ir.assert_structural_equal(same, mod)


def test_regions_that_only_move_data_go_back() -> None:
    """A slice that is copied is moved as well by TVM; with anything to compute beside it, it stays."""
    for lines, count in (
        ("return R.strided_slice(x, [1], [2], [4])", 0),
        ("a = R.nn.relu(x)\nreturn R.strided_slice(a, [1], [2], [4])", 1),
    ):
        assert len(list(regions(module(lines), NAME))) == count


# --- what the backend says of a program ---------------------------------------------------------------


class Telling(Agreeable):
    """Names every step after its place; values take 100 bytes and one more each."""

    def describe(self, program: ir.Program) -> Description:
        assert all(isinstance(dim, int) for value in program.values for dim in value.shape)
        steps = tuple(StepInfo(f"code{at}", 64 * at, 0, "") for at in range(len(program.steps)))
        values = tuple(ValueInfo(value.layout, 100 + at) for at, value in enumerate(program.values))
        return Description(steps, values)


def chain(extent: object) -> ir.Program:
    kinds: list[ir.ValueKind] = ["input", "local", "output"]
    values = [
        ir.Value(kind, (extent, 3), "float32", kind, "ab", -1 if kind == "local" else 0)  # type: ignore[arg-type]
        for kind in kinds
    ]
    relu = ir.Eltwise("relu", 0.0, 0.0)
    steps = [ir.Step(f"s{at}", relu, (ir.Operand("src", at), ir.Operand("dst", at + 1))) for at in range(2)]
    symbols = () if isinstance(extent, int) else (ir.SymbolBinding("n", 0, 0),)
    return ir.Program("p", tuple(values), tuple(steps), symbols)


def test_implementations_bytes_and_scratchpads_are_filled_in() -> None:
    told = annotate(chain(2), Telling())  # type: ignore[arg-type]
    assert [(step.implementation, step.scratchpad_bytes) for step in told.steps] == [
        ("code0", 0),
        ("code1", 64),
    ]
    assert [value.nbytes for value in told.values] == [100, 101, 102]
    assert [value.layout for value in told.values] == ["ab"] * 3


def test_with_symbols_only_implementations_are() -> None:
    told = annotate(chain(Symbol("n")), Telling())  # type: ignore[arg-type]
    assert [(step.implementation, step.scratchpad_bytes) for step in told.steps] == [
        ("code0", -1),
        ("code1", -1),
    ]
    assert [value.nbytes for value in told.values] == [-1] * 3
    assert told.symbols == (ir.SymbolBinding("n", 0, 0),)
    mixed = annotate(chain(Symbol("n")).with_value(1, shape=(2, 3)), Telling())  # type: ignore[arg-type]
    assert [value.nbytes for value in mixed.values] == [-1] * 3


def test_a_program_is_decoded_once_for_all_that_read_it() -> None:
    """Passes read it again and again; a region with the same bytes has the same program."""
    found = [program_of(function) for _, function in regions(two_regions(), NAME)]
    again = [program_of(function) for _, function in regions(two_regions(), NAME)]
    assert len(found) == 2 and found[0] != found[1]
    assert all(one is other for one, other in zip(found, again, strict=True))


def test_decoded_programs_are_kept_up_to_so_many_bytes() -> None:
    """The last ones asked for; each is counted once."""
    data = [codec.encode(replace(chain(2), name=f"p{at}")) for at in range(3)]
    assert len({len(one) for one in data}) == 1
    decoder = _Decoder(capacity=2 * len(data[0]))
    first, second = decoder(data[0]), decoder(data[1])
    assert decoder(data[0]) is first and decoder(data[1]) is second
    assert decoder(data[0]) is first
    third = decoder(data[2])
    assert decoder(data[0]) is first and decoder(data[2]) is third
    again = decoder(data[1])
    assert again == second and again is not second
    assert _Decoder(capacity=len(data[0]) - 1)(data[0]) == first


def test_what_roundings_add_is_the_sum_of_what_regions_state() -> None:
    mod = two_regions()
    assert rounding_in(mod) == 0
    (first, one), (second, other) = regions(mod, NAME)
    mod.update_func(first, with_rounding(one, 0.25))
    assert rounding_in(mod) == 0.25
    mod.update_func(second, with_rounding(other, 1e-9))
    bare = relax.Function([], relax.SeqExpr([], relax.const(1.0)), relax.TensorType((), "float32"))
    mod.update_func(tvm.ir.GlobalVar("bare"), bare)
    assert rounding_in(mod) == 0.25 + 1e-9


def test_regions_with_programs_are_told_from_others() -> None:
    mod = two_regions()
    assert [carries_program(function) for _, function in regions(mod, NAME)] == [True, True]
    assert not carries_program(mod["main"])
    bare = relax.Function([], relax.SeqExpr([], relax.const(1.0)), relax.TensorType((), "float32"))
    assert not carries_program(bare) and not carries_program(relax.ExternFunc("f"))
    kernel = tvm.tirx.PrimFunc([], tvm.tirx.Evaluate(0)).with_attr(PROGRAM, "no region")
    assert not carries_program(kernel)


@pytest.mark.parametrize("writable", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_constants_are_kept_as_they_are(dtype: str, writable: bool) -> None:
    ((_, region), _) = regions(two_regions(), NAME)
    array = np.arange(6).reshape(2, 3).astype(getattr(ml_dtypes, dtype, dtype))
    array.flags.writeable = writable
    tensor = tvm.runtime.tensor(np.ones((3,), "float32"))
    kept, same = constants_of(attach(region, program_of(region), [array, tensor]))
    assert str(kept.dtype) == dtype and same.same_as(tensor)
    np.testing.assert_array_equal(kept.numpy(), array)
