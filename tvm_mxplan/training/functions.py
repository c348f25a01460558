"""The functions of Relax that a step of training runs.

    forward    inputs, weights                                        -> outputs
    step       inputs, targets, key, weights, numbers, slots          -> loss, outputs, new state
    backward   inputs, targets, key, weights, sums of gradients       -> loss, outputs, statistics, new sums
    update     weights, numbers, slots, sums of gradients             -> new state

``step`` is the last two in one, where nothing is accumulated.  New state is trained weights, then the
optimiser's slots one after the other, each of all weights, then for each weight the largest bits that were
written (``operators/update.py``); of a step, statistics stand before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import tvm
from tvm import relax
from tvm.relax import op

from ..errors import InvalidInputError, UnsupportedError
from ..execution.signature import Port
from ..operators.registration import dtype_of, numbers, shape_of
from ..passes.origins import origins_of, with_origins
from .forward import Forward
from .gradients import check_gradients, named_origins, ours, reached, with_stops
from .inlining import inlined, without_stops
from .losses import Loss
from .model import Model
from .optimizers import Optimizer

KEY = Port("key", (2,), "int64")


@dataclass(frozen=True)
class Clipping:
    """Bounds of gradients.

    Attributes
    ----------
    norm : the norm of all gradients together is at most this.
    value : each number of each gradient lies within this from 0.
    """

    norm: float | None = None
    value: float | None = None


@dataclass(frozen=True)
class Recipe:
    """All that decides a step's functions.

    Attributes
    ----------
    batch_norms : whether they work by the batch's statistics, and their running ones change.
    accumulate : gradients of so many calls are averaged before weights change.
    output : the name of the model's result that the loss is of; None for all.
    """

    model: Model
    loss: Loss
    optimizer: Optimizer
    clipping: Clipping
    batch_norms: bool = True
    accumulate: int = 1
    output: str | None = None

    def of_loss(self, outputs: Sequence[relax.Expr]) -> list[relax.Expr]:
        """The outputs that the loss takes.

        Raises
        ------
        InvalidInputError : the model has none of that name.
        """
        if self.output is None:
            return list(outputs)
        if self.output not in self.model.outputs:
            there = ", ".join(self.model.outputs)
            raise InvalidInputError(f"output: the model has no {self.output!r}; it has {there}")
        return [outputs[self.model.outputs.index(self.output)]]

    @property
    def trained(self) -> list[str]:
        """Names of the weights that are trained, in the model's order."""
        return [name for name in self.model.weights if name in self.model.trained]

    @property
    def dtype(self) -> str:
        """The element type of the weights that are trained."""
        found = sorted({str(self.model.weights[name].dtype) for name in self.trained})
        if len(found) > 1:
            raise UnsupportedError(f"weights of types {' and '.join(found)} in one model; expected one type")
        return found[0]


def with_reached(recipe: Recipe) -> Recipe:
    """The recipe that trains, of its weights, those that the loss depends on.

    Raises
    ------
    InvalidInputError : there are none.
    """
    model = recipe.model
    found = reached(model.function, recipe.of_loss(_fields(model.function.body.body)))
    weights = zip(model.weights, model.function.params[len(model.inputs) :], strict=True)
    names = frozenset(name for name, param in weights if name in model.trained and param in found)
    if not names:
        raise InvalidInputError(
            "the loss depends on none of the weights that are trained; name others by trainable=, or let "
            "gradients pass (detach() and no_grad() stop them)"
        )
    return replace(recipe, model=replace(model, trained=names))


@dataclass(frozen=True)
class Built:
    """A module and what its function gives, by name and in order.

    Attributes
    ----------
    targets : inputs of the loss beside the outputs.
    statistics : names of the running statistics among the results.
    outputs : of the model, those that the loss is of.
    """

    mod: tvm.IRModule
    targets: tuple[Port, ...] = ()
    statistics: tuple[str, ...] = ()
    outputs: tuple[Port, ...] = ()


class _Writer:
    """A function that is written: its builder, and parameters as they are asked for."""

    def __init__(self, kernels: tvm.IRModule) -> None:
        self.builder = relax.BlockBuilder(tvm.IRModule(dict(kernels.functions.items())))
        self.params: list[relax.Var] = []

    def param(self, shape: Sequence[int], dtype: str, hint: str) -> relax.Var:
        made = relax.Var(f"{hint}{len(self.params)}", relax.TensorType(list(shape), dtype))
        self.params.append(made)
        return made

    def port(self, port: Port) -> relax.Var:
        return self.param([int(n) for n in port.shape], port.dtype, "data")

    def weights(self, model: Model) -> dict[str, relax.Var]:
        return {
            name: self.param(array.shape, str(array.dtype), "weight") for name, array in model.weights.items()
        }

    def like(self, model: Model, names: Iterable[str], hint: str) -> dict[str, relax.Var]:
        """A parameter like each of the weights."""
        return {
            name: self.param(model.weights[name].shape, str(model.weights[name].dtype), hint)
            for name in names
        }

    def numbers(self, recipe: Recipe) -> list[relax.Var]:
        return [self.param((), recipe.dtype, "number") for _ in recipe.optimizer.numbers]

    def slots(self, recipe: Recipe) -> dict[str, dict[str, relax.Var]]:
        """By the slot's name, then the weight's."""
        return {slot: self.like(recipe.model, recipe.trained, slot) for slot in recipe.optimizer.slots}


def forward_function(model: Model) -> tvm.IRModule:
    """The model for inference, its weights as parameters."""
    writer = _Writer(model.kernels)
    inputs = [writer.port(port) for port in model.inputs]
    weights = writer.weights(model)
    builder = writer.builder

    def without_dropout(call: relax.Call) -> relax.Expr:
        dropped = isinstance(call.op, tvm.ir.Op) and call.op.name == "relax.nn.dropout"
        return relax.Tuple([call.args[0]] * 2) if dropped else without_stops(call)

    with builder.function("main", writer.params):
        with builder.dataflow():
            result = inlined(builder, model.function, [*inputs, *weights.values()], without_dropout)
            fields = [builder.emit_output(one) for one in _fields(result)]
        builder.emit_func_output(relax.Tuple(fields))
    return builder.get()


def step_function(recipe: Recipe, *, gives_gradients: bool = False) -> Built:
    """A whole step; with ``gives_gradients`` the gradients are results as well, the last ones."""
    adjoint = _Adjoint(recipe)
    writer = _Writer(adjoint.kernels)
    arguments = adjoint.parameters(writer)
    numbers, slots = writer.numbers(recipe), writer.slots(recipe)
    builder = writer.builder
    with builder.function("main", writer.params):
        with builder.dataflow():
            results, grads = adjoint.emit(builder, arguments)
            grads = _clipped(builder, grads, recipe.clipping)
            weights = dict(zip(recipe.model.weights, arguments[-len(recipe.model.weights) :], strict=True))
            state = _updated(builder, recipe, weights, grads, numbers, slots)
            every = [*results, *state, *(grads if gives_gradients else ())]
            fields = [builder.emit_output(one) for one in every]
        builder.emit_func_output(relax.Tuple(fields))
    return adjoint.built(_tidied(builder.get()))


def backward_function(recipe: Recipe) -> Built:
    """The gradients of a call, added to sums of earlier ones."""
    adjoint = _Adjoint(recipe)
    writer = _Writer(adjoint.kernels)
    arguments = adjoint.parameters(writer)
    sums = writer.like(recipe.model, recipe.trained, "sum")
    share = relax.const(1 / recipe.accumulate, recipe.dtype)
    builder = writer.builder
    with builder.function("main", writer.params):
        with builder.dataflow():
            results, grads = adjoint.emit(builder, arguments)
            added = [
                op.add(total, op.multiply(grad, share))
                for total, grad in zip(sums.values(), grads, strict=True)
            ]
            fields = [builder.emit_output(one) for one in [*results, *added]]
        builder.emit_func_output(relax.Tuple(fields))
    return adjoint.built(_tidied(builder.get()))


def update_function(recipe: Recipe) -> tvm.IRModule:
    """New weights and slots by sums of gradients."""
    writer = _Writer(tvm.IRModule())
    weights = writer.like(recipe.model, recipe.trained, "weight")
    numbers, slots = writer.numbers(recipe), writer.slots(recipe)
    sums = writer.like(recipe.model, recipe.trained, "sum")
    builder = writer.builder
    with builder.function("main", writer.params):
        with builder.dataflow():
            grads = _clipped(builder, list(sums.values()), recipe.clipping)
            state = _updated(builder, recipe, weights, grads, numbers, slots)
            fields = [builder.emit_output(one) for one in state]
        builder.emit_func_output(relax.Tuple(fields))
    return _tidied(builder.get())


class _Adjoint:
    """Forward, loss and gradients of a model, as TVM's pass makes them."""

    def __init__(self, recipe: Recipe) -> None:
        model, writer = recipe.model, _Writer(recipe.model.kernels)
        self.recipe = recipe
        # The loss says what it takes when it sees the outputs, so these are inferred first.
        taken = recipe.of_loss(_outputs(model))
        self._taken = tuple(Port(str(one.name), shape_of(one), dtype_of(one)) for one in taken)
        self.targets = tuple(recipe.loss.targets(taken))
        arguments = self.parameters(writer)
        inputs, rest = arguments[: len(model.inputs)], arguments[len(model.inputs) :]
        targets, key = rest[: len(self.targets)], rest[len(self.targets)]
        weights = dict(zip(model.weights, rest[len(self.targets) + 1 :], strict=True))
        builder = writer.builder
        names = {var: name for name, var in weights.items()}
        rewrite = Forward(model, builder, key, names, recipe.batch_norms)
        with builder.function("main", writer.params):
            with builder.dataflow():
                result = inlined(builder, model.function, [*inputs, *weights.values()], rewrite)
                outputs = list(_fields(result))
                loss = recipe.loss.emit(builder, recipe.of_loss(outputs), targets)
                self.statistics = tuple(rewrite.statistics)
                every = [loss, *outputs, *rewrite.statistics.values()]
                results = [builder.emit_output(one) for one in every]
            builder.emit_func_output(relax.Tuple(results))
        mod = builder.get()
        wanted = [weights[name] for name in recipe.trained]
        check_gradients(mod["main"], mod["main"].body.body.fields[0], wanted)
        mod[mod.get_global_var("main")] = with_stops(mod["main"], wanted)
        with ours(named_origins(mod["main"])):
            mod = relax.transform.Gradient("main", wanted)(mod)
        self._function = mod["main_adjoint"]
        kept = {
            gvar: function
            for gvar, function in mod.functions.items()
            if gvar.name_hint not in ("main", "main_adjoint")
        }
        self.kernels = tvm.IRModule(kept)

    def built(self, mod: tvm.IRModule) -> Built:
        """A module that has the adjoint in its function."""
        return Built(mod, self.targets, self.statistics, self._taken)

    def parameters(self, writer: _Writer) -> list[relax.Var]:
        """Parameters of the adjoint: inputs, targets, key, weights."""
        data = [writer.port(port) for port in (*self.recipe.model.inputs, *self.targets, KEY)]
        return [*data, *writer.weights(self.recipe.model).values()]

    def emit(
        self, builder: relax.BlockBuilder, arguments: Sequence[relax.Expr]
    ) -> tuple[list[relax.Expr], list[relax.Expr]]:
        """Loss, outputs and statistics; gradients of the trained weights."""
        results, grads = _fields(inlined(builder, self._function, arguments, _summed))
        return list(_fields(results)), list(_fields(grads))


def _summed(call: relax.Call) -> relax.Expr:
    """A sum that brings a gradient to an operand's shape, as a reduction, which libraries take."""
    if not isinstance(call.op, tvm.ir.Op) or call.op.name != "relax.collapse_sum_to":
        return without_stops(call)
    shape, wanted = shape_of(call.args[0]), numbers(call.args[1].values)
    if shape == wanted:
        return call.args[0]
    fresh = len(shape) - len(wanted)
    axes = [at for at, extent in enumerate(shape) if at < fresh or (wanted[at - fresh] == 1 and extent != 1)]
    total = with_origins(op.sum(call.args[0], axes), origins_of(call))
    return op.reshape(total, wanted)


def _outputs(model: Model) -> list[relax.Expr]:
    """Variables of the types of a model's results."""
    result = model.function.ret_ty
    types = list(result.fields) if isinstance(result, relax.TupleType) else [result]
    return [relax.Var(name, found) for name, found in zip(model.outputs, types, strict=True)]


def _fields(expr: relax.Expr) -> list[relax.Expr]:
    """The parts of a tuple, or a tensor alone."""
    if isinstance(expr, relax.Tuple):
        return list(expr.fields)
    if isinstance(expr.ty, relax.TupleType):
        return [relax.TupleGetItem(expr, at) for at in range(len(expr.ty.fields))]
    return [expr]


def _clipped(
    builder: relax.BlockBuilder, grads: Sequence[relax.Expr], clipping: Clipping
) -> list[relax.Expr]:
    """The gradients within their bounds: each number first, then all together."""
    found = list(grads)
    if clipping.value is not None:
        bound = float(clipping.value)
        found = [builder.emit(op.clip(grad, -bound, bound)) for grad in found]
    if clipping.norm is None:
        return found
    found = [builder.emit(grad) for grad in found]
    squares = [builder.emit(op.sum(builder.emit(op.multiply(grad, grad)))) for grad in found]
    total = squares[0]
    for square in squares[1:]:
        total = builder.emit(op.add(total, square))
    dtype = dtype_of(total)
    norm = op.add(op.sqrt(total), relax.const(1e-6, dtype))
    share = op.divide(relax.const(clipping.norm, dtype), norm)
    factor = builder.emit(op.minimum(share, relax.const(1.0, dtype)))
    return [builder.emit(op.multiply(grad, factor)) for grad in found]


def _updated(
    builder: relax.BlockBuilder,
    recipe: Recipe,
    weights: dict[str, relax.Var],
    grads: Sequence[relax.Expr],
    numbers: Sequence[relax.Var],
    slots: dict[str, dict[str, relax.Var]],
) -> list[relax.Expr]:
    """New weights, then each slot's tensors, then the largest bits of each weight's."""
    fresh, kept, every = [], [], []
    for name, grad in zip(recipe.trained, grads, strict=True):
        own = [slots[slot][name] for slot in recipe.optimizer.slots]
        given = weights[name], builder.emit(grad)
        weight, new, largest = recipe.optimizer.emit(builder, *given, own, numbers)
        fresh.append(weight)
        kept.append(new)
        every.append(largest)
    by_slot = [list(row) for row in zip(*kept, strict=True)] if recipe.optimizer.slots else []
    return [*fresh, *(value for row in by_slot for value in row), *every]


def _tidied(mod: tvm.IRModule) -> tvm.IRModule:
    """Without aliases, tuples that are taken apart, and what nothing reads."""
    passes = [
        relax.transform.CanonicalizeBindings(),
        relax.transform.EliminateCommonSubexpr(),
        relax.transform.DeadCodeElimination(["main"]),
    ]
    return tvm.transform.Sequential(passes)(mod)
