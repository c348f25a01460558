"""Forms of weights that change: those that steps want in a layout, shared by a weight and its gradient."""

from __future__ import annotations

from blocks import BLOCKED

from tvm_mxplan.byoc.onednn.backend import OneDNN
from tvm_mxplan.core.assignment import AssignmentProblem, Option, solve_assignment
from tvm_mxplan.core.program import program as ir
from tvm_mxplan.core.program.builder import ProgramBuilder
from tvm_mxplan.core.program.operands import operands_of
from tvm_mxplan.passes.costs.model import ModelCost
from tvm_mxplan.passes.layout.candidates import in_layout
from tvm_mxplan.passes.layout.queries import StepQueries
from tvm_mxplan.passes.layout.stored_weights import StoredWeights

GEOMETRY = (1, 1), (1, 1, 1, 1), (1, 1), 1
SRC, DST, WEIGHTS = (2, 32, 8, 8), (2, 64, 8, 8), (64, 32, 3, 3)


def step_of_training() -> tuple[ir.Program, int, int]:
    """A convolution, its gradients of data and of weights; the numbers of the weight and its gradient."""
    b = ProgramBuilder("step")
    x, w, g = (
        b.port("input", name, shape, "float32") for name, shape in (("x", SRC), ("w", WEIGHTS), ("g", DST))
    )
    b.step("forward", ir.Convolution(*GEOMETRY), DST, [("src", x), ("weights", w)])
    turned = b.permute(w, (1, 0, 2, 3))
    b.step("data", ir.Deconvolution(*GEOMETRY), SRC, [("src", g), ("weights", turned)])
    attrs = ir.ConvolutionBackwardWeights(*GEOMETRY)
    made = b.step("weights", attrs, WEIGHTS, [("src", x), ("gradient", g)])
    gradient = b.port("output", "wg", WEIGHTS, "float32")
    b.write_output(made, gradient)
    return b.finish(), w, gradient


def stored() -> tuple[StoredWeights, int, int]:
    program, weight, gradient = step_of_training()
    backend = OneDNN()
    return (
        StoredWeights(program, StepQueries(backend), ModelCost(backend), {weight: gradient}),
        weight,
        gradient,
    )


def form(weights: StoredWeights, at: int, layout: str) -> tuple[int, str]:
    """The form that a step wants of its weight, or gives of the gradient, with its images in a layout."""
    step = weights.program.steps[at]
    place = next(n for n, (_, value) in enumerate(operands_of(step)) if weights.holds(value))
    return weights.form(step, in_layout(weights.program, step, layout), place)


def test_in_blocks_forward_and_the_weights_gradient_agree_and_the_data_gradient_does_not() -> None:
    weights, weight, gradient = stored()
    forward, data, made = (form(weights, at, BLOCKED) for at in range(3))
    assert (forward[0], data[0], made[0]) == (weight, weight, gradient)
    assert forward[1] == made[1] != data[1]
    assert "b" in forward[1][4:]  # blocks of numbers, no permutation of axes alone


def test_an_update_wants_the_gradient_in_the_form_of_the_weight() -> None:
    weights, weight, gradient = stored()
    forms = {form(weights, at, BLOCKED)[1] for at in range(3)}
    (options,) = weights.updates()
    assert {option.gives[0][1] for option in options} == forms | {"abcd"}
    for option in options:
        ((wanted, layout),), ((given, same),) = option.wants, option.gives
        assert (wanted, given, option.cost) == (gradient, weight, 0.0) and layout == same


def test_a_choice_converts_the_weight_for_its_data_gradient_alone() -> None:
    weights, weight, gradient = stored()
    wanted = [form(weights, at, BLOCKED) for at in range(3)]
    steps = [(Option(0.0, (one,), ()),) for one in wanted[:2]]
    steps.append((Option(0.0, (), (wanted[2],)),))
    steps += weights.updates()
    conversions = {
        (port, layout): weights.conversion(port, "abcd", layout)
        for port in (weight, gradient)
        for layout in {one[1] for one in wanted} | {"abcd"}
        if layout != "abcd"
    }
    conversions[gradient, "abcd"] = conversions[gradient, wanted[2][1]]
    problem = AssignmentProblem(tuple(steps), conversions)
    found = solve_assignment(problem)
    assert steps[3][found.choices[3]].gives == (wanted[0],)
    assert 0 < found.cost == conversions[wanted[1]]


def test_values_beside_the_weight_are_not_held() -> None:
    weights, *_ = stored()
    forward = weights.program.steps[0]
    assert not weights.holds(forward.operand("src")) and not weights.holds(forward.dst)
