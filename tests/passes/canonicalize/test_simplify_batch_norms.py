"""SimplifyInference: batch norms of constants are a scale and a shift."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from dataflow_text import assert_unchanged, constants, dataflow, operators
from relax_programs import TARGET, normal, run
from tvm import relax

from tvm_mxplan.passes.canonicalize import SimplifyInference

FOUR = ", ".join(['R.const([1.0, 2.0, 3.0], "float32")'] * 4)


def test_batch_norm_is_scale_and_shift():
    """Numbers against the definition; constants computed in double precision."""
    numbers = 'R.const([1.5, 2.5, 0.5], "float32"), R.const([0.1, 0.2, 0.3], "float32"), ' \
        'R.const([-0.3, 0.4, 0.7], "float32"), R.const([0.9, 0.2, 1.1], "float32")'  # fmt: skip
    options = "axis=1, epsilon=1e-3, center=True, scale=True, training=False"
    mod = dataflow(f"a = R.nn.batch_norm(x, {numbers}, {options})\ny = a[0]")
    simple = SimplifyInference()(mod)
    scale, shift = constants(simple)
    gamma, beta = np.array([1.5, 2.5, 0.5]), np.array([0.1, 0.2, 0.3])
    mean, variance = np.array([-0.3, 0.4, 0.7]), np.array([0.9, 0.2, 1.1])
    factor = gamma / np.sqrt(variance + 1e-3)
    np.testing.assert_allclose(scale, factor.reshape(1, 3, 1, 1), rtol=1e-6)
    np.testing.assert_allclose(shift, (beta - mean * factor).reshape(1, 3, 1, 1), rtol=1e-6)
    assert [op.name for op in operators(simple)] == ["relax.multiply", "relax.add"]


@pytest.mark.parametrize("axis", [0, 2, 3, -1])
def test_batch_norm_along_any_axis(axis):
    """Every extent is 3, so that nothing but the numbers says which axis it was."""
    vectors = [np.array(numbers) for numbers in ([1.5, 2.5, 0.5], [0.1, 0.2, 0.3], [-0.3, 0.4, 0.7])]
    gamma, beta, mean = vectors
    variance = np.array([0.9, 0.2, 1.1])
    parts = [f"R.const({vector.tolist()}, 'float32')" for vector in (*vectors, variance)]
    lines = f"a = R.nn.batch_norm(x, {', '.join(parts)}, axis={axis}, epsilon=1e-3, training=False)\ny = a[0]"
    mod = dataflow(lines, 'x: R.Tensor((3, 3, 3, 3), "float32")')
    simple = SimplifyInference()(mod)
    assert [op.name for op in operators(simple)] == ["relax.multiply", "relax.add"]
    x = normal(0, 3, 3, 3, 3)
    along = [3 if at == axis % 4 else 1 for at in range(4)]
    factor, centre, shift = (v.reshape(along) for v in (gamma / np.sqrt(variance + 1e-3), mean, beta))
    (result,) = run(relax.VirtualMachine(tvm.compile(simple, TARGET), tvm.cpu()), x)
    np.testing.assert_allclose(result, (x - centre) * factor + shift, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("scale", "center"), [(False, True), (True, False), (False, False)])
def test_batch_norm_without_scale_or_shift(scale, center):
    lines = f"a = R.nn.batch_norm(x, {FOUR}, axis=1, epsilon=1e-3, scale={scale}, center={center}, "
    simple = SimplifyInference()(dataflow(f"{lines}training=False)\ny = a[0]"))
    numbers = np.array([1.0, 2.0, 3.0])
    factor = (numbers if scale else 1.0) / np.sqrt(numbers + 1e-3)
    expected = factor, (numbers if center else 0.0) - numbers * factor
    for constant, right in zip(constants(simple), expected, strict=True):
        np.testing.assert_allclose(constant.ravel(), right, rtol=1e-6)


@pytest.mark.parametrize(("training", "index"), [(True, 0), (False, 1)])
def test_batch_norm_in_training_or_for_its_average_stays(training, index):
    lines = f"a = R.nn.batch_norm(x, {FOUR}, axis=1, training={training})\ny = a[{index}]"
    assert_unchanged(SimplifyInference(), lines)


def test_batch_norm_of_parameters_stays():
    vectors = ", ".join(f'{name}: R.Tensor((3,), "float32")' for name in "gbmv")
    lines = "a = R.nn.batch_norm(x, g, b, m, v, axis=1, training=False)\ny = a[0]"
    parameters = f'x: R.Tensor((2, 3, 4, 4), "float32"), {vectors}'
    assert_unchanged(SimplifyInference(), lines, parameters=parameters)
    # One that varies is enough, whichever it is.
    for place in range(4):
        parts = ['R.const([1.0, 2.0, 3.0], "float32")'] * 4
        parts[place] = "gbmv"[place]
        lines = f"a = R.nn.batch_norm(x, {', '.join(parts)}, axis=1, training=False)\ny = a[0]"
        assert_unchanged(SimplifyInference(), lines, parameters=parameters)


@pytest.mark.parametrize(
    ("mean", "names"),
    [
        (100.0, ["relax.multiply", "relax.add"]),
        (1e6, ["relax.subtract", "relax.multiply", "relax.add"]),
    ],
)
def test_batch_norm_of_a_far_mean_subtracts_it_first(mean, names):
    """mean / deviation says how many digits x * scale + shift would lose."""
    numbers = f'R.const([1.5], "float32"), R.const([0.1], "float32"), R.const([{mean}], "float32"), ' \
        'R.const([4.0], "float32")'  # fmt: skip
    lines = f"a = R.nn.batch_norm(x, {numbers}, axis=1, epsilon=0.0, training=False)\ny = a[0]"
    simple = SimplifyInference()(dataflow(lines, parameters='x: R.Tensor((2, 1, 4, 4), "float32")'))
    assert [op.name for op in operators(simple)] == names


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_batch_norm_of_narrow_floats(dtype):
    """GPUs keep a model's type, which numpy may not know."""
    numbers = ", ".join(f'R.const([{number}], "{dtype}")' for number in (1.5, 0.5, 1.0, 4.0))
    lines = f"a = R.nn.batch_norm(x, {numbers}, axis=1, epsilon=0.0, training=False)\ny = a[0]"
    simple = SimplifyInference()(dataflow(lines, parameters=f'x: R.Tensor((2, 1, 4, 4), "{dtype}")'))
    assert [op.name for op in operators(simple)] == ["relax.subtract", "relax.multiply", "relax.add"]
    assert [constant.ravel().tolist() for constant in constants(simple)] == [[1.0], [0.75], [0.5]]
