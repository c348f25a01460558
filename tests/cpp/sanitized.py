"""Builds the runtime without its FFI, and a program around it, with a sanitizer."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
RUNTIME = HERE.parent.parent / "byoc" / "runtime"
FLAGS = ["-std=c++17", "-O1", "-g1", "-fopenmp"]


def onednn_file(distribution: str, name: str) -> Path:
    files = importlib.metadata.files(distribution) or []
    return next(Path(str(f.locate())).resolve() for f in files if f.as_posix().endswith(name))


def build(folder: Path, programs: list[str], sanitizers: str) -> list[Path]:
    """Build ``programs`` of this folder (names without ``.cc``) into ``folder``.

    ``sanitizers`` is what ``-fsanitize`` takes; the first report ends a program.
    """
    header = onednn_file("onednn-devel-cpu-gomp", "include/oneapi/dnnl/dnnl.hpp")
    shared = onednn_file("onednn-cpu-gomp", "libdnnl.so.3")
    flags = [*FLAGS, f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", f"-iquote{RUNTIME}"]
    sources = [path for path in sorted(RUNTIME.rglob("*.cc")) if path.parent.name != "ffi"]

    def compile_one(source: Path) -> str:
        target = str(folder / ("-".join(source.parts[-3:]) + ".o"))
        subprocess.run(
            ["g++", *flags, f"-isystem{header.parents[2]}", "-c", str(source), "-o", target], check=True
        )
        return target

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        objects = list(pool.map(compile_one, sources))
        mains = list(pool.map(compile_one, [HERE / f"{name}.cc" for name in programs]))
    built = []
    for name, main in zip(programs, mains, strict=True):
        built.append(folder / name)
        link = ["g++", *flags, *objects, main, str(shared), f"-Wl,-rpath,{shared.parent}", "-ldl"]
        subprocess.run([*link, "-o", str(built[-1])], check=True)
    return built
