"""A second library for tests: ReLU and exp as loops that TVM compiles, in regions of their own.

Each region becomes one function of TVM's, in one module of machine code, with no weights to pack, no arena,
and no layout but the plain one.  docs/adding_a_backend.md explains it part by part.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tvm
from tvm import relax, te, tirx
from tvm.relax.dpl import is_op, wildcard

from tvm_mxplan.byoc.backend import Refuse, Translation
from tvm_mxplan.byoc.composite import Composite
from tvm_mxplan.byoc.engine import Engine
from tvm_mxplan.byoc.registry import Library
from tvm_mxplan.byoc.roofline import moving_us
from tvm_mxplan.byoc.translate import check_numbers, translate_region
from tvm_mxplan.core.description import Description, Implementation, StepInfo, ValueInfo
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.layout.layout_registry import LayoutRegistry
from tvm_mxplan.core.layout.layout_rules import LayoutRules
from tvm_mxplan.core.machine import MachineRates
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.dims import is_static, static_shape
from tvm_mxplan.core.step_facts import StepFacts
from tvm_mxplan.passes.relax_types import dtype_of, shape_of

NAME = "mxplan_loops"
IMPLEMENTATION = "tvm:loops"

# --- patterns and checks: what it takes, and why it does not take the rest -------------------------------

OPERATORS = {"relu": "nn.relu", "exp": "exp"}


def patterns(refuse: Refuse) -> list[relax.transform.FusionPattern]:
    """A composite for each operator; a check that refuses says why."""

    def check(context: relax.transform.PatternCheckContext) -> bool:
        call = context.matched_expr
        shape = shape_of(call)
        if dtype_of(call) == "float32" and shape is not None and is_static(shape):
            return True
        refuse(str(call.op.name), "loops take float32 of fixed shapes")
        return False

    return [
        relax.transform.FusionPattern(f"{NAME}.{row}", is_op(f"relax.{operator}")(wildcard()), {}, check)
        for row, operator in OPERATORS.items()
    ]


# --- codegen: what each composite becomes ---------------------------------------------------------------


def _eltwise(algorithm: str) -> Callable[[Composite], int]:
    def translate(c: Composite) -> int:
        return c.emit("eltwise", ir.Eltwise(algorithm, 0.0, 0.0), ("src", c.value(c.root.args[0])))

    return translate


TRANSLATE = {row: _eltwise(row) for row in OPERATORS}

# --- the runtime: a program as a function of TVM's ------------------------------------------------------


def _loop(step: ir.Step, source: te.Tensor) -> te.Tensor:
    zero = tirx.const(0.0, "float32")
    bodies = {"relu": lambda x: tirx.max(x, zero), "exp": tirx.exp}
    assert isinstance(step.attrs, ir.Eltwise)
    return te.compute(source.shape, lambda *at: bodies[step.attrs.algorithm](source(*at)), step.name)


def compiled(symbol: str, program: ir.Program) -> tvm.runtime.Module:
    """A module whose function ``symbol`` takes the program's inputs, then its outputs."""
    tensors: dict[int, te.Tensor] = {}
    for number in program.of_kind("input"):
        tensors[number] = te.placeholder(static_shape(program.values[number].shape), "float32", "x")
    for step in program.steps:
        source = tensors[program.root(step.operand("src"))]  # views, results in place: the owner of the bytes
        tensors[program.root(step.dst)] = _loop(step, source)
    ports = [tensors[number] for kind in ("input", "output") for number in program.of_kind(kind)]
    function = te.create_prim_func(ports).with_attr("global_symbol", symbol)
    return tvm.compile(tvm.IRModule({symbol: function}), tvm.target.Target.current() or "llvm").mod


# --- the planner's side ---------------------------------------------------------------------------------


class Loops:
    """TVM's loops as a library; see :class:`tvm_mxplan.byoc.backend.Backend`."""

    library = "loops"
    name = NAME
    takes_arena = False
    literal = ()
    shares = None

    def __init__(self) -> None:
        self._refused: dict[str, str] = {}

    def layout_rules(self, step: ir.Step) -> LayoutRules:
        return LayoutRules()

    def layouts(self) -> LayoutRegistry:
        return LayoutRegistry()

    def patterns(self, refuse: Refuse) -> list[relax.transform.FusionPattern]:
        return patterns(refuse)

    def translate(self, region: relax.Function, name: str, machine: MachineRates) -> Translation:
        program, constants = translate_region(region, name, NAME, TRANSLATE)
        check_numbers(program)
        return Translation(program, constants)

    def describe(self, program: ir.Program) -> Description:
        values = [_settled(value) for value in program.values]
        steps = []
        for step in program.steps:
            plain = all(values[one.value].layout == _plain(program, one.value) for one in step.operands)
            known = isinstance(step.attrs, ir.Eltwise) and step.attrs.algorithm in OPERATORS
            error = "" if plain and known else "loops know ReLU and exp on plain tensors"
            descriptor = f"{step.attrs} {program.values[step.dst].shape}"
            error = error or self._refused.get(descriptor, "")
            steps.append(StepInfo(IMPLEMENTATION, 0, 0, error, descriptor=descriptor))
        return Description(tuple(steps), tuple(values))

    def lacks(self, dtype: str) -> str:
        return "" if dtype == "float32" else f"loops take no {dtype}"

    def implementation(self, name: str) -> Implementation:
        return Implementation(name)

    def cost(self, facts: StepFacts, machine: MachineRates) -> float:
        return moving_us(facts, machine)

    def refuse(self, descriptor: str, implementation: str, reason: str) -> None:
        self._refused[descriptor] = reason

    def create_module(
        self, symbol: str, program: ir.Program, constants: list[tvm.runtime.Tensor]
    ) -> tvm.runtime.Module:
        return compiled(symbol, program)

    def trial(self, program: ir.Program, constants: list[np.ndarray]) -> Callable[..., object]:
        function, taken = compiled("trial", program)["trial"], len(program.of_kind("input"))

        def run(*arrays: np.ndarray) -> None:
            tensors = [tvm.runtime.tensor(array) for array in arrays]  # TVM's kernels want aligned ones
            function(*tensors)
            for output, tensor in list(zip(arrays, tensors, strict=True))[taken:]:
                output[...] = tensor.numpy()

        return run

    def modules_to_export(self, module: tvm.runtime.Module) -> list[tvm.runtime.Module]:
        return [module]


def _plain(program: ir.Program, value: int) -> str:
    return plain_layout(len(program.values[value].shape))


def _settled(value: ir.Value) -> ValueInfo:
    """The plain layout where a value may have any, and its bytes."""
    layout = plain_layout(len(value.shape)) if value.layout == "any" else value.layout
    return ValueInfo(layout, 4 * int(np.prod(static_shape(value.shape))))


# --- the row in the registry ----------------------------------------------------------------------------


class LoopsEngine(Engine):
    """Nothing but a name: kernels of TVM's have no threads, caches or weights of their own."""

    name = "loops"


LIBRARY = Library("loops", NAME, Loops, LoopsEngine, ("loops",))
