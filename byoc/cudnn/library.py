"""cuDNN from Python: where its libraries are, the runtime's functions, and the planner's library.

The runtime needs neither to load.  The planner (``native/``) is built where cuDNN's headers are; it and cuDNN
are loaded when the first plan is asked for.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_mxplan.byoc import registry
from tvm_mxplan.errors import UnsupportedError

if TYPE_CHECKING:
    from tvm_mxplan.core.program.program import Program

DISTRIBUTION = "nvidia-cudnn-cu13"
_RUNTIME_DISTRIBUTION = "nvidia-cuda-runtime"
PLANNER = "libmxplan_cudnn_planner.so"
INSTALL = "install tvm_mxplan[cuda]"

_TAKE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
_COMPILER = (
    ("nvidia-cuda-nvrtc", "libnvrtc-builtins.so.13.0"),
    ("nvidia-cuda-nvrtc", "libnvrtc.so.13"),
)
"""Of kernels that engines compile while their plans are made."""
_lock = threading.Lock()
_planners: list[ctypes.CDLL] = []
_compilers: list[ctypes.CDLL] = []


def load() -> None:
    """Load the runtime, and tell it where cuDNN is; cuDNN itself waits for a region that runs."""
    # The runtime is one file, which the library that is always there loads.
    registry.engine(registry.DEFAULT[0]).load()
    _tell_paths()


@functools.cache
def _tell_paths() -> None:
    cudart = _installed(_RUNTIME_DISTRIBUTION, "libcudart.so.13")
    _function("set_libraries")(cudart, _installed(DISTRIBUTION, "libcudnn.so.9"))


def version() -> str:
    """Version of the cuDNN that is installed, '' without."""
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return ""


def why_not() -> str:
    """Returns the reason why no plans can be made here, '' if they can."""
    if not version():
        return f"{DISTRIBUTION} is not installed; {INSTALL}"
    if not planner_path().exists():
        return f"{planner_path().name} is not built; {INSTALL} and build tvm_mxplan again"
    return ""


def planner_path() -> Path:
    return Path(__file__).resolve().parent / "native" / PLANNER


def plan(request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the planner's answer (``native/planner.cc``); UnsupportedError where there is no planner."""
    text = json.dumps(request).encode()
    return _answer("MxplanCudnnPlan", text, ctypes.c_int64(len(text)))


def device_properties(number: int = 0) -> dict[str, Any]:
    """The properties of a GPU that is here, as cuDNN knows it; UnsupportedError without one."""
    answer = _answer("MxplanCudnnDevice", ctypes.c_int32(number))
    if "device" not in answer:
        raise UnsupportedError(
            f"GPU {number} cannot be asked ({answer['error']}); run this on a machine with an NVIDIA driver"
        )
    found: dict[str, Any] = answer["device"]
    return found


def _answer(function: str, *arguments: Any) -> dict[str, Any]:
    """Returns the answer that a function of the planner hands over."""
    answers: list[bytes] = []

    @_TAKE
    def take(data: int, size: int) -> None:
        answers.append(ctypes.string_at(data, size))

    planner = _planner()
    with _lock:  # one question at a time
        planner[function](*arguments, take)
    answer: dict[str, Any] = json.loads(answers[0])
    return answer


def cudnn_version() -> int:
    """Version of the cuDNN that plans are made with, as 91900."""
    _planner()
    return _versions[0]


_versions: list[int] = []


def _planner() -> ctypes.CDLL:
    with _lock:
        if not _planners:
            reason = why_not()
            if reason:
                raise UnsupportedError(f"cuDNN: {reason}")
            try:
                planner = ctypes.CDLL(str(planner_path()))
            except OSError as error:
                raise UnsupportedError(f"cuDNN: {error}; {INSTALL}") from error
            for distribution, file in _COMPILER:
                path = _installed(distribution, file)
                if path:  # cuDNN looks for it by its name alone, and does without
                    _compilers.append(ctypes.CDLL(path, ctypes.RTLD_GLOBAL))
            planner.MxplanCudnnLoad.restype = ctypes.c_int64
            failure = ctypes.create_string_buffer(4096)
            path = _installed(DISTRIBUTION, "libcudnn.so.9").encode()
            found = planner.MxplanCudnnLoad(path, failure, ctypes.c_int64(len(failure) - 1))
            if not found:
                raise UnsupportedError(f"cuDNN: {failure.value.decode(errors='replace')}; {INSTALL}")
            _versions.append(int(found))
            _planners.append(planner)
        return _planners[0]


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
