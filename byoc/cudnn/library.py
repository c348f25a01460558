"""cuDNN from Python: where its libraries are, the runtime's functions, and the planner's library.

The runtime needs neither to load.  The planner (``native/``) is built where cuDNN's headers are; its process
begins when the first plan is asked for.
"""

from __future__ import annotations

import atexit
import functools
import importlib.metadata
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_mxplan.byoc import registry
from tvm_mxplan.errors import UnsupportedError

from .asked import AskedProcess, ProcessEndedError

if TYPE_CHECKING:
    from tvm_mxplan.core.program.program import Program

DISTRIBUTION = "nvidia-cudnn-cu13"
_FRONTEND = "cudnn-frontend"
_STAMP = re.compile(rb"mxplan-cudnn-frontend=([0-9.]+);")
_RUNTIME_DISTRIBUTION = "nvidia-cuda-runtime"
PLANNER = "libmxplan_cudnn_planner.so"
_SERVE = Path(__file__).resolve().parent / "native" / "serve.py"
_STOPWATCH = f"import sys; sys.path[:] = sys.argv[1:]; from {__package__} import stopwatch; stopwatch.main()"
INSTALL = "run scripts/setup test cuda in a checkout"
"""Installs cuDNN with its headers, then builds the planner beside them: pip's own builds do not see them."""

NO_DRIVER = Path(__file__).resolve().parent / "no_driver" / "libmxplan_no_driver.so"
_COMPILER = (
    ("nvidia-cuda-nvrtc", "libnvrtc-builtins.so.13.0"),
    ("nvidia-cuda-nvrtc", "libnvrtc.so.13"),
)
"""Of kernels that engines compile while their plans are made."""


def load() -> None:
    """Load the runtime, and tell it where cuDNN is; cuDNN itself waits for a region that runs."""
    # The runtime is one file, which the library that is always there loads.
    registry.engine(registry.DEFAULT[0]).load()
    _tell_paths()


@functools.cache
def _tell_paths() -> None:
    _function("set_libraries")("".join(cuda_runtime()), _installed(DISTRIBUTION, "libcudnn.so.9"))


@functools.cache
def cuda_runtime() -> list[str]:
    """The path of the CUDA runtime that is installed, nothing without."""
    path = _installed(_RUNTIME_DISTRIBUTION, "libcudart.so.13")
    return [path] if path else []


def version() -> str:
    """Version of the cuDNN that is installed, '' without."""
    return _version(DISTRIBUTION)


def versions() -> dict[str, str]:
    """Versions of all that makes plans; '' of what is not installed."""
    installed = {name: _version(name) for name in (DISTRIBUTION, *{one for one, _ in _COMPILER})}
    return {**installed, _FRONTEND: _built_with()}


@functools.cache
def _built_with() -> str:
    """Version of the headers that the planner was built with, '' without a planner."""
    stamp = _STAMP.search(planner_path().read_bytes()) if planner_path().exists() else None
    return stamp.group(1).decode() if stamp else ""


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def why_not() -> str:
    """Returns the reason why no plans can be made here, '' if they can."""
    if not version():
        return f"{DISTRIBUTION} is not installed; {INSTALL}"
    if not planner_path().exists():
        return f"{planner_path().name} is not built; {INSTALL}"
    return ""


def planner_path() -> Path:
    return Path(__file__).resolve().parent / "native" / PLANNER


def plan(request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the planner's answer (``native/planner.cc``); UnsupportedError where there is no planner."""
    return _planner().ask("plan", request)


def device_properties(number: int = 0) -> dict[str, Any]:
    """The properties of a GPU that is here, as cuDNN knows it; UnsupportedError without one."""
    answer = _planner().ask("device", number)
    if "device" not in answer:
        raise UnsupportedError(
            f"GPU {number} cannot be asked ({answer['error']}); run this on a machine with an NVIDIA driver"
        )
    found: dict[str, Any] = answer["device"]
    return found


def cudnn_version() -> int:
    """Version of the cuDNN that plans are made with, as 91900."""
    return int(_planner().hello["version"])


@functools.cache
def _planner() -> AskedProcess:
    reason = why_not()
    if reason:
        raise UnsupportedError(f"cuDNN: {reason}")
    # cuDNN looks for the compiler by its name alone, and does without.
    compiler = [path for distribution, file in _COMPILER if (path := _installed(distribution, file))]
    cudnn, stand_in = _installed(DISTRIBUTION, "libcudnn.so.9"), NO_DRIVER if NO_DRIVER.exists() else ""
    given = [str(planner_path()), cudnn, str(stand_in), *compiler]
    return _closed_at_exit(AskedProcess("planner", ["-I", str(_SERVE), *given], INSTALL))


@functools.cache
def _stopwatch() -> AskedProcess:
    return _closed_at_exit(AskedProcess("stopwatch", ["-c", _STOPWATCH, *sys.path], INSTALL))


def _closed_at_exit(process: AskedProcess) -> AskedProcess:
    atexit.register(process.close)
    return process


def create_module(symbol: str, program: Program | bytes, constants: Sequence[Any] = ()) -> Any:
    """A runtime module whose function ``symbol`` takes inputs, then outputs, on the GPU."""
    import tvm_ffi

    from tvm_mxplan.core.program import codec

    load()
    encoded = program if isinstance(program, bytes) else codec.encode(program)
    tensors = [one if isinstance(one, tvm_ffi.Tensor) else tvm_ffi.from_dlpack(one) for one in constants]
    return _function("create")(symbol, encoded, tensors)


def plan_digest(data: bytes) -> bytes:
    """The digest of an execution plan's record, of the bytes behind it."""
    load()
    return bytes(_function("plan_digest")(data))


def check_plan(data: bytes) -> str:
    """The engine of a record; InvalidInputError where it is damaged."""
    load()
    return str(_function("check_plan")(data))


def time_plans(
    record: bytes, sizes: Mapping[int, int], warm_up: int, runs: int, rounds: int
) -> list[tuple[list[float], str]]:
    """Microseconds of each plan of a record on the GPU that is here, or why there are none.

    They run in a process of their own.  Behind one that fails, others may fail for its sake.

    Parameters
    ----------
    sizes : bytes of tensors by uid.
    warm_up, runs, rounds : runs before any is timed; runs between two events; times of each plan.

    Raises
    ------
    UnsupportedError : no GPU, or another than plans were made for.
    ProcessEndedError : the process did not survive.
    """
    asked = {
        "record": record.hex(),
        "sizes": sorted(sizes.items()),
        "rules": [warm_up, runs, rounds],
    }
    answer = _stopwatch().ask("time", asked)
    if answer.get("ended"):
        raise ProcessEndedError(answer["error"])
    times = [(found, failure) for found, failure in answer.get("times", ())]
    if not times or any(failure for _, failure in times):
        _stopwatch().close()  # the GPU may be lost to it
    if not times:
        raise UnsupportedError(answer["error"])
    return times


def time_plans_here(
    record: bytes, sizes: Sequence[tuple[int, int]], warm_up: int, runs: int, rounds: int
) -> list[tuple[list[float], str]]:
    """The same in the calling process, which may lose all that it has on the GPU."""
    import tvm_ffi

    load()
    shapes = (tvm_ffi.Shape([uid for uid, _ in sizes]), tvm_ffi.Shape([size for _, size in sizes]))
    found = _function("time_plans")(record, *shapes, warm_up, runs, rounds)
    return [([float(time) for time in times], str(failure)) for times, failure in found]


def failures() -> list[tuple[str, ...]]:
    """Region, step, digest of plans, engine, reason and next engine of each failure in this process."""
    load()
    return [tuple(map(str, one)) for one in _function("failures")()]


def device() -> dict[str, int]:
    """Returns the properties of the GPU that is here; UnsupportedError without one."""
    load()
    return {str(name): int(number) for name, number in _function("device")().items()}


def _function(name: str) -> Callable[..., Any]:
    import tvm_ffi

    found: Callable[..., Any] = tvm_ffi.get_global_func(f"tvm_mxplan.cudnn.{name}")
    return found


def _installed(distribution: str, file: str) -> str:
    """The path of a file that a distribution brought, '' without."""
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    return next((str(Path(str(one.locate())).resolve()) for one in files if one.name == file), "")
