"""Whole models in bf16: what runs in it, how exact it is, and what the report and the options say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import onnx
import pytest

import tvm_mxplan
from tvm_mxplan import InvalidInputError, Options
from tvm_mxplan.byoc.onednn import library
from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.assignment import solve_assignment
from tvm_mxplan.core.decisions.precision import PrecisionDecision
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.opcheck import checking
from tvm_mxplan.passes.precision import decide_types
from tvm_mxplan.report.inspection import decoded_programs
from tvm_mxplan.report.report import Report
from tvm_mxplan.testing.reference import onnxruntime_outputs, worst_relative_l2

HAS_BF16 = not OneDNN().lacks("bfloat16")
needs_bf16 = pytest.mark.skipif(not HAS_BF16, reason="oneDNN multiplies no bfloat16 on this machine")
TEXT = """<ir_version: 9, opset_import: ["": 17]>
agraph (float[2, 5, 19, 17] x) => (float[2, 11] y) <float[48, 5, 3, 3] w, float[48] b,
        float[48, 1, 3, 3] d, float[48, 48, 1, 1] v, float[48, 11] m> {
    ["/stem/conv"] c = Conv <pads = [1, 1, 1, 1]> (x, w, b)
    ["/stem/relu"] r = Relu (c)
    ["/body/depthwise"] e = Conv <pads = [1, 1, 1, 1], group = 48, strides = [2, 2]> (r, d)
    ["/body/tanh"] t = Tanh (e)
    ["/body/point"] p = Conv (t, v)
    ["/body/add"] a = Add (p, t)
    ["/head/pool"] g = GlobalAveragePool (a)
    ["/head/flatten"] f = Flatten (g)
    ["/head/dense"] h = MatMul (f, m)
    ["/head/softmax"] y = Softmax (h)
}"""
STACKED = """<ir_version: 8, opset_import: ["": 17]>
agraph (float[5, 3, 9] x) => (float[5, 1, 3, 9] y, float[1, 3, 640] z)
        <float[1, 36, 9] w, float[1, 36, 9] r, float[9, 640] k> {
    a, h, c = LSTM <hidden_size = 9> (x, w, r)
    y, i, d = LSTM <hidden_size = 9> (x, w, r, , , h, c)
    z = MatMul (i, k)
}"""
RESHAPED = """<ir_version: 9, opset_import: ["": 17]>
agraph (float[2, 5, 19, 17] x) => (float[14, 255] y, float[2, 7, 17, 15] z) <float[7, 5, 3, 3] w> {
    c = Conv (x, w)
    y = Flatten <axis = 2> (c)
    z = Tanh (c)
}"""
SHAPES = {"w": (48, 5, 3, 3), "b": (48,), "d": (48, 1, 3, 3), "v": (48, 48, 1, 1), "m": (48, 11)}
ALL = {"conv2d": "bf16", "tanh": "bf16", "mean": "bf16", "add": "bf16", "matmul": "bf16"}


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    parsed, random = onnx.parser.parse_model(TEXT), np.random.default_rng(5)
    del parsed.graph.initializer[:]
    for name, shape in SHAPES.items():
        array = random.standard_normal(shape).astype("float32") / np.float32(np.sqrt(np.prod(shape[1:])))
        parsed.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return parsed


@pytest.fixture(scope="module")
def image() -> np.ndarray:
    return np.random.default_rng(6).standard_normal((2, 5, 19, 17)).astype("float32")


def compiled(model: onnx.ModelProto, **options: object) -> tvm_mxplan.Executable:
    return tvm_mxplan.compile(model, options={"cache": "disabled", "machine": "default", **options})


def types_of(ex: tvm_mxplan.Executable) -> dict[str, tuple[str, ...]]:
    return {step.name: step.types for region in ex.report.regions for step in region.steps}


@needs_bf16
def test_a_model_computes_in_bf16_from_floats_to_floats(model, image) -> None:
    ex = compiled(model, precision_for=ALL)
    types = types_of(ex)
    assert types["conv2d_0"] == ("bf16", "bf16") and types["cast_x"] == ("f32", "bf16")
    assert types["matmul_0"] == ("bf16", "f32")
    with checking() as checker:
        (result,) = ex(image)
    checked = checker.result()
    assert checked.steps == len(types) and not checked.differences
    assert result.numpy().dtype == np.float32
    error = worst_relative_l2([result.numpy()], onnxruntime_outputs(model, {"x": image}))
    assert 1e-5 < error < 2e-2


@needs_bf16
def test_weights_take_half_and_the_report_says_so(model) -> None:
    wide, short = compiled(model), compiled(model, precision_for=ALL)
    (before,), (after,) = wide.report.regions, short.report.regions
    filters = sum(int(np.prod(SHAPES[name])) for name in ("w", "d", "v", "m"))
    assert before.constant_bytes - after.constant_bytes == 2 * filters
    assert after.arena_bytes < 0.75 * before.arena_bytes
    assert before.precision is None
    assert after.precision.counts["bfloat16"] >= 5 and after.precision.casts == 1
    assert "precision model: " in str(short.report) and "f32 -> bf16" in str(short.report)
    again = Report.from_json(json.loads(json.dumps(short.report.to_json())))
    assert again.regions == short.report.regions
    assert "precision" not in wide.report.to_json()["regions"][0]


@needs_bf16
def test_outputs_in_another_shape_than_their_step_writes(image, monkeypatch) -> None:
    # Else the convolution writes float32, which costs as little, and no output is cast.
    monkeypatch.setattr(decide_types, "thriftiest_of_cheap", lambda problem, *_: solve_assignment(problem))
    parsed = onnx.parser.parse_model(RESHAPED)
    filters = np.random.default_rng(8).standard_normal((7, 5, 3, 3)).astype("float32") / np.float32(7)
    parsed.graph.initializer.append(onnx.numpy_helper.from_array(filters, "w"))
    ex = compiled(parsed, precision_for={"conv2d_0": "bf16", "tanh_0": "bf16"})
    assert types_of(ex)["conv2d_0"] == ("bf16", "bf16")
    results = [result.numpy() for result in ex(image)]
    error = worst_relative_l2(results, onnxruntime_outputs(parsed, {"x": image}))
    assert 1e-5 < error < 2e-2


@needs_bf16
def test_precision_bf16_takes_what_gains_and_leaves_the_rest(model, image) -> None:
    """Everything here is small: whatever is decided, what is estimated is no more than in float32."""
    ex = compiled(model, precision="bf16")
    (region,) = ex.report.regions
    assert region.precision.cost_us <= region.precision.float32_us
    assert set(region.precision.kept) | {name for name, types in types_of(ex).items() if types}
    error = worst_relative_l2([ex(image)[0].numpy()], onnxruntime_outputs(model, {"x": image}))
    assert error < 2e-2


@needs_bf16
def test_a_wide_layer_gains_and_single_ones_are_kept_out() -> None:
    text = """<ir_version: 9, opset_import: ["": 17]>
    agraph (float[300, 515] x) => (float[300, 515] y) <float[515, 515] a, float[515, 515] b> {
        h = MatMul (x, a)
        y = MatMul (h, b)
    }"""
    parsed, random = onnx.parser.parse_model(text), np.random.default_rng(1)
    del parsed.graph.initializer[:]
    for name in "ab":
        array = random.standard_normal((515, 515)).astype("float32") / np.float32(np.sqrt(515))
        parsed.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    types = types_of(compiled(parsed, precision="bf16"))
    assert types == {"cast_x": ("f32", "bf16"), "matmul_0": ("bf16", "bf16"), "matmul_1": ("bf16", "f32")}
    kept = types_of(compiled(parsed, precision="bf16", precision_for="matmul_0=f32"))
    assert kept["matmul_0"] == () and kept["matmul_1"][0] == "bf16"
    assert not any(types_of(compiled(parsed, precision="bf16", precision_for={"matmul": "f32"})).values())


@needs_bf16
def test_states_that_a_recurrent_step_hands_on_keep_their_types() -> None:
    """Two LSTMs in a row: the second reads both last states of the first, a product reads the second's."""
    parsed, random = onnx.parser.parse_model(STACKED), np.random.default_rng(7)
    del parsed.graph.initializer[:]
    for name, shape in {"w": (1, 36, 9), "r": (1, 36, 9), "k": (9, 640)}.items():
        array = np.float32(0.3) * random.standard_normal(shape).astype("float32")
        parsed.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    x = random.standard_normal((5, 3, 9)).astype("float32")
    ex = compiled(parsed, precision="bf16", precision_for={"matmul": "bf16"})
    kinds = [step.kind for region in ex.report.regions for step in region.steps]
    assert kinds.count("recurrent") == 2 and types_of(ex)["matmul_0"] == ("bf16", "f32")
    results = [result.numpy() for result in ex(x)]
    error = worst_relative_l2(results, onnxruntime_outputs(parsed, {"x": x}))
    assert 1e-5 < error < 2e-2


@needs_bf16
def test_symbolic_shapes_are_decided_on_at_typical_numbers(model, image) -> None:
    named = onnx.ModelProto()
    named.CopyFrom(model)
    for value in (*named.graph.input, *named.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    ex = compiled(named, precision_for=ALL)
    assert types_of(ex)["conv2d_0"] == ("bf16", "bf16")
    (result,) = ex(image)
    assert worst_relative_l2([result.numpy()], onnxruntime_outputs(model, {"x": image})) < 2e-2


@needs_bf16
def test_libraries_are_exported_and_loaded_with_their_types(model, image, tmp_path) -> None:
    ex = compiled(model, precision_for=ALL)
    ex.export(tmp_path / "m.so")
    loaded = tvm_mxplan.load(tmp_path / "m.so")
    dtypes = {value.dtype for program in decoded_programs(loaded.module) for value in program.values}
    assert dtypes == {"float32", "bfloat16"}
    np.testing.assert_array_equal(loaded(image)[0].numpy(), ex(image)[0].numpy())


@needs_bf16
def test_a_cache_keeps_precisions_apart(model, image, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TVM_MXPLAN_CACHE_DIR", str(tmp_path))
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    first = {
        name: tvm_mxplan.compile(
            path, options={"cache": "on_compile", "machine": "default", "precision_for": wish}
        )
        for name, wish in (("f32", {}), ("bf16", ALL))
    }
    again = {
        name: tvm_mxplan.compile(
            path, options={"cache": "on_compile", "machine": "default", "precision_for": wish}
        )
        for name, wish in (("f32", {}), ("bf16", ALL))
    }
    assert [ex.report.cache.outcome for ex in again.values()] == ["hit", "hit"]
    for name, ex in again.items():
        np.testing.assert_array_equal(ex(image)[0].numpy(), first[name](image)[0].numpy())
    assert types_of(again["bf16"])["conv2d_0"] == ("bf16", "bf16")
    assert not any(types_of(again["f32"]).values())


def _without_short_pools(describe):
    """A library that refuses pooling in bfloat16."""

    def refusing(self, program):
        description = describe(self, program)
        steps = tuple(
            replace(info, error="no pooling today")
            if isinstance(step.attrs, ir.Pooling) and program.values[step.dst].dtype == "bfloat16"
            else info
            for step, info in zip(program.steps, description.steps, strict=True)
        )
        return replace(description, steps=steps)

    return refusing


@needs_bf16
def test_demands_that_cannot_be_met_are_one_line(model, monkeypatch) -> None:
    with pytest.raises(InvalidInputError, match="precision_for: the model has no operator 'conv2d_9'"):
        compiled(model, precision_for="conv2d_9=bf16")
    with pytest.raises(InvalidInputError, match="TVM computes it in f32"):
        compiled(model, precision_for="conv2d_0=bf16", layers="conv2d_0=off")
    monkeypatch.setattr(OneDNN, "describe", _without_short_pools(OneDNN.describe))
    with pytest.raises(InvalidInputError, match="option precision_for: mean_0: no pooling today"):
        compiled(model, precision_for="mean_0=bf16")
    assert not types_of(compiled(model, precision_for="mean=bf16"))["mean_0"]


def test_what_is_not_there_yet_is_said() -> None:
    with pytest.raises(
        InvalidInputError, match="precision='int8' is not there yet; expected model, f32, bf16, f16 or auto"
    ):
        Options(precision="int8")
    for value in ("f16", "int8"):
        with pytest.raises(InvalidInputError, match=r"precision_for: conv2d_0=.* is not there yet"):
            Options(precision_for={"conv2d_0": value})


def test_f16_is_float32_with_a_reason(model) -> None:
    executable = compiled(model, precision="f16")
    (region,) = executable.report.regions
    assert str(region.precision) == (
        "precision f16: everything in f32, oneDNN is used for float32, bfloat16 and int8, not for float16"
    )
    assert not any(types_of(executable).values())


def test_other_values_are_refused_and_text_is_a_mapping() -> None:
    with pytest.raises(InvalidInputError, match=r"option precision=16; expected .* bf16, f16 or auto"):
        Options(precision=16)
    with pytest.raises(InvalidInputError, match="option precision=\\['bf16'\\]"):
        Options(precision=["bf16"])
    given = {"conv2d_0": "f32", "softmax": "bf16"}
    assert Options(precision_for="conv2d_0=f32, softmax=bf16").precision_for == given
    kept = Options(precision="bf16", precision_for=given).fingerprinted()
    assert (kept["precision"], kept["precision_for"]) == ("bf16", given)


def test_nodes_stand_for_their_operators(model) -> None:
    if not HAS_BF16:
        pytest.skip("oneDNN multiplies no bfloat16 on this machine")
    types = types_of(compiled(model, precision_for={"/stem/conv": "bf16"}))
    assert types["conv2d_0"][0] == "bf16" and not types["conv2d_2"]


_ELSEWHERE = """
import sys, numpy as np, onnx, tvm_mxplan
options = {"precision": "bf16", "cache": "disabled", "machine": "default"}
ex = tvm_mxplan.compile(onnx.load(sys.argv[1]), options=options)
(region,) = ex.report.regions
assert not any(step.types for step in region.steps)
print(region.precision)
"""


@pytest.mark.slow
def test_a_processor_without_bfloat16_says_so_and_runs_float32(model, tmp_path) -> None:
    onnx.save(model, tmp_path / "m.onnx")
    done = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE, str(tmp_path / "m.onnx")],
        env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    best = "avx512_core" if "avx512" in library.isa() else library.isa().removeprefix("cpu_isa_")
    assert f"everything in f32, oneDNN generates code for {best}, " in done.stdout
    assert "bfloat16 wants avx512_core_bf16 or above" in done.stdout


def test_what_is_missing_in_words() -> None:
    integers = "integers: products of the quantised model in real numbers, none there"
    assert str(PrecisionDecision("f32", integers_why_not="none there")) == integers
    both = PrecisionDecision("bf16", why_not="no bf16", integers_why_not="none there")
    assert str(both) == f"precision bf16: everything in f32, no bf16; {integers}"


def test_a_decision_in_words() -> None:
    made = PrecisionDecision("bf16", {"bfloat16": 5, "float32": 1}, 2, 1234.5, 2345.6)
    assert str(made) == (
        "precision bf16: 5 step(s) in bf16, 1 step(s) in f32, 2 cast(s); about 1,234 us, 2,346 in f32"
    )
    assert str(PrecisionDecision("bf16", why_not="no")) == "precision bf16: everything in f32, no"
