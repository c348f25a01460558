"""Steps whose operands, attributes or post-ops do not fit: a change of a sound one, and the message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sound_steps import VECTORS, Sound

from tvm_mxplan.core.program import program as ir


def results(**changed: Any) -> Callable[[Sound], Sound]:
    return lambda sound: replace(sound, more={**sound.more, **changed})


def shapes(**changed: Any) -> Callable[[Sound], Sound]:
    return lambda sound: replace(sound, roles={**sound.roles, **changed})


def attrs(**changed: Any) -> Callable[[Sound], Sound]:
    return lambda sound: replace(sound, attrs=replace(sound.attrs, **changed))


def result(*shape: int) -> Callable[[Sound], Sound]:
    return lambda sound: replace(sound, dst=shape)


def without(role: str) -> Callable[[Sound], Sound]:
    def left(given: dict[str, Any]) -> dict[str, Any]:
        return {other: shape for other, shape in given.items() if other != role}

    return lambda s: replace(s, roles=left(s.roles), more=left(s.more))


def types(**changed: str) -> Callable[[Sound], Sound]:
    return lambda sound: replace(sound, types={**sound.types, **changed})


def post(*post_ops: ir.PostOp) -> Callable[[Sound], Sound]:
    return lambda sound: replace(sound, post_ops=post_ops)


BROKEN: list[tuple[str, Callable[[Sound], Sound], str]] = [
    *(
        (kind, shapes(bias=(length,)), f"bias: expected shape ({full}), got ({length})")
        for kind, full in (("convolution", 5), ("grouped", 12), ("winograd", 5), ("deconvolution", 5))
        for length in (1, full - 1, full + 1)
    ),
    *(
        (kind, shapes(bias=(length,)), f"bias: expected shape (7), got ({length})")
        for kind in ("inner_product", "samples")
        for length in (1, 8)
    ),
    ("inner_product", shapes(bias=(1, 7)), "bias: expected shape (7), got (1, 7)"),
    ("convolution", shapes(src=(2, 7, 9, 11)), "src: expected 6 channels, got shape (2, 7, 9, 11)"),
    ("convolution", shapes(src=(6, 9)), "src: expected rank 3 to 5"),
    ("convolution", shapes(weights=(5, 6, 3)), "weights: expected rank 4 to 4"),
    ("convolution", shapes(weights=(5, 6, 3, 4)), "dst: expected shape (2, 5, 5, 7), got (2, 5, 5, 9)"),
    ("convolution", shapes(weights=(5, 6, 0, 3)), "weights: no filter in shape (5, 6, 0, 3)"),
    ("convolution", shapes(weights=(5, 6, 14, 3)), "dst: expected shape (2, 5, 0, 9)"),
    ("convolution", result(2, 5, 6, 9), "dst: expected shape (2, 5, 5, 9), got (2, 5, 6, 9)"),
    ("convolution", result(3, 5, 5, 9), "dst: expected shape (2, 5, 5, 9)"),
    ("convolution", result(2, 4, 5, 9), "dst: expected shape (2, 5, 5, 9)"),
    ("convolution", attrs(strides=(0, 1)), "attribute strides has the entry 0"),
    ("convolution", attrs(strides=(2,)), "attribute strides has 1 entries, expected 2"),
    ("convolution", attrs(dilation=(1, 0)), "attribute dilation has the entry 0"),
    ("convolution", attrs(padding=(-1, 0, 1, 2)), "attribute padding has the entry -1"),
    ("convolution", attrs(padding=(2**31, 0, 1, 2)), "attribute padding has the entry 2147483648"),
    ("convolution", attrs(groups=0), "attribute groups: expected at least 1, got 0"),
    ("convolution", without("weights"), "no operand in role weights"),
    ("convolution", shapes(mean=(5,)), "an operand in role mean, which the kind has not"),
    ("convolution", shapes(bias=[(5,), (5,)]), "more than one operand in role bias"),
    ("convolution", shapes(depthwise_bias=(5,)), "depthwise_weights: expected with a depthwise post-op"),
    ("convolution", post(ir.DepthwisePostOp(3, 1, 1)), "depthwise_weights"),
    ("convolution", post(ir.BinaryPostOp("mul", 2)), "post-op mul: expected a shape that is broadcast to"),
    ("grouped", shapes(weights=(2, 4, 3, 3, 3)), "weights: expected 3 groups"),
    ("depthwise", shapes(depthwise_weights=(15, 1, 1, 3, 3)), "depthwise_weights: expected shape (16, 1, 1"),
    ("depthwise", shapes(depthwise_bias=(1,)), "depthwise_bias: expected shape (16), got (1)"),
    ("depthwise", result(1, 16, 9, 11), "dst: expected shape (1, 16, 5, 6)"),
    ("depthwise", attrs(algorithm="winograd_f2"), "post-op depthwise: expected algorithm direct"),
    ("depthwise", post(*[ir.DepthwisePostOp(3, 2, 1)] * 2), "post-op depthwise: 2 of them"),
    ("deconvolution", result(2, 5, 16, 22), "dst: expected 17 to 18 on axis 2, got shape (2, 5, 16, 22)"),
    ("deconvolution", result(2, 5, 19, 22), "dst: expected 17 to 18 on axis 2, got shape (2, 5, 19, 22)"),
    ("deconvolution", post(ir.DepthwisePostOp(3, 1, 1)), "post-op depthwise: 1 of them behind a deconv"),
    (
        "convolution_backward_weights",
        shapes(gradient=(2, 5, 5, 8)),
        "gradient: expected shape (2, 5, 5, 9), got (2, 5, 5, 8)",
    ),
    ("convolution_backward_weights", shapes(src=(2, 7, 9, 11)), "src: expected 6 channels"),
    ("convolution_backward_weights", result(5, 6, 0, 3), "dst: no filter in shape (5, 6, 0, 3)"),
    ("pooling_backward", shapes(gradient=(2, 6, 6, 5)), "gradient: expected 4 to 5 windows on axis 2"),
    ("batch_normalization_training", shapes(scale=(5,)), "scale: expected shape (6), got (5)"),
    (
        "batch_normalization_backward",
        shapes(gradient=(2, 6, 9, 10)),
        "gradient: expected shape (2, 6, 9, 11), got (2, 6, 9, 10)",
    ),
    (
        "layer_normalization_backward",
        shapes(gradient=(3, 7)),
        "gradient: expected shape (3, 6), got (3, 7)",
    ),
    ("layer_normalization_backward", shapes(scale=(5,)), "scale: expected shape (6), got (5)"),
    ("matmul", shapes(weights=(1, 6, 7)), "weights: expected a product"),
    ("matmul", shapes(weights=(2, 5, 7)), "weights: expected a shape that is broadcast to (3, 5, 7)"),
    ("matmul", shapes(weights=(5, 7)), "weights: expected rank 3 to 3"),
    ("matmul", shapes(bias=(1, 1, 6)), "bias: expected a shape that is broadcast to (3, 4, 7)"),
    ("matmul", shapes(src=(1, 4, 5)), "dst: expected 1 on axis 0"),
    ("matmul", result(3, 5, 7), "weights: expected a product"),
    ("row", shapes(bias=(1, 6)), "bias: expected a shape that is broadcast to (1, 7), got (1, 6)"),
    ("row", result(1, 8), "weights: expected a product"),
    ("inner_product", shapes(weights=(7, 6)), "weights: expected shape (7, 5), got (7, 6)"),
    ("inner_product", result(1, 8), "dst: expected shape (1, 7), got (1, 8)"),
    ("samples", shapes(weights=(7, 5, 9, 1)), "weights: expected shape (7, 5, 3, 3)"),
    ("pooling", result(2, 6, 3, 5), "dst: expected 4 to 5 windows on axis 2"),
    ("pooling", result(2, 6, 6, 5), "dst: expected 4 to 5 windows on axis 2"),
    ("pooling", result(2, 5, 5, 5), "dst: expected 6 on axis 1"),
    ("pooling", attrs(kernel=(3, 2, 1)), "attribute kernel has 3 entries, expected 2"),
    ("pooling", attrs(kernel=(0, 2)), "attribute kernel has the entry 0"),
    *(
        ("batch_normalization", shapes(**{role: (5,)}), f"{role}: expected shape (6), got (5)")
        for role in VECTORS
    ),
    ("batch_normalization", result(2, 6, 9, 10), "dst: expected shape (2, 6, 9, 11)"),
    ("batch_normalization", without("mean"), "no operand in role mean"),
    ("layer_normalization", shapes(scale=(3,)), "scale: expected shape (6), got (3)"),
    ("layer_normalization", shapes(shift=(1, 6)), "shift: expected shape (6), got (1, 6)"),
    ("layer_normalization", result(3, 7), "dst: expected shape (3, 6), got (3, 7)"),
    ("lrn", attrs(size=0), "attribute size: expected 1 to"),
    ("lrn", result(2, 6, 9, 12), "dst: expected shape"),
    ("softmax", attrs(axis=2), "attribute axis: expected one of a tensor of rank 2, got 2"),
    ("softmax", attrs(axis=-1), "attribute axis: expected one of a tensor of rank 2, got -1"),
    ("softmax", result(6, 3), "dst: expected shape (3, 6), got (6, 3)"),
    ("eltwise", result(3, 5), "dst: expected shape (3, 6), got (3, 5)"),
    ("eltwise", without("src"), "no operand in role src"),
    ("added", shapes(extra=(1, 5)), "post-op add: expected a shape that is broadcast to (3, 6), got (1, 5)"),
    ("added", shapes(extra=(6,)), "post-op add: expected a shape that is broadcast to (3, 6), got (6)"),
    ("binary", shapes(src1=(2, 6)), "src1: expected a shape that is broadcast to (3, 6), got (2, 6)"),
    ("binary", shapes(src=(3, 5)), "src: expected a shape that is broadcast to (3, 6), got (3, 5)"),
    ("prelu", shapes(weights=(1, 5, 1, 1)), "weights: expected a shape that is broadcast to"),
    ("reduction", result(2, 1), "dst: expected a shape that is broadcast to (3, 6), got (2, 1)"),
    ("reduction", result(3), "dst: expected a shape that is broadcast to (3, 6), got (3)"),
    ("concat", shapes(src=[(3, 6), (3, 4)]), "src: 2 pieces give 10 of 9 on axis 1"),
    ("concat", shapes(src=[(3, 6), (2, 3)]), "src: piece 1 does not fit dst"),
    ("concat", attrs(axis=5), "attribute axis: expected one of a tensor of rank 2, got 5"),
    ("concat", without("src"), "no operand in role src"),
    ("shuffle", attrs(groups=4), "attribute groups: 6 channels in 4 groups"),
    ("shuffle", attrs(axis=4), "attribute axis"),
    ("shuffle", result(2, 6, 11, 9), "dst: expected shape"),
    ("recurrent_training", attrs(cell="tanh"), "attribute cell: expected lstm, gru or gru_linear"),
    ("recurrent_training", attrs(places=(0, 1, 2)), "attribute places has 3 entries, expected 4"),
    ("recurrent_training", attrs(places=(0, 1, 2, 2)), "attribute places: expected each of 4 places once"),
    ("recurrent_training", shapes(src=(5, 3, 42)), "src: expected shape (5, 3, 56), got (5, 3, 42)"),
    ("recurrent_training", shapes(recurrence=(1, 28, 7)), "recurrence: expected shape (2, 28, 7)"),
    ("recurrent_training", results(kept_gates=(5, 3, 42)), "kept_gates: expected shape (5, 3, 56)"),
    ("recurrent_training", shapes(hidden=(1, 3, 7)), "hidden: expected shape (2, 3, 7), got (1, 3, 7)"),
    ("recurrent_training", without("kept_cells"), "kept_cells and last_cell: expected both in an LSTM"),
    ("recurrent_backward", attrs(places=(0, 2, 1)), "attribute places: expected each of 3 places once"),
    ("recurrent_backward", attrs(cell="gru"), "reset_gradient: expected where the reset is behind"),
    ("recurrent_backward", shapes(gradient=(5, 3, 7)), "gradient: expected shape (5, 3, 14), got (5, 3, 7)"),
    ("recurrent_backward", shapes(src=(5, 3, 42)), "src: expected shape (5, 3, 56), got (5, 3, 42)"),
    ("recurrent_backward", result(5, 3, 56), "dst: expected shape (5, 3, 42), got (5, 3, 56)"),
    ("recurrent_backward", without("reset_gradient"), "reset_gradient: expected where the reset is behind"),
    ("recurrent", shapes(src=(5, 6)), "src: expected rank 3 to 3"),
    ("recurrent", shapes(src=(5, 3, 7)), "weights: expected shape (1, 2, 7, 4, 7), got (1, 2, 6, 4, 7)"),
    ("recurrent", shapes(recurrence=(1, 2, 7, 3, 7)), "recurrence: expected shape (1, 2, 7, 4, 7)"),
    ("recurrent", shapes(recurrence=(2, 7, 4, 7)), "recurrence: expected rank 5 to 5"),
    ("recurrent", shapes(bias=(1, 2, 3, 7)), "bias: expected shape (1, 2, 4, 7), got (1, 2, 3, 7)"),
    ("recurrent", shapes(peepholes=(1, 2, 4, 7)), "peepholes: expected shape (1, 2, 3, 7)"),
    ("recurrent", shapes(hidden=(1, 1, 3, 7)), "hidden: expected shape (1, 2, 3, 7), got (1, 1, 3, 7)"),
    ("recurrent", shapes(cell=(1, 2, 4, 7)), "cell: expected shape (1, 2, 3, 7), got (1, 2, 4, 7)"),
    ("recurrent", without("cell"), "expected both or none"),
    ("recurrent", result(5, 3, 7), "dst: expected shape (5, 3, 14), got (5, 3, 7)"),
    ("recurrent", results(last_hidden=(1, 2, 7, 3)), "last_hidden: expected shape (1, 2, 3, 7)"),
    ("recurrent", results(last_cell=(1, 2, 3, 8)), "last_cell: expected shape (1, 2, 3, 7)"),
    ("recurrent", attrs(cell="elman"), "tanh or relu, got elman"),
    ("recurrent", attrs(direction="down"), "forward, reverse or both, got down"),
    ("recurrent", attrs(direction="reverse"), "weights: expected shape (1, 1, 6, 4, 7)"),
    ("recurrent", post(ir.EltwisePostOp("relu", 0.0, 0.0)), "post-ops, which the kind has not"),
    ("gru", shapes(cell=(1, 1, 3, 7)), "cell: expected in an LSTM only"),
    ("gru", attrs(cell="gru"), "bias: expected shape (1, 1, 3, 7), got (1, 1, 4, 7)"),
    ("attention", shapes(src=(6, 5, 4)), "src: expected rank 4 to 4"),
    ("attention", shapes(key=(2, 4, 9, 4)), "key: expected heads that divide the 6 of src, got shape (2, 4"),
    ("attention", shapes(key=(2, 3, 9, 5)), "key: expected shape (2, 3, 9, 4), got (2, 3, 9, 5)"),
    ("attention", shapes(key=(1, 3, 9, 4)), "key: expected shape (2, 3, 9, 4), got (1, 3, 9, 4)"),
    ("attention", shapes(value=(2, 3, 8, 7)), "value: expected shape (2, 3, 9, 7), got (2, 3, 8, 7)"),
    ("attention", shapes(value=(2, 6, 9, 7)), "value: expected shape (2, 3, 9, 7), got (2, 6, 9, 7)"),
    ("attention", shapes(mask=(2, 6, 5, 8)), "mask: expected a shape that is broadcast to (2, 6, 5, 9)"),
    ("attention", shapes(mask=(5, 9)), "mask: expected a shape that is broadcast to (2, 6, 5, 9)"),
    ("attention", result(2, 6, 5, 7), "dst: expected shape (2, 5, 6, 7), got (2, 6, 5, 7)"),
    ("attention", attrs(causal="yes"), "attribute causal: expected no, first or last, got yes"),
    ("attention", without("value"), "no operand in role value"),
    ("joined", shapes(past_value=(2, 3, 8, 7)), "past_value: expected shape (2, 3, 6, 7), got (2, 3, 8, 7)"),
    ("cached", shapes(filled=(2,)), "filled: expected shape (1), got (2)"),
    ("cached", types(filled="uint8"), "filled: expected int32, got uint8"),
    (
        "cached",
        shapes(past_key=(2, 3, 4, 4)),
        "past_key: expected caches of 5 rows or more, got shape (2, 3, 4",
    ),
    (
        "cached",
        results(joined_key=(2, 3, 16, 4)),
        "joined_key: expected shape (2, 3, 11, 4), got (2, 3, 16, 4)",
    ),
    ("cached", shapes(mask=(1, 1, 5, 12)), "mask: expected a shape that is broadcast to (2, 6, 5, 11)"),
    ("attention", shapes(filled=(1,)), "filled: expected int32, got float32"),
    ("joined", without("joined_key"), "joined_key: expected past keys and values and joined ones together"),
    ("attention", post(ir.EltwisePostOp("relu", 0.0, 0.0)), "post-ops, which the kind has not"),
    ("rms_normalization", shapes(scale=(7,)), "scale: expected shape (6), got (7)"),
    ("rms_normalization", result(3, 7), "dst: expected shape (3, 6), got (3, 7)"),
    ("rms_normalization", post(ir.EltwisePostOp("relu", 0.0, 0.0)), "post-ops, which the kind has not"),
    ("squeeze_excite", shapes(weights=(4, 5)), "weights: expected shape (4, 6), got (4, 5)"),
    ("squeeze_excite", shapes(bias=(6,)), "bias: expected shape (4), got (6)"),
    ("squeeze_excite", shapes(gate_weights=(4, 6)), "gate_weights: expected shape (6, 4), got (4, 6)"),
    ("squeeze_excite", shapes(gate_bias=(4,)), "gate_bias: expected shape (6), got (4)"),
    ("squeeze_excite", result(2, 6, 9, 4), "dst: expected shape (2, 6, 9, 11), got (2, 6, 9, 4)"),
    ("rotary", attrs(width=8), "attribute width: expected an even number from 2 to 6, got 8"),
    ("rotary", shapes(cosines=(1, 1, 5, 3)), "cosines: expected 4 or 2 on the last axis, got 3"),
    ("rotary", shapes(sines=(1, 1, 5, 1)), "sines: expected 4 on the last axis, got 1"),
    ("rotary", shapes(cosines=(1, 1, 4, 4)), "cosines: expected a shape that is broadcast to (2, 3, 5, 4)"),
    ("rotary", result(2, 3, 5, 4), "dst: expected shape (2, 3, 5, 6), got (2, 3, 5, 4)"),
    ("resampling", result(2, 5, 18, 22), "dst: expected shape (2, 6, 18, 22), got (2, 5, 18, 22)"),
    ("pad", attrs(begin=(3, 2)), "src: the box leaves the larger tensor on axis 0"),
    ("pad", attrs(begin=(1,)), "attribute begin has 1 entries, expected 2"),
    ("pad", result(5, 7), "src: the box leaves the larger tensor on axis 1"),
    ("slice", attrs(begin=(2, 2)), "dst: the box leaves the larger tensor on axis 0"),
    ("slice", attrs(begin=(0, -1)), "attribute begin has the entry -1"),
    ("slice", attrs(begin=(2**62, 0)), "attribute begin has the entry 4611686018427387904"),
    ("slice", post(ir.EltwisePostOp("relu", 0.0, 0.0)), "post-ops, which the kind has not"),
    ("reorder", result(6, 3), "dst: expected shape (3, 6), got (6, 3)"),
    ("integers", shapes(weights_scale=(4,)), "weights_scale: expected one number or 5, got shape (4)"),
    ("integers", shapes(weights_scale=(1, 5)), "weights_scale: expected one number or 5, got shape (1, 5)"),
    ("integers", shapes(src_scale=(6,)), "src_scale: expected one number or 1, got shape (6)"),
    ("integers", shapes(dst_zero_point=(5,)), "dst_zero_point: expected one number or 1, got shape (5)"),
    ("integers", types(src="float32"), "src: expected uint8 or int8, got float32"),
    ("integers", types(src="int32"), "src: expected uint8 or int8, got int32"),
    ("integers", types(weights="uint8"), "weights: expected int8, got uint8"),
    ("integers", types(bias="int32"), "bias: expected real numbers, got int32"),
    ("integers", types(dst="int32"), "dst: expected uint8, int8, float32 or bfloat16, got int32"),
    ("integers", types(dst="float32"), "dst_scale: expected one where the side is of integers"),
    ("integers", types(src_scale="int32"), "src_scale: expected float32, got int32"),
    ("integers", types(src_zero_point="uint8"), "src_zero_point: expected int32, got uint8"),
    ("integers", without("src_scale"), "src_scale: expected one where the side is of integers"),
    ("integers", without("dst_scale"), "dst_scale: expected one where the side is of integers"),
    ("integers", without("weights_scale"), "weights_scale: expected one beside integers, got none"),
    ("product", shapes(dst_zero_point=(1,)), "dst_zero_point: expected none beside real numbers"),
    ("product", shapes(weights_scale=(5,)), "weights_scale: expected one number or 7, got shape (5)"),
    ("pooling", shapes(src_scale=(1,)), "an operand in role src_scale, which the kind has not"),
    ("quantization", attrs(axis=2), "attribute axis: expected one of a tensor of rank 2, got 2"),
    ("quantization", shapes(src_scale=(3,)), "src_scale: expected one number or 6, got shape (3)"),
    ("quantization", types(dst="float32"), "dst_scale: expected one where the side is of integers"),
    ("quantization", without("src_scale"), "src_scale: expected one where the side is of integers"),
    ("quantization", shapes(weights_scale=(1,)), "weights_scale: expected none, got one"),
    ("quantization", result(6, 3), "dst: expected shape (3, 6), got (6, 3)"),
    ("quantization", post(ir.EltwisePostOp("relu", 0.0, 0.0)), "post-ops, which the kind has not"),
    ("few_bits_product", attrs(bits=3), "attribute bits: expected 2, 4 or 8, got 3"),
    ("few_bits_product", attrs(block=24), "attribute block: expected a multiple of 16, got 24"),
    ("few_bits_product", attrs(block=0), "attribute block: expected a multiple of 16, got 0"),
    ("few_bits_product", shapes(src=(3, 41)), "numbers: expected shape (1, 7, 6), got (1, 7, 5)"),
    ("few_bits_product", shapes(src=(35,)), "src: expected rank 2 to 12"),
    ("few_bits_product", shapes(numbers=(7, 5)), "numbers: expected rank 3 to 3"),
    ("few_bits_product", shapes(scales=(1, 7, 2)), "scales: expected shape (1, 7, 3), got (1, 7, 2)"),
    (
        "few_bits_product",
        shapes(zero_points=(1, 7, 1)),
        "zero_points: expected shape (1, 7, 3), got (1, 7, 1)",
    ),
    ("few_bits_product", result(7, 3), "dst: expected shape (3, 7), got (7, 3)"),
    ("few_bits_product", types(numbers="uint8"), "numbers: expected int32, got uint8"),
    ("few_bits_product", types(zero_points="int32"), "zero_points: expected uint8 or float32, got int32"),
    ("few_bits_product", types(src="bfloat16"), "src: expected float32, got bfloat16"),
    ("few_bits_product", without("scales"), "no operand in role scales"),
    ("grouped_product", shapes(src=(5, 8)), "weights: expected shape (3, 8, 7), got (3, 6, 7)"),
    ("grouped_product", shapes(ends=(2,)), "ends: expected shape (3), got (2)"),
    ("grouped_product", shapes(weights=(6, 7)), "weights: expected rank 3 to 3"),
    ("grouped_product", result(5, 6), "dst: expected shape (5, 7), got (5, 6)"),
    ("grouped_product", types(ends="uint8"), "ends: expected int32, got uint8"),
    ("grouped_product", without("ends"), "no operand in role ends"),
    ("dynamic_quantization", result(6, 3), "dst: expected shape (3, 6), got (6, 3)"),
    ("dynamic_quantization", types(src="bfloat16"), "src: expected float32, got bfloat16"),
    ("dynamic_quantization", types(dst="float32"), "dst: expected uint8, got float32"),
    ("dynamic_quantization", types(made_scale="int32"), "made_scale: expected float32, got int32"),
    ("dynamic_quantization", types(made_zero_point="uint8"), "made_zero_point: expected int32, got uint8"),
    (
        "dynamic_quantization",
        lambda s: replace(s, more={"made_scale": (3,), "made_zero_point": (1,)}),
        "made_scale: expected one number or 1, got shape (3)",
    ),
    ("strided_slice", attrs(steps=(-1,)), "attribute steps has 1 entries, expected 2"),
    ("strided_slice", attrs(begin=(1, 1)), "dst: elements 1 to -1 of axis 0: expected some from 0 to 2"),
    ("strided_slice", attrs(begin=(2, 6)), "dst: elements 6 to 10 of axis 1: expected some from 0 to 5"),
    ("strided_slice", result(3, 4), "dst: elements 1 to 7 of axis 1: expected some from 0 to 5"),
    ("gather", attrs(axis=2), "attribute axis: expected one of a tensor of rank 2, got 2"),
    ("gather", result(3, 4), "dst: expected shape (3, 4, 2), got (3, 4)"),
    ("gather", without("indices"), "no operand in role indices"),
    ("cumulative_sum", attrs(axis=2), "attribute axis: expected one of a tensor of rank 2, got 2"),
    ("cumulative_sum", result(3, 7), "dst: expected shape (3, 6), got (3, 7)"),
    ("cumulative_sum", types(src="int32"), "src: expected float32, got int32"),
    ("extreme_index", attrs(axis=2), "attribute axis: expected one of a tensor of rank 2, got 2"),
    ("extreme_index", result(3, 6), "dst: expected shape (3, 1), got (3, 6)"),
    ("extreme_index", types(dst="float32"), "dst: expected int64, got float32"),
    ("extreme_index", shapes(src=(3, 0)), "src: expected elements on axis 1, got none"),
    ("ranking", attrs(axis=2), "attribute axis: expected one of a tensor of rank 2, got 2"),
    ("ranking", result(3, 7), "dst: expected shape (3, 6), got (3, 7)"),
    ("ranking", result(2, 2), "dst: expected shape (3, 2), got (2, 2)"),
    ("ranking", types(src="int32"), "src: expected float32, got int32"),
    ("ranking", types(order="uint8"), "order: expected int64, got uint8"),
    ("ranking", lambda s: replace(s, more={"order": (3, 1)}), "order: expected shape (3, 2), got (3, 1)"),
    (
        "select",
        shapes(condition=(2, 1)),
        "condition: expected a shape that is broadcast to (3, 6), got (2, 1)",
    ),
    ("select", shapes(src1=(6,)), "src1: expected a shape that is broadcast to (3, 6), got (6)"),
    ("compare", shapes(src1=(3, 5)), "src1: expected a shape that is broadcast to (3, 6), got (3, 5)"),
    ("cast", result(6, 3), "dst: expected shape (3, 6), got (6, 3)"),
    ("resize", result(2, 5, 5, 30), "dst: expected shape (2, 6, 5, 30), got (2, 5, 5, 30)"),
]
