"""Problems of products of matrices as steps; see ``subjects``."""

from __future__ import annotations

from math import prod

from tvm_mxplan.core.program import program as ir

from .subject import Fields, Subject, Tensor


def matmul(f: Fields) -> Subject:
    """batch=2x3 of the result; bcast=src or weights broadcasts that one; ta, tb: transposed as stored."""
    rows, depth, columns = f.number("m"), f.number("k"), f.number("n")
    batch = tuple(int(size) for size in f.text("batch", "").split("x") if size)
    ones = (1,) * len(batch)
    lead = {"src": batch, "weights": batch, f.text("bcast", "none"): ones}
    rank = len(batch) + 2
    plain = "abcdef"[:rank]
    swapped = plain[:-2] + plain[-1] + plain[-2]
    tensors = [
        Tensor("src", (*lead["src"], rows, depth), layout=swapped if f.number("ta", 0) else plain),
        Tensor(
            "weights", (*lead["weights"], depth, columns), bool(f.number("const", 1)), "weights",
            swapped if f.number("tb", 0) else plain,
        ),
    ]  # fmt: skip
    if f.number("bias", 0):
        tensors.append(Tensor("bias", (*ones, 1, columns), True))
    return Subject(ir.MatMul(), tuple(tensors), (*batch, rows, columns), depth, channels=rank - 1)


def inner_product(f: Fields) -> Subject:
    inputs, outputs, image = f.number("ic"), f.number("oc"), f.spatial("i", 0)
    image = () if 0 in image else image
    tensors = [
        Tensor("src", (f.number("mb"), inputs, *image)),
        Tensor("weights", (outputs, inputs, *image), bool(f.number("const", 1)), "weights"),
    ]
    if f.number("bias", 0):
        tensors.append(Tensor("bias", (outputs,), True))
    depth = inputs * prod(image)
    return Subject(ir.InnerProduct(), tuple(tensors), (f.number("mb"), outputs), depth, channels=1)


def few_bits_product(f: Fields) -> Subject:
    """m rows of depth k, n columns of numbers of ``bits`` in blocks of b; zero: no, u8 or f32."""
    rows, depth, columns, bits, block = (f.number(name) for name in ("m", "k", "n", "bits", "b"))
    scales = (1, columns, -(-depth // block))
    tensors = [
        Tensor("src", (rows, depth)),
        Tensor("numbers", (1, columns, -(-depth * bits // 32)), True, "words", dtype="int32"),
        Tensor("scales", scales, True, "scale"),
    ]
    zero = f.text("zero", "no")
    if zero != "no":
        tensors.append(Tensor("zero_points", scales, True, "few", dtype={"u8": "uint8"}.get(zero, "float32")))
    attrs = ir.FewBitsProduct(bits, block)
    return Subject(attrs, tuple(tensors), (rows, columns), depth, exact=False)


def grouped_product(f: Fields) -> Subject:
    """m rows of depth k in g groups, whose ends are in no order; n columns."""
    rows, depth, columns, groups = (f.number(name) for name in ("m", "k", "n", "g"))
    tensors = (
        Tensor("src", (rows, depth)),
        Tensor("weights", (groups, depth, columns), True, "weights"),
        Tensor("ends", (groups,), False, "indices", dtype="int32", below=rows + 1),
    )
    return Subject(ir.GroupedProduct(), tensors, (rows, columns), depth)
