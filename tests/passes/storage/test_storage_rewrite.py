"""StorageRewrite: the IR it writes, exact bytes, numbers in the VM, and what the checker refuses.

TVM's own planner, which crashes on branches in 0.27 (tvm 20191), is compared with where there are none.
"""

from __future__ import annotations

import numpy as np
import relax_programs as rp
import tvm
from storage_bodies import X
from storage_runs import ROW, check, same_numbers
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from tvm_mxplan.passes.storage import StorageRewrite, tvm_pipeline


@I.ir_module
class Before:
    @T.prim_func(private=True, s_tir=True)
    def exp(x: T.Buffer((T.int64(24),), "float32"), out: T.Buffer((T.int64(24),), "float32")):
        for i in range(T.int64(24)):
            with T.sblock("exp"):
                vi = T.axis.spatial(T.int64(24), i)
                out[vi] = T.exp(x[vi])

    @T.prim_func(private=True, s_tir=True)
    def flip(x: T.Buffer((T.int64(24),), "float32"), out: T.Buffer((T.int64(24),), "float32")):
        for i in range(T.int64(24)):
            with T.sblock("flip"):
                vi = T.axis.spatial(T.int64(24), i)
                out[vi] = x[T.int64(23) - vi]

    @R.function
    def main(x: R.Tensor((24,), "float32")) -> R.Tensor((24,), "float32"):
        R.func_attr({"relax.force_pure": True})
        cls = Before
        alloc = R.builtin.alloc_tensor(R.shape([24]), R.dtype("float32"), 0, R.str("global"))
        cls.flip(x, alloc)
        alloc1 = R.builtin.alloc_tensor(R.shape([24]), R.dtype("float32"), 0, R.str("global"))
        cls.exp(alloc, alloc1)
        alloc2 = R.builtin.alloc_tensor(R.shape([24]), R.dtype("float32"), 0, R.str("global"))
        cls.flip(alloc1, alloc2)
        alloc3 = R.builtin.alloc_tensor(R.shape([24]), R.dtype("float32"), 0, R.str("global"))
        cls.flip(alloc2, alloc3)
        return alloc3


@I.ir_module
class Expected:
    @T.prim_func(private=True, s_tir=True)
    def exp_in_place(out: T.Buffer((T.int64(24),), "float32")):
        for i in range(T.int64(24)):
            with T.sblock("exp"):
                vi = T.axis.spatial(T.int64(24), i)
                out[vi] = T.exp(out[vi])

    @T.prim_func(private=True, s_tir=True)
    def flip(x: T.Buffer((T.int64(24),), "float32"), out: T.Buffer((T.int64(24),), "float32")):
        for i in range(T.int64(24)):
            with T.sblock("flip"):
                vi = T.axis.spatial(T.int64(24), i)
                out[vi] = x[T.int64(23) - vi]

    @R.function
    def main(x: R.Tensor((24,), "float32")) -> R.Tensor((24,), "float32"):
        R.func_attr({"relax.force_pure": True})
        cls = Expected
        arena = R.memory.alloc_storage(R.shape([224]), 0, R.str("global"), R.dtype("uint8"))
        alloc = R.memory.alloc_tensor(arena, 0, R.shape([24]), R.dtype("float32"), 0)
        cls.flip(x, alloc)
        alloc1: R.Tensor((24,), "float32") = alloc
        cls.exp_in_place(alloc1)
        view = R.memory.alloc_tensor(arena, 128, R.shape([24]), R.dtype("float32"), 0)
        alloc2 = R.memory.ensure_zero_offset(view)
        cls.flip(alloc1, alloc2)
        alloc3 = R.builtin.alloc_tensor(R.shape([24]), R.dtype("float32"), 0, R.str("global"))
        cls.flip(alloc2, alloc3)
        return alloc3


def test_golden() -> None:
    """One arena, a tensor at an offset, a result in place; the returned tensor keeps its own memory."""
    tvm.ir.assert_structural_equal(StorageRewrite()(Before), Expected)


def test_nothing_to_plan_leaves_the_ir_unchanged() -> None:
    mod = rp.lower(rp.parse("y = R.exp(x)\nreturn y", X))
    tvm.ir.assert_structural_equal(StorageRewrite()(mod), mod)


def test_a_chain_needs_two_tensors_or_one_in_place() -> None:
    """Softmax and exp are in place, transposes are not; 96 bytes stand at multiples of 64."""
    mod = rp.lower(rp.parse("a = R.exp(x)\nb = R.nn.softmax(a)\nc = R.tanh(b)\nreturn R.negative(c)", X))
    rewritten = check(mod, rp.normal(0, 4, 6))
    assert rp.storages(rewritten) == [ROW]
    body = "a = R.permute_dims(x)\nb = R.permute_dims(a)\nc = R.permute_dims(b)\nreturn R.permute_dims(c)"
    rewritten = check(rp.lower(rp.parse(body, X)), rp.normal(0, 4, 6))
    assert rp.storages(rewritten) == [128 + ROW]


def test_equal_tensors_at_one_offset_share_a_view() -> None:
    body = "a = R.permute_dims(x)\nb = R.permute_dims(a)\nc = R.permute_dims(b)\nreturn R.permute_dims(c)"
    rewritten = StorageRewrite()(rp.lower(rp.parse(body, 'x: R.Tensor((6, 6), "float32")')))
    assert len(rp.calls_to(rewritten["main"], "relax.memory.alloc_tensor")) == 2
    assert len(rp.calls_to(rewritten["main"], "relax.memory.ensure_zero_offset")) == 1


def test_views_at_offsets_are_not_copies() -> None:
    """Two views of one offset see the same bytes, so ``ensure_zero_offset`` did not copy."""
    seen: list[int] = []

    @tvm.register_global_func("test.storage_rewrite.address", override=True)
    def _address(tensor: tvm.runtime.Tensor, out: tvm.runtime.Tensor) -> None:
        seen.append(np.from_dlpack(tensor).__array_interface__["data"][0])
        np.from_dlpack(out)[...] = np.from_dlpack(tensor)

    call = 'R.call_dps_packed("test.storage_rewrite.address", ({},), R.Tensor((4, 6), "float32"))'
    body = [
        "a = R.exp(x)",
        *(f"{to} = {call.format(of)}" for of, to in ("ab", "bc", "cd")),
        "return R.tanh(d)",
    ]
    mod = rp.lower(rp.parse("\n".join(body), X))
    assert rp.storages(StorageRewrite()(mod)) == [128 + ROW]
    vm = rp.build(mod, StorageRewrite())
    rp.assert_same(rp.run(vm, rp.normal(3, 4, 6)), [np.tanh(np.exp(rp.normal(3, 4, 6)))])
    assert seen[0] == seen[2] and abs(seen[1] - seen[0]) == 128
    assert all(address % 64 == 0 for address in seen)


def test_reshapes_are_views_in_dataflow_blocks() -> None:
    body = "a = R.sort(x)\nb = R.reshape(a, R.shape([24]))\nc = R.sort(b)\nreturn R.sort(c)"
    mod = rp.lower(rp.parse(body, X), dataflow=True)
    assert len(rp.calls_to(mod["main"], "relax.reshape")) == 1
    rewritten = check(mod, rp.normal(0, 4, 6))
    assert rp.storages(rewritten) == [128 + ROW]


def test_in_place_over_a_reshaped_view_of_another_type() -> None:
    """The overwritten tensor was allocated as 6x4 and is read as 24; the bytes are the same."""
    body = "a = R.sort(x)\nb = R.reshape(a, R.shape([24]))\nc = R.nn.softmax(b)\nreturn R.sort(c)"
    mod = rp.lower(rp.parse(body, X), dataflow=True)
    rewritten = check(mod, rp.normal(0, 4, 6))
    assert rp.storages(rewritten) == [ROW]
    assert any(name.endswith("_in_place") for name in rp.kernels(rewritten))


def test_an_operand_read_later_is_not_overwritten() -> None:
    mod = rp.lower(rp.parse("a = R.exp(x)\nb = R.tanh(a)\nc = R.add(a, b)\nreturn R.negative(c)", X))
    rewritten = check(mod, rp.normal(0, 4, 6))
    assert rp.kernels(rewritten) == ["tir_exp", "tir_tanh", "add_in_place", "tir_negative"]


def test_an_operand_passed_twice_is_not_overwritten() -> None:
    mod = rp.lower(rp.parse("a = R.exp(x)\nb = R.add(a, a)\nreturn R.negative(b)", X))
    assert rp.kernels(check(mod, rp.normal(0, 4, 6))) == ["tir_exp", "add", "tir_negative"]


def test_tuples_hold_their_members() -> None:
    body = """
a = R.exp(x)
t = (a, x)
u = (t, x)
b = R.permute_dims(x)
c = R.permute_dims(b)
v = u[0]
d = v[0]
return R.add(c, d)
"""
    check(rp.lower(rp.parse(body, X)), rp.normal(0, 4, 6))


def test_returned_tuples_stand_outside() -> None:
    body = "a = R.exp(x)\nb = R.tanh(a)\nt = (b, a)\nreturn (t, R.negative(b))"
    rewritten = check(rp.lower(rp.parse(body, X)), rp.normal(0, 4, 6))
    assert rp.storages(rewritten) == []


def test_results_survive_the_next_call() -> None:
    mod = rp.lower(rp.parse("a = R.permute_dims(x)\nb = R.permute_dims(a)\nreturn (R.exp(b), b)", X))
    vm = rp.build(mod, StorageRewrite())
    first, second = (tvm.runtime.tensor(rp.normal(seed, 4, 6)) for seed in (1, 2))
    kept = vm["main"](first)
    vm["main"](second)
    np.testing.assert_array_equal(kept[1].numpy(), rp.normal(1, 4, 6))


def test_an_unknown_function_may_return_a_view_of_its_argument() -> None:
    """The result of ``pick`` is one of its arguments; neither may be reused while it is read."""

    @tvm.register_global_func("test.storage_rewrite.pick", override=True)
    def _pick(a: tvm.runtime.Tensor, _b: tvm.runtime.Tensor) -> tvm.runtime.Tensor:
        return a

    body = """
a = R.exp(x)
b = R.tanh(x)
c = R.call_pure_packed("test.storage_rewrite.pick", a, b, ty_args=(R.Tensor((4, 6), "float32"),))
d = R.permute_dims(x)
e = R.permute_dims(d)
return R.add(c, e)
"""
    same_numbers(rp.lower(rp.parse(body, X)), [rp.normal(0, 4, 6)])


def test_calls_to_other_functions_may_return_their_arguments() -> None:
    source = f"""
@I.ir_module
class Module:
    @R.function(private=True)
    def pick(a: R.Tensor((4, 6), "float32")) -> R.Tensor((4, 6), "float32"):
        return a

    @R.function
    def main({X}):
        cls = Module
        a = R.exp(x)
        b = cls.pick(a)
        c = R.permute_dims(x)
        d = R.permute_dims(c)
        return R.add(b, d)
"""
    same_numbers(rp.lower(tvm.script.from_source(source)), [rp.normal(0, 4, 6)])


def test_empty_tensors() -> None:
    mod = rp.lower(
        rp.parse("a = R.exp(x)\nb = R.permute_dims(a)\nreturn R.tanh(b)", 'x: R.Tensor((0, 6), "float32")')
    )
    check(mod, rp.normal(0, 0, 6))


def test_types_of_every_width() -> None:
    body = """
a = R.greater(x, R.const(0.0, "float32"))
b = R.astype(a, "int8")
c = R.astype(b, "float64")
d = R.astype(c, "float16")
e = R.logical_not(a)
f = R.add(R.astype(d, "float32"), R.astype(e, "float32"))
return R.add(f, x)
"""
    check(rp.lower(rp.parse(body, X)), rp.normal(0, 4, 6))


def test_the_default_pipeline() -> None:
    mod = rp.parse("a = R.exp(x)\nb = R.permute_dims(a)\nreturn R.tanh(R.permute_dims(b))", X)
    target = tvm.target.Target("llvm")
    built = tvm.compile(mod, target, relax_pipeline=tvm_pipeline.default_pipeline(target))
    vm = relax.VirtualMachine(built, tvm.cpu())
    rp.assert_same(rp.run(vm, rp.normal(0, 4, 6)), [np.tanh(np.exp(rp.normal(0, 4, 6)))])
    names = [step.info.name for step in tvm_pipeline.finalize_passes(target)]
    stock = [step.info.name for step in rp.pipeline.finalize_passes(target)]
    assert names == ["StorageRewrite" if name == "StaticPlanBlockMemory" else name for name in stock]
    names = [step.info.name for step in tvm_pipeline.finalize_passes(target, reuse=False)]
    assert names == [name for name in stock if name != "StaticPlanBlockMemory"]


def test_targets_without_pointer_arithmetic_keep_tvms_planner() -> None:
    names = [step.info.name for step in tvm_pipeline.finalize_passes(tvm.target.Target("vulkan"))]
    assert "StaticPlanBlockMemory" in names and "StorageRewrite" not in names
