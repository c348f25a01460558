"""The command line of scripts/bench few_bits: products with weights of few bits beside others.

    scripts/bench few_bits --sizes 4096x4096,4096x11008 --rows 1,4,64

Sizes are depth x columns, weights symmetric, of 4 bits in blocks of 32. Beside the step: the product in
float32 by oneDNN, and onnxruntime's MatMulNBits with ``accuracy_level`` 0 (float32) and 4 (rows of 8 bits).
Results are held against float64 first, to the tolerance of their rows; times are microseconds of processor
time, of all in turns, medians. Set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from onnx import helper, numpy_helper

from tvm_mxplan.core.program import program as ir
from tvm_mxplan.operators.products.few_bits import pack_words, real_matrix
from tvm_mxplan.testing.environment_info import environment, format_environment

from ..harness.one_step import Call, call_of, held, medians_in_turns

BITS, BLOCK = 4, 32
ENGINES = {"ours": 1e-5, "float32": 1e-5, "onnxruntime": 1e-5, "of 8 bits": 3e-2}
"""Names of columns, and what results may be off by, relative, in the L2 norm."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    options = _parse(arguments)
    print(format_environment(environment(Path(__file__).resolve().parents[3])), file=sys.stderr)
    ratios = [f"ours / {name}" for name in list(ENGINES)[1:]]
    print(f"| depth x columns | rows | {' | '.join([*ENGINES, *ratios])} |")
    print(f"| --- | {' | '.join('---:' for _ in range(2 * len(ENGINES)))} |")
    for size in options.sizes.split(","):
        depth, columns = (int(number) for number in size.split("x"))
        matrix = _Matrix(depth, columns)
        for rows in (int(number) for number in options.rows.split(",")):
            spent = _medians(matrix, rows, options.rounds)
            cells = [f"{us:.0f}" for us in spent] + [f"{spent[0] / us:.2f}" for us in spent[1:]]
            print(f"| {size} | {rows} | {' | '.join(cells)} |", flush=True)
    return 0


class _Matrix:
    """Random weights."""

    def __init__(self, depth: int, columns: int) -> None:
        random = np.random.default_rng(0)
        self.depth, self.columns = depth, columns
        self.numbers = random.integers(0, 2**BITS, (columns, depth)).astype("uint8")
        blocks = -(-depth // BLOCK)
        self.scales = (random.random((1, columns, blocks)) / depth**0.5).astype("float32")
        self.words = pack_words(self.numbers, BITS)[None]
        self.real = real_matrix(self.words, self.scales, None, bits=BITS, block=BLOCK, depth=depth)


def _medians(matrix: _Matrix, rows: int, rounds: int) -> list[float]:
    x = np.random.default_rng(1).standard_normal((rows, matrix.depth), "float32")
    calls = [_ours(matrix, x), _float(matrix, x), *(_onnxruntime(matrix, x, level) for level in (0, 4))]
    exact = x.astype("float64") @ matrix.real.T
    for (name, most), call in zip(ENGINES.items(), calls, strict=True):
        held(name, call(), exact, most)
    return medians_in_turns(calls, rounds, time.process_time, each=3)


def _ours(matrix: _Matrix, x: np.ndarray) -> Call:
    constants = {"numbers": matrix.words, "scales": matrix.scales}
    return call_of(ir.FewBitsProduct(BITS, BLOCK), (len(x), matrix.columns), {"src": x}, constants)


def _float(matrix: _Matrix, x: np.ndarray) -> Call:
    weights = np.ascontiguousarray(matrix.real.T)
    return call_of(ir.MatMul(), (len(x), matrix.columns), {"src": x}, {"weights": weights})


def _onnxruntime(matrix: _Matrix, x: np.ndarray, level: int) -> Call:
    import onnxruntime

    attributes = {"K": matrix.depth, "N": matrix.columns, "bits": BITS, "block_size": BLOCK}
    node = helper.make_node(
        "MatMulNBits", ["x", "B", "s"], ["y"], domain="com.microsoft", accuracy_level=level, **attributes
    )
    packed = (matrix.numbers[:, ::2] | matrix.numbers[:, 1::2] << 4).reshape(matrix.columns, -1, BLOCK // 2)
    constants = [
        numpy_helper.from_array(packed, "B"),
        numpy_helper.from_array(matrix.scales.reshape(-1), "s"),
    ]
    ports = [
        helper.make_tensor_value_info(name, 1, [len(x), extent])
        for name, extent in (("x", matrix.depth), ("y", matrix.columns))
    ]
    graph = helper.make_graph([node], "product", ports[:1], ports[1:], constants)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda: session.run(None, {"x": x})[0]


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench few_bits", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="4096x4096,4096x11008,2048x8192", help="depth x columns")
    parser.add_argument("--rows", default="1,4,64", help="comma-separated (1,4,64)")
    parser.add_argument("--rounds", type=int, default=12, help="(12)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
