"""StorageRewrite of sizes that are named, by upper bounds and by expressions."""

from __future__ import annotations

import pytest
import relax_programs as rp
import tvm
from tvm.script import tirx as T

from tvm_mxplan.passes.storage import StorageRewrite

SYMBOLIC = """
n = T.int64()
a = R.exp(x)
b = R.split(a, 2, axis=1)
c = R.nn.softmax(b[0])
d = R.add(c, b[1])
e = R.concat((d, d), axis=0)
return R.negative(R.permute_dims(e))
"""


ROWS = 'x: R.Tensor(("n", 1024), "float32")'


def symbolic_runs(mod: tvm.IRModule, rows: tuple[int, ...]) -> None:
    vm, plain = rp.build(mod, StorageRewrite()), rp.build(mod, None)
    for count in rows:
        rp.assert_same(
            rp.run(vm, rp.normal(count, count, 1024)), rp.run(plain, rp.normal(count, count, 1024))
        )


def test_symbolic_sizes_by_upper_bound() -> None:
    mod = rp.lower(rp.parse(SYMBOLIC, ROWS, '{"tir_var_upper_bound": {"n": 16}}'))
    (storage,) = rp.calls_to(StorageRewrite()(mod)["main"], "relax.memory.alloc_storage")
    size = storage.args[0].values[0]
    assert int(size.true_value) == 16 * 1024 * 4 * 2 and int(size.false_value) == 0
    symbolic_runs(mod, (1, 3, 16, 0))


def test_an_exceeded_upper_bound_is_refused() -> None:
    """A tensor beyond its bound would reach into its neighbours; the empty arena stops it."""
    mod = rp.lower(rp.parse(SYMBOLIC, ROWS, '{"tir_var_upper_bound": {"n": 16}}'))
    with pytest.raises(RuntimeError, match="storage allocation failure"):
        rp.run(rp.build(mod, StorageRewrite()), rp.normal(0, 17, 1024))


def test_symbolic_sizes_by_offset_expression() -> None:
    mod = rp.lower(rp.parse(SYMBOLIC, ROWS))
    main = StorageRewrite()(mod)["main"]
    n = main.params[0].ty.shape.values[0]
    (storage,) = rp.calls_to(main, "relax.memory.alloc_storage")
    tvm.ir.assert_structural_equal(storage.args[0].values[0], n * T.int64(1024 * 4 * 2))
    assert len(rp.calls_to(main, "relax.builtin.alloc_tensor")) == 1
    symbolic_runs(mod, (1, 3, 40, 0))


def test_small_multiples_of_an_expression_stay_dynamic() -> None:
    """Offsets are multiples of 64 units: for four bytes a unit, sharing would not pay."""
    body = "n = T.int64()\na = R.exp(x)\nb = R.permute_dims(a)\nreturn R.permute_dims(b)"
    mod = rp.lower(rp.parse(body, 'x: R.Tensor(("n", "m"), "float32")'))
    assert rp.calls_to(StorageRewrite()(mod)["main"], "relax.memory.alloc_storage") == []


def test_sizes_known_only_inside_stay_dynamic() -> None:
    body = """
k = T.int64()
a = R.exp(x)
b = R.match_cast(a, R.Tensor((k, 1024), "float32"))
c = R.permute_dims(b)
return R.permute_dims(c)
"""
    mod = rp.lower(rp.parse(body, 'x: R.Tensor(("n", 1024), "float32")'))
    symbolic_runs(mod, (1, 5))
