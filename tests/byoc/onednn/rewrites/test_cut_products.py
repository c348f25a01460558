"""Products of whose results pieces are read: which are cut apart, which stay whole, and the same numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_programs import Small, chain, fused, kinds

from tvm_mxplan.core.program import program as ir


def widths(program: ir.Program) -> list[int]:
    """Columns of the products, in their order."""
    products = [step for step in program.steps if isinstance(step.attrs, ir.MatMul)]
    return [program.values[step.dst].shape[-1] for step in products]  # type: ignore[misc]


def piece(b: Small, src: int, axis: int, begin: int, count: int = 1) -> int:
    shape, place = list(b.shape(src)), [0] * len(b.shape(src))
    shape[axis], place[axis] = count, begin
    return b.step("slice", ir.Slice(tuple(place)), tuple(shape), [("src", src)])


def attended(b: Small, parts: list[int]) -> int:
    """Attention of queries, keys and values [samples, heads, tokens, depth]."""
    samples, heads, tokens, depth = b.shape(parts[0])
    operands = list(zip(("src", "key", "value"), parts, strict=True))
    return b.step("attention", ir.Attention(0.125, "no", False), (samples, tokens, heads, depth), operands)


def queries_keys_values(b: Small, product: int, heads: int, depth: int) -> list[int]:
    """As exporters cut them out: three axes of heads permuted to the front, and one taken."""
    samples, tokens, _ = b.shape(product)
    seen = b.permute(b.reshape(product, (samples, tokens, 3, heads, depth)), (2, 0, 3, 1, 4))
    return [b.reshape(piece(b, seen, 0, at), (samples, heads, tokens, depth)) for at in range(3)]


@pytest.mark.parametrize(("samples", "tokens", "heads", "depth"), [(1, 7, 2, 32), (2, 5, 3, 40)])
def test_queries_keys_and_values_are_products_of_their_own(
    samples: int, tokens: int, heads: int, depth: int
) -> None:
    b = Small((samples, tokens, heads, depth), (samples, tokens, 9))
    product = b.matmul(b.inputs[0], 3 * heads * depth)
    biased = b.binary(product, b.numbers(1, 1, 3 * heads * depth))
    after = fused(b, attended(b, queries_keys_values(b, biased, heads, depth)))
    assert kinds(after) == ["matmul"] * 3 + ["attention"] and widths(after) == 3 * [heads * depth]
    assert all(step.operand("bias") for step in after.steps[:3])
    (attention,) = (step for step in after.steps if isinstance(step.attrs, ir.Attention))
    layouts = {after.values[attention.operand(role)].layout for role in ("src", "key", "value")}
    assert layouts == {"acbd"}, "read where the products wrote them"


def test_pieces_of_the_last_axis_that_are_not_all_of_it() -> None:
    b = Small((7, 64), (7, 9))
    product = b.eltwise(b.matmul(b.inputs[0], 200), "tanh")
    after = fused(b, b.binary(piece(b, product, 1, 3, 64), piece(b, product, 1, 100, 64)))
    assert kinds(after) == ["matmul"] * 2 and widths(after) == [64, 64]
    assert [chain(step) for step in after.steps] == [["tanh"], ["tanh", "add"]], "as gated layers are"


def test_columns_that_are_apart_from_each_other() -> None:
    """Each head has its queries beside its keys."""
    b = Small((1, 6, 4, 16), (1, 6, 9))
    seen = b.reshape(b.matmul(b.inputs[0], 4 * 32), (1, 6, 4, 32))
    after = fused(b, b.binary(piece(b, seen, 3, 0, 16), piece(b, seen, 3, 16, 16), "mul"))
    assert widths(after) == [64, 64] and "slice" not in kinds(after)


def whole(b: Small, result: int) -> bool:
    after = fused(b, result)
    return "slice" in kinds(after) and len(widths(after)) == 1


def test_narrow_pieces_stay_together() -> None:
    b = Small((7, 32), (7, 9))
    product = b.matmul(b.inputs[0], 64)
    assert whole(b, b.binary(piece(b, product, 1, 0, 32), piece(b, product, 1, 32, 32)))


def test_what_is_read_whole_as_well_stays_whole() -> None:
    b = Small((7, 128), (7, 9), (7, 64))
    product = b.matmul(b.inputs[0], 128)
    joined = b.step(
        "concat", ir.Concat(1), (7, 128), [("src", piece(b, product, 1, 0, 64)), ("src", b.inputs[1])]
    )
    assert whole(b, b.binary(joined, product, "mul"))


def test_pieces_of_rows_stay_together() -> None:
    b = Small((3, 128), (6, 9))
    product = b.matmul(b.inputs[0], 128)
    assert whole(b, b.binary(piece(b, product, 0, 0, 3), piece(b, product, 0, 3, 3)))


def test_pieces_that_are_more_than_the_whole_stay_together() -> None:
    b = Small((7, 80), (7, 9))
    product = b.matmul(b.inputs[0], 128)
    assert whole(b, b.binary(piece(b, product, 1, 0, 80), piece(b, product, 1, 48, 80)))


def test_one_row_has_no_gaps() -> None:
    b = Small((1, 64), (1, 9))
    product = b.matmul(b.inputs[0], 128)
    assert whole(b, b.binary(piece(b, product, 1, 0, 64), piece(b, product, 1, 64, 64)))


def test_weights_that_vary_stay_whole() -> None:
    b = Small((7, 64), (7, 9), (9, 128))
    product = b.step("matmul", ir.MatMul(), (7, 128), [("src", b.inputs[0]), ("weights", b.inputs[1])])
    assert whole(b, b.binary(piece(b, product, 1, 0, 64), piece(b, product, 1, 64, 64)))


def test_an_addend_of_every_element_stays_with_the_whole() -> None:
    b = Small((7, 64), (7, 9), (7, 128))
    product = b.binary(b.matmul(b.inputs[0], 128), b.inputs[1])
    assert whole(b, b.binary(piece(b, product, 1, 0, 64), piece(b, product, 1, 64, 64)))


def test_named_rows_are_cut_as_well() -> None:
    from tvm_mxplan.byoc.onednn.rewrites.cut_products import cut_products
    from tvm_mxplan.byoc.rewrites.graph import Graph
    from tvm_mxplan.core.program.dims import Symbol

    b = Small((7, 64), (7, 9))
    product = b.matmul(b.inputs[0], 128)
    b.write_output(b.binary(piece(b, product, 1, 0, 64), piece(b, product, 1, 64, 64)), b.output)
    program = b.finish()
    values = tuple(
        replace(v, shape=(Symbol("n"), *v.shape[1:]) if v.shape[0] == 7 else v.shape) for v in program.values
    )
    graph = Graph(replace(program, values=values, symbols=(ir.SymbolBinding("n", 0, 0),)), b.constants)
    cut_products(graph)
    assert widths(graph.close()[0]) == [64, 64]
