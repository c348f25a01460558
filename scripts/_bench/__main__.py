"""scripts/bench NAME [ARGUMENT ...]: one benchmark; each has a --help of its own."""

from __future__ import annotations

import importlib
import sys

BENCHMARKS = {
    "models": ("whole.models", "whole networks on our engine and on others"),
    "onnx": ("whole.onnx_files", "your own ONNX models on our engine and on others"),
    "accuracy": ("whole.accuracy", "the error of whole networks against float64, engine by engine"),
    "precision": ("whole.precision", "whole networks in bf16 beside float32: time, error, bytes"),
    "top_one": ("whole.top_one", "classes that networks name in bf16 beside float32, over many images"),
    "gpu": ("gpu.main", "whole networks on an NVIDIA GPU beside PyTorch and TVM's own code; needs one"),
    "bounds": ("whole.bounds", "precision=auto at several bounds: estimated time, error with rounded values"),
    "calls": ("whole.calls", "what calls cost by themselves: small networks from numpy to numpy"),
    "throughput": ("whole.throughput", "calls a second of many instances on one machine"),
    "training": ("whole.training", "steps of training beside PyTorch's"),
    "convergence": ("training.convergence", "networks trained here and in PyTorch on digits: the curves"),
    "training_times": ("training.times", "steps of networks beside PyTorch's; opcheck of them"),
    "training_agreement": ("training.agreement", "networks trained here and in PyTorch: what they differ by"),
    "integers": ("whole.integers", "quantised networks beside other engines: time, steps, error"),
    "sizes": ("whole.sizes", "one executable with named sizes beside one for each size"),
    "layouts": ("whole.layouts", "the layout policies against one another"),
    "choices": ("whole.choices", "the choice per operator against one rule for all"),
    "convolutions": ("steps.convolutions", "algorithms of 3x3 and 5x5 convolutions, layer by layer"),
    "implementations": ("steps.implementations", "all that could run a convolution, beside its cost"),
    "attention": ("steps.attention", "the step of attention against its parts as steps of oneDNN"),
    "few_outputs": ("windows.few_outputs", "convolutions with few output channels, ours beside oneDNN's"),
    "lines": ("windows.lines", "depthwise convolutions of lines in each layout"),
    "pairs": ("windows.pairs", "depthwise convolutions inside of pointwise ones beside two steps"),
    "experts": ("products.experts", "rows by the matrix of their group beside a product for each"),
    "few_bits": ("products.few_bits", "products with weights of few bits beside float32 and onnxruntime"),
    "products": ("products.products", "what runs products with constant matrices beside what else could"),
    "batch_norms": ("steps.batch_norms", "batch norms in training by our sums against oneDNN's own"),
    "host": ("steps.host", "each kernel of the host library against TVM's"),
    "guests": ("steps.guests", "what the default target gives the host library, against TVM's kernels"),
    "costs": ("steps.costs", "the model of costs against what steps take"),
    "coverage": ("compiler.coverage", "the share of time outside of regions, as reports say and as it runs"),
    "kinds": ("steps.kinds", "what reorders, products and attention take of networks of today"),
    "roofline": ("steps.roofline", "what bounds whole networks on this machine"),
    "memory": ("memory.memory", "memory plans against the best there could be and TVM's"),
    "allocation": ("memory.allocation", "the allocation solver on problems that are known to have a plan"),
    "caches": ("caches.caches", "what the caches save"),
    "verify": ("compiler.verify", "what it takes to verify the kernels of networks"),
    "compile_time": ("compiler.compile_time", "seconds of compilation over the number of operators"),
    "docs": ("documents", "makes the tables of docs/performance.md and its pages again, in place"),
}
"""Name: the module of this package whose ``main`` runs it, and what it measures."""


def main(arguments: list[str]) -> int:
    """Runs the benchmark that the first argument names, with the others; returns the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        width = max(map(len, BENCHMARKS))
        print(__doc__, "", *(f"  {name:{width}}  {text}" for name, (_, text) in BENCHMARKS.items()), sep="\n")
        return 0 if arguments else 2
    name, *rest = arguments
    if name not in BENCHMARKS:
        print(f"bench: there is no benchmark {name!r}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    return importlib.import_module(f"_bench.{BENCHMARKS[name][0]}").main(rest) or 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
