"""Computes a digest of a Relax module: text, TVM's own hash, its constants' bytes, its origins."""

from __future__ import annotations

from collections.abc import Sequence

import tvm
import tvm_ffi
from tvm import relax

from ...core.fingerprint import Fingerprint, Plain
from ...passes.origins import origins_of
from ...passes.relax_types import is_constant


def constants_of(mod: tvm.IRModule) -> list[tvm.runtime.Tensor]:
    """Every constant of the module's Relax functions, in an order that their structure alone decides."""
    found: list[tvm.runtime.Tensor] = []

    def visit(expr: relax.Expr) -> None:
        if is_constant(expr):
            found.append(expr.value)

    for gvar in sorted(mod.get_global_vars(), key=lambda gvar: str(gvar.name_hint)):
        if isinstance(mod[gvar], relax.Function):
            relax.analysis.post_order_visit(mod[gvar], visit)
    return found


def _origins(mod: tvm.IRModule) -> list[list[list[str]]]:
    """Lists the origins that an importer noted for the calls: reports speak of them."""
    found: list[list[list[str]]] = []

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, relax.Call):
            found.append([[origin.name, origin.kind] for origin in origins_of(expr)])

    for gvar in sorted(mod.get_global_vars(), key=lambda gvar: str(gvar.name_hint)):
        if isinstance(mod[gvar], relax.Function):
            relax.analysis.post_order_visit(mod[gvar], visit)
    return found


def relax_fingerprint(mod: tvm.IRModule, digests: Sequence[bytes]) -> str:
    """The digest of a module; ``digests`` has those of ``constants_of(mod)``.

    The text says which constant stands where by a number in the order of printing; the digests follow in the
    order of visiting.  Both orders come from the structure, which the text shows but for what cannot be
    printed, and that is in TVM's structural hash.
    """
    fingerprint = Fingerprint()
    fingerprint.add("text", mod.script(show_meta=False))
    structure = tvm_ffi.structural_hash(mod, skip_tensor_content=True)
    fingerprint.add("structural hash", structure)
    types: list[Plain] = [
        [str(tensor.dtype), [int(dim) for dim in tensor.shape]] for tensor in constants_of(mod)
    ]
    fingerprint.add("types", types)
    fingerprint.add("constants", digests)
    fingerprint.add("origins", _origins(mod))
    return fingerprint.hexdigest()
