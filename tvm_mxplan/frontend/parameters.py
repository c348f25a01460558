"""Parameters beside a model: a mapping, an .npz file of numpy, or a .params file of TVM."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..errors import InvalidInputError
from .relax.tvm_tensors import looks_like_parameters, read_parameters

Parameters = Mapping[str, object] | str | os.PathLike[str]


def parameters_of(stated: Parameters | None) -> dict[str, np.ndarray]:
    """The arrays by name.

    Raises
    ------
    InvalidInputError : a file that holds none, or a value that is no array.
    """
    if stated is None:
        return {}
    if isinstance(stated, Mapping):
        return {str(name): _array(str(name), value) for name, value in stated.items()}
    if not isinstance(stated, str | os.PathLike):
        raise InvalidInputError(
            f"params is a {type(stated).__name__}; expected arrays by name, or a file's path"
        )
    path = Path(stated)
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read ({error.strerror}); expected parameters") from error
    if looks_like_parameters(head):
        return read_parameters(path)
    if not head.startswith(b"PK"):
        raise InvalidInputError(
            f"{path}: holds no parameters; expected .npz of numpy.savez, or .params of relay.save_param_dict"
        )
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidInputError(
            f"{path}: cannot be read ({reason}); write it again with numpy.savez"
        ) from error


def _array(name: str, value: object) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    numpy = getattr(value, "numpy", None)
    if numpy is None:
        raise InvalidInputError(
            f"params: {name!r} is a {type(value).__name__}; expected a numpy array or a tensor"
        )
    return np.asarray(numpy())
