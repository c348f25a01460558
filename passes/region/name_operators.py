"""``NameOperators``: a name for every operator, by which reports and options speak of it.

Before   lv3 = R.nn.conv2d(lv2, w)
After    the same, its span naming it ``conv2d_1``: the second of its kind in the module

The name stays with the operator when it is partitioned, and does not depend on what else is offloaded.  The
function has a table with what the operators come from (``passes/origins.py``).
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Collection, Mapping
from types import MappingProxyType

import tvm
from tvm import relax

from tvm_mxplan.core.origin import Origins
from tvm_mxplan.errors import InvalidInputError

from ..origins import origins_of, with_origin_table
from ..relax_types import with_operator_name


@tvm.transform.module_pass(opt_level=0, name="NameOperators")
class NameOperators:
    """Module pass; see the module's text.

    Parameters
    ----------
    expected : names that have to exist, by the option that speaks of them; InvalidInputError tells of the
        first that does not.
    """

    def __init__(self, expected: Mapping[str, Collection[str]] = MappingProxyType({})) -> None:
        self.expected = expected

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        namer = _Namer(mod)
        for gvar, function in sorted(mod.functions.items(), key=lambda item: item[0].name_hint):
            if isinstance(function, relax.Function):
                namer.rewrite(gvar, function)
        for option, names in self.expected.items():
            _check(option, names, namer.names)
        return namer.module()


@relax.expr_functor.mutator
class _Namer(relax.PyExprMutator):
    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.names: list[str] = []
        self.origins: dict[str, Origins] = {}
        self._counts: Counter[str] = Counter()

    def rewrite(self, gvar: tvm.ir.GlobalVar, function: relax.Function) -> None:
        before = set(self.origins)
        named = self.visit_expr(function)
        table = {name: origins for name, origins in self.origins.items() if name not in before}
        self.builder_.update_func(gvar, with_origin_table(named, table))

    def module(self) -> tvm.IRModule:
        return self.builder_.get()

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        call = self.visit_expr_post_order(call)
        if not isinstance(call.op, tvm.ir.Op):
            return call
        kind = call.op.name.rpartition(".")[2]
        name = f"{kind}_{self._counts[kind]}"
        self._counts[kind] += 1
        self.names.append(name)
        self.origins[name] = origins_of(call)
        return with_operator_name(call, name)


def _check(option: str, expected: Collection[str], names: list[str]) -> None:
    for name in expected:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=4, cutoff=0.5)
            hint = f"the nearest are {', '.join(close)}" if close else "its report lists them"
            raise InvalidInputError(f"option {option}: the model has no operator {name!r}; {hint}")
