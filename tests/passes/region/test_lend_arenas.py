"""Regions in the arena of their function: what is lent, what that saves, and that numbers stay."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R

import tvm_mxplan
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.allocation import lower_bound, validate
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.options import Options
from tvm_mxplan.passes.region.lend_arenas import lend_arenas
from tvm_mxplan.passes.storage import storage_rewrite
from tvm_mxplan.passes.storage.storage_check import check_storage
from tvm_mxplan.pipeline import Given, compilation
from tvm_mxplan.report.function_arena import function_arena
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.report.recorder import Recorder
from tvm_mxplan.report.report import Report

Array = np.ndarray
SHAPE = (1, 16, 24, 24)


@I.ir_module
class Before:
    @R.function
    def main(x: R.Tensor((4, 6), "float32")):
        with R.dataflow():
            a = R.call_dps_packed("first", (x,), out_ty=R.Tensor((4, 6), "float32"))
            b = R.atan(a)
            c = R.call_dps_packed(
                "second", (b, a), out_ty=[R.Tensor((4, 6), "float32"), R.Tensor((6,), "float32")]
            )
            d = c[0]
            e = R.call_dps_packed("third", (d,), out_ty=R.Tensor((4, 6), "float32"))
            R.output(e)
        return e


@I.ir_module
class Expected:
    @R.function
    def main(x: R.Tensor((4, 6), "float32")):
        with R.dataflow():
            a1 = R.call_dps_packed(
                "first", (x,), out_ty=[R.Tensor((4, 6), "float32"), R.Tensor((640,), "uint8")]
            )
            a: R.Tensor((4, 6), "float32") = a1[0]
            b: R.Tensor((4, 6), "float32") = R.atan(a)
            c1 = R.call_dps_packed(
                "second",
                (b, a),
                out_ty=[R.Tensor((4, 6), "float32"), R.Tensor((6,), "float32"), R.Tensor((128,), "uint8")],
            )
            d: R.Tensor((4, 6), "float32") = c1[0]
            e = R.call_dps_packed("third", (d,), out_ty=R.Tensor((4, 6), "float32"))
            R.output(e)
        return e


def test_arenas_stand_behind_the_results():
    """``third`` has no plan ahead of time, or needs nothing."""
    lent = lend_arenas(Before, {"first": 640, "second": 128, "third": -1})
    lent = relax.transform.DeadCodeElimination()(relax.transform.CanonicalizeBindings()(lent))
    tvm.ir.assert_structural_equal(lent["main"], Expected["main"])


def beside(call: str) -> tvm.IRModule:
    """A region and another call."""
    return tvm.script.from_source(
        "@I.ir_module\nclass M:\n    @R.function\n"
        '    def main(x: R.Tensor((1, 4, 6), "float32")):\n'
        '        a = R.call_dps_packed("first", (x,), out_ty=R.Tensor((1, 4, 6), "float32"))\n'
        f"        return {call}\n"
    )


@pytest.mark.parametrize(
    "call", ["a", "R.reshape(a, R.shape([24]))", "R.squeeze(a, [0])", "R.expand_dims(a, [0])", "R.flatten(a)"]
)
def test_a_region_alone_keeps_its_own_arena(call):
    """Views of its result are no company."""
    alone = beside(call)
    assert lend_arenas(alone, {"first": 640}).same_as(alone)


@pytest.mark.parametrize(("nbytes", "lent"), [(1, True), (0, False), (-1, False)])
def test_an_arena_of_any_bytes_is_lent_to_one_in_company(nbytes, lent):
    mod = beside("R.atan(a)")
    after = lend_arenas(mod, {"first": nbytes, "another": 640})
    assert (after is not mod and not after.same_as(mod)) == lent
    assert after.same_as(mod) or f'R.Tensor(({nbytes},), dtype="uint8")' in after.script()


# --- whole functions ---------------------------------------------------------------------------------------


def chain(regions: int, shape: tuple[int | str, ...] = SHAPE) -> tvm.IRModule:
    """Two convolutions for each region, TVM's sine between regions."""
    rng = np.random.default_rng(0)
    builder = relax.BlockBuilder()
    dims = [tvm.tirx.Var(dim, "int64") if isinstance(dim, str) else dim for dim in shape]
    x = relax.Var("x", R.Tensor(dims, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y, channels = x, int(shape[1])
            for region in range(regions):
                for width in (17, 35) if region + 1 < regions else (19, 16):
                    weights = rng.standard_normal((width, channels, 3, 3)).astype("float32") / 10
                    y = builder.emit(relax.op.nn.conv2d(y, relax.const(weights), padding=1))
                    channels = width
                if region + 1 < regions:
                    y = builder.emit(relax.op.atan(y))
            y = builder.emit_output(y)
        builder.emit_func_output(y)
    return builder.get()


def image(seed: int = 0, batch: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal((batch, *SHAPE[1:])).astype("float32")


# The scratchpads of other algorithms are larger than all tensors.
DIRECT = {"layouts": "channels_last", "convolutions": "direct"}


@pytest.fixture(scope="module")
def three() -> tvm_mxplan.Executable:
    return tvm_mxplan.compile(chain(3), options=DIRECT)


def test_one_arena_holds_all(three):
    """Inputs of a region die where it has read them, results are born where it writes them.

    So the most that lives is what the widest convolution touches: a tensor of 35 channels, one of 19, and its
    scratchpad.
    """
    *regions, main = three.report.memory
    assert [region.stands_in for region in regions] == ["main"] * 3
    assert (main.region, main.stands_in) == ("main", "")
    between, within = 35 * 24 * 24 * 4, 19 * 24 * 24 * 4
    (scratchpad,) = (
        item.nbytes for item in main.items if item.kind == "scratchpads" and ".conv2d_4." in item.name
    )
    assert main.height == main.lower_bound == between + within + scratchpad
    assert main.height < between + max(region.height for region in regions)
    assert main.height <= main.stock <= main.no_reuse
    assert main.kinds["values"] == sum(region.kinds["values"] for region in regions)
    assert main.kinds["scratchpads"] == sum(region.kinds["scratchpads"] for region in regions)
    assert main.kinds["between"] == 2 * between
    assert {program.arena_bytes for program in decoded_programs(three.module)} == {main.height}
    assert "its values stand in the arena of main" in str(three.report)


def test_numbers_are_those_without_reuse_and_under_watch(three):
    apart = tvm_mxplan.compile(chain(3), options={**DIRECT, "memory": "no_reuse"})
    stock = tvm_mxplan.compile(chain(3), "llvm")
    x = image()
    expected = apart(x)[0].numpy()
    np.testing.assert_allclose(expected, stock(x)[0].numpy(), rtol=1e-4, atol=1e-4)
    library.set_debug(True)
    try:
        watched = three(x)[0].numpy()
    finally:
        library.set_debug(False)
    np.testing.assert_array_equal(three(x)[0].numpy(), expected)
    np.testing.assert_array_equal(watched, expected)


def test_many_threads_on_one_module(three):
    """Each VM lends arenas of its own."""
    inputs = [image(seed) for seed in range(4)]
    expected = [three(x)[0].numpy() for x in inputs]
    executables = [tvm_mxplan.Executable(three.module, three.signature, three.report) for _ in inputs]

    def run(at: int) -> bool:
        return all(np.array_equal(executables[at](inputs[at])[0].numpy(), expected[at]) for _ in range(10))

    with ThreadPoolExecutor(len(inputs)) as pool:
        assert all(pool.map(run, range(len(inputs))))


def test_a_saved_library_has_the_moved_programs(three, tmp_path):
    x = image(1)
    three.export(tmp_path / "three.so")
    loaded = tvm_mxplan.load(tmp_path / "three.so")
    np.testing.assert_array_equal(loaded(x)[0].numpy(), three(x)[0].numpy())
    assert loaded.report.memory == three.report.memory


def test_the_arena_of_the_report_is_the_plan(three):
    """Problem and offsets survive the report, and whoever reads them finds them valid."""
    loaded = Report.from_json(json.loads(json.dumps(three.report.to_json())))
    assert loaded == three.report
    main = loaded.memory[-1]
    arena = function_arena(main)
    assert validate(arena.problem, arena.plan) == []
    assert lower_bound(arena.problem) == main.lower_bound
    assert set(arena.kinds) == {"between", "values", "scratchpads"}


def random_network(seed: int) -> tvm.IRModule:
    """Convolutions, sums and kernels of TVM's own in a random graph; several results leave it."""
    rng = np.random.default_rng(seed)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 16, 8, 8), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            made: list[relax.Expr] = [x]
            for _ in range(12):
                a, b = (made[-1 - int(at)] for at in rng.integers(0, min(3, len(made)), 2))
                kind = rng.integers(0, 5)
                if kind < 2:
                    weights = relax.const(rng.standard_normal((16, 16, 3, 3)).astype("float32") / 12)
                    value = relax.op.nn.conv2d(a, weights, padding=1)
                elif kind == 2:
                    value = relax.op.add(a, b)
                else:
                    value = relax.op.atan(a) if kind == 3 else relax.op.cumsum(a, axis=1)
                made.append(builder.emit(value))
            results = [builder.emit_output(relax.op.atan(made[-1])), builder.emit_output(made[-2])]
        builder.emit_func_output(relax.Tuple(results))
    return builder.get()


@pytest.mark.parametrize("seed", range(6))
def test_random_networks(seed):
    """The same numbers as without reuse, with every byte of the arena watched."""
    ex = tvm_mxplan.compile(random_network(seed), options={"order": "memory"})
    apart = tvm_mxplan.compile(random_network(seed), options={"memory": "no_reuse"})
    held = [memory.region for memory in ex.report.memory if memory.stands_in == "main"]
    assert len(held) >= 1
    x = np.random.default_rng(seed).standard_normal((1, 16, 8, 8)).astype("float32")
    library.set_debug(True)
    try:
        watched = ex(x)
    finally:
        library.set_debug(False)
    for got, again, expected in zip(ex(x), watched, apart(x), strict=True):
        np.testing.assert_array_equal(got.numpy(), again.numpy())
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)


def test_a_region_that_is_called_twice_gets_its_arena_as_a_block():
    """One program has one set of offsets; calls differ in what is free."""
    rng = np.random.default_rng(0)
    weights = relax.const(rng.standard_normal((16, 16, 3, 3)).astype("float32") / 10)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(SHAPE, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.conv2d(x, weights, padding=1))
            y = builder.emit(relax.op.cumsum(y, axis=1))
            y = builder.emit_output(relax.op.nn.conv2d(y, weights, padding=1))
        builder.emit_func_output(y)
    recorder = Recorder()
    target = tvm.target.Target("llvm")
    run = compilation([OneDNN()], Options(), target, Given(recorder)).run
    with target:
        # Without the phase that names operators, so that equal ones make one region.
        unnamed = run(builder.get(), "canonicalize", "canonicalize")
        module = relax.build(run(unnamed, "dispatch"), target, relax_pipeline=None)
    region, main = recorder.report.memory
    (held,) = recorder.report.regions
    assert held.calls == 2
    assert "called 2 times" in str(recorder.report)
    assert recorder.report.offloaded == 1.0
    assert recorder.report.multiply_adds == 2 * held.multiply_adds > 0
    assert region.stands_in == "main"
    assert main.kinds["arenas"] == 2 * region.height > 0
    assert main.height < main.no_reuse
    (program,) = decoded_programs(module)
    assert program.arena_bytes == region.height
    got = relax.VirtualMachine(module, tvm.cpu())["main"](tvm.runtime.tensor(image()))
    stock = tvm_mxplan.compile(builder.get(), "llvm")
    np.testing.assert_allclose(got.numpy(), stock(image())[0].numpy(), rtol=1e-4, atol=1e-4)


def test_symbolic_shapes_keep_arenas_of_their_own():
    ex = tvm_mxplan.compile(chain(2, ("n", *SHAPE[1:])))
    assert len(ex.report.regions) == 2
    assert ex.report.memory == ()
    stock = tvm_mxplan.compile(chain(2, ("n", *SHAPE[1:])), "llvm")
    for batch in (1, 3):
        x = image(batch=batch)
        np.testing.assert_allclose(ex(x)[0].numpy(), stock(x)[0].numpy(), rtol=1e-4, atol=1e-4)


# --- what the checker refuses ------------------------------------------------------------------------------


def checked(monkeypatch: pytest.MonkeyPatch, move) -> list[str]:
    """The checker's answer for the programs that ``move`` makes of right ones."""
    found: list[str] = []

    def check(before: relax.Function, after: relax.Function, programs: dict[str, ir.Program]) -> list[str]:
        if programs:
            assert check_storage(before, after, programs) == []
            found.extend(check_storage(before, after, {name: move(p) for name, p in programs.items()}))
        return []

    monkeypatch.setattr(storage_rewrite, "check_storage", check)
    tvm_mxplan.compile(chain(3))
    return found


def locals_of(program: ir.Program) -> list[int]:
    return [at for at, value in enumerate(program.values) if value.kind == "local" and value.alias_of < 0]


def test_values_on_one_another_are_refused(monkeypatch):
    def move(program: ir.Program) -> ir.Program:
        for at in locals_of(program):
            program = program.with_value(at, offset=0)
        return program

    assert any("which its step needs" in reason for reason in checked(monkeypatch, move))


def test_a_value_that_leaves_the_arena_is_refused(monkeypatch):
    def move(program: ir.Program) -> ir.Program:
        return program.with_value(locals_of(program)[0], offset=program.arena_bytes - 64)

    assert any("leave the arena" in reason for reason in checked(monkeypatch, move))


def test_a_region_on_what_it_still_reads_is_refused(monkeypatch):
    """The scratchpads of all steps over everything: inputs that wait in the arena are lost."""

    def move(program: ir.Program) -> ir.Program:
        steps = tuple(
            replace(step, scratchpad_offset=0, scratchpad_bytes=program.arena_bytes) for step in program.steps
        )
        return replace(program, steps=steps)

    assert any("scratchpad of" in reason for reason in checked(monkeypatch, move))
