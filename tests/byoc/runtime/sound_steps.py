"""A sound step of every kind: operands, attributes and types that the runtime takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from program_builder import Builder, random

from tvm_mxplan.core.program import program as ir

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Sound:
    """One sound step: shapes of its operands by role, and the result's.

    ``images`` is the layout of src and dst, the plain one where it is empty; ``more`` has results beside dst;
    ``types`` are those of roles that are not float32, and ``library`` runs the step.
    """

    attrs: ir.Attributes
    dst: Shape
    roles: dict[str, Any]
    post_ops: tuple[ir.PostOp, ...] = ()
    images: str = ""
    more: dict[str, Shape] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    library: str = ""

    def program(self) -> tuple[ir.Program, list[Any]]:
        """The step between inputs and an output; roles that executables pack are constants."""
        b = Builder("rules")
        ids: dict[str, int | Sequence[int]] = {}
        for role, shapes in self.roles.items():
            if role in (
                "weights",
                "recurrence",
                "depthwise_weights",
                "gate_weights",
                "numbers",
                "scales",
                "zero_points",
            ):
                ids[role] = b.constant(random(*shapes).astype(self.types.get(role, "float32")))
            elif role == "extra":
                b.input(shapes)
            elif isinstance(shapes, list):
                ids[role] = [b.input(shape) for shape in shapes]
            else:
                dtype = self.types.get(role, "float32")
                ids[role] = b.input(shapes, self.images if role == "src" else "", dtype)
        more = {
            role: b.output(shape, "", self.types.get(role, "float32")) for role, shape in self.more.items()
        }
        dst = b.output(self.dst, self.images, self.types.get("dst", "float32"))
        b.step(self.attrs, self.post_ops, **ids, **more, dst=dst)
        b.steps[-1] = replace(b.steps[-1], library=self.library)
        return b.build(), b.constants


CONV = ir.Convolution((2, 1), (1, 0, 1, 2), (1, 2), 1)


IMAGES = (2, 6, 9, 11)


VECTORS = dict.fromkeys(("mean", "variance", "scale", "shift"), (6,))


ADD = ir.BinaryPostOp("add", 1)


SCALES = {"src_scale": (1,), "src_zero_point": (1,), "dst_scale": (1,), "dst_zero_point": (1,)}


INTEGERS = {
    "src": "uint8",
    "weights": "int8",
    "dst": "int8",
    "src_zero_point": "int32",
    "dst_zero_point": "int32",
}


SOUND: dict[str, Sound] = {
    "convolution": Sound(CONV, (2, 5, 5, 9), {"src": IMAGES, "weights": (5, 6, 3, 3), "bias": (5,)}),
    "grouped": Sound(
        replace(CONV, groups=3), (2, 12, 5, 9), {"src": IMAGES, "weights": (3, 4, 2, 3, 3), "bias": (12,)}
    ),
    "winograd": Sound(
        ir.Convolution((1, 1), (1, 1, 1, 1), (1, 1), 1, "winograd_f4"),
        (2, 5, 9, 11),
        {"src": IMAGES, "weights": (5, 6, 3, 3), "bias": (5,)},
        images="acdb",
    ),
    "depthwise": Sound(
        ir.Convolution((1, 1), (0, 0, 0, 0), (1, 1), 1),
        (1, 16, 5, 6),
        {
            "src": (1, 6, 9, 11),
            "weights": (16, 6, 1, 1),
            "depthwise_weights": (16, 1, 1, 3, 3),
            "depthwise_bias": (16,),
        },
        (ir.DepthwisePostOp(3, 2, 1),),
        images="acdb",
    ),
    "deconvolution": Sound(
        ir.Deconvolution((2, 2), (1, 1, 1, 1), (1, 1), 1),
        (2, 5, 17, 22),
        {"src": IMAGES, "weights": (5, 6, 3, 3), "bias": (5,)},
    ),
    "convolution_backward_weights": Sound(
        ir.ConvolutionBackwardWeights(CONV.strides, CONV.padding, CONV.dilation, 1),
        (5, 6, 3, 3),
        {"src": IMAGES, "gradient": (2, 5, 5, 9)},
    ),
    "matmul": Sound(ir.MatMul(), (3, 4, 7), {"src": (3, 4, 5), "weights": (1, 5, 7), "bias": (1, 1, 7)}),
    "row": Sound(ir.MatMul(), (1, 7), {"src": (1, 5), "weights": (5, 7), "bias": (1, 7)}),
    "inner_product": Sound(ir.InnerProduct(), (1, 7), {"src": (1, 5), "weights": (7, 5), "bias": (7,)}),
    "samples": Sound(ir.InnerProduct(), (2, 7), {"src": (2, 5, 3, 3), "weights": (7, 5, 3, 3), "bias": (7,)}),
    "pooling": Sound(ir.Pooling("max", (3, 2), (2, 2), (1, 0), (1, 1)), (2, 6, 5, 5), {"src": IMAGES}),
    "pooling_backward": Sound(
        ir.PoolingBackward("max", (3, 2), (2, 2), (1, 0), (1, 1)),
        IMAGES,
        {"src": IMAGES, "gradient": (2, 6, 5, 5)},
    ),
    "batch_normalization_training": Sound(
        ir.BatchNormalizationTraining(1e-5),
        IMAGES,
        {"src": IMAGES, "scale": (6,), "shift": (6,)},
        more={"batch_mean": (6,), "batch_variance": (6,)},
    ),
    "batch_normalization_backward": Sound(
        ir.BatchNormalizationBackward(1e-5),
        IMAGES,
        {"src": IMAGES, "gradient": IMAGES, "mean": (6,), "variance": (6,), "scale": (6,)},
        more={"scale_gradient": (6,), "shift_gradient": (6,)},
    ),
    "batch_normalization": Sound(ir.BatchNormalization(1e-5, False), IMAGES, {"src": IMAGES, **VECTORS}),
    "layer_normalization": Sound(
        ir.LayerNormalization(1e-5), (3, 6), {"src": (3, 6), "scale": (6,), "shift": (6,)}
    ),
    "layer_normalization_backward": Sound(
        ir.LayerNormalizationBackward(1e-5),
        (3, 6),
        {"src": (3, 6), "gradient": (3, 6), "scale": (6,)},
        more={"scale_gradient": (6,), "shift_gradient": (6,)},
    ),
    "rms_normalization": Sound(ir.RmsNormalization(1e-5), (3, 6), {"src": (3, 6), "scale": (6,)}),
    "squeeze_excite": Sound(
        ir.SqueezeExcite("relu", 0.0, 0.0, "logistic", 0.0, 0.0),
        IMAGES,
        {"src": IMAGES, "weights": (4, 6), "bias": (4,), "gate_weights": (6, 4), "gate_bias": (6,)},
    ),
    "rotary": Sound(
        ir.Rotary(4, False),
        (2, 3, 5, 6),
        {"src": (2, 3, 5, 6), "cosines": (2, 1, 5, 4), "sines": (1, 1, 5, 4)},
    ),
    "lrn": Sound(ir.LRN(5, 1e-4, 0.75, 1.0), IMAGES, {"src": IMAGES}),
    "softmax": Sound(ir.Softmax("softmax", 1), (3, 6), {"src": (3, 6)}),
    "eltwise": Sound(ir.Eltwise("tanh", 0.0, 0.0), (3, 6), {"src": (3, 6)}),
    "added": Sound(ir.Eltwise("tanh", 0.0, 0.0), (3, 6), {"src": (3, 6), "extra": (1, 6)}, (ADD,)),
    "binary": Sound(ir.Binary("add"), (3, 6), {"src": (3, 6), "src1": (1, 6)}),
    "prelu": Sound(ir.PReLU(), IMAGES, {"src": IMAGES, "weights": (1, 6, 1, 1)}),
    "reduction": Sound(ir.Reduction("sum"), (3, 1), {"src": (3, 6)}),
    "recurrent_training": Sound(
        ir.RecurrentTraining("lstm", "both", (0, 3, 1, 2)),
        (5, 3, 14),
        {"src": (5, 3, 56), "recurrence": (2, 28, 7), "hidden": (2, 3, 7), "cell": (2, 3, 7)},
        more={"kept_gates": (5, 3, 56), "kept_cells": (5, 3, 14), "last_cell": (2, 3, 7)},
    ),
    "recurrent_backward": Sound(
        ir.RecurrentBackward("gru_linear", "both", (1, 0, 2)),
        (5, 3, 42),
        {
            "src": (5, 3, 56),
            "recurrence": (2, 21, 7),
            "outputs": (5, 3, 14),
            "gradient": (5, 3, 14),
            "hidden": (2, 3, 7),
        },
        more={"hidden_gradient": (2, 3, 7), "reset_gradient": (5, 3, 14)},
    ),
    "recurrent": Sound(
        ir.Recurrent("lstm", "both"),
        (5, 3, 14),
        {
            "src": (5, 3, 6),
            "weights": (1, 2, 6, 4, 7),
            "recurrence": (1, 2, 7, 4, 7),
            "bias": (1, 2, 4, 7),
            "peepholes": (1, 2, 3, 7),
            "hidden": (1, 2, 3, 7),
            "cell": (1, 2, 3, 7),
        },
        more={"last_hidden": (1, 2, 3, 7), "last_cell": (1, 2, 3, 7)},
    ),
    "gru": Sound(
        ir.Recurrent("gru_linear", "forward"),
        (5, 3, 7),
        {"src": (5, 3, 6), "weights": (1, 1, 6, 3, 7), "recurrence": (1, 1, 7, 3, 7), "bias": (1, 1, 4, 7)},
    ),
    "attention": Sound(
        ir.Attention(0.5, "last", True),
        (2, 5, 6, 7),
        {"src": (2, 6, 5, 4), "key": (2, 3, 9, 4), "value": (2, 3, 9, 7), "mask": (1, 6, 5, 1)},
    ),
    "joined": Sound(
        ir.Attention(0.5, "last", False),
        (2, 5, 6, 7),
        {
            "src": (2, 6, 5, 4),
            "key": (2, 3, 5, 4),
            "value": (2, 3, 5, 7),
            "past_key": (2, 3, 6, 4),
            "past_value": (2, 3, 6, 7),
        },
        more={"joined_key": (2, 3, 11, 4), "joined_value": (2, 3, 11, 7)},
    ),
    "cached": Sound(
        ir.Attention(0.5, "last", False),
        (2, 5, 6, 7),
        {
            "src": (2, 6, 5, 4),
            "key": (2, 3, 5, 4),
            "value": (2, 3, 5, 7),
            "past_key": (2, 3, 11, 4),
            "past_value": (2, 3, 11, 7),
            "filled": (1,),
        },
        more={"joined_key": (2, 3, 11, 4), "joined_value": (2, 3, 11, 7)},
        types={"filled": "int32"},
    ),
    "concat": Sound(ir.Concat(1), (3, 9), {"src": [(3, 6), (3, 3)]}),
    "shuffle": Sound(ir.Shuffle(1, 3), IMAGES, {"src": IMAGES}),
    "resampling": Sound(ir.Resampling("nearest"), (2, 6, 18, 22), {"src": IMAGES}),
    "pad": Sound(ir.Pad((1, 2), 0.0), (5, 9), {"src": (3, 6)}),
    "slice": Sound(ir.Slice((1, 2)), (2, 3), {"src": (3, 6)}),
    "reorder": Sound(ir.Reorder(), (3, 6), {"src": (3, 6)}),
    "integers": Sound(
        CONV,
        (2, 5, 5, 9),
        {"src": IMAGES, "weights": (5, 6, 3, 3), "bias": (5,), **SCALES, "weights_scale": (5,)},
        images="acdb",
        types=INTEGERS,
    ),
    "product": Sound(
        ir.MatMul(),
        (3, 7),
        {"src": (3, 5), "weights": (5, 7), "src_scale": (1,), "weights_scale": (7,)},
        types={"src": "int8", "weights": "int8"},
    ),
    "quantization": Sound(
        ir.Quantization(1), (3, 6), {"src": (3, 6), **SCALES}, types={**INTEGERS, "src": "int8"}
    ),
    "few_bits_product": Sound(
        ir.FewBitsProduct(4, 16),
        (3, 7),
        {"src": (3, 35), "numbers": (1, 7, 5), "scales": (1, 7, 3), "zero_points": (1, 7, 3)},
        types={"numbers": "int32", "zero_points": "uint8"},
    ),
    "grouped_product": Sound(
        ir.GroupedProduct(),
        (5, 7),
        {"src": (5, 6), "weights": (3, 6, 7), "ends": (3,)},
        types={"ends": "int32"},
    ),
    "dynamic_quantization": Sound(
        ir.DynamicQuantization(),
        (3, 6),
        {"src": (3, 6)},
        more={"made_scale": (1,), "made_zero_point": (1,)},
        types={"dst": "uint8", "made_zero_point": "int32"},
    ),
    "strided_slice": Sound(ir.StridedSlice((2, 1), (-1, 2)), (3, 3), {"src": (3, 6)}, library="host"),
    "gather": Sound(
        ir.Gather(1),
        (3, 4, 2),
        {"src": (3, 6), "indices": (4, 2)},
        types={"indices": "int64"},
        library="host",
    ),
    "put": Sound(ir.Put((1, 0), (1, 2)), (4, 6), {"src": (4, 6), "part": (2, 3)}, library="host"),
    "gather_elements": Sound(
        ir.GatherElements(1),
        (3, 9, 2),
        {"src": (4, 6, 2), "indices": (3, 9, 2)},
        types={"indices": "int64"},
        library="host",
    ),
    "scatter_elements": Sound(
        ir.ScatterElements(1, "max"),
        (4, 6, 2),
        {"src": (4, 6, 2), "indices": (3, 9, 2), "updates": (3, 9, 2)},
        types={"indices": "int32"},
        library="host",
    ),
    "scatter": Sound(
        ir.Scatter("add"),
        (4, 6, 2),
        {"src": (4, 6, 2), "indices": (3, 2), "updates": (3, 2)},
        types={"indices": "int64"},
        library="host",
    ),
    "cumulative_sum": Sound(ir.CumulativeSum(1, True, False), (3, 6), {"src": (3, 6)}, library="host"),
    "extreme_index": Sound(
        ir.ExtremeIndex("max", 1, False), (3, 1), {"src": (3, 6)}, types={"dst": "int64"}, library="host"
    ),
    "ranking": Sound(
        ir.Ranking(1, True),
        (3, 2),
        {"src": (3, 6)},
        more={"order": (3, 2)},
        types={"order": "int32"},
        library="host",
    ),
    "select": Sound(
        ir.Select(),
        (3, 6),
        {"condition": (3, 1), "src": (3, 6), "src1": (1, 6)},
        types={"condition": "bool"},
        library="host",
    ),
    "compare": Sound(
        ir.Compare("less"), (3, 6), {"src": (3, 6), "src1": (1, 1)}, types={"dst": "bool"}, library="host"
    ),
    "cast": Sound(ir.Cast(), (3, 6), {"src": (3, 6)}, types={"dst": "int32"}, library="host"),
    "gather_nd": Sound(
        ir.GatherNd(1),
        (2, 3, 5),
        {"src": (2, 4, 6, 5), "indices": (2, 3, 2)},
        types={"indices": "int32"},
        library="host",
    ),
    "gather_places": Sound(
        ir.GatherPlaces((0, 2), (1, 1, 0, 5, 0)), (3, 4, 2), {"src": (2, 4, 6)}, library="host"
    ),
    "grid_sample": Sound(
        ir.GridSample("linear", "border", False),
        (2, 6, 5, 30),
        {"src": IMAGES, "grid": (2, 2, 5, 30)},
        library="host",
    ),
    "resize": Sound(
        ir.Resize("linear", "asymmetric", "floor", -0.5, False),
        (2, 6, 5, 30),
        {"src": IMAGES},
        library="host",
    ),
}
