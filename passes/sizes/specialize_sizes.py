"""``SpecializeSizes``: a function for each size of a named batch in the place of ``main``.

Before   main(x: (n, 3, 14, 10)) -> (n, 5)
After    main_n_1(x: (1, 3, 14, 10)) -> (1, 5)   main_n_2(x: (2, 3, 14, 10)) -> (2, 5)   ...

Each is planned as a function of its own.  Constants are one object in all of them.

Left to others: who calls them (dispatch_sizes).
"""

from __future__ import annotations

import tvm
from tvm import relax, tirx

from .named_batch import MAIN, SIZE, NamedBatch

_BOUNDS = ("tir_var_upper_bound", "tir_var_lower_bound")


@tvm.transform.module_pass(opt_level=0, name="SpecializeSizes")
class SpecializeSizes:
    """Module pass; see the module's text."""

    def __init__(self, batch: NamedBatch) -> None:
        self.batch = batch

    def transform_module(self, mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        batch = self.batch
        functions = {gvar: function for gvar, function in mod.functions.items() if gvar.name_hint != MAIN}
        made = tvm.IRModule(functions, mod.attrs, mod.global_infos)
        for size in batch.sizes:
            name = batch.name(size)
            number = tirx.IntImm(batch.symbol.ty.dtype, size)
            known = batch.function.bind_symbolic_vars({batch.symbol: number})
            for bound in _BOUNDS:
                known = known.without_attr(bound)
            # Two functions share no variable.
            known = relax.utils.copy_with_new_vars(known)
            known = known.with_attr("global_symbol", name).with_attr(SIZE, size)
            gvar = tvm.ir.GlobalVar(name)
            relax.expr._update_type(gvar, known.ty)  # by which calls of it are typed
            made[gvar] = known
        return relax.transform.Normalize()(made)
