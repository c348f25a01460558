"""``compile``: a model in, an executable out; the library behind the Python call and the command line.

What is needed to find a finished compilation imports no TVM; what compiles (``compiler``) is imported then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .cache.compile_cache import CompileCache
from .caches import counted
from .executable import Executable
from .options import Options
from .targets import TargetText

if TYPE_CHECKING:
    import tvm


def compile(
    model: Any,
    target: str | tvm.target.Target = "dnnl, llvm",
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    options: Options | dict[str, Any] | None = None,
) -> Executable:
    """Compile a model for this machine's CPU.

    Parameters
    ----------
    model : path of an ONNX file, an ``onnx.ModelProto``, or a Relax module whose function is ``main``.
    target : libraries and TVM's target by preference, e.g. ``"dnnl, llvm"`` or ``"llvm -mcpu=x86-64-v3"``.
    shapes : input shapes by name, in place of those in an ONNX model.
    options : see :class:`tvm_mxplan.Options`.

    Returns
    -------
    executable : callable; see :class:`tvm_mxplan.Executable`.

    Raises
    ------
    InvalidInputError : the file, the shapes, the target or an option.
    UnsupportedError : an operator that TVM's importer does not know, or a target not in this build.
    """
    options = Options.of(options)
    stated = TargetText.of(target)
    counts = counted()
    cache = CompileCache(model, shapes, stated, options)
    executable = cache.find()
    if executable is None:
        from .compiler import build

        executable = build(model, stated.parsed(), shapes, options, cache)
    executable.report = replace(executable.report, process_caches=counts())
    return executable
