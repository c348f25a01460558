"""Relay's attributes: which each type has, how JSON writes them, and what they are where the text omits them.

The text omits an attribute that is what its type has it be by default; JSON writes all.  The tables say what
TVM 0.19 has, which older versions differ from in attributes that they did not have yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final


class Kind(Enum):
    """The form in which JSON writes a field: its value as a text, or the number of a node."""

    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    TEXT = "text"
    NODE = "node"


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()


@dataclass(frozen=True)
class Field:
    kind: Kind
    default: Any = REQUIRED


def _int(default: Any = REQUIRED) -> Field:
    return Field(Kind.INT, default)


def _float(default: Any = REQUIRED) -> Field:
    return Field(Kind.FLOAT, default)


def _bool(default: bool = False) -> Field:
    return Field(Kind.BOOL, default)


def _text(default: Any = REQUIRED) -> Field:
    return Field(Kind.TEXT, default)


def _node(default: Any = REQUIRED) -> Field:
    return Field(Kind.NODE, default)


_DTYPE = _text("")
"""'' is the type of the operands."""


def _convolution(axes: str, *, transposed: bool = False) -> dict[str, Field]:
    rank = len(axes)
    kernel = "IO" if transposed else "OI"
    padding = rank if rank != 1 or transposed else 2
    fields = {
        "strides": _node([1] * rank),
        "padding": _node([0] * padding),
        "dilation": _node([1] * rank),
        "groups": _int(1),
        "channels": _node(None),
        "kernel_size": _node(None),
        "data_layout": _text("NC" + axes),
        "kernel_layout": _text(kernel + axes),
        "out_layout": _text(""),
        "out_dtype": _DTYPE,
    }
    return fields | ({"output_padding": _node([0] * rank)} if transposed else {})


def _pool(axes: str, *, average: bool = False) -> dict[str, Field]:
    rank = len(axes)
    fields = {
        "pool_size": _node(),
        "strides": _node([1] * rank),
        "dilation": _node([1] * rank),
        "padding": _node([0] * rank),
        "layout": _text("NC" + axes),
        "out_layout": _text(""),
        "ceil_mode": _bool(),
    }
    return fields | ({"count_include_pad": _bool()} if average else {})


def _adaptive(axes: str) -> dict[str, Field]:
    return {"output_size": _node([]), "layout": _text("NC" + axes), "out_layout": _text("")}


def _resize(axes: str) -> dict[str, Field]:
    return {
        "size": _node(),
        "roi": _node(None),
        "layout": _text("NC" + axes),
        "method": _text("linear"),
        "coordinate_transformation_mode": _text("half_pixel"),
        "rounding_method": _text("round"),
        "cubic_alpha": _float(-0.5),
        "cubic_exclude": _int(0),
        "extrapolation_value": _float(0.0),
        "out_dtype": _DTYPE,
    }


_NORM = {"epsilon": _float(1e-5), "center": _bool(True), "scale": _bool(True)}
_REDUCTION = {"axis": _node(None), "keepdims": _bool(), "exclude": _bool()}

TYPES: Mapping[str, Mapping[str, Field]] = {
    "BiasAddAttrs": {"axis": _int(1)},
    "Conv1DAttrs": _convolution("W"),
    "Conv2DAttrs": _convolution("HW"),
    "Conv3DAttrs": _convolution("DHW"),
    "Conv1DTransposeAttrs": _convolution("W", transposed=True),
    "Conv2DTransposeAttrs": _convolution("HW", transposed=True),
    "Conv3DTransposeAttrs": _convolution("DHW", transposed=True),
    "SoftmaxAttrs": {"axis": _int(-1)},
    "MaxPool1DAttrs": _pool("W"),
    "MaxPool2DAttrs": _pool("HW"),
    "MaxPool3DAttrs": _pool("DHW"),
    "AvgPool1DAttrs": _pool("W", average=True),
    "AvgPool2DAttrs": _pool("HW", average=True),
    "AvgPool3DAttrs": _pool("DHW", average=True),
    "GlobalPool2DAttrs": {"layout": _text("NCHW"), "out_layout": _text("")},
    "AdaptivePool1DAttrs": _adaptive("W"),
    "AdaptivePool2DAttrs": _adaptive("HW"),
    "AdaptivePool3DAttrs": _adaptive("DHW"),
    "MatmulAttrs": {
        "units": _node(None),
        "out_dtype": _DTYPE,
        "transpose_a": _bool(),
        "transpose_b": _bool(),
    },
    "DenseAttrs": {"units": _node(None), "out_dtype": _DTYPE},
    "BatchMatmulAttrs": {"out_dtype": _DTYPE, "transpose_a": _bool(), "transpose_b": _bool()},
    "UpSamplingAttrs": {
        "scale_h": _float(),
        "scale_w": _float(),
        "layout": _text("NCHW"),
        "method": _text("nearest_neighbor"),
        "align_corners": _bool(),
    },
    "PadAttrs": {"pad_width": _node(), "pad_mode": _text("constant")},
    "MirrorPadAttrs": {"mode": _text("SYMMETRIC"), "pad_width": _node()},
    "LeakyReluAttrs": {"alpha": _float(0.25)},
    "PReluAttrs": {"axis": _int(1)},
    "DropoutAttrs": {"rate": _float(0.5)},
    "BatchNormAttrs": {"axis": _int(1), **_NORM},
    "InstanceNormAttrs": {"axis": _int(1), **_NORM},
    "LayerNormAttrs": {"axis": _int(-1), **_NORM},
    "GroupNormAttrs": {"num_groups": _int(0), "axis": _int(1), **_NORM},
    "LRNAttrs": {
        "size": _int(5),
        "axis": _int(1),
        "bias": _float(2.0),
        "alpha": _float(0.0001),
        "beta": _float(0.75),
    },
    "L2NormalizeAttrs": {"eps": _float(), "axis": _node()},
    "SubPixelAttrs": {"block_size": _int(1), "layout": _text("NCHW"), "mode": _text("DCR")},
    "CastAttrs": {"dtype": _text()},
    "ExpandDimsAttrs": {"axis": _int(), "num_newaxis": _int(1)},
    "ConcatenateAttrs": {"axis": _int(0)},
    "TransposeAttrs": {"axes": _node(None)},
    "ReshapeAttrs": {"newshape": _node(), "allowzero": _bool()},
    "ReshapeLikeAttrs": {
        "lhs_begin": _int(0),
        "lhs_end": _node(None),
        "rhs_begin": _int(0),
        "rhs_end": _node(None),
    },
    "GatherAttrs": {"axis": _node(None)},
    "GatherNDAttrs": {"batch_dims": _node(0), "index_rank": _node(None)},
    "TakeAttrs": {"batch_dims": _node(0), "axis": _node(None), "mode": _text("clip")},
    "InitOpAttrs": {"shape": _node(None), "dtype": _DTYPE},
    "ArangeAttrs": {"start": _node(None), "stop": _node(None), "step": _node(None), "dtype": _text()},
    "StackAttrs": {"axis": _node(0)},
    "RepeatAttrs": {"repeats": _node(), "axis": _node(None)},
    "TileAttrs": {"reps": _node()},
    "ReverseAttrs": {"axis": _node(None)},
    "SqueezeAttrs": {"axis": _node(None)},
    "SplitAttrs": {"indices_or_sections": _node(), "axis": _int(0)},
    "StridedSliceAttrs": {
        "begin": _node(),
        "end": _node(),
        "strides": _node(None),
        "slice_mode": _text("end"),
        "axes": _node(None),
    },
    "SliceLikeAttrs": {"axes": _node(None)},
    "ClipAttrs": {"a_min": _float(), "a_max": _float()},
    "LayoutTransformAttrs": {"src_layout": _text(), "dst_layout": _text()},
    "ShapeOfAttrs": {"dtype": _text("int32")},
    "OneHotAttrs": {"depth": _int(1), "axis": _int(-1), "dtype": _text("float32")},
    "ScanopAttrs": {"axis": _node(None), "dtype": _DTYPE, "exclusive": _node(False)},
    "EinsumAttrs": {"equation": _text()},
    "ReduceAttrs": _REDUCTION,
    "ArgReduceAttrs": {**_REDUCTION, "select_last_index": _bool()},
    "VarianceAttrs": {**_REDUCTION, "unbiased": _bool()},
    "Resize1DAttrs": _resize("W"),
    "Resize2DAttrs": _resize("HW"),
    "Resize3DAttrs": _resize("DHW"),
    "ArgsortAttrs": {"axis": _int(-1), "is_ascend": _bool(True), "dtype": _text("int32")},
    "TopkAttrs": {
        "k": _node(),
        "axis": _int(-1),
        "ret_type": _text("both"),
        "is_ascend": _bool(),
        "dtype": _text("int32"),
    },
}
"""Fields by the name that a type has behind ``relay.attrs.``."""

_NAMED = {
    "nn.bias_add": "BiasAdd",
    "nn.conv1d": "Conv1D",
    "nn.conv2d": "Conv2D",
    "nn.conv3d": "Conv3D",
    "nn.conv1d_transpose": "Conv1DTranspose",
    "nn.conv2d_transpose": "Conv2DTranspose",
    "nn.conv3d_transpose": "Conv3DTranspose",
    "nn.softmax": "Softmax",
    "nn.fast_softmax": "Softmax",
    "nn.log_softmax": "Softmax",
    "nn.max_pool1d": "MaxPool1D",
    "nn.max_pool2d": "MaxPool2D",
    "nn.max_pool3d": "MaxPool3D",
    "nn.avg_pool1d": "AvgPool1D",
    "nn.avg_pool2d": "AvgPool2D",
    "nn.avg_pool3d": "AvgPool3D",
    "nn.global_max_pool2d": "GlobalPool2D",
    "nn.global_avg_pool2d": "GlobalPool2D",
    "nn.adaptive_max_pool1d": "AdaptivePool1D",
    "nn.adaptive_avg_pool1d": "AdaptivePool1D",
    "nn.adaptive_max_pool2d": "AdaptivePool2D",
    "nn.adaptive_avg_pool2d": "AdaptivePool2D",
    "nn.adaptive_max_pool3d": "AdaptivePool3D",
    "nn.adaptive_avg_pool3d": "AdaptivePool3D",
    "nn.matmul": "Matmul",
    "nn.dense": "Dense",
    "nn.batch_matmul": "BatchMatmul",
    "nn.upsampling": "UpSampling",
    "nn.pad": "Pad",
    "nn.mirror_pad": "MirrorPad",
    "nn.leaky_relu": "LeakyRelu",
    "nn.prelu": "PRelu",
    "nn.dropout": "Dropout",
    "nn.batch_norm": "BatchNorm",
    "nn.instance_norm": "InstanceNorm",
    "nn.layer_norm": "LayerNorm",
    "nn.group_norm": "GroupNorm",
    "nn.lrn": "LRN",
    "nn.l2_normalize": "L2Normalize",
    "nn.depth_to_space": "SubPixel",
    "nn.space_to_depth": "SubPixel",
    "cast": "Cast",
    "expand_dims": "ExpandDims",
    "concatenate": "Concatenate",
    "transpose": "Transpose",
    "reshape": "Reshape",
    "contrib_reverse_reshape": "Reshape",
    "reshape_like": "ReshapeLike",
    "gather": "Gather",
    "gather_nd": "GatherND",
    "take": "Take",
    "zeros": "InitOp",
    "ones": "InitOp",
    "full": "InitOp",
    "broadcast_to": "InitOp",
    "arange": "Arange",
    "stack": "Stack",
    "repeat": "Repeat",
    "tile": "Tile",
    "reverse": "Reverse",
    "squeeze": "Squeeze",
    "split": "Split",
    "strided_slice": "StridedSlice",
    "slice_like": "SliceLike",
    "clip": "Clip",
    "layout_transform": "LayoutTransform",
    "shape_of": "ShapeOf",
    "one_hot": "OneHot",
    "cumsum": "Scanop",
    "einsum": "Einsum",
    "argmax": "ArgReduce",
    "argmin": "ArgReduce",
    "variance": "Variance",
    "image.resize1d": "Resize1D",
    "image.resize2d": "Resize2D",
    "image.resize3d": "Resize3D",
    "argsort": "Argsort",
    "topk": "Topk",
    **dict.fromkeys(("sum", "mean", "max", "min", "prod", "all", "any"), "Reduce"),
}


def fields_of(operator: str) -> Mapping[str, Field]:
    """The attributes of an operator; none for one that has none, or that is not known."""
    name = _NAMED.get(operator)
    return {} if name is None else TYPES[f"{name}Attrs"]
