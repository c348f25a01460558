"""Results of a model that are inputs of its next call, kept by the executable.

Before   main(ids, past (N, G, P, D)) -> logits, concat(past, new)
After    main(ids, cache (N, G, C, D), filled (1), rows (P)) -> logits, put_rows(cache, new, filled)

``cache`` has room for as many rows as the caller states; ``filled`` of them count, which is P, by which
kernels go, and ``rows``, none of whose bytes is read, says what P is in the shapes of others.  A result of
the shape of its input is handed on as it is.  Numbers of inputs and results stand in the signature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import tvm
import tvm_ffi
from tvm import relax, tirx

from ..errors import InvalidInputError
from ..execution.signature import KeptState
from ..operators.attention.caches import STATES, put_rows
from ..passes.relax_types import dim_of, dtype_of, shape_of

FILLED, ROWS = "filled", "rows"
"""Names of the inputs that are added."""


@dataclass(frozen=True)
class _Pair:
    """An input, the result that becomes it, and the axis along which rows come; -1 for none."""

    input: int
    output: int
    axis: int = -1


def keep_states(
    mod: tvm.IRModule,
    states: Mapping[str, str],
    capacity: int,
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
) -> tuple[tvm.IRModule, list[str], list[str] | None, tuple[KeptState, ...]]:
    """The module with caches in the place of inputs; names of its inputs and outputs; its states.

    Parameters
    ----------
    states : names of results by the names of the inputs that they are in the next call.
    capacity : rows of a cache.

    Raises
    ------
    InvalidInputError : names that are none, a result whose type or shape does not follow from its input's.
    """
    main = mod["main"]
    names = list(inputs or [str(param.name) for param in main.params])
    results = list(main.ret_ty.fields) if isinstance(main.ret_ty, relax.TupleType) else [main.ret_ty]
    told = list(outputs or [f"output{at}" for at in range(len(results))])
    pairs = [_pair(main, results, names, told, *one) for one in states.items()]
    if len({pair.output for pair in pairs}) < len(pairs):
        raise InvalidInputError("states: a result is named for two inputs; expected one for each")
    growing = [pair for pair in pairs if pair.axis >= 0]
    for pair in growing:
        _check_room(main, results, names, pair, growing[0], capacity)
    if growing:
        mod = _with_caches(mod, growing, capacity)
        names += [FILLED, ROWS][: len(mod["main"].params) - len(names)]
    attr = tvm_ffi.convert([[pair.input, pair.output] for pair in pairs])
    mod = mod.clone()
    mod["main"] = mod["main"].with_attr(STATES, attr)
    return (
        mod,
        names,
        None if outputs is None else list(outputs),
        tuple(_state(main, results, pair, capacity) for pair in pairs),
    )


def _pair(
    main: relax.Function,
    results: Sequence[tvm.ir.Type],
    names: Sequence[str],
    told: Sequence[str],
    name: str,
    result: str,
) -> _Pair:
    for what, one, known in (("input", name, names), ("result", result, told)):
        if one not in known:
            raise InvalidInputError(f"states: no {what} {one!r}; the {what}s are {', '.join(known)}")
    pair = _Pair(list(names).index(name), list(told).index(result))
    before, after = main.params[pair.input], relax.Var(result, results[pair.output])
    shapes = shape_of(before), shape_of(after)
    if None in shapes or dtype_of(before) != dtype_of(after) or len(shapes[0]) != len(shapes[1]):  # type: ignore[arg-type]
        raise InvalidInputError(
            f"states: {result!r} ({results[pair.output]}) cannot be {name!r} ({before.ty}) in the next call"
        )
    axes = [axis for axis, (a, b) in enumerate(zip(*shapes, strict=True)) if a != b]  # type: ignore[arg-type]
    if len(axes) > 1:
        raise InvalidInputError(
            f"states: {result!r} ({results[pair.output]}) differs from {name!r} ({before.ty}) in more than "
            "one axis; expected rows to come along one, or none"
        )
    return replace(pair, axis=axes[0]) if axes else pair


def _check_room(
    main: relax.Function,
    results: Sequence[tvm.ir.Type],
    names: Sequence[str],
    pair: _Pair,
    first: _Pair,
    capacity: int,
) -> None:
    """Holds a growing state to what all of them share, and to the room that there is."""
    rows, name = _rows(main, pair), names[pair.input]
    if rows != _rows(main, first):
        raise InvalidInputError(
            f"states: {name!r} has {rows} rows and {names[first.input]!r} {_rows(main, first)}; expected as "
            "many"
        )
    if isinstance(rows, tirx.Expr) and not isinstance(rows, tirx.Var):
        raise InvalidInputError(f"states: {name!r} has {rows} rows; expected a number or a name alone")
    after = dim_of(results[pair.output].shape.values[pair.axis])
    if isinstance(after, int) and after > capacity:
        raise InvalidInputError(
            f"states: {name!r} needs {after} rows and has room for {capacity}; state more"
        )
    shape = main.params[pair.input].ty.shape.values
    if any(not isinstance(dim_of(dim), int) for axis, dim in enumerate(shape) if axis != pair.axis):
        raise InvalidInputError(
            f"states: {name!r} has shape {list(shape)}; expected numbers in all axes but that of its rows, "
            "as memory is kept for it: state its shape (shapes=) with a number in the place of the name"
        )


def _rows(main: relax.Function, pair: _Pair) -> object:
    """The rows of an input, a number or an expression."""
    dim = main.params[pair.input].ty.shape.values[pair.axis]
    return known if isinstance(known := dim_of(dim), int) else dim


def _state(main: relax.Function, results: Sequence[tvm.ir.Type], pair: _Pair, capacity: int) -> KeptState:
    if pair.axis < 0:
        return KeptState(pair.input, pair.output)
    dims = main.params[pair.input].ty.shape.values[pair.axis], results[pair.output].shape.values[pair.axis]
    rows, after = (known if isinstance(known := dim_of(dim), int) else str(dim) for dim in dims)
    return KeptState(pair.input, pair.output, pair.axis, rows, after, capacity)


def _with_caches(mod: tvm.IRModule, pairs: Sequence[_Pair], capacity: int) -> tvm.IRModule:
    mod = mod.clone()
    flat = relax.transform.ToNonDataflow()(mod)
    mod["main"] = _Caching(flat["main"], pairs, capacity).function()
    return relax.transform.DeadCodeElimination()(mod)


@relax.expr_functor.mutator
class _Caching(relax.PyExprMutator):
    """Puts caches in the place of inputs, and the rows that come in that of results; of one function."""

    def __init__(self, main: relax.Function, pairs: Sequence[_Pair], capacity: int) -> None:
        super().__init__()
        self.main = main
        self.values: dict[tvm.ir.Var, relax.Expr] = {}
        self.pairs = {main.params[pair.input]: pair for pair in pairs}
        self.rows = _rows(main, pairs[0])
        self.filled = relax.Var(FILLED, relax.TensorType([1], "int32"))
        self.caches: dict[tvm.ir.Var, relax.Var] = {}
        for param, pair in self.pairs.items():
            shape = list(param.ty.shape.values)
            shape[pair.axis] = capacity
            self.caches[param] = relax.Var(str(param.name), relax.TensorType(shape, param.ty.dtype))
        self.bound = dict(relax.analysis.get_var2val(main).items())
        self.put: dict[tvm.ir.Var, relax.Expr] = {}  # caches behind joints, by the variable of the joint
        self.whole = main.body.body  # all results, once the last block is there

    def function(self) -> relax.Function:
        """The function that keeps its states."""
        params = [self.caches.get(param, param) for param in self.main.params] + [self.filled]
        if not isinstance(self.rows, int):
            params.append(relax.Var(ROWS, relax.TensorType([self.rows], "uint8")))
        blocks = self.visit_with_new_scope(self.main.body).blocks
        body = relax.BlockBuilder().normalize(relax.SeqExpr(blocks, self.whole))
        return relax.Function(params, body, self.whole.ty, True, self.main.attrs)

    def visit_binding_block_(self, block: relax.BindingBlock) -> relax.BindingBlock:
        first, last = self.main.body.blocks[0], self.main.body.blocks[-1]  # others are of branches
        self.builder_._begin_binding_block()
        if block.same_as(first):
            for param, pair in self.pairs.items():
                self.values[param] = self.builder_.emit(self._first(self.caches[param], pair, self.rows))
        for binding in block.bindings:
            self.visit_binding(binding)
        if block.same_as(last):
            self.whole = self.builder_.emit(self._results())
        return self.builder_._end_block()

    def visit_var_binding_(self, binding: relax.VarBinding) -> None:
        past = self._past(binding.value)
        if past is None:
            super().visit_var_binding_(binding)
            return
        pair, new = self.pairs[past], self.visit_expr(binding.value.args[0].fields[1])
        put = self.builder_.emit(put_rows(self.caches[past], new, self.filled, pair.axis))
        self.put[binding.var] = put
        count = binding.value.ty.shape.values[pair.axis]
        self.values[binding.var] = self.builder_.emit(self._first(put, pair, count), binding.var.name)

    def visit_var_(self, var: tvm.ir.Var) -> relax.Expr:
        return self.values[var] if var in self.values else super().visit_var_(var)

    @staticmethod
    def _first(cache: relax.Expr, pair: _Pair, count: object) -> relax.Expr:
        return relax.op.strided_slice(cache, [pair.axis], [0], [count], assume_inbound=True)

    def _past(self, value: relax.Expr) -> tvm.ir.Var | None:
        """The input that a value joins rows to; None for all else."""
        if not isinstance(value, relax.Call) or str(getattr(value.op, "name", "")) != "relax.concat":
            return None
        fields = value.args[0].fields if isinstance(value.args[0], relax.Tuple) else []
        pair = self.pairs.get(fields[0]) if len(fields) == 2 else None
        rank = len(value.ty.shape.values)
        return fields[0] if pair is not None and int(value.attrs.axis or 0) % rank == pair.axis else None

    def _results(self) -> relax.Expr:
        """The results, caches in the place of those that become inputs."""
        whole = self.main.body.body
        made = self.bound.get(whole, whole)
        fields = list(made.fields) if isinstance(made, relax.Tuple) else [whole]
        results = [self.visit_expr(field) for field in fields]
        start = relax.const([0], "int32")
        for param, pair in self.pairs.items():
            field, cache = self._source(fields[pair.output]), self.caches[param]
            put = self.put.get(field)
            past = None if put is None else self._past(self.bound[field])
            if past is None or not past.same_as(param):
                put = self.builder_.emit(put_rows(cache, results[pair.output], start, pair.axis))
            results[pair.output] = put
        return relax.Tuple(results) if isinstance(made, relax.Tuple) else results[0]

    def _source(self, field: relax.Expr) -> relax.Expr:
        """The variable that another one is another name of."""
        while isinstance(self.bound.get(field), tvm.ir.Var):
            field = self.bound[field]
        return field
