"""``DispatchSizes``: ``main``, which runs the function of the smallest size that holds a call's batch.

After    def main(x: R.Tensor((n, 3, 14, 10))):
             fits = "tvm_mxplan.batch.fits"(R.shape([n]), 2)
             if fits:
                 whole = "tvm_mxplan.batch.is"(R.shape([n]), 2)
                 if whole:  y = main_n_2(x)
                 else:      padded = R.call_dps_packed("tvm_mxplan.batch.pad", x)     rows of zeros behind
                            y = "tvm_mxplan.batch.first"(main_n_2(padded), R.shape([n, 5]))       a view
             else:          the next size; behind the last one "tvm_mxplan.batch.refuse", an error

Where rows meet, nothing is padded, and each size is asked for alone.

Left to others: the functions (specialize_sizes), the runtime's part (byoc/runtime/cudnn/ffi/batch.cc).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import tvm
from tvm import relax, tirx

from .named_batch import MAIN, NamedBatch
from .rows import names

FITS, IS = "tvm_mxplan.batch.fits", "tvm_mxplan.batch.is"
PAD, FIRST, REFUSE = "tvm_mxplan.batch.pad", "tvm_mxplan.batch.first", "tvm_mxplan.batch.refuse"


@tvm.transform.module_pass(opt_level=0, name="DispatchSizes")
class DispatchSizes:
    """Module pass; see the module's text."""

    def __init__(self, batch: NamedBatch) -> None:
        self.batch = batch

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        mod = mod.clone()
        mod[MAIN] = _Writer(mod, self.batch).main()
        return relax.transform.Normalize()(mod)


class _Writer:
    """Writes ``main``."""

    def __init__(self, mod: tvm.IRModule, batch: NamedBatch) -> None:
        self.mod, self.batch = mod, batch
        self.params, self.result = batch.function.params, batch.function.ret_ty

    def main(self) -> relax.Function:
        function = relax.Function(self.params, self._sizes(self.batch.sizes), self.result, False)
        return function.with_attr("global_symbol", MAIN)

    def _sizes(self, sizes: tuple[int, ...]) -> relax.SeqExpr:
        """Runs the first of ``sizes`` that a call can run with; an error behind the last one."""
        if not sizes:
            return _sequence(self._refused)
        first, rest = sizes[0], sizes[1:]
        whole = partial(self._called, first, padded=False)
        if self.batch.meet:
            return self._choice(IS, first, _sequence(whole), self._sizes(rest))
        padded = partial(self._called, first, padded=True)
        fits = self._choice(IS, first, _sequence(whole), _sequence(padded))
        return self._choice(FITS, first, fits, self._sizes(rest))

    def _choice(self, asked: str, size: int, then: relax.SeqExpr, otherwise: relax.SeqExpr) -> relax.SeqExpr:
        def write(emit: Emit) -> tvm.ir.Var:
            found = emit(_call(asked, [self._rows(), _int(size)], relax.TensorType([], "bool")))
            return emit(relax.If(found, then, otherwise), self.result)

        return _sequence(write)

    def _called(self, size: int, emit: Emit, padded: bool) -> tvm.ir.Var:
        """The function of a size on what came, or on that and rows of zeros, and the first rows then."""
        gvar = self.mod.get_global_var(self.batch.name(size))
        function = self.mod[gvar]
        args = []
        for param, known in zip(self.params, function.params, strict=True):
            if not self._has_rows(param.ty):
                args.append(param)
            elif padded:
                args.append(emit(relax.call_dps_packed(PAD, relax.Tuple([param]), known.ty), known.ty))
            else:
                args.append(emit(relax.MatchCast, known.ty, param))
        given = emit(relax.Call(gvar, args), function.ret_ty)
        return self._results(emit, given, self.result, padded)

    def _results(self, emit: Emit, given: tvm.ir.Var, kind: tvm.ir.Type, padded: bool) -> tvm.ir.Var:
        """A result, or each of several, in the shape that the batch of the call makes of it."""
        if isinstance(kind, tvm.ir.TupleType):
            fields = []
            for at, field in enumerate(kind.fields):
                one = emit(tvm.ir.TupleGetItem(given, at), given.ty.fields[at])
                fields.append(self._results(emit, one, field, padded))
            return emit(relax.Tuple(fields), kind)
        if not self._has_rows(kind):
            return given
        if not padded:
            return emit(relax.MatchCast, kind, given)
        return emit(_call(FIRST, [given, kind.shape], kind))

    def _refused(self, emit: Emit) -> tvm.ir.Var:
        return emit(_call(REFUSE, [self._rows(), tvm.ir.StringImm(str(self.batch))], self.result))

    def _rows(self) -> relax.ShapeExpr:
        return relax.ShapeExpr([self.batch.symbol])

    def _has_rows(self, kind: tvm.ir.Type) -> bool:
        shape = getattr(kind, "shape", None)
        return isinstance(shape, relax.ShapeExpr) and any(
            names(dim, self.batch.symbol) for dim in shape.values
        )


Emit = Callable[..., tvm.ir.Var]
"""Binds a value to a variable of a type; ``relax.MatchCast`` with a type and what is looked at."""


def _sequence(write: Callable[[Emit], tvm.ir.Var]) -> relax.SeqExpr:
    bindings: list[relax.Binding] = []

    def emit(value: Any, kind: tvm.ir.Type | None = None, looked_at: tvm.ir.Var | None = None) -> tvm.ir.Var:
        var = relax.Var(f"sized{len(bindings)}", value.ty_args[0] if kind is None else kind)
        cast = value is relax.MatchCast
        bindings.append(relax.MatchCast(var, looked_at, kind) if cast else relax.VarBinding(var, value))
        return var

    body = write(emit)
    return relax.SeqExpr([relax.BindingBlock(bindings)], body)


def _call(name: str, args: list[relax.Expr], ty: tvm.ir.Type) -> relax.Call:
    return relax.Call(relax.ExternFunc(name), args, ty_args=[ty])


def _int(value: int) -> tirx.IntImm:
    return tirx.IntImm("int64", value)
