"""Physical layouts in Relax operators: to and from plain, against numpy, and constants that broadcast."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from relax_programs import TARGET, normal, run
from tvm import relax

from tvm_mxplan.core.layout.layout import parse_layout
from tvm_mxplan.passes.physical import physical_array, physical_type, to_physical, to_plain

LAYOUTS = ("acdb", "aBcd16b", "aBcd8b", "cdba", "ABcd8b4a")


def stored(x: np.ndarray, layout: str) -> np.ndarray:
    """``x`` in ``layout``, element by element."""
    parsed = parse_layout(layout)
    result = np.zeros(parsed.physical_shape(x.shape), x.dtype)
    for index in np.ndindex(x.shape):
        outer, inner = list(index), {}
        for at in reversed(range(len(parsed.blocks))):
            size, dim = parsed.blocks[at]
            inner[at] = outer[dim] % size
            outer[dim] //= size
        place = (*(outer[dim] for dim in parsed.order), *(inner[at] for at in range(len(parsed.blocks))))
        result[place] = x[index]
    return result


@pytest.mark.parametrize(
    ("layout", "batch"), [*((layout, 3) for layout in LAYOUTS), ("acdb", "n"), ("aBcd16b", "n")]
)
def test_there_and_back(layout: str, batch: int | str) -> None:
    dims = [tvm.tirx.Var("n", "int64") if batch == "n" else 3, 17, 2, 5]
    plain = relax.TensorType(dims, "float32")
    builder = relax.BlockBuilder()
    x = relax.Var("x", plain)
    with builder.function("main", [x]):
        physical = builder.emit(to_physical(x, layout))
        back = builder.emit(to_plain(physical, layout, plain))
        builder.emit_func_output(relax.Tuple([physical, back]))
    mod = relax.transform.Normalize()(builder.get())
    assert [str(d) for d in physical.ty.shape.values] == [
        str(d) for d in physical_type(plain, layout).shape.values
    ]
    array = normal(0, 3, 17, 2, 5)
    there, again = run(relax.VirtualMachine(tvm.compile(mod, TARGET), tvm.cpu()), array)
    np.testing.assert_array_equal(there, stored(array, layout))
    np.testing.assert_array_equal(again, array)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "shape", [(17, 1, 1), (1, 17, 1, 1), (1, 1, 2, 5), (5,), (3, 17, 2, 5), (3, 1, 1, 1)]
)
def test_a_constant_broadcasts_as_before(layout: str, shape: tuple[int, ...]) -> None:
    image, constant = normal(0, 3, 17, 2, 5), normal(1, *shape)
    sums = stored(image, layout) + physical_array(constant, layout, image.shape)
    inside = stored(np.ones_like(image), layout) == 1
    np.testing.assert_array_equal(sums[inside], stored(image + constant, layout)[inside])
