"""Steps of training beside PyTorch's: processor time of each, in turns, losses compared before times.

    scripts/bench training --torch PYTHON

PYTHON is an interpreter that has torch; the networks are built there by the same numbers.  Without it only
our side is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tvm_mxplan import training

RATE, MOMENTUM = 0.05, 0.9
WIDTHS = (16, 32, 64)
SIZE, CLASSES = 32, 10

_TORCH = """
import json, sys, time
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F
folder, batch, blocks, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "last"
torch.set_num_threads(int(sys.argv[5]))
arrays = np.load(folder + "/weights.npz")
class Block(nn.Module):
    def __init__(self, i, o, s):
        super().__init__()
        self.a, self.b = nn.Conv2d(i, o, 3, s, 1, bias=False), nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.n, self.m = nn.BatchNorm2d(o), nn.BatchNorm2d(o)
        self.c = nn.Conv2d(i, o, 1, s, bias=False) if s > 1 or i != o else None
    def forward(self, x):
        y = self.m(self.b(F.relu(self.n(self.a(x)))))
        return F.relu(y + (self.c(x) if self.c is not None else x))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        rows, i = [], 16
        for width, o in enumerate((16, 32, 64)):
            for at in range(blocks):
                rows.append(Block(i, o, 2 if at == 0 and width else 1)); i = o
        self.rows, self.dense = nn.Sequential(*rows), nn.Linear(64, 10)
    def forward(self, x):
        return self.dense(self.rows(F.relu(self.norm(self.stem(x)))).mean((2, 3)))
net = Net()
convs = [m for m in net.modules() if isinstance(m, nn.Conv2d)]
order = [net.stem] + [c for b in net.rows for c in ([b.a, b.b] + ([b.c] if b.c is not None else []))]
with torch.no_grad():
    for at, conv in enumerate(order):
        conv.weight.copy_(torch.from_numpy(arrays["conv%d.w" % at]))
    net.dense.weight.copy_(torch.from_numpy(arrays["dense.w"].T.copy())); net.dense.bias.zero_()
if last: net = net.to(memory_format=torch.channels_last)
x, y = torch.from_numpy(arrays["x"]), torch.from_numpy(arrays["labels"])
if last: x = x.contiguous(memory_format=torch.channels_last)
opt = torch.optim.SGD(net.parameters(), 0.05, 0.9)
def step():
    opt.zero_grad(); loss = F.cross_entropy(net(x), y); loss.backward(); opt.step(); return float(loss)
print(json.dumps([step() for _ in range(3)]), flush=True)
for line in sys.stdin:
    begin = time.process_time(), time.perf_counter()
    for _ in range(int(line)): step()
    print(json.dumps([time.process_time() - begin[0], time.perf_counter() - begin[1]]), flush=True)
"""


def resnet(batch: int, blocks: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A residual network for images of 32x32, with ``blocks`` in each of three stages, and its weights."""
    random = np.random.default_rng(0)
    weights: dict[str, np.ndarray] = {}
    nodes: list[onnx.NodeProto] = []

    def made(kind: str, inputs: list[str], **attributes: object) -> str:
        nodes.append(helper.make_node(kind, inputs, [f"t{len(nodes)}"], **attributes))
        return str(nodes[-1].output[0])

    def convolution(x: str, inputs: int, outputs: int, kernel: int, stride: int) -> str:
        name = f"conv{sum(1 for key in weights if key.startswith('conv'))}.w"
        scale = np.sqrt(2 / (inputs * kernel * kernel))
        weights[name] = (random.standard_normal((outputs, inputs, kernel, kernel)) * scale).astype("float32")
        pads = [kernel // 2] * 4
        return made("Conv", [x, name], pads=pads, strides=[stride, stride], kernel_shape=[kernel, kernel])

    def norm(x: str, channels: int) -> str:
        name = f"norm{sum(1 for key in weights if key.endswith('scale'))}"
        for part, value in (("scale", 1), ("shift", 0), ("mean", 0), ("variance", 1)):
            weights[f"{name}.{part}"] = np.full(channels, value, "float32")
        return made(
            "BatchNormalization", [x, *(f"{name}.{p}" for p in ("scale", "shift", "mean", "variance"))]
        )

    x, inputs = made("Relu", [norm(convolution("x", 3, WIDTHS[0], 3, 1), WIDTHS[0])]), WIDTHS[0]
    for stage, outputs in enumerate(WIDTHS):
        for at in range(blocks):
            stride = 2 if at == 0 and stage else 1
            y = made("Relu", [norm(convolution(x, inputs, outputs, 3, stride), outputs)])
            y = norm(convolution(y, outputs, outputs, 3, 1), outputs)
            x = convolution(x, inputs, outputs, 1, stride) if stride > 1 or inputs != outputs else x
            x, inputs = made("Relu", [made("Add", [y, x])]), outputs
    weights["dense.w"] = (random.standard_normal((inputs, CLASSES)) / np.sqrt(inputs)).astype("float32")
    weights["dense.b"] = np.zeros(CLASSES, "float32")
    y = made("Gemm", [made("Flatten", [made("GlobalAveragePool", [x])]), "dense.w", "dense.b"])
    graph = helper.make_graph(
        nodes,
        "resnet",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, SIZE, SIZE])],
        [helper.make_tensor_value_info(y, TensorProto.FLOAT, [batch, CLASSES])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), weights


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench training", description=__doc__)
    parser.add_argument("--torch", help="a Python interpreter that has torch")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--blocks", type=int, default=3, help="in each of three stages; 3 is ResNet-20")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=3, help="in each round")
    args = parser.parse_args(arguments)
    model, weights = resnet(args.batch, args.blocks)
    random = np.random.default_rng(1)
    x = random.standard_normal((args.batch, 3, SIZE, SIZE)).astype("float32")
    labels = random.integers(0, CLASSES, args.batch)
    step = training.compile(model, "softmax_cross_entropy", training.SGD(RATE, MOMENTUM))
    losses = [step(x, labels) for _ in range(3)]
    threads = os.environ.get("OMP_NUM_THREADS", "1")
    print(f"batch {args.batch}, {args.blocks} blocks in a stage, {threads} thread(s)")
    found: dict[str, list[tuple[float, float]]] = {"tvm_mxplan": []}
    others = {}
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "weights.npz", x=x, labels=labels, **weights)
        for layout in ("nchw", "last") if args.torch else ():
            command = [args.torch, "-c", _TORCH, folder, str(args.batch), str(args.blocks), layout, threads]
            others[layout] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            told = json.loads(others[layout].stdout.readline())  # type: ignore[union-attr]
            if not np.allclose(losses, told, rtol=1e-3):
                print(f"losses differ: {losses}, {told}", file=sys.stderr)
                return 1
            found[f"PyTorch {layout}"] = []
        for _ in range(args.rounds):
            begin = time.process_time(), time.perf_counter()
            for _ in range(args.steps):
                step(x, labels)
            spent = time.process_time() - begin[0], time.perf_counter() - begin[1]
            found["tvm_mxplan"].append(spent)
            for layout, process in others.items():
                process.stdin.write(f"{args.steps}\n")  # type: ignore[union-attr]
                process.stdin.flush()  # type: ignore[union-attr]
                found[f"PyTorch {layout}"].append(tuple(json.loads(process.stdout.readline())))  # type: ignore[union-attr]
    for process in others.values():
        process.stdin.close()  # type: ignore[union-attr]
        process.wait()
    ours = np.median([row[0] for row in found["tvm_mxplan"]])
    print("| engine | processor ms a step | elapsed ms a step | ours over it |\n| --- | --- | --- | --- |")
    for name, rows in found.items():
        spent, elapsed = (np.median([row[at] for row in rows]) / args.steps * 1e3 for at in (0, 1))
        print(f"| {name} | {spent:.1f} | {elapsed:.1f} | {ours / (spent * args.steps / 1e3):.2f} |")
    return 0
