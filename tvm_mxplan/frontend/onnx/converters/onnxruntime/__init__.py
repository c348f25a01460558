"""Operators of the domain com.microsoft, which onnxruntime's tools fuse transformers into."""

from . import (
    attention,  # noqa: F401 (they join the table)
    dynamic,  # noqa: F401
    embedding,  # noqa: F401
    few_bits,  # noqa: F401
    fused,  # noqa: F401
    group_query,  # noqa: F401
    matmul,  # noqa: F401
    normalization,  # noqa: F401
    quantized,  # noqa: F401
    recurrent,  # noqa: F401
)

DOMAIN = "com.microsoft"
