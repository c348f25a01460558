"""Operators of the domain com.microsoft, which onnxruntime's tools fuse transformers into."""

from . import attention, embedding, group_query, matmul, normalization, recurrent  # noqa: F401 (they join the table)

DOMAIN = "com.microsoft"
