"""``CheckIndices``: an index that is out of bounds is an error that names the operator, never foreign memory.

Before   y = R.take(table, indices, axis=0)                      "fast": kernels trust their indices
After    checked = R.call_tir(check_indices, (indices,), ...)    -1 is the last entry; a kernel that asserts
         y = R.take(table, checked, axis=0)

As ONNX has it: negative indices count from the end, others are errors.  The kernel reads each index once and
is plain TIR, so it runs wherever the module does.  Constant indices are checked here, and cost nothing later.
``take`` with another mode says itself what becomes of such indices, and is left alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import tvm
from tvm import relax, te, tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from tvm_mxplan.errors import InvalidInputError

from ..relax_types import constant_of, make_constant
from .operands import Extents, IndexOperand, UnknownShape, called, with_indices

_OPAQUE = 8
"""Among TVM's kinds of kernels: one that is not fused with others."""


@tvm.transform.module_pass(opt_level=0, name="CheckIndices")
class CheckIndices:
    """Module pass; see the module's text.

    Raises
    ------
    InvalidInputError : a constant index is out of bounds.
    """

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        checker = _Checker(mod)
        for gvar, function in list(mod.functions.items()):
            if isinstance(function, relax.Function) and "Codegen" not in (function.attrs or {}):
                checker.builder_.update_func(gvar, checker.visit_expr(function))
        return checker.builder_.get()


@relax.expr_functor.mutator
class _Checker(relax.PyExprMutator):
    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = super().visit_call_(call)
        try:
            return with_indices(call, partial(self._checked, call), self._field)
        except UnknownShape:  # TVM builds no kernel for the operator either
            return call

    def _field(self, operand: relax.Expr, at: int) -> relax.Expr:
        return self.builder_.emit(relax.TupleGetItem(operand, at))

    def _checked(self, call: relax.Call, indices: relax.Expr, one: IndexOperand) -> relax.Expr:
        if _has_none(indices):
            return indices
        constant = constant_of(indices)
        if constant is not None and all(isinstance(extent, int) for extent in one.extents):
            checked = _checked_constant(call, constant, one)
            same = checked.dtype == constant.dtype and np.array_equal(checked, constant)
            return indices if same else make_constant(checked)
        kernel = self.builder_.call_te(
            _check, indices, one.extents, _messages(call, one), primfunc_name_hint="check_indices"
        )
        function = self.builder_.get()[kernel.args[0]].with_attr("op_pattern", _OPAQUE)
        self.builder_.update_func(kernel.args[0], function)
        return self.builder_.emit(kernel)


def _has_none(indices: relax.Expr) -> bool:
    """Whether there is no index in any call."""
    shape = getattr(indices.ty, "shape", None)
    dims = shape.values if isinstance(shape, relax.ShapeExpr) else []
    return any(isinstance(dim, tirx.IntImm) and int(dim) == 0 for dim in dims)


def _messages(call: relax.Call, one: IndexOperand) -> tuple[str, ...]:
    """For each component, the words of an index that is out of bounds."""
    return tuple(
        f"{called(call)}: an index is out of bounds for axis {axis} of the data, "
        f"expected one from -{extent} to {extent - 1 if isinstance(extent, int) else f'{extent} - 1'}"
        for axis, extent in zip(one.axes, one.extents, strict=True)
    )


def _checked_constant(call: relax.Call, indices: np.ndarray, one: IndexOperand) -> np.ndarray:
    extents = np.array(one.extents if len(one.extents) != 1 else one.extents[0], "int64")
    numbers = indices.astype("int64")
    wrong = (numbers < -extents) | (numbers >= extents)
    if wrong.any():
        component = int(np.argwhere(wrong)[0][-1]) if len(one.extents) > 1 else 0
        raise InvalidInputError(f"{_messages(call, one)[component]}, got {int(numbers[wrong][0])}")
    return np.where(numbers < 0, numbers + extents, numbers).astype(_dtype(str(indices.dtype), one.extents))


def _dtype(given: str, extents: Extents) -> str:
    """The type of checked indices: as they were given, unless there may be entries behind its last number."""
    last = np.iinfo(given).max
    return given if all(isinstance(extent, int) and extent - 1 <= last for extent in extents) else "int64"


def _check(indices: te.Tensor, extents: Sequence[Any], words: tuple[str, ...]) -> te.Tensor:
    """The indices, negative ones counted from the end; what is out of bounds fails an assertion."""
    components, dtype = len(extents), _dtype(str(indices.dtype), list(extents))
    count = math.prod(indices.shape[: None if components == 1 else -1])

    def body(ins: Any, outs: Any) -> tirx.Stmt:
        source, result = T.buffer_proxy(ins[0]), T.buffer_proxy(outs[0])
        with IRBuilder() as builder, T.serial(0, count) as at:
            for component, extent in enumerate(extents):
                place = at * components + component
                index = tirx.Cast("int64", source[place])
                limit = extent if isinstance(extent, int) else tirx.Cast("int64", extent)
                inside = tirx.And(index >= -limit, index < limit)
                with T.Assert(inside, words[component], "tvm_mxplan.InvalidInputError"):
                    pass
                normal = tirx.Select(index < 0, index + limit, index)
                result[place] = tirx.Cast(dtype, normal)
        return builder.get()

    return te.extern([indices.shape], [indices], body, dtype=[dtype], name="check_indices")
