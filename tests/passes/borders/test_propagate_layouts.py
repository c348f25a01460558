"""PropagateLayouts: what a function and its regions look like when tensors cross in physical layouts."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from blocks import BLOCK
from region_passes import region_passes
from relax_programs import TARGET, Array, assert_same, normal, parse, run
from tvm import relax

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.policies import Policy
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.passes.borders import PropagateLayouts
from tvm_mxplan.passes.layout import InferLayouts
from tvm_mxplan.passes.memory import PlanMemory
from tvm_mxplan.passes.region import EmitModules
from tvm_mxplan.passes.region.attached import program_of, regions
from tvm_mxplan.passes.region.dissolve import dissolve

NAME = "mxplan_onednn"
X64 = 'x: R.Tensor((1, 64, 8, 8), "float32")'
X17 = 'x: R.Tensor((2, 17, 8, 8), "float32")'
PLAIN, LAST, BLOCKED = "(1, 64, 8, 8)", "(1, 8, 8, 64)", f"(1, {64 // BLOCK}, 8, 8, {BLOCK})"


def laid_out(
    lines: str, parameters: str, policy: Policy = "channels_last", *first: tvm.transform.Pass
) -> tvm.IRModule:
    """A module with regions in the layouts of one policy; pooling stands for all that insists on one.

    ``pool3`` and ``pool5`` are regions that differ, so that each is a function of its own.
    """
    for size in (3, 5):
        pool = f"R.nn.max_pool2d(pool_size=[{size}, {size}], padding=[{size // 2}] * 2, data="
        lines = lines.replace(f"pool{size}(", pool)
    backend = OneDNN()
    passes = [
        *first,
        *region_passes(backend),
        InferLayouts(backend, policy),
    ]
    return tvm.transform.Sequential(passes)(parse(lines, parameters))


def propagate(mod: tvm.IRModule) -> tvm.IRModule:
    """The module behind the pass; every program has the name that its region is called by."""
    mod = PropagateLayouts(OneDNN())(mod)
    for gvar, region in regions(mod, NAME):
        assert program_of(region).name == region.attrs["global_symbol"] == gvar.name_hint
    relax.analysis.well_formed(mod)
    return mod


def reorders(mod: tvm.IRModule) -> list[int]:
    """Reorders of each region, by its name."""
    found = sorted(regions(mod, NAME), key=lambda item: item[0].name_hint)
    programs = [program_of(function) for _, function in found]
    return [sum(isinstance(step.attrs, ir.Reorder) for step in program.steps) for program in programs]


def assert_main(mod: tvm.IRModule, parameters: str, bindings: str, result: str, **signatures: str) -> None:
    """``main`` is ``bindings``; of the regions only their types are compared: ``parameters -> results``."""
    tvm.ir.assert_structural_equal(with_stubs(mod), main_of(parameters, bindings, result, **signatures))


def main_of(parameters: str, bindings: str, result: str, **signatures: str) -> tvm.IRModule:
    lines = ["@I.ir_module", "class Module:"]
    for name, signature in signatures.items():
        shapes, returns = (part.split("; ") for part in signature.split(" -> "))
        params = ", ".join(f'p{i}: R.Tensor({shape}, "float32")' for i, shape in enumerate(shapes))
        given = [f'R.Tensor({shape}, "float32")' for shape in returns]
        type_ = given[0] if len(given) == 1 else f"R.Tuple({', '.join(given)})"
        lines += ["    @R.function", f"    def {NAME}_{name[1:]}({params}):"]
        lines += [f'        r = R.call_pure_packed("stub", p0, ty_args=[{type_}])', "        return r"]
    lines += ["    @R.function", f"    def main({parameters}):", "        cls = Module"]
    lines += ["        with R.dataflow():", *(f"            {line}" for line in bindings.splitlines())]
    lines += [f"            R.output({result})", f"        return {result}"]
    return tvm.script.from_source("\n".join(lines).replace("region_", f"cls.{NAME}_") + "\n")


def with_stubs(mod: tvm.IRModule) -> tvm.IRModule:
    stubs = {gvar: stub(region) for gvar, region in regions(mod, NAME)}
    mod = mod.clone()
    for gvar, function in stubs.items():
        mod.update_func(gvar, function)
    return relax.transform.Normalize()(mod)


def stub(region: relax.Function) -> relax.Function:
    """A function of the region's type that stands for it in comparisons."""
    params = [relax.Var(param.name, param.ty) for param in region.params]
    result = relax.Var("r", region.ret_ty)
    call = relax.op.call_pure_packed("stub", params[0], ty_args=[region.ret_ty])
    body = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(result, call)])], result)
    return relax.Function(params, body, region.ret_ty).with_attr(
        "global_symbol", str(region.attrs["global_symbol"])
    )


@pytest.mark.parametrize(
    ("policy", "operator", "crossing"), [("channels_last", "sin", LAST), ("blocked", "cos", BLOCKED)]
)
def test_an_operator_between_regions(policy: Policy, operator: str, crossing: str) -> None:
    before = laid_out(f"a = pool3(x)\nb = R.{operator}(a)\nc = pool5(b)\nreturn c", X64, policy)
    after = propagate(before)
    assert (reorders(before), reorders(after)) == ([2, 2], [1, 1])
    bindings = f"a = region_0(x)\nb = R.{operator}(a)\nc = region_1(b)"
    signatures = {"_0": f"{PLAIN} -> {crossing}", "_1": f"{crossing} -> {PLAIN}"}
    assert_main(after, X64, bindings, "c", **signatures)


def test_several_operators_other_types_and_constants() -> None:
    """Scalars stay as they are; what varies by channel is stored in the layout too."""
    between = """s = R.power(a, c)
t = R.greater(s, R.const(0.25, "float32"))
w = R.where(t, s, a)"""
    parameters = f'{X64}, c: R.Tensor((64, 1, 1), "float32")'
    scales = np.abs(normal(0, 64, 1, 1))
    stored = scales.reshape(1, 64 // BLOCK, 1, 1, BLOCK)
    bind = relax.transform.BindParams("main", {"c": scales})
    before = laid_out(f"a = pool3(x)\n{between}\ny = pool5(w)\nreturn y", parameters, "blocked", bind)
    after = propagate(before)
    assert (reorders(before), reorders(after)) == ([2, 2], [1, 1])
    expected = main_of(
        f'{X64}, c: R.Tensor((1, {64 // BLOCK}, 1, 1, {BLOCK}), "float32")',
        f"a = region_0(x)\n{between}\ny = region_1(w)",
        "y",
        _0=f"{PLAIN} -> {BLOCKED}",
        _1=f"{BLOCKED} -> {PLAIN}",
    )
    expected = relax.transform.BindParams("main", {"c": stored})(expected)
    tvm.ir.assert_structural_equal(with_stubs(after), expected)


def test_a_result_that_is_wanted_plain_too_comes_twice() -> None:
    """The function's own result stays plain: one reorder for it, none for the way to the next region."""
    before = laid_out("a = pool3(x)\nb = R.sin(a)\nc = pool5(b)\nd = R.cumsum(a, 2)\nreturn (c, d)", X64)
    after = propagate(before)
    assert (reorders(before), reorders(after)) == ([2, 2], [2, 1])
    bindings = """t = region_0(x)
a = t[0]
p = t[1]
b = R.sin(p)
c = region_1(b)
d = R.cumsum(a, 2)"""
    assert_main(after, X64, bindings, "c, d", _0=f"{PLAIN} -> {PLAIN}; {LAST}", _1=f"{LAST} -> {PLAIN}")


def test_regions_that_hand_over_directly() -> None:
    """The second region reads the first one's result, and TVM's operator between them keeps them apart."""
    before = laid_out("a = pool3(x)\nb = R.sin(a)\nc = R.add(pool5(b), a)\nreturn c", X64)
    after = propagate(before)
    assert (reorders(before), reorders(after)) == ([2, 3], [1, 1])
    bindings = "a = region_0(x)\nb = R.sin(a)\nc = region_1(b, a)"
    assert_main(after, X64, bindings, "c", _0=f"{PLAIN} -> {LAST}", _1=f"{LAST}; {LAST} -> {PLAIN}")


def test_one_region_called_twice_becomes_two_where_its_borders_differ() -> None:
    before = laid_out("a = pool3(x)\nb = R.sin(a)\nc = pool3(b)\nreturn c", X64)
    assert reorders(before) == [2]
    after = propagate(before)
    assert reorders(after) == [1, 1]
    signatures = {"_0": f"{PLAIN} -> {LAST}", "_0_1": f"{LAST} -> {PLAIN}"}
    assert_main(after, X64, "a = region_0(x)\nb = R.sin(a)\nc = region_0_1(b)", "c", **signatures)


def test_a_region_that_another_call_needs_as_it_was_stays() -> None:
    """One call of it hands over to a region, the other's operand and result are both wanted plain."""
    lines = "a = pool3(x)\nb = R.sin(a)\nc = pool5(b)\nd = R.cumsum(c, 2)\ne = pool3(d)\nreturn e"
    before = laid_out(lines, X64)
    after = propagate(before)
    assert (reorders(before), sorted(reorders(after))) == ([2, 2], [1, 1, 2])
    signatures = {"_0": f"{PLAIN} -> {PLAIN}", "_0_1": f"{PLAIN} -> {LAST}", "_1": f"{LAST} -> {PLAIN}"}
    bindings = "a = region_0_1(x)\nb = R.sin(a)\nc = region_1(b)\nd = R.cumsum(c, 2)\ne = region_0(d)"
    assert_main(after, X64, bindings, "e", **signatures)
    x = normal(0, 1, 64, 8, 8)
    bodies = dissolve(before, {gvar: "" for gvar, _ in regions(before, NAME)}).mod
    assert_same(results(emitted(after), x), results(bodies, x))


def test_a_new_region_takes_no_name_that_is_there() -> None:
    before = laid_out("a = pool3(x)\nb = R.sin(a)\nc = pool3(b)\nreturn c", X64)
    other = parse("return R.exp(x)", X64)["main"].with_attr("global_symbol", f"{NAME}_0_1")
    before[tvm.ir.GlobalVar(f"{NAME}_0_1")] = other
    after = propagate(before)
    names = {gvar.name_hint for gvar, _ in regions(after, NAME)}
    assert names == {f"{NAME}_0", f"{NAME}_0_2"}
    tvm.ir.assert_structural_equal(after[f"{NAME}_0_1"], other)


def test_a_symbolic_batch_crosses_too() -> None:
    parameters = 'x: R.Tensor(("n", 64, 8, 8), "float32")'
    after = propagate(laid_out("a = pool3(x)\nb = R.sin(a)\nc = pool5(b)\nreturn c", parameters, "blocked"))
    assert reorders(after) == [1, 1]
    shapes = [
        [str(dim) for dim in binding.var.ty.shape.values] for binding in after["main"].body.blocks[0].bindings
    ]
    assert [len(shape) for shape in shapes] == [5, 5, 4]
    assert {shape[0] for shape in shapes} == {"n"}


UNCHANGED = {
    "a result of the function": ("a = pool3(x)\nb = R.sin(a)\nc = pool5(b)\nreturn (c, b)", X64, "blocked"),
    "an operator that needs rows": (
        "a = pool3(x)\nb = R.cumsum(a, 1)\nc = pool5(b)\nreturn c",
        X64,
        "blocked",
    ),
    "a parameter": ("b = R.sin(x)\nc = pool5(b)\nreturn c", X64, "blocked"),
    "cos in the tail": ("a = pool3(x)\nb = R.cos(a)\nc = pool5(b)\nreturn c", X17, "blocked"),
    "-0 in the tail": (
        "a = pool3(x)\nb = R.greater(a, R.const(0, 'float32'))\n"
        "c = R.where(b, a, R.const(-0.0, 'float32'))\nd = pool5(c)\nreturn d",
        X17,
        "blocked",
    ),
    "another shape": (
        "a = pool3(x)\nb = R.sin(a)\nc = R.reshape(b, (1, 32, 16, 8))\nd = pool5(R.floor(c))\nreturn d",
        X64,
        "blocked",
    ),
    "a tuple of TVM's": (
        "a = pool3(x)\nb = R.split(a, 2, axis=1)\nc = R.concat((b[1], b[0]), axis=1)\n"
        "d = pool5(R.cumsum(c, 2))\nreturn d",
        X64,
        "blocked",
    ),
    "no reorders": ("a = pool3(x)\nb = R.sin(a)\nc = pool5(b)\nreturn c", X64, "plain"),
    "one region": ("a = pool3(x)\nc = pool5(a)\nreturn c", X64, "blocked"),
}


@pytest.mark.parametrize("case", UNCHANGED)
def test_ir_unchanged(case: str) -> None:
    lines, parameters, policy = UNCHANGED[case]
    before = laid_out(lines, parameters, policy)
    assert list(regions(before, NAME))
    tvm.ir.assert_structural_equal(PropagateLayouts(OneDNN())(before), before)


BODIES = {
    "blocked, padded": ("a = pool3(x)\nb = R.sin(a)\nc = pool5(b)\nreturn c", "blocked"),
    "channels last": ("a = pool3(x)\nb = R.sin(a)\nc = pool5(b)\nreturn c", "channels_last"),
    "twice": ("a = pool3(x)\nb = R.sin(a)\nc = pool5(b)\nd = R.cumsum(a, 2)\nreturn (c, d)", "blocked"),
    "two results": (
        "a = pool3(x)\nb = pool5(a)\ns = R.sin(a)\nt = R.sin(b)\nc = pool3(s)\nd = pool5(t)\nreturn (d, c)",
        "blocked",
    ),
    "direct": ("a = pool3(x)\nb = R.sin(a)\nc = R.add(pool5(b), a)\nreturn c", "blocked"),
}


@pytest.mark.parametrize("case", BODIES)
def test_bodies_say_what_programs_compute(case: str) -> None:
    """TVM runs the bodies, layouts and padding included, and gets the same numbers as the programs do."""
    lines, policy = BODIES[case]
    before = laid_out(lines, X17, policy)
    after = propagate(before)
    assert sum(reorders(after)) < sum(reorders(before))
    x = normal(0, 2, 17, 8, 8)
    bodies = dissolve(after, {gvar: "" for gvar, _ in regions(after, NAME)}).mod
    assert not list(regions(bodies, NAME))
    expected = results(dissolve(before, {gvar: "" for gvar, _ in regions(before, NAME)}).mod, x)
    assert_same(results(bodies, x), expected)
    assert_same(results(emitted(after), x), expected)


def emitted(mod: tvm.IRModule) -> tvm.IRModule:
    backend = OneDNN()
    return EmitModules(backend)(PlanMemory(backend)(mod))


def results(mod: tvm.IRModule, x: Array) -> list[Array]:
    return run(relax.VirtualMachine(tvm.compile(mod, TARGET), tvm.cpu()), x)
