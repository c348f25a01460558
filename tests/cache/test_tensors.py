"""Tensors as bytes and back: no copies where none are needed, and one block where copies are."""

from __future__ import annotations

import numpy as np
import pytest
import tvm

from tvm_mxplan.cache.tensors import as_array, copy_together, tensor_bytes


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 0, 3)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_bytes_of_a_tensor_and_an_array_of_bytes(shape, dtype):
    array = (10 * np.random.default_rng(0).standard_normal(shape)).astype(dtype)
    data = tensor_bytes(tvm.runtime.tensor(array))
    assert bytes(data) == array.tobytes()
    again = as_array(data, dtype, shape)
    assert (again.dtype, again.shape) == (array.dtype, shape)
    np.testing.assert_array_equal(again, array)


def test_an_array_is_a_view_and_has_the_size_of_its_shape():
    data = bytearray(24)
    array = as_array(data, "float32", (2, 3))
    data[0:4] = np.float32(1.5).tobytes()
    assert array[0, 0] == 1.5
    for shape in ((2, 2), (7,)):
        with pytest.raises(ValueError, match="reshape"):
            as_array(data, "float32", shape)


def test_copies_stand_together_at_multiples_of_64():
    sources = [bytearray(np.random.default_rng(n).bytes(size)) for n, size in enumerate((1, 64, 0, 65, 200))]
    copies = copy_together(sources)
    assert [bytes(copy) for copy in copies] == [bytes(source) for source in sources]
    starts = [np.frombuffer(copy, np.uint8).ctypes.data for copy in copies if len(copy)]
    assert all(start % 64 == 0 for start in starts)
    assert [start - starts[0] for start in starts] == [0, 64, 128, 256]
    before = bytes(copies[1])
    for source in sources:
        source[:] = bytes(len(source))
    assert bytes(copies[1]) == before != bytes(64)
    copies[0][0] = 7
    assert bytes(copies[1]) == before


def test_nothing_to_copy():
    assert copy_together([]) == []
    assert [bytes(copy) for copy in copy_together([b"", bytearray()])] == [b"", b""]
