"""One process up to its first answer: ``python -m _bench.caches.answer_once WAY MODEL FOLDER THREADS``.

MODEL.onnx and MODEL.npz, its inputs, stand in FOLDER, with what an engine keeps: MODEL.so, a cache, an
optimised model.  Only what the way needs is imported.  Prints a line when the answer is a numpy array, then
writes it to FOLDER/answer-WAY.npy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

Inputs = Mapping[str, np.ndarray]


def ours(model: Path, inputs: Inputs, threads: int) -> np.ndarray:
    """Compiled from the file, with TVM_MXPLAN_CACHE_DIR for a cache."""
    import tvm_mxplan

    ex = tvm_mxplan.compile(model.with_suffix(".onnx"), options={"cache": "on_compile"})
    (answer,) = ex(**inputs)
    array: np.ndarray = answer.numpy()
    return array


def ours_library(model: Path, inputs: Inputs, threads: int) -> np.ndarray:
    """An exported library."""
    import tvm_mxplan

    (answer,) = tvm_mxplan.load(model.with_suffix(".so"))(**inputs)
    array: np.ndarray = answer.numpy()
    return array


def onnxruntime(model: Path, inputs: Inputs, threads: int, saved: str = "") -> np.ndarray:
    """From the file each time."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    path = model.with_suffix(".onnx")
    if saved:
        kept = model.with_suffix(saved)
        if kept.exists():
            path = kept
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        else:
            options.optimized_model_filepath = str(kept)
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    (answer,) = session.run(None, dict(inputs))
    return answer


def onnxruntime_saved(model: Path, inputs: Inputs, threads: int) -> np.ndarray:
    """The optimised graph that the cold run wrote, taken as it is."""
    return onnxruntime(model, inputs, threads, saved=".optimized.onnx")


def openvino(model: Path, inputs: Inputs, threads: int) -> np.ndarray:
    """With its model cache."""
    import openvino as ov

    config = {
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "CACHE_DIR": str(model.parent / "openvino"),
    }
    compiled = ov.Core().compile_model(model.with_suffix(".onnx"), "CPU", config)
    return np.array(compiled(dict(inputs))[0])


WAYS: dict[str, Callable[[Path, Inputs, int], np.ndarray]] = {
    "ours": ours,
    "ours-library": ours_library,
    "onnxruntime": onnxruntime,
    "onnxruntime-saved": onnxruntime_saved,
    "openvino": openvino,
}


def main() -> None:
    way, name, folder, threads = sys.argv[1:]
    model = Path(folder) / name
    with np.load(model.with_suffix(".npz")) as file:
        inputs = {key: file[key] for key in file.files}
    answer = WAYS[way](model, inputs, int(threads))
    print("answered", flush=True)
    np.save(Path(folder) / f"answer-{way}.npy", answer)


if __name__ == "__main__":
    main()
