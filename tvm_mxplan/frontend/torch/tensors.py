"""Weights of PyTorch as constants of Relax."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

from ...errors import UnsupportedError
from ..aligned import ALIGNMENT

"""Bytes; TVM's kernels read and write vectors from the beginning of a tensor."""


class Weights:
    """Makes constants of tensors; one that has several names becomes one constant.

    Parameters
    ----------
    shared : leave the numbers where PyTorch has them, instead of copying.
    """

    def __init__(self, *, shared: bool) -> None:
        self._shared = shared
        self._made: dict[tuple[Any, ...], relax.Expr] = {}
        self._kept: list[Any] = []  # their memory is not given to others meanwhile
        self.copied = 0

    def constant(self, tensor: Any, name: str) -> relax.Expr:
        """The constant of a tensor.

        Raises
        ------
        UnsupportedError : a tensor that is not on the CPU, or not a plain strided one.
        """
        if tensor.device.type != "cpu":
            raise UnsupportedError(
                f"{name!r} is on the device {tensor.device}; expected the CPU: move the model there"
            )
        if str(tensor.layout) != "torch.strided" or tensor.is_quantized:
            raise UnsupportedError(f"{name!r} is {tensor.layout} of {tensor.dtype}; expected a plain tensor")
        tensor = with_parts(tensor.detach())
        place = (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), str(tensor.dtype))
        if place not in self._made or tensor.numel() == 0:
            self._kept.append(tensor)
            self._made[place] = relax.const(self._tvm_tensor(tensor, name))
        return self._made[place]

    def _tvm_tensor(self, tensor: Any, name: str) -> tvm.runtime.Tensor:
        if tensor.numel() == 0:  # its strides mean nothing, and kernels compare them
            return tvm.runtime.empty(tuple(tensor.shape), dtype_name(tensor.dtype))
        plain = tensor.resolve_neg().contiguous()
        owned = plain.data_ptr() != tensor.data_ptr()
        if not owned and (not self._shared or plain.data_ptr() % ALIGNMENT):
            plain, owned = plain.clone(), True
        self.copied += owned
        try:
            return tvm.runtime.from_dlpack(plain)
        except (RuntimeError, BufferError, ValueError, TypeError) as error:
            raise UnsupportedError(f"{name!r} of type {tensor.dtype}: TVM has no such tensor") from error


PARTS = {"torch.complex64": "float32", "torch.complex128": "float64"}
"""Types of complex numbers, and of their parts."""


def is_complex(value: Any) -> bool:
    """Whether an object is a tensor of complex numbers."""
    return str(getattr(value, "dtype", "")) in PARTS


def with_parts(tensor: Any) -> Any:
    """Complex numbers as real and imaginary parts along a last axis; other tensors as they are."""
    if not is_complex(tensor):
        return tensor
    import torch

    return torch.view_as_real(tensor.resolve_conj())


def dtype_name(dtype: Any) -> str:
    """TVM's name of an element type of PyTorch.

    Raises
    ------
    UnsupportedError : a type that TVM lacks.
    """
    name = str(dtype).removeprefix("torch.")
    if name not in _DTYPES:
        raise UnsupportedError(f"elements of type {name}; expected one of {', '.join(_DTYPES)}")
    return name


_DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
)
