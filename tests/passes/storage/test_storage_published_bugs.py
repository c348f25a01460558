"""Bugs of other memory planners, by their public numbers, as tests of ours.

Each docstring names the issue or pull request and says in one sentence what went wrong there. Tests of
`StorageRewrite` compare numbers with those of the same module without any reuse; tests of what happens
inside regions ask `elide_concats`, `share_in_place` and `arena_problem`.

Not here: tvm 20269, which was in no copy of the tracker that could be searched (docs/memory.md).
"""

from __future__ import annotations

import numpy as np
import pytest
import relax_programs as rp
import tvm
from agreeable_backend import Agreeable
from tvm import relax
from tvm.script import tirx as T

from tvm_mxplan.core.allocation import Item, Problem, Rectangle, solve, validate
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.passes.memory.elide_concats import copied_pieces, elide_concats
from tvm_mxplan.passes.memory.liveness import arena_problem
from tvm_mxplan.passes.memory.share_in_place import share_in_place
from tvm_mxplan.passes.storage import StorageRewrite
from tvm_mxplan.passes.storage.relax_sizes import Bounds
from tvm_mxplan.passes.storage.tir_in_place import in_place_pairs

X = 'x: R.Tensor((4, 8), "float32")'


def same_numbers(mod: tvm.IRModule, *inputs: rp.Array) -> tvm.IRModule:
    """The rewritten module, after its numbers were compared with those without reuse."""
    rp.assert_same(rp.run(rp.build(mod, StorageRewrite()), *inputs), rp.run(rp.build(mod, None), *inputs))
    return StorageRewrite()(mod)


# --- TVM ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cond", [True, False])
def test_tvm_20191_storage_dominates_both_branches(cond: bool) -> None:
    """Storage first allocated in one branch of an `if` was used in the other, where it does not exist."""
    body = """
if c:
    a = R.reshape(x, R.shape([32]))
    r = R.reshape(a, R.shape([4, 8]))
else:
    b = R.reshape(x, R.shape([32]))
    r = R.reshape(b, R.shape([4, 8]))
return r
"""
    mod = rp.lower(rp.parse(body, X + ', c: R.Tensor((), "bool")'))
    main = same_numbers(mod, rp.normal(0, 4, 8), np.array(cond))["main"]
    in_branches = [
        call
        for block in main.body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.If)
        for branch in (binding.value.true_branch, binding.value.false_branch)
        for inner in branch.blocks
        for call in [bound.value for bound in inner.bindings]
        if isinstance(call, tvm.ir.Call) and getattr(call.op, "name", "") == "relax.memory.alloc_storage"
    ]
    assert in_branches == []
    assert len(rp.calls_to(main, "relax.memory.alloc_storage")) == 1


def test_tvm_20134_a_lowered_reshape_is_an_alias() -> None:
    """`vm.builtin.reshape`, which lowering emits in place of reshape, was not seen to view its argument."""
    body = """
a = R.permute_dims(x)
b = R.call_pure_packed("vm.builtin.reshape", a, R.shape([32]), ty_args=(R.Tensor((32,), "float32"),))
c = R.permute_dims(x)
d = R.permute_dims(c)
e = R.reshape(d, R.shape([32]))
return R.add(b, e)
"""
    same_numbers(rp.lower(rp.parse(body, X)), rp.normal(0, 4, 8))


def test_tvm_18663_a_lower_bound_is_no_upper_bound() -> None:
    """With only a lower bound given, a dynamic size was planned as if it were known."""
    body = "n = T.int64()\na = R.exp(x)\nb = R.permute_dims(a)\nreturn R.permute_dims(b)"
    mod = rp.lower(rp.parse(body, 'x: R.Tensor(("n", 256), "float32")', '{"tir_var_lower_bound": {"n": 2}}'))
    for rows in (2, 3, 50):
        same_numbers(mod, rp.normal(rows, rows, 256))


def test_tvm_19577_two_views_of_one_tensor() -> None:
    """A product was written over one operand while the other, a view of the same tensor, was read later."""
    body = """
t = R.sort(x)
a = R.reshape(t, R.shape([32, 1]))
b = R.reshape(t, R.shape([32, 1]))
p = R.multiply(a, b)
s = R.sort(p, axis=0)
q = R.sort(b, axis=0)
return R.concat((s, q), axis=1)
"""
    for dataflow in (True, False):
        same_numbers(rp.lower(rp.parse(body, X), dataflow), rp.normal(0, 4, 8))


def test_tvm_13976_an_address_is_an_access() -> None:
    """A buffer read only through `address_of` was taken for unused, and its bytes were given away."""

    @T.prim_func(s_tir=True)
    def kernel(x: T.Buffer((8,), "float32"), out: T.Buffer((8,), "float32")) -> None:
        for i in range(8):
            with T.sblock("out"):
                vi = T.axis.spatial(8, i)
                out[vi] = T.call_pure_extern("float32", "sum_of_eight", T.address_of(x[0])) + x[vi]

    assert in_place_pairs(kernel) == []


def test_tvm_20190_and_20207_a_cast_of_the_type_is_an_alias() -> None:
    """The tensor behind a `match_cast` lost its bytes while the cast was still to be read."""
    body = """
a = R.add(x, R.const(0.25, "float32"))
b = R.match_cast(a, R.Tensor((4, 8), "float32"))
c = R.add(x, R.const(0.125, "float32"))
return R.add(b, c)
"""
    same_numbers(rp.lower(rp.parse(body, X)), rp.normal(0, 4, 8))


def test_tvm_17322_an_exceeded_upper_bound_is_an_error() -> None:
    """An input larger than its declared bound crashed; here it must not reach other tensors either."""
    body = "n = T.int64()\na = R.exp(x)\nb = R.permute_dims(a)\nreturn R.permute_dims(b)"
    mod = rp.lower(rp.parse(body, 'x: R.Tensor(("n", 8), "float32")', '{"tir_var_upper_bound": {"n": 4}}'))
    same_numbers(mod, rp.normal(0, 4, 8))
    with pytest.raises(RuntimeError, match="storage allocation failure"):
        rp.run(rp.build(mod, StorageRewrite()), rp.normal(0, 5, 8))


# --- onnxruntime --------------------------------------------------------------------------------------


def test_onnxruntime_7633_in_place_only_for_the_last_consumer() -> None:
    """An input with several consumers was overwritten in place by one of them before the others had run."""
    body = "a = R.exp(x)\nb = R.tanh(a)\nc = R.sigmoid(a)\nd = R.negative(a)\nreturn R.add(R.add(b, c), d)"
    rewritten = same_numbers(rp.lower(rp.parse(body, X)), rp.normal(0, 4, 8))
    assert rp.kernels(rewritten)[:4] == ["tir_exp", "tir_tanh", "tir_sigmoid", "tir_negative_in_place"]


def test_onnxruntime_21019_an_output_without_consumers_has_its_bytes() -> None:
    """A result that nobody reads was released before it was written, onto a tensor still in use."""
    body = """
a = R.permute_dims(x)
s = R.split(a, 2, axis=0)
b = s[0]
c = R.permute_dims(x)
d = R.split(c, 2, axis=0)
return R.add(b, d[0])
"""
    mod = rp.lower(rp.parse(body, X))
    same_numbers(mod, rp.normal(0, 4, 8))


def test_onnxruntime_28359_results_never_stand_on_inputs() -> None:
    """Results were aliased with the caller's inputs, and kept the shape of an earlier run."""
    body = "n = T.int64()\na = R.tanh(x)\nb = R.negative(a)\nc = R.exp(b)\nreturn R.add(c, x)"
    vm = rp.build(rp.lower(rp.parse(body, 'x: R.Tensor(("n", 256), "float32")')), StorageRewrite())
    for rows in (32, 1, 32, 5):
        array = rp.normal(rows, rows, 256)
        given = tvm.runtime.tensor(array)
        result = vm["main"](given).numpy()
        np.testing.assert_array_equal(given.numpy(), array)
        np.testing.assert_allclose(result, np.exp(-np.tanh(array)) + array, rtol=1e-5, atol=1e-6)


def test_onnxruntime_32611_packed_elements_are_not_counted_as_bytes() -> None:
    """A buffer of packed 4-bit numbers was reused for as many whole bytes, twice its size."""
    shape = [T.int64(1023)]
    sizes = {dtype: Bounds([]).size_of(shape, dtype) for dtype in ("int4", "uint8", "bool", "float32")}
    assert {dtype: size and size.nbytes for dtype, size in sizes.items()} == {
        "int4": 1023,
        "uint8": 1023,
        "bool": 1023,
        "float32": 4092,
    }


# --- concatenation and sums in place, inside regions --------------------------------------------------


IMAGE = (1, 8, 4, 4)
RELU = ir.Eltwise("relu", 0.0, 0.0)


def sized(program: ir.Program) -> ir.Program:
    """The program with the bytes of plain float32."""
    for number, value in enumerate(program.values):
        program = program.with_value(number, nbytes=4 * int(np.prod(value.shape)))
    return program


def addresses(program: ir.Program) -> dict[int, tuple[int, int]]:
    """First byte and end of every value in a solved arena."""
    problem = arena_problem(program)
    plan = solve(problem.problem)
    assert validate(problem.problem, plan) == []
    base = dict(zip(problem.values, plan.offsets, strict=False))
    found = {}
    for number, value in enumerate(program.values):
        if program.root(number) in base:
            low, at = base[program.root(number)], number
            while program.values[at].alias_of >= 0:
                low += int(program.values[at].alias_offset)  # type: ignore[arg-type]
                at = program.values[at].alias_of
            found[number] = (low, low + value.nbytes)
    return found


def apart(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[1] <= b[0] or b[1] <= a[0]


def two_pieces(batch: int = 1) -> tuple[ProgramBuilder, int, int, int]:
    """Two activations and their concatenation along channels."""
    shape = (batch, *IMAGE[1:])
    builder = ProgramBuilder("region")
    x = builder.port("input", "x", shape, "float32")
    first = builder.step("eltwise", RELU, shape, [("src", x)])
    second = builder.step("eltwise", RELU, shape, [("src", x)])
    whole = (batch, 16, 4, 4)
    joined = builder.step("concat", ir.Concat(1), whole, [("src", first), ("src", second)])
    return builder, first, second, joined


def test_openvino_6193_a_piece_is_no_destination_for_a_sum() -> None:
    """A convolution summed onto a tensor that was at the same time a piece of a concatenation in place."""
    builder, first, second, joined = two_pieces()
    sum_ = builder.step("binary", ir.Binary("add"), IMAGE, [("src", first), ("src1", second)])
    out = builder.port("output", "out", IMAGE, "float32")
    other = builder.port("output", "other", (1, 16, 4, 4), "float32")
    doubled = builder.step("eltwise", RELU, IMAGE, [("src", sum_)])
    shuffled = builder.step("shuffle", ir.Shuffle(1, 2), (1, 16, 4, 4), [("src", joined)])
    builder.write_output(doubled, out)
    builder.write_output(shuffled, other)
    copied = sized(builder.finish())
    program = share_in_place(elide_concats(copied), Agreeable())  # type: ignore[arg-type]
    by_name = {value.name: number for number, value in enumerate(program.values)}
    pieces = [by_name["eltwise0"], by_name["eltwise1"]]
    assert all(program.values[piece].alias_of == by_name["concat0"] for piece in pieces)
    assert program.values[by_name["binary0"]].alias_of == -1
    found = addresses(program)
    assert apart(found[by_name["binary0"]], found[by_name["concat0"]])
    in_place = share_in_place(copied, Agreeable())  # type: ignore[arg-type]
    assert any(value.name == "binary0" and value.alias_of >= 0 for value in in_place.values)


def test_openvino_37165_a_concatenation_in_place_is_all_or_nothing() -> None:
    """Rejected for a batch above one, it left half of its marks behind and corrupted memory."""
    builder, *_ = two_pieces(batch=2)
    before = sized(builder.finish())
    program = elide_concats(before)
    assert program == before
    assert len(copied_pieces(program, program.steps[-1])) == 2
    found = addresses(program)
    assert len(found) == 3 and all(apart(found[a], found[b]) for a in found for b in found if a != b)


def fire_module() -> ir.Program:
    """SqueezeNet's: one activation feeds two, whose results are concatenated."""
    builder = ProgramBuilder("region")
    x = builder.port("input", "x", IMAGE, "float32")
    out = builder.port("output", "out", (1, 16, 4, 4), "float32")
    squeeze = builder.step("squeeze", RELU, IMAGE, [("src", x)])
    left = builder.step("left", RELU, IMAGE, [("src", squeeze)])
    right = builder.step("right", RELU, IMAGE, [("src", squeeze)])
    whole = builder.step("whole", ir.Concat(1), (1, 16, 4, 4), [("src", left), ("src", right)])
    shuffled = builder.step("shuffled", ir.Shuffle(1, 2), (1, 16, 4, 4), [("src", whole)])
    builder.write_output(shuffled, out)
    return elide_concats(sized(builder.finish()))


def test_opencv_10456_pieces_are_not_written_onto_their_source() -> None:
    """A concatenation shared bytes with the source of its pieces, free only by the time it runs itself."""
    program = fire_module()
    by_name = {value.name: number for number, value in enumerate(program.values)}
    found = addresses(program)
    for piece in ("left0", "right0"):
        assert program.values[by_name[piece]].alias_of == by_name["whole0"]
        assert apart(found[by_name[piece]], found[by_name["squeeze0"]])


def test_openvino_37165_the_whole_lives_from_its_first_piece() -> None:
    """A tensor on which a concatenation's inputs depend gave its bytes to the concatenation's own output."""
    program = fire_module()
    item = next(item for item in arena_problem(program).problem.items if item.name == "whole0")
    squeeze = next(item for item in arena_problem(program).problem.items if item.name == "squeeze0")
    assert item.birth < squeeze.death


# --- XNNPACK ------------------------------------------------------------------------------------------


def test_xnnpack_10800_the_gap_below_the_first_block_is_used() -> None:
    """The free bytes below the lowest live block were never considered: 240 bytes where 180 are enough."""
    lives: list[tuple[str, int, tuple[int, int]]] = [("A", 100, (0, 2)), ("B", 80, (1, 3)), ("C", 60, (2, 4))]
    items = tuple(Item(name, (Rectangle(*life, 0, size),), 1) for name, size, life in lives)
    assert solve(Problem(items)).height == 180
