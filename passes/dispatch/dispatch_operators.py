"""``DispatchOperators``: which implementation runs each operator, before layouts and memory.

Before   gv = R.nn.relu(R.floor(x))
After    gv = fused_relax_nn_relu(R.floor(x))      a composite, named for the library that takes it
         R.func_attr({"mxplan.dispatch": {"floor_0": "llvm", "relu_0": "onednn"}})

Libraries are asked in the order of preference, operator by operator where options say so; what none takes is
TVM's.  An operator that waits for a library behind comes back to those before it if that one refuses.
TVM's own ``FuseOpsByPattern`` does the matching.  ``PartitionRegions`` groups what came of it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

import tvm
from tvm import relax

from tvm_mxplan.byoc.backend import DeviceBackend
from tvm_mxplan.core.decisions.dispatch import Candidate, DispatchDecision, is_operator_name
from tvm_mxplan.core.decisions.journal import Journal
from tvm_mxplan.errors import InvalidInputError

from ..annotations import CPU, TVM, devices_in, with_dispatch
from ..relax_types import OPERATOR, operator_name
from .implementations import NO_PATTERN, ImplementationRecord, Preference, is_operator, kind_of, tvm_refusal
from .infinite_extremes import infinite_extremes
from .pattern_operators import may_match, operators_of
from .restore_shapes import restore_shapes
from .weigh_guests import Worth
from .whole_numbers import whole_number_operators

_ROOT = "the whole pattern"
_SWITCHED_OFF = "switched off by option: "
_INFINITE = "what it finds is compared with an infinity, which rows of nothing else must keep"
_WHOLE = "its digits decide a whole number (floor, ceil, a cast to integers): it is computed as it stands"
_ELSEWHERE = "the other device runs it: estimated to take less there, copies included, or wanted by option"


@tvm.transform.module_pass(opt_level=0, name="DispatchOperators")
class DispatchOperators:
    """Module pass; see the module's text.

    Parameters
    ----------
    preference : who is asked, and in which order.
    journal : is told why operators were refused, by their kind, and what was decided for those with names.
    worth : tells which operators guests had better leave to TVM; without it they get all that they take.
    """

    def __init__(
        self, preference: Preference, journal: Journal | None = None, worth: Worth | None = None
    ) -> None:
        self.preference = preference
        self.journal = Journal() if journal is None else journal
        self.worth = worth

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        _check_kinds(self.preference.first)
        exact = dict.fromkeys(infinite_extremes(mod), _INFINITE)
        exact |= dict.fromkeys(whole_number_operators(mod), _WHOLE)
        turns = _Turns(self.preference, exact, self.worth, devices=devices_in(mod))
        for library in self.preference.libraries:
            mod = turns.ask(library, mod)
        if turns.waiting:
            for library in self.preference.libraries:
                mod = turns.ask(library, mod)
        self.journal.refuse(turns.refused)
        return self._annotate(mod, turns.reasons)

    def _annotate(self, mod: tvm.IRModule, reasons: Mapping[tuple[str, str], str]) -> tvm.IRModule:
        names = {one.backend.name: one.name for one in self.preference.libraries if one.backend}
        mod = mod.clone()
        for gvar, function in sorted(mod.functions.items(), key=lambda item: item[0].name_hint):
            if not isinstance(function, relax.Function) or _composite(function):
                continue
            chosen: dict[str, str] = {}
            for call, composite in _operators(mod, function):
                name = operator_name(call)
                if name is None:
                    continue
                chosen[name] = names[_composite(composite).partition(".")[0]] if composite else TVM
                root = str(composite.attrs.get(OPERATOR, "")) if composite else ""
                self.journal.dispatch(self._decision(name, call, chosen[name], root, reasons))
            mod.update_func(gvar, with_dispatch(function, chosen))
        return mod

    def _decision(
        self, name: str, call: relax.Call, chosen: str, root: str, reasons: Mapping[tuple[str, str], str]
    ) -> DispatchDecision:
        wanted, key = self.preference.wish(call)
        asked = [one.name for one in self.preference.order(call)]
        behind = asked[asked.index(chosen) + 1 :]
        candidates = []
        for one in sorted(self.preference.implementations, key=lambda one: one.name != wanted):
            out = one.absent or reasons.get((one.name, name), "")
            if one.name == chosen:
                out = ""
            elif not out:
                out = self.preference.why(call, chosen) if one.name in behind else NO_PATTERN
            candidates.append(Candidate(one.name, out=out))
            if one.name == wanted and key == name and out:
                raise InvalidInputError(f"option prefer: {name} cannot run in {wanted}: {out}")
        return DispatchDecision(name, kind_of(call), tuple(candidates), root)


@dataclass
class _Turns:
    """Libraries asked one after the other.

    Attributes
    ----------
    exact : why no library takes some operators, by their names.
    worth : tells which operators do not pay in a library.
    unpaid : why they do not, by the library and the operator's name.
    refused : why operators were refused, by their kind.
    reasons : the same, by the implementation and the operator's name.
    waiting : whether operators were kept for a library that had not been asked yet.
    devices : which of two devices runs each operator; None where there is one.
    """

    preference: Preference
    exact: Mapping[str, str]
    worth: Worth | None = None
    unpaid: dict[tuple[str, str], str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    reasons: dict[tuple[str, str], str] = field(default_factory=dict)
    waiting: bool = False
    asked: set[str] = field(default_factory=set)
    devices: Mapping[str, str] | None = None

    def ask(self, library: ImplementationRecord, mod: tvm.IRModule) -> tvm.IRModule:
        """The module with composites of what ``library`` takes and nobody else is to be asked before."""
        assert library.backend
        taken = self._taken(library, mod)
        if self.worth and self._is_last(library):
            unpaid = self.worth.unpaid(mod, taken, library.backend, self._wanted(library, mod))
            if unpaid:
                self.unpaid |= {(library.name, name): reason for name, reason in unpaid.items()}
                taken = self._taken(library, mod)
        self.asked.add(library.name)
        return restore_shapes(taken)

    def _taken(self, library: ImplementationRecord, mod: tvm.IRModule) -> tvm.IRModule:
        """The module with composites of what the library takes now."""
        assert library.backend
        found: dict[str, str] = {}

        def refuse(kind: str, reason: str) -> None:
            found[kind] = reason

        operators = operators_of(mod)
        patterns = [
            self._for_its_operators(library, pattern, found)
            for pattern in library.backend.patterns(refuse)
            if may_match(pattern.pattern, operators)
        ]
        if not patterns:
            return mod
        return relax.transform.FuseOpsByPattern(patterns, bind_constants=True, annotate_codegen=False)(mod)

    def _is_last(self, library: ImplementationRecord) -> bool:
        """Whether what the library leaves is TVM's; another library's would be a question of its costs."""
        names = [one.name for one in self.preference.present]
        return names[names.index(library.name) + 1 :] == [TVM]

    def _wanted(self, library: ImplementationRecord, mod: tvm.IRModule) -> set[str]:
        """Names of the operators that the user, or a trial, wants the library to have."""
        functions = [one for one in mod.functions.values() if isinstance(one, relax.Function)]
        calls = [call for one in functions for call, _ in _operators(mod, one)]
        return {operator_name(call) or "" for call in calls if self.preference.wish(call)[0] == library.name}

    def _for_its_operators(
        self,
        library: ImplementationRecord,
        pattern: relax.transform.FusionPattern,
        found: dict[str, str],
    ) -> relax.transform.FusionPattern:
        """The pattern, which leaves what is another's and writes the root's name on the composite."""
        backend = library.backend
        assert backend

        def check(context: relax.transform.PatternCheckContext) -> bool:
            for call in context.matched_bindings.values():
                name = operator_name(call) if is_operator(call) else None
                if name is not None and name in self.exact and call.op.name not in backend.literal:
                    self.reasons[library.name, name] = self.refused[call.op.name] = self.exact[name]
                    return False
                if is_operator(call) and (self._is_anothers(library, call) or self._is_unpaid(library, call)):
                    return False
            if _shows_more_than_its_root(context):
                return False
            found.clear()
            taken = bool(pattern.check(context))
            self.refused.update(found)
            for reason in found.values():
                self.reasons[library.name, operator_name(context.matched_expr) or ""] = reason
            return taken

        def attributes(matched: Mapping[str, relax.Expr]) -> dict[str, object]:
            own = dict(pattern.attrs_getter(matched)) if pattern.attrs_getter else {}
            name = operator_name(matched[_ROOT])
            # Without it, equal composites would become one function under one name.
            return {**own, OPERATOR: name} if name else own

        named = {**dict(pattern.annotation_patterns), _ROOT: pattern.pattern}
        return relax.transform.FusionPattern(pattern.name, pattern.pattern, named, check, attributes)

    def _is_anothers(self, library: ImplementationRecord, call: relax.Call) -> bool:
        """Whether someone before ``library`` has ``call``, or has not been asked about it yet."""
        if operator_name(call) in self.preference.off:
            self._note(library, call, self.preference.why(call, TVM))
            return True
        if self._is_elsewhere(library, call):
            self._note(library, call, _ELSEWHERE)
            return True
        for one in self.preference.order(call):
            if one.name == library.name:
                return False
            if one.backend is None:
                refusal = tvm_refusal(call)
                if not refusal:
                    self._note(library, call, self.preference.why(call, one.name))
                    return True
                self.reasons[one.name, operator_name(call) or ""] = refusal
            elif one.name not in self.asked:
                self.waiting = True
                return True
        return False

    def _is_elsewhere(self, library: ImplementationRecord, call: relax.Call) -> bool:
        """Whether ``call`` is the other device's."""
        if self.devices is None:
            return False
        there = self.devices.get(operator_name(call) or "", CPU) != CPU
        return there != isinstance(library.backend, DeviceBackend)

    def _is_unpaid(self, library: ImplementationRecord, call: relax.Call) -> bool:
        """Whether TVM had better keep ``call``."""
        reason = self.unpaid.get((library.name, operator_name(call) or ""))
        if reason:
            self.refused[call.op.name] = self.reasons[library.name, operator_name(call) or ""] = reason
        return bool(reason)

    def _note(self, library: ImplementationRecord, call: relax.Call, reason: str) -> None:
        self.reasons[library.name, operator_name(call) or ""] = reason
        if reason.startswith(_SWITCHED_OFF):
            so_far = self.refused.get(call.op.name, "")
            names = so_far.removeprefix(_SWITCHED_OFF).split(", ") if so_far.startswith(_SWITCHED_OFF) else []
            reason = _SWITCHED_OFF + ", ".join(dict.fromkeys([*names, str(operator_name(call))]))
        self.refused[call.op.name] = reason


def _operators(mod: tvm.IRModule, function: relax.Function) -> list[tuple[relax.Call, relax.Function | None]]:
    """Calls to operators in order, those inside composites with the composite."""
    found: list[tuple[relax.Call, relax.Function | None]] = []

    def visit(expr: relax.Expr, composite: relax.Function | None) -> None:
        if is_operator(expr):
            found.append((expr, composite))
        elif isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.GlobalVar):
            callee = mod[expr.op]
            if _composite(callee):
                relax.analysis.post_order_visit(callee, lambda inner: visit(inner, callee))

    relax.analysis.post_order_visit(function, lambda expr: visit(expr, None))
    return found


def _composite(function: tvm.ir.BaseFunc) -> str:
    """``<code generator>.<row>`` of a composite, '' for all other functions."""
    return str(function.attrs.get("Composite") or "") if function.attrs else ""


def _shows_more_than_its_root(context: relax.transform.PatternCheckContext) -> bool:
    """Whether an operator inside of the match is read outside too: a composite gives its root's result."""
    inside = {variable for variable, _ in context.matched_bindings.items()}
    return any(
        not isinstance(variable, relax.DataflowVar)
        or any(reader not in inside for reader in context.var_usages.get(variable, ()))
        for variable, value in context.matched_bindings.items()
        if not value.same_as(context.matched_expr)
    )


def _check_kinds(first: Mapping[str, str]) -> None:
    """Checks that each key that is no operator's name is a kind that Relax has."""
    keys = [key for key in first if not is_operator_name(key)]
    if not keys:
        return
    kinds = {str(name).rpartition(".")[2] for name in tvm.ir.Op.list_op_names() if name.startswith("relax.")}
    for key in keys:
        if key not in kinds:
            close = difflib.get_close_matches(key, kinds, n=4, cutoff=0.5)
            hint = f"the nearest are {', '.join(close)}" if close else "expected one such as conv2d"
            raise InvalidInputError(f"option prefer: Relax has no operator {key!r}; {hint}")
