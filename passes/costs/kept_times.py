"""Estimated times of the operators that TVM keeps, at a machine's rates.

They stand beside those of regions, which take what their libraries say of their steps
(``passes/costs/model.py``).  An operator of TVM's takes the longer of

    moving   its operands and its result at the speed that one thread has of the nearest memory which holds
             them, but for what TVM fuses into one kernel
    working  cycles of one core for each multiply-add or element: TVM's CPU pipeline makes no loop parallel

and what the VM takes to call its kernel, a share of a region's call.  The clock is the one at which the
threads reach the machine's rate for AVX2.  The cycles below were read off single operators in TVM's
pipeline (Zen 4, 100,000 to 2,000,000 elements); a kernel may well take a third of what is said here, or
three times as much.  Where shapes are symbolic, plausible numbers stand for them.  What is done to
constants alone is done while compiling.  An operator counts once wherever it stands: in both branches of an
``if``, and in the body of a loop.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import tvm
from tvm import relax, tirx

from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program.specialize import typical_shape

from ..borders.elementwise import OPERATORS
from ..kernels.serial_small_kernels import work
from ..relax_types import RESHAPES, is_constant, operator_name, shape_of
from . import multiply_adds

SURE = 1.25
"""The preferred one keeps what others are estimated to run less than so many times faster: both may err."""
_MULTIPLY_ADD = 2.5
"""Cycles: between 0.25 where LLVM finds vectors (depthwise) and 14 where caches do not hold a matrix."""
_LOAD_OR_STORE = 0.7
_ELEMENT, _MOVED, _ROOT, _EXPONENTIAL, _TRANSCENDENTAL = 0.25, 2.0, 1.0, 8.0, 30.0
_REDUCED, _ARGUMENT, _NORMED = 1.75, 3.0, 6.0
_SHORT, _OF_SHORT = 64, 0.4
"""Elements of the last axis below which reductions take this share of their cycles: LLVM unrolls its loop."""
_TAKEN_ALONE = 1.2
"""For each element that is taken by its index, where no neighbours come with it."""
_CALL = 0.6
"""Of a region's call is what the VM takes for each kernel of TVM's, which has no context."""
_SORTED = 20.0
"""For each comparison of a sort."""
_REDUCTIONS = ("sum", "mean", "max", "min", "prod")
_CYCLES = {
    **dict.fromkeys(OPERATORS, _ELEMENT),
    **dict.fromkeys(["sqrt", "rsqrt", "where", "mod", "floor_mod", "floor_divide"], _ROOT),
    **dict.fromkeys(["exp", "log", "sigmoid", "nn.silu", "nn.softplus", "nn.selu"], _EXPONENTIAL),
    **dict.fromkeys(["tanh", "power", "log_add_exp", "nn.gelu_tanh"], 2 * _EXPONENTIAL),
    **dict.fromkeys(
        ["erf", "nn.gelu", "sin", "cos", "tan", "asin", "acos", "atan", "atan2"], _TRANSCENDENTAL
    ),
    **dict.fromkeys(["sinh", "cosh", "asinh", "acosh", "atanh"], _TRANSCENDENTAL),
    **dict.fromkeys(["full", "zeros", "ones", "zeros_like", "ones_like", "full_like"], _ELEMENT),
    **dict.fromkeys(["nn.relu", "nn.leakyrelu", "nn.prelu", "nn.pad"], _ELEMENT),
    **dict.fromkeys(["take", "strided_slice", "broadcast_to"], _ELEMENT),
    **dict.fromkeys(["quantize", "dequantize", "tile", "repeat", "ewise_fma"], _ROOT),
    **dict.fromkeys(_REDUCTIONS, _REDUCED),
    **dict.fromkeys(["argmax", "argmin"], _ARGUMENT),
    **dict.fromkeys(["variance", "std", "nn.rms_norm"], _NORMED),
    **dict.fromkeys(["nn.layer_norm", "nn.group_norm", "nn.instance_norm"], _NORMED),
    **dict.fromkeys(["nn.softmax", "nn.log_softmax"], _NORMED / 2 + _EXPONENTIAL),
    "concat": 0.5,
    "mxplan.update": 0.5,
    "topk": 20.0,
}
"""For each element of the larger of operands and result; of all others ``_MOVED``."""
_RESIZED = {"linear": 4.0, "cubic": 23.0}
_SAMPLED, _PLACE = {"nearest": 3.0, "bilinear": 7.0, "bicubic": 18.0}, 3.0
"""The same by the method of a resize, and of reading an image at places; what one takes for all channels."""
_SORTS = ("sort", "argsort", "unique", "median")
VIEWS = (*RESHAPES, "memory.view", "nn.dropout")
_KERNELS = ("call_tir", "call_tir_inplace")
_PARTLY_READ = ("take", "strided_slice", "gather_elements", "gather_nd", "image.grid_sample")
"""Operators that read no more of their first operand than they write, however large it is."""
SHAPES = ("shape_of", "shape_to_tensor", "tensor_to_shape", "size", "null_value")
_FUSED = {*OPERATORS, "nn.relu", "nn.leakyrelu", "nn.prelu", "nn.pad", "layout_transform"} | {
    *("broadcast_to", "concat", "permute_dims", "strided_slice", "split", "take", "tile", "repeat", "flip")
}
"""The operators that TVM computes in one kernel with what made the operand, or with what reads the result."""
_ANCHORS = ("matmul", "nn.conv", "nn.max_pool", "nn.avg_pool", "nn.adaptive_avg_pool")
"""Beginnings of the kinds that only have their results fused to."""


@dataclass(frozen=True)
class KeptCall:
    """An operator that TVM keeps.

    Attributes
    ----------
    us : None where its shapes are not known.
    kernel : the kernel that it calls, of a front end's or the user's; empty for TVM's operators.
    """

    operator: str
    kind: str
    us: float | None
    kernel: str = ""


def kept_calls(mod: tvm.IRModule, threads: int, machine: MachineRates) -> list[KeptCall]:
    """The operators outside of regions, in their order.

    Parameters
    ----------
    threads : of the library, which reach the machine's peak together.
    """
    clock = machine.cycles_per_us(threads)
    found: list[KeptCall] = []
    for _, function in sorted(mod.functions.items(), key=lambda item: item[0].name_hint):
        if isinstance(function, relax.Function) and not (function.attrs and function.attrs.get("Codegen")):
            found += _Function(mod, function).kept(clock, machine)
    return found


def kept_times(
    mod: tvm.IRModule, function: relax.Function, threads: int, machine: MachineRates
) -> dict[tvm.ir.Var, float | None]:
    """Microseconds of each operator of a function in TVM's kernels, by the variable of its result."""
    return _Function(mod, function).times(machine.cycles_per_us(threads), machine)


def kind_of(call: relax.Call) -> str:
    """``nn.conv2d`` for a call to ``relax.nn.conv2d``."""
    return str(call.op.name).removeprefix("relax.")


class _Function:
    """Reads from a function's bindings which operators work on constants, and which TVM fuses."""

    def __init__(self, mod: tvm.IRModule, function: relax.Function) -> None:
        self._mod = mod
        self._values = dict(relax.analysis.get_var2val(function).items())
        self._constants: set[tvm.ir.Var] = set()
        read = Counter(variable for value in self._values.values() for variable in _read(value))
        read.update(_read(relax.Tuple([function.body.body])))
        self._unstored = {
            variable
            for reader in self._values.values()
            if _is_operator(reader) and kind_of(reader) in _FUSED
            for variable in _read(reader)
            if read[variable] == 1 and _is_fused(self._values.get(variable))
        }

    def kept(self, clock: float, machine: MachineRates) -> list[KeptCall]:
        """The operators, with what they take."""
        found = []
        for variable, call in self._values.items():
            if _is_operator(call):
                us = self._us(variable, call, clock, machine)
                kind = kind_of(call)
                kernel = str(call.args[0].name_hint) if kind in _KERNELS else ""
                found.append(KeptCall(operator_name(call) or kind, kind, us, kernel))
        return found

    def times(self, clock: float, machine: MachineRates) -> dict[tvm.ir.Var, float | None]:
        """Microseconds of each operator, by its variable."""
        return {
            variable: self._us(variable, call, clock, machine)
            for variable, call in self._values.items()
            if _is_operator(call)
        }

    def _us(
        self, variable: tvm.ir.Var, call: relax.Call, clock: float, machine: MachineRates
    ) -> float | None:
        kind = kind_of(call)
        operands = _tensors(call.args)
        if operands and all(is_constant(one) or one in self._constants for one in operands):
            self._constants.add(variable)
            return 0.0
        if kind in VIEWS or kind in SHAPES:
            return 0.0
        results = _parts(call.ty)
        touched = results if kind in _PARTLY_READ else [*(one.ty for one in operands), *results]
        sizes = [size for one in touched if (size := _elements(one)) is not None]
        if len(sizes) < len(touched) or not results:
            return None
        bytes_written = sum(map(_bytes, results))
        read = [_bytes(one.ty) for one in operands if one not in self._unstored]
        if kind in _PARTLY_READ and operands[0] not in self._unstored:
            read[0] = min(read[0], bytes_written)
        moved = sum(read) + (0 if variable in self._unstored else bytes_written)
        started = 0.0 if variable in self._unstored else _CALL * machine.region_us
        return started + max(machine.copying_alone_us(moved), self._cycles(call, max(sizes)) / clock)

    def _cycles(self, call: relax.Call, elements: int) -> float:
        kind = kind_of(call)
        products = multiply_adds.of_call(call, typical_shape)
        if products:
            return _MULTIPLY_ADD * products
        if kind in _KERNELS:
            kernel = self._mod[call.args[0]]
            known = work(kernel.body) if isinstance(kernel, tirx.PrimFunc) else math.inf
            return _LOAD_OR_STORE * known if known < math.inf else _MOVED * elements
        if "pool" in kind:
            window = math.prod(int(extent) for extent in getattr(call.attrs, "pool_size", ()))
            return _ELEMENT * elements * window
        if kind in _SORTS:
            return _SORTED * elements * max(1.0, math.log2(_row(call)))
        return _cycles_of_element(call, kind) * elements


def _row(call: relax.Call) -> int:
    """Elements that are sorted together: those of one axis, or all."""
    shape = shape_of(call.args[0])
    axis = getattr(call.attrs, "axis", None)
    extents = typical_shape(shape) if shape else (1,)
    return max(1, extents[int(axis)] if axis is not None else math.prod(extents))


def _cycles_of_element(call: relax.Call, kind: str) -> float:
    """Cycles for each element of the larger of operands and result, by the kind and the axes it works on."""
    if kind.startswith("image.resize"):
        return _RESIZED.get(str(call.attrs.method), _MOVED)
    if kind == "image.grid_sample":
        image = shape_of(call)
        channels = typical_shape(image)[1] if image and len(image) > 1 else 1
        return _SAMPLED.get(str(call.attrs.method), _MOVED) + _PLACE / max(1, channels)
    cycles = _CYCLES.get(kind, _MOVED)
    shape = shape_of(call.args[0]) if call.args and kind in (*_REDUCTIONS, "take") else None
    if not shape:
        return cycles
    extents = typical_shape(shape)
    if kind == "take":
        axis = getattr(call.attrs, "axis", None)
        alone = axis is not None and math.prod(extents[int(axis) % len(extents) + 1 :]) == 1
        return _TAKEN_ALONE if alone else cycles
    return _OF_SHORT * cycles if extents[-1] < _SHORT else cycles


def _is_operator(expr: relax.Expr | None) -> bool:
    return (
        isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op) and expr.op.name.startswith("relax.")
    )


def _is_fused(expr: relax.Expr | None) -> bool:
    """Whether what reads the result alone may run in the kernel that computes it."""
    return _is_operator(expr) and (kind_of(expr) in _FUSED or kind_of(expr).startswith(_ANCHORS))


def _tensors(args: Sequence[relax.Expr]) -> list[relax.Expr]:
    """Operands that are tensors, those in tuples too."""
    found: list[relax.Expr] = []
    for arg in args:
        if isinstance(arg, relax.Tuple):
            found += _tensors(arg.fields)
        elif isinstance(getattr(arg, "ty", None), relax.TensorType):
            found.append(arg)
    return found


def _read(value: relax.Expr) -> list[tvm.ir.Var]:
    """Variables that an expression reads."""
    found: dict[tvm.ir.Var, None] = {}

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, tvm.ir.Var):
            found.setdefault(expr)

    if not isinstance(value, relax.Function | relax.If):
        relax.analysis.post_order_visit(value, visit)
    return list(found)


def _parts(kind: tvm.ir.Type) -> list[relax.TensorType]:
    """The tensors of a type."""
    if isinstance(kind, relax.TupleType):
        return [part for field in kind.fields for part in _parts(field)]
    return [kind] if isinstance(kind, relax.TensorType) else []


def _elements(kind: relax.TensorType) -> int | None:
    """Elements of a tensor, at plausible numbers; None where its shape is not known."""
    shape = shape_of(relax.Var("tensor", kind))
    return None if shape is None else math.prod(typical_shape(shape))


def _bytes(kind: relax.TensorType) -> int:
    element = tvm.DataType(str(kind.dtype))
    return (_elements(kind) or 0) * -(-element.bits * element.lanes // 8)
