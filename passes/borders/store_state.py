"""``StoreState``: weights that a step changes stand in the layout on which their readers agree best.

Before   def main(x, w (64, 64, 3, 3), m, rate):
             g = mxplan_onednn_0(x, w)                     state 0: v1 input w abcd, v4 output g abcd
             w1, m1 = mxplan.update(w, g, m, rate)
After    def main(x, w (4, 4, 3, 3, 16, 16), m likewise, rate):
             g = mxplan_onednn_0(x, w)                     state 0: v1 input w ABcd16b16a, v4 likewise
             w1, m1 = mxplan.update(w, g, m, rate)         the same arithmetic, padding included

Before, the region packs w twice and brings g back to the plain layout; then it packs w for its data gradient
alone.  The function's interface changes with its state; how a parameter is stored, the programs of its
regions say (``mark_state.stored_state``).  A weight keeps the plain layout where something else reads it or
its gradient, and where nothing is gained.  An update is elementwise, so padding that is 0 stays 0.

What regions want is found in ``state_programs``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import tvm
import tvm_ffi
from tvm import relax

from tvm_mxplan.byoc.backend import Backend
from tvm_mxplan.core.layout.layout import plain_layout
from tvm_mxplan.core.machine import MachineRates, default_rates
from tvm_mxplan.core.step_facts import reorder_facts
from tvm_mxplan.operators.registration import dtype_of
from tvm_mxplan.operators.update import UPDATE

from ..layout.queries import StepQueries
from ..region.attached import program_of, regions
from .mark_state import functions_with_state
from .propagate_layouts import calls_of_functions, unique_name
from .state_programs import StateWish, StoredForm, wishes_of
from .state_regions import Port, form_type, with_forms
from .state_weights import Weight, storable_weights

CONVERTING = "mxplan.converting"
"""Attribute of such a function: steps that convert a weight or its gradient in every call."""


@tvm.transform.module_pass(opt_level=0, name="StoreState")
class StoreState:
    """Module pass; see the module's text."""

    def __init__(self, backend: Backend, machine: MachineRates | None = None) -> None:
        self.backend = backend
        self.machine = default_rates() if machine is None else machine

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        found = dict(regions(mod, self.backend.name))
        for gvar in functions_with_state(mod, found):
            forms, converting = self._chosen(storable_weights(mod[gvar], found), found)
            if forms:
                mod = self._rewritten(mod, gvar, forms, found)
            mod.update_func(gvar, mod[gvar].with_attr(CONVERTING, converting))
        return mod

    def _chosen(
        self, weights: Sequence[Weight], found: Mapping[tvm.ir.GlobalVar, relax.Function]
    ) -> tuple[dict[Weight, StoredForm], list[str]]:
        """The forms of weights that are not stored plain, and the steps that convert weights all the same."""
        queries = StepQueries(self.backend)
        programs = {gvar: program_of(region) for gvar, region in found.items()}
        chosen: dict[Weight, StoredForm] = {}
        converting: list[str] = []
        for weight in weights:
            ports = [(programs[port.region], port) for port in weight.ports]
            asked = [wishes_of(program, port.value(program), queries) for program, port in ports]
            marked = all(program.values[port.value(program)].state >= 0 for program, port in ports)
            wishes = [wish for some in asked for wish in some or ()]
            if not marked or None in asked or not wishes:
                continue
            best = self._best(wishes, dtype_of(weight.params[0]), queries)
            if best is not None:
                chosen[weight] = best
            converting += [wish.step for wish in wishes if not wish.form.is_stored_as(best)]
        return chosen, converting

    def _best(self, wanted: Sequence[StateWish], dtype: str, queries: StepQueries) -> StoredForm | None:
        """The form in which the steps convert at the least cost; None where plain is as good."""
        shape = wanted[0].form.shape
        if any(wish.form.shape != shape for wish in wanted):
            return None

        def conversion(wish: StateWish, layout: str) -> float:
            pair = (wish.form.layout, layout) if wish.gives else (layout, wish.form.layout)
            return self.backend.cost(queries.converting(reorder_facts(shape, dtype, *pair)), self.machine)

        def cost(layout: str) -> float:
            return sum(conversion(wish, layout) for wish in wanted if wish.form.layout != layout)

        plain = plain_layout(len(shape))
        best = min([plain, *(wish.form.layout for wish in wanted)], key=cost)
        return None if best == plain else StoredForm(shape, best)

    def _rewritten(
        self,
        mod: tvm.IRModule,
        gvar: tvm.ir.GlobalVar,
        forms: Mapping[Weight, StoredForm],
        found: Mapping[tvm.ir.GlobalVar, relax.Function],
    ) -> tvm.IRModule:
        at_calls: dict[tvm.ir.Var, dict[Port, StoredForm]] = {}
        region_of: dict[tvm.ir.Var, tvm.ir.GlobalVar] = {}
        for weight, form in forms.items():
            for port in weight.ports:
                at_calls.setdefault(port.call, {})[port.kind, port.number] = form
                region_of[port.call] = port.region
        mod = mod.clone()
        calls, crossing = calls_of_functions(mod), Counter(region_of.values())
        taken = {one.name_hint for one in mod.functions}
        free = {region: region.name_hint for region in crossing if crossing[region] == calls[region]}
        for region in free:
            del mod[region]
        made: dict[tuple[tvm.ir.GlobalVar, frozenset[object]], tvm.ir.GlobalVar] = {}
        variants: dict[tvm.ir.Var, tvm.ir.GlobalVar] = {}
        for call, ports in at_calls.items():
            region = region_of[call]
            key = region, frozenset(ports.items())
            if key not in made:
                name = free.pop(region, None) or unique_name(region.name_hint, taken)
                taken.add(name)
                changed = with_forms(found[region], name, ports, self.backend)
                made[key] = tvm.ir.GlobalVar(name)
                relax.expr._update_type(made[key], changed.ty)
                mod[made[key]] = changed
            variants[call] = made[key]
        mod.update_func(gvar, _Rewriter(forms, variants).function(mod[gvar]))
        return relax.transform.Normalize()(mod)


class _Rewriter:
    """Writes forms into the function that has the state."""

    def __init__(
        self, forms: Mapping[Weight, StoredForm], variants: Mapping[tvm.ir.Var, tvm.ir.GlobalVar]
    ) -> None:
        self.variants = variants
        self.new: dict[tvm.ir.Var, tvm.ir.Var] = {}
        for weight, form in forms.items():
            for param in weight.params:
                self.new[param] = relax.Var(str(param.name), form_type(param.ty, form))

    def function(self, function: relax.Function) -> relax.Function:
        """The function with its changed state, parameters and all that follows from them."""
        blocks = [
            type(block)([self._binding(binding) for binding in block.bindings])
            for block in function.body.blocks
        ]
        result = self._replaced(function.body.body)
        params = [self.new.get(param, param) for param in function.params]
        return relax.Function(
            params, relax.SeqExpr(blocks, result), result.ty, function.is_pure, function.attrs, function.span
        )

    def _binding(self, binding: relax.VarBinding) -> relax.VarBinding:
        value = self._replaced(binding.value)
        variant = self.variants.get(binding.var)
        if variant is not None:
            value = relax.Call(variant, value.args, value.attrs, value.ty_args, value.span)
            kind = variant.ty.ret
        elif UPDATE.is_called(value):
            kind = UPDATE.infer(value)
        elif isinstance(value, relax.TupleGetItem):
            kind = value.tuple_value.ty.fields[value.index]
        elif isinstance(value, relax.Var | relax.Tuple):
            kind = value.ty
        else:
            kind = binding.var.ty
        if tvm_ffi.structural_equal(kind, binding.var.ty):
            return binding if value.same_as(binding.value) else relax.VarBinding(binding.var, value)
        self.new[binding.var] = type(binding.var)(str(binding.var.name), kind)
        return relax.VarBinding(self.new[binding.var], value)

    def _replaced(self, expr: relax.Expr) -> relax.Expr:
        if isinstance(expr, relax.Var):
            return self.new.get(expr, expr)
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([self._replaced(field) for field in expr.fields])
        if isinstance(expr, relax.TupleGetItem):
            return relax.TupleGetItem(self._replaced(expr.tuple_value), expr.index)
        if isinstance(expr, relax.Call):
            args = [self._replaced(arg) for arg in expr.args]
            if all(new.same_as(old) for new, old in zip(args, expr.args, strict=True)):
                return expr
            return relax.Call(expr.op, args, expr.attrs, expr.ty_args, expr.span)
        return expr
