"""Bodies of Relax functions that several tests of storage plan."""

from __future__ import annotations

X = 'x: R.Tensor((4, 6), "float32")'
BUSY = """
a = R.exp(x)
b = R.permute_dims(a)
c = R.permute_dims(b)
d = R.add(a, c)
return R.negative(R.permute_dims(d))
"""
