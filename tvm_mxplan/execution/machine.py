"""TVM's runtime and its Relax virtual machine through tvm_ffi, without TVM's Python package.

Importing ``tvm`` takes several times as long as loading a compiled model.  What runs a model is in TVM's
runtime library alone, a few megabytes, which is loaded here as ``import tvm`` would load it: the same file,
found by TVM's own code, so that a later ``import tvm`` finds it in the process.  What a machine needs beyond
that library (functions that TVM's Python registers) makes it import ``tvm`` after all.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import importlib.util
import sys
import threading
import warnings
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from .. import environment
from ..byoc import registry
from ..core.element_types import numpy_type
from ..errors import InvalidInputError, UnsupportedError
from . import caches
from .ffi import tvm_ffi

_CPU, _CUDA, _POOLED = 1, 2, 2
"""DLPack's numbers of devices, and TVM's of its pooled allocator."""
Devices: TypeAlias = tuple[int, ...]
CPU: Devices = (_CPU,)
GPU: Devices = (_CUDA, _CPU)
BOTH: Devices = (_CPU, _CUDA)
"""Devices of a virtual machine: constants, and tensors that state no device, are on the first."""
_GPU = "cuda"
"""The name that TVM gives to modules of kernels for GPUs."""

_lock = threading.Lock()
_runtime: list[ctypes.CDLL] = []  # kept open for good
_device_libraries: list[ctypes.CDLL] = []  # likewise
_ours: list[bool] = []


class Tensor(tvm_ffi.core.Tensor):  # type: ignore[name-defined]
    """The class of tensors in tvm_ffi until ``tvm`` is imported and puts its own in the place of this.

    TVM takes it as one of its own.  What only TVM's class can do is done by that class.
    """

    __slots__ = ()

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """For isinstance: a tensor made before ``import tvm`` is one of TVM's after it."""
        found: type = getattr(sys.modules.get("tvm.runtime"), "Tensor", Tensor)
        return found

    def numpy(self) -> np.ndarray:
        """A copy as a numpy array."""
        if self.device.dlpack_device_type() == _CUDA:
            return _from_gpu(self)
        try:
            return np.from_dlpack(self).copy()
        except (BufferError, RuntimeError, TypeError):  # an element type that numpy does not have
            array: np.ndarray = _tvm().runtime.Tensor.numpy(self)
            return array

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(retyped(self), name)

    def __str__(self) -> str:
        return str(self.numpy())


def start() -> None:
    """Load TVM's runtime and ours, once; what is wrong with ours is a warning, as it is at ``import tvm``."""
    with _lock:
        if "tvm" not in sys.modules and not _runtime:
            _runtime.append(_load_runtime())
            tvm_ffi.register_object("ffi.Tensor")(Tensor)  # until `import tvm` does so with its own
            tvm_ffi.core._set_class_tensor(Tensor)
    try:
        start_ours()
        tvm_ffi.get_global_func("tvm_mxplan.kernels_elsewhere")(_GPU)
    except Exception as error:
        warnings.warn(f"Failed to autoload tvm backend 'tvm_mxplan': {error}", stacklevel=2)


def start_ours() -> None:
    """Load our runtime as the environment asks for it, once.

    Raises
    ------
    InvalidInputError : a variable says what nobody knows, now and at each call; the runtime is loaded.
    """
    with _lock:
        if _ours:
            return
        engines = registry.engines()
        for engine in engines:
            engine.load()
        environment.check_fewer_threads()
        memory = environment.debug_memory()
        capacities = environment.primitive_cache(), environment.weights_cache_mib()
        _ours.append(True)
        if memory:
            for engine in engines:
                engine.set_debug(True)
        caches.set_capacities(*capacities)


def check_compiler() -> None:
    """Raises UnsupportedError where TVM is loaded without its compiler."""
    if _tvm()._RUNTIME_ONLY:
        raise UnsupportedError(
            "TVM is loaded with its runtime alone, which compiles nothing; unset TVM_USE_RUNTIME_LIB"
        )


def virtual_machine(module: Any, devices: Devices = CPU) -> Any:
    """The functions of a module for the VM, ready to run on the CPU, the first GPU, or both."""
    start()
    if _has_kernels_for_gpu(module):
        _tvm()  # whose Python compiles them
    try:
        return _initialized(module, devices)
    except Exception:
        if "tvm" in sys.modules:
            raise
    _tvm()
    return _initialized(module, devices)


def _has_kernels_for_gpu(module: Any) -> bool:
    """Whether TVM's own code for the GPU is in a module or one that it imports."""
    return module.kind == _GPU or any(map(_has_kernels_for_gpu, module.imports))


def tensor_of(value: Any, gpu: bool = False) -> Any:
    """A tensor as it is; an array copied into one, aligned as TVM's kernels want it.

    With ``gpu``, what is not on a GPU is copied to the first one.
    """
    if isinstance(value, tvm_ffi.core.Tensor):
        if not gpu or value.device.dlpack_device_type() == _CUDA:
            return value
        value = value.numpy()
    array = np.asarray(value, order="C")
    made = _allocator()(tvm_ffi.Shape(array.shape), _type_of(array.dtype), _device(gpu), None)
    if not gpu:
        try:
            np.from_dlpack(made)[...] = array
            return made
        except (BufferError, RuntimeError, TypeError):  # an element type that numpy does not have
            pass
    data = array.ctypes.data_as(ctypes.c_void_p)
    tvm_ffi.get_global_func("runtime.TVMTensorCopyFromBytes")(made, data, array.nbytes)
    return made


def _from_gpu(tensor: Any) -> np.ndarray:
    """A copy of a tensor on a GPU, when all that writes it has run."""
    array: np.ndarray = np.empty(tuple(map(int, tensor.shape)), numpy_type(str(tensor.dtype)))
    data = array.ctypes.data_as(ctypes.c_void_p)
    tvm_ffi.get_global_func("runtime.TVMTensorCopyToBytes")(tensor, data, array.nbytes)
    return array


@functools.cache
def _allocator() -> Any:
    return tvm_ffi.get_global_func("runtime.TVMTensorAllocWithScope")


@functools.cache
def _device(gpu: bool) -> Any:
    return tvm_ffi.device(_GPU if gpu else "cpu", 0)


@functools.lru_cache(maxsize=64)
def _type_of(dtype: np.dtype[Any]) -> Any:
    try:
        return tvm_ffi.dtype(dtype)
    except (TypeError, ValueError):
        raise InvalidInputError(f"expected an array of numbers, got one of {dtype}") from None


def outputs_of(result: Any) -> list[Any]:
    """Returns the result of a function of the virtual machine as a list; shapes and numbers as tensors."""
    output = _output(result)
    return output if isinstance(output, list) else [output]


def _output(result: Any) -> Any:
    if isinstance(result, tvm_ffi.core.Tensor):
        return result
    if isinstance(result, tvm_ffi.Shape):
        return tensor_of(np.array([int(extent) for extent in result], "int64"))
    if isinstance(result, int):
        return tensor_of(np.array(int(result), "int64"))
    return [_output(part) for part in result] if isinstance(result, tvm_ffi.Array | list | tuple) else result


def retyped(value: Any) -> Any:
    """A module or a tensor as TVM's Python knows it, also where it was made before ``tvm`` was imported."""
    _tvm()
    if type(value) in (Tensor, tvm_ffi.Tensor, tvm_ffi.Module):
        return tvm_ffi.Array([value])[0]
    return value


def _initialized(module: Any, devices: Devices = CPU) -> Any:
    machine = module["vm_load_executable"]()
    machine["vm_initialization"](*(number for device in devices for number in (device, 0, _POOLED)))
    return machine


def _tvm() -> Any:
    return importlib.import_module("tvm")


def _load_runtime() -> ctypes.CDLL:
    """TVM's runtime, its symbols visible to all as TVM wants it, and what else the wheel has for it."""
    from tvm_ffi.libinfo import load_lib_ctypes

    folders = _libinfo().package_lib_paths()
    loaded = load_lib_ctypes("tvm", "tvm_runtime", "RTLD_GLOBAL", extra_lib_paths=folders)
    _load_device_libraries()
    for part in ("extra", _GPU):
        with contextlib.suppress(OSError, RuntimeError):  # TVM without it, a machine without the driver
            beside = [Path(loaded._name).resolve().parent]
            load_lib_ctypes("tvm", f"tvm_runtime_{part}", "RTLD_LOCAL", beside)
    return loaded


def _load_device_libraries() -> None:
    """Loads what pip installed of a GPU's libraries, which TVM's looks for by their names."""
    for engine in registry.engines():
        for path in engine.device_libraries():
            with contextlib.suppress(OSError):  # whoever runs a region is told
                _device_libraries.append(ctypes.CDLL(path, ctypes.RTLD_GLOBAL))


def _libinfo() -> Any:
    """TVM's own module that knows where its libraries are, on its own."""
    package = importlib.util.find_spec("tvm")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'tvm'", name="tvm")
    path = Path(package.submodule_search_locations[0]) / "libinfo.py"
    spec = importlib.util.spec_from_file_location("tvm_mxplan._tvm_libinfo", path)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module {path}", name="tvm")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
