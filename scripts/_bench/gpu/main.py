"""The command line of scripts/bench gpu: whole networks on the NVIDIA GPU that is here.

    scripts/bench gpu --models resnet50,mobilenet_v2 --batch 1,8,64 --kinds f16,tf32
    scripts/bench gpu --models model.onnx --engines ours,torch_graph --kernels --seconds 200

Engines take turns in one process, burst by burst; ratios are those of medians.  Inputs stand on the GPU, and
a call ends when the GPU has computed.  Errors are relative L2 against float64, the larger of those of the
first and the third answer.  A row is printed when its case ends, so a run that is cut off leaves what it had.

  ours         with CUDA graphs          torch         torch.compile, max-autotune, with cuDNN's benchmark
  ours_steps   without                   torch_frozen  the same with constants folded, batch norms among them
  ours_tuned   engines timed here        torch_graph   PyTorch's own kernels, channels last, as a CUDA graph
                                         tvm           TVM's own CUDA code

A model is a name of the zoo, or a file: at the batches where its first dimension is a name, else at its own.
An engine that fails is a dash, and a line on stderr.  Where there is no GPU the status is 3.  It is 1 where
ours gives no answer or a wrong one.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tvm_mxplan.byoc import registry
from tvm_mxplan.errors import UnsupportedError
from tvm_mxplan.testing import zoo
from tvm_mxplan.testing.environment_info import environment, format_environment

from . import answers, cases, engines, kernels, rows, starts, timing
from .cases import KINDS, Case
from .engines import ENGINES
from .timing import Outcome

LIBRARY = "cudnn"
MODELS = ("resnet50", "mobilenet_v2", "vgg19", "densenet121")
NO_GPU = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table in Markdown; returns the exit status."""
    begun = timing.clock()
    options = _parse(arguments)
    engines.import_torch_first()
    engine = registry.engine(LIBRARY)
    if reason := engine.absent():
        return _no_gpu(f"{reason}; no figure exists without a GPU")
    try:
        properties = engine.device_properties()
    except UnsupportedError as error:
        return _no_gpu(f"{error}; no figure exists without them")
    _say(format_environment(environment(Path(__file__).resolve().parents[3])))
    columns = rows.header(options.engines, options.starts)
    print(rows.line(columns), rows.rule(len(columns)), sep="\n", flush=True)
    right = True
    with tempfile.TemporaryDirectory(prefix="bench_gpu_") as directory:
        device = Path(directory) / "device.json"
        device.write_text(properties)
        for name, kind, batch in _wanted(options):
            if options.seconds is not None and timing.clock() - begun >= options.seconds:
                _say(f"bench gpu: left out for want of time: {name} {kind} batch {batch}")
                continue
            with tempfile.TemporaryDirectory(dir=directory) as folder:
                right = _measured(options, (name, kind, batch), Path(folder), device) and right
            engines.release()
    return 0 if right else 1


def _measured(options: argparse.Namespace, what: tuple[str, str, int], folder: Path, device: Path) -> bool:
    """Prints the row of a case; whether ours was right."""
    name, kind, batch = what
    try:
        case = Case(name, batch, kind, *cases.read(name, batch), folder, device)
        right = answers.right_answer(case)
    except Exception as error:  # a file that is no model, or one that nothing can answer
        _say(f"bench gpu: {name} {kind} batch {batch}: {answers.reason(error)}")
        return False
    wanted = [ENGINES[one] for one in options.engines]
    found = timing.measure(case, wanted, right, options.rounds, options.prepare_seconds)
    first_answers = _first_answers(case, found) if options.starts else None
    print(rows.line(rows.row(case.title, batch, found, first_answers)), flush=True)
    if options.kernels:
        _tell_kernels(case, found)
    return all(outcome.ok for outcome in found.values() if outcome.engine.ours)


def _first_answers(case: Case, found: dict[str, Outcome]) -> dict[str, float]:
    """Seconds of fresh processes, the library that of ours which comes first."""
    for outcome in found.values():
        if outcome.runner is not None and outcome.runner.executable is not None:
            try:
                return starts.first_answers_s(outcome.runner.executable, case)
            except Exception as error:
                _say(f"bench gpu: {case.title} batch {case.batch}: first answers: {answers.reason(error)}")
                break
    return {}


def _tell_kernels(case: Case, found: dict[str, Outcome]) -> None:
    for name, outcome in found.items():
        if outcome.runner is None:
            continue
        title = f"{case.title} batch {case.batch}: {name}"
        try:
            _say(*kernels.lines(title, kernels.profiled(outcome.runner)))
        except Exception as error:  # PyTorch is missing, or may not read the GPU's counters
            _say(f"bench gpu: {title}: its kernels are unknown: {answers.reason(error)}")


def _wanted(options: argparse.Namespace) -> Iterator[tuple[str, str, int]]:
    for name, kind in itertools.product(options.models, options.kinds):
        for batch in cases.batches(name, options.batch):
            yield name, kind, batch


def _no_gpu(why: str) -> int:
    _say(f"bench gpu: {why}")
    return NO_GPU


def _say(*lines: str) -> None:
    print(*lines, sep="\n", file=sys.stderr, flush=True)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )

    def names(known: Sequence[str]) -> Callable[[str], list[str]]:
        return lambda text: [_known(one, known) for one in text.split(",")]

    parser.add_argument("--models", type=_models, default=list(MODELS), help="of the zoo, and .onnx files")
    parser.add_argument("--kinds", type=names(tuple(KINDS)), default=list(KINDS), help="f16,tf32,f32")
    parser.add_argument("--batch", type=_numbers, default=[1, 8, 64], help="(1,8,64)")
    parser.add_argument(
        "--engines", type=names(tuple(ENGINES)), default=["ours", "torch"], help="(ours,torch)"
    )
    parser.add_argument("--rounds", type=_number, default=7, help="bursts of each engine (7)")
    parser.add_argument("--seconds", type=float, help="no case begins after so many")
    parser.add_argument(
        "--prepare-seconds",
        type=float,
        default=0.0,
        help="an engine that takes longer to compile and answer is a dash",
    )
    parser.add_argument(
        "--starts", action="store_true", help="time fresh processes up to their first answers"
    )
    parser.add_argument(
        "--kernels",
        action="store_true",
        help="tell the GPU's time by kernels on stderr, by PyTorch's profiler",
    )
    return parser.parse_args(arguments)


def _models(text: str) -> list[str]:
    for name in (found := text.split(",")):
        if not cases.of_file(name):
            _known(name, zoo.names())
        elif not Path(name).is_file():
            raise argparse.ArgumentTypeError(f"{name}: no such file")
        else:
            try:
                cases.batches(name, [1])
            except Exception as error:
                raise argparse.ArgumentTypeError(f"{name}: no ONNX model ({answers.reason(error)})") from None
    return found


def _known(name: str, known: Sequence[str]) -> str:
    if name not in known:
        raise argparse.ArgumentTypeError(f"{name!r}; expected some of {','.join(known)}")
    return name


def _numbers(text: str) -> list[int]:
    return [_number(one) for one in text.split(",")]


def _number(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number}; expected 1 or more")
    return number


if __name__ == "__main__":
    sys.exit(main())
