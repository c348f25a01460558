"""``PropagateLayouts``: tensors between regions keep the layout in which they are, where that saves reorders.

Before   lv = mxplan_onednn_0(x)     (1, 16, 8, 8)      reorders what it has in aBcd16b to abcd
         lv1 = R.sin(lv)
         gv = mxplan_onednn_1(lv1)                      reorders it to aBcd16b
After    lv = mxplan_onednn_0(x)     (1, 1, 8, 8, 16)   no reorder
         lv1 = R.sin(lv)
         gv = mxplan_onednn_1(lv1)

TVM's elementwise operators work on physical buffers as on any other; a function's own parameters and results
stay plain.  What could cross is found in ``border_analysis`` and ``border_programs``, what does in
``border_choice``; regions change in ``border_regions``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import NamedTuple

import tvm
from tvm import relax

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.machine import MachineRates, default_rates
from tvm_mxplan.core.program.dims import Shape
from tvm_mxplan.core.step_facts import reorder_facts

from ..physical import physical_array, physical_type
from ..region.attached import program_of, regions
from ..relax_types import is_constant, make_constant, shape_of
from .border_analysis import FunctionBorders, RegionCall, analyse
from .border_choice import BorderChoice, choose_layouts
from .border_programs import Forms, borders_of, ports_of
from .border_regions import cross_region


class Variant(NamedTuple):
    """A region with its inputs and results in certain layouts."""

    region: tvm.ir.GlobalVar
    takes: Forms
    gives: Forms


@tvm.transform.module_pass(opt_level=0, name="PropagateLayouts")
class PropagateLayouts:
    """Module pass; see the module's text.

    Parameters
    ----------
    machine : what the machine that is planned for can do.
    """

    def __init__(self, backend: Backend, machine: MachineRates | None = None) -> None:
        self.backend = backend
        self.machine = default_rates() if machine is None else machine

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        found = dict(regions(mod, self.backend.name))
        borders = {gvar: borders_of(program_of(region)) for gvar, region in found.items()}
        rewriters: dict[tvm.ir.GlobalVar, _Rewriter] = {}
        for gvar, function in mod.functions.items():
            if gvar not in found and isinstance(function, relax.Function):
                read = analyse(function, borders)
                rewriters[gvar] = _Rewriter(read, choose_layouts(read.graph, self._reorder_us, self.machine))
        wanted = [variant for rewriter in rewriters.values() for variant in rewriter.crossing.values()]
        if not wanted:
            return mod
        mod = mod.clone()
        variants = _add_regions(mod, found, wanted, self.backend)
        for gvar, rewriter in rewriters.items():
            if rewriter.crossing:
                mod.update_func(gvar, rewriter.function(mod[gvar], variants))
        return relax.transform.Normalize()(mod)

    def _reorder_us(self, shape: tuple[int, ...], dtype: str, source: str, target: str) -> float:
        return self.backend.cost(reorder_facts(shape, dtype, source, target), self.machine)


class _Rewriter:
    """Writes a choice into the function that calls regions.

    Attributes
    ----------
    crossing : by the variable that a call is bound to, the region that it needs instead.
    """

    def __init__(self, borders: FunctionBorders, choice: BorderChoice) -> None:
        self.borders = borders
        self.choice = choice
        self.crossing: dict[tvm.ir.Var, Variant] = {}
        for var, call in borders.calls.items():
            takes = tuple(choice.takes[number] for number in call.takes)
            gives = tuple(choice.gives[number] for number in call.gives)
            values = [borders.graph.takes[number].value for number in call.takes]
            values += [borders.graph.gives[number].value for number in call.gives]
            if (*takes, *gives) != tuple((self._plain(value),) for value in values):
                self.crossing[var] = Variant(call.gvar, takes, gives)
        self.variants: Mapping[Variant, tvm.ir.GlobalVar] = {}
        self.homes: dict[tuple[int, str], tvm.ir.Var] = {}
        self.results: dict[tvm.ir.Var, dict[tuple[int, str], relax.TupleGetItem]] = {}

    def function(
        self, function: relax.Function, variants: Mapping[Variant, tvm.ir.GlobalVar]
    ) -> relax.Function:
        self.variants = variants
        blocks = [
            type(block)([new for binding in block.bindings for new in self._binding(binding)])
            for block in function.body.blocks
        ]
        body = relax.SeqExpr(blocks, function.body.body)
        return relax.Function(
            function.params, body, function.ret_ty, function.is_pure, function.attrs, function.span
        )

    def _binding(self, binding: relax.Binding) -> list[relax.Binding]:
        var = binding.var
        call = self.borders.calls.get(var)
        if call is not None and var in self.crossing:
            return self._call(var, binding.value, call)
        if var in self.borders.operators:
            layout = self.choice.operators[self.borders.operators[var]]
            if layout != self._plain(self.borders.numbers[var]):
                return [self._operator(var, binding.value, layout)]
        value = getattr(binding, "value", None)
        if isinstance(value, relax.TupleGetItem) and value.tuple_value in self.results:
            return self._item(var, value)
        return [binding]

    def _plain(self, number: int) -> str:
        return self.borders.graph.tensors[number].plain

    def _in(self, expr: relax.Expr, layout: str) -> relax.Expr:
        """``expr`` in ``layout``: itself where that is plain."""
        number = self.borders.numbers.get(expr)
        return expr if number is None else self.homes.get((number, layout), expr)

    def _operator(self, var: tvm.ir.Var, call: relax.Call, layout: str) -> relax.Binding:
        args = [
            _stored(arg, layout, shape_of(var)) if is_constant(arg) else self._in(arg, layout)
            for arg in call.args
        ]
        new = self._home(var, self.borders.numbers[var], layout, physical_type(var.ty, layout))
        return relax.VarBinding(new, relax.Call(call.op, args, call.attrs, call.ty_args, call.span))

    def _home(self, var: tvm.ir.Var, value: int, layout: str, type_: tvm.ir.Type) -> tvm.ir.Var:
        """A new variable for ``value`` in a physical layout, of the scope and name of ``var``."""
        self.homes[value, layout] = type(var)(f"{var.name}_{layout}", type_)
        return self.homes[value, layout]

    def _call(self, var: tvm.ir.Var, value: relax.Call, call: RegionCall) -> list[relax.Binding]:
        variant = self.crossing[var]
        tensors = [arg for arg in value.args if isinstance(arg.ty, relax.TensorType)]
        ports = [self._in(tensors[number], layout) for number, layout in ports_of(variant.takes)]
        first = iter(ports)
        args = [next(first) if isinstance(arg.ty, relax.TensorType) else arg for arg in value.args]
        new_call = relax.Call(self.variants[variant], [*args, *first], value.attrs, value.ty_args)
        return self._results(var, new_call, call, variant.gives)

    def _results(
        self, var: tvm.ir.Var, new_call: relax.Call, call: RegionCall, gives: Forms
    ) -> list[relax.Binding]:
        """Bindings of a region's results; the plain ones of several are left to ``_item``."""
        several = isinstance(var.ty, relax.TupleType)
        old = list(var.ty.fields) if several else [var.ty]
        values = [self.borders.graph.gives[give].value for give in call.gives]
        ports = [(values[number], layout, old[number]) for number, layout in ports_of(gives)]
        types = [
            type_ if layout == self._plain(value) else physical_type(type_, layout)
            for value, layout, type_ in ports
        ]
        if len(ports) == 1 and not several:
            value, layout, _ = ports[0]
            new = var if layout == self._plain(value) else self._home(var, value, layout, types[0])
            return [relax.VarBinding(new, new_call)]
        together = type(var)(var.name, relax.TupleType(types))
        self.results[var] = {port[:2]: relax.TupleGetItem(together, at) for at, port in enumerate(ports)}
        bindings: list[relax.Binding] = [relax.VarBinding(together, new_call)]
        for (value, layout), item in self.results[var].items():
            if layout != self._plain(value):
                bindings.append(relax.VarBinding(self._home(var, value, layout, types[item.index]), item))
            elif not several:
                bindings.append(relax.VarBinding(var, item))
        if call.whole:
            whole = [self.results[var][value, self._plain(value)] for value in values]
            bindings.append(relax.VarBinding(var, relax.Tuple(whole)))
        return bindings

    def _item(self, var: tvm.ir.Var, item: relax.TupleGetItem) -> list[relax.Binding]:
        """A result of a region, where something wants it plain."""
        value = self.borders.numbers[var]
        new = self.results[item.tuple_value].get((value, self._plain(value)))
        return [] if new is None else [relax.VarBinding(var, new)]


def _add_regions(
    mod: tvm.IRModule,
    found: Mapping[tvm.ir.GlobalVar, relax.Function],
    wanted: Sequence[Variant],
    backend: Backend,
) -> dict[Variant, tvm.ir.GlobalVar]:
    """Put the variants of regions into the module; one that replaces its region takes its name."""
    calls, crossing = calls_of_functions(mod), Counter(variant.region for variant in wanted)
    free = {region: region.name_hint for region in crossing if crossing[region] == calls[region]}
    for region in free:
        del mod[region]
    taken = {gvar.name_hint for gvar in mod.functions} | set(free.values())
    gvars: dict[Variant, tvm.ir.GlobalVar] = {}
    for variant in dict.fromkeys(wanted):
        name = free.pop(variant.region, None) or unique_name(variant.region.name_hint, taken)
        taken.add(name)
        region = found[variant.region]
        if name != variant.region.name_hint:
            region = relax.utils.copy_with_new_vars(region)
        region = cross_region(region, name, variant.takes, variant.gives, backend)
        gvars[variant] = tvm.ir.GlobalVar(name)
        relax.expr._update_type(gvars[variant], region.ty)
        mod[gvars[variant]] = region
    return gvars


def _stored(constant: tvm.ir.GenericConst, layout: str, shape: Shape | None) -> tvm.ir.GenericConst:
    """A constant that broadcasts to ``shape``, in ``layout``; a single number fits every layout."""
    array = constant.value.numpy()
    return constant if array.size == 1 else make_constant(physical_array(array, layout, shape))  # type: ignore[arg-type]


def unique_name(stem: str, taken: set[str]) -> str:
    """The stem with the first number behind it that gives a name which is free."""
    return next(name for name in (f"{stem}_{number}" for number in count(1)) if name not in taken)


def calls_of_functions(mod: tvm.IRModule) -> Counter[tvm.ir.GlobalVar]:
    """Counts the mentions of each function in other functions."""
    found: Counter[tvm.ir.GlobalVar] = Counter()

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, relax.Call):
            found.update(part for part in (expr.op, *expr.args) if isinstance(part, tvm.ir.GlobalVar))

    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    return found
