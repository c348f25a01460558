"""``NameSymbols``: symbols of one function have names of their own.

Before   b = R.match_cast(a, R.Tensor((n,)));  d = R.match_cast(c, R.Tensor((n,)))      two variables called n
After    b = R.match_cast(a, R.Tensor((n,)));  d = R.match_cast(c, R.Tensor((n_1,)))

Importers call every computed length the same.  All that comes after goes by names: shapes of equal names are
equal.
"""

from __future__ import annotations

from itertools import count

import tvm
from tvm import relax, tirx


@tvm.transform.module_pass(opt_level=0, name="NameSymbols")
class NameSymbols:
    """Module pass; see the module's text."""

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        renamed = {
            gvar: _renamed(function)
            for gvar, function in mod.functions.items()
            if isinstance(function, relax.Function)
        }
        mod = mod.clone()
        for gvar, function in renamed.items():
            if not function.same_as(mod[gvar]):
                mod.update_func(gvar, function)
        return mod


def _renamed(function: relax.Function) -> relax.Function:
    symbols = list(relax.analysis.defined_symbolic_vars(function))
    taken = {str(symbol.name) for symbol in symbols}
    seen: set[str] = set()
    new: dict[tirx.Var, tirx.Var] = {}
    for symbol in symbols:
        name = str(symbol.name)
        if name in seen:
            name = next(other for other in (f"{name}_{at}" for at in count(1)) if other not in taken)
            new[symbol] = tirx.Var(name, symbol.ty.dtype)
            taken.add(name)
        seen.add(name)
    return function.bind_symbolic_vars(new) if new else function
