"""Relax modules from the lines of one dataflow block; the last line's variable is the result."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax


def dataflow(lines: str, parameters: str = 'x: R.Tensor((2, 3, 4, 4), "float32")') -> tvm.IRModule:
    """A module with one function ``main`` whose body is a dataflow block of ``lines`` in TVMScript."""
    body = [line.strip() for line in lines.strip().splitlines()]
    result = body[-1].split(" = ")[0].split(":")[0]
    text = [
        "@I.ir_module",
        "class Module:",
        "    @R.function",
        f"    def main({parameters}):",
        "        with R.dataflow():",
        *(f"            {line}" for line in body),
        f"            R.output({result})",
        f"        return {result}",
    ]
    return tvm.script.from_source("\n".join(text) + "\n")


def assert_becomes(rewrite: tvm.transform.Pass, before: str, after: str, **parameters: str) -> None:
    """``rewrite`` makes ``after`` of ``before`` and leaves ``after`` as it is."""
    expected = dataflow(after, **parameters)
    tvm.ir.assert_structural_equal(rewrite(dataflow(before, **parameters)), expected)
    tvm.ir.assert_structural_equal(rewrite(expected), expected)


def assert_unchanged(rewrite: tvm.transform.Pass, lines: str, **parameters: str) -> None:
    """``rewrite`` does not touch a module."""
    mod = dataflow(lines, **parameters)
    tvm.ir.assert_structural_equal(rewrite(mod), mod)


def constants(mod: tvm.IRModule) -> list[np.ndarray]:
    """Constants of ``main`` in the order in which they are met."""
    found: list[np.ndarray] = []
    relax.analysis.post_order_visit(
        mod["main"],
        lambda expr: found.append(expr.value.numpy()) if isinstance(expr, tvm.ir.GenericConst) else None,
    )
    return found


def calls(mod: tvm.IRModule) -> list[relax.Call]:
    """The calls to operators in ``main``, in the order in which they are met."""
    found: list[relax.Call] = []

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op):
            found.append(expr)

    relax.analysis.post_order_visit(mod["main"], visit)
    return found


def operators(mod: tvm.IRModule) -> list:
    """The operators of the first block of ``main``, in order."""
    return [binding.value.op for binding in mod["main"].body.blocks[0].bindings]
