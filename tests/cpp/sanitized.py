"""Builds the runtime without its FFI, and programs around it, with a sanitizer or quickly.

The sources of a folder are compiled as one: most of the time that one takes goes into the headers.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "programs"
RUNTIME = PROGRAMS.parents[2] / "byoc" / "runtime"
FLAGS = ["-std=c++17", "-fopenmp"]


def onednn_file(distribution: str, name: str) -> Path:
    files = importlib.metadata.files(distribution) or []
    return next(Path(str(f.locate())).resolve() for f in files if f.as_posix().endswith(name))


def flags(with_onednn: bool) -> list[str]:
    """Options with which the compiler finds the headers."""
    found = [*FLAGS, f"-iquote{RUNTIME}"]
    if with_onednn:
        header = onednn_file("onednn-devel-cpu-gomp", "include/oneapi/dnnl/dnnl.hpp")
        found.append(f"-isystem{header.parents[2]}")
    return found


def build(
    folder: Path,
    programs: list[str],
    sanitizers: str,
    with_onednn: bool = True,
    never_run: Path | None = None,
) -> list[Path]:
    """Build ``programs`` of the folder beside this file (names without ``.cc``) into ``folder``.

    ``sanitizers`` is what ``-fsanitize`` takes; the first report ends a program.  Nothing is optimised,
    since that takes longer than it saves, and what this processor never runs is not sanitized: ``never_run``
    is a folder of such objects, which builds with several sanitizers share.  Without oneDNN, its room of
    the runtime is left out, and neither its headers nor its library are there.
    """
    plain = flags(with_onednn)
    sanitized = [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"] if sanitizers else []
    libraries = ["-ldl"]
    if with_onednn:
        shared = onednn_file("onednn-cpu-gomp", "libdnnl.so.3")
        libraries += [str(shared), f"-Wl,-rpath,{shared.parent}"]

    def compiled(source: Path, target: Path, options: list[str]) -> str:
        subprocess.run(["g++", *options, "-O0", "-c", str(source), "-o", str(target)], check=True)
        return str(target)

    def compile_one(source: Path) -> str:
        if _runs_here(source):
            return compiled(source, folder / f"{source.stem}.o", [*plain, "-g1", *sanitized])
        target = (never_run or folder) / f"{source.stem}.o"
        with open(target.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return str(target) if never_run and target.exists() else compiled(source, target, plain)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        objects = list(pool.map(compile_one, joined(folder, with_onednn)))
        mains = list(pool.map(compile_one, [PROGRAMS / f"{name}.cc" for name in programs]))
    built = []
    for name, main in zip(programs, mains, strict=True):
        built.append(folder / name)
        linked = [*objects, main, *libraries, "-o", str(built[-1])]
        subprocess.run(["g++", *plain, *sanitized, *linked], check=True)
    return built


def _runs_here(source: Path) -> bool:
    """Whether this processor runs a file: kernels have one for each set, of which it runs the widest."""
    included = [Path(name) for name in re.findall(r'^#include "(/.+)"$', source.read_text(), re.MULTILINE)]
    text = "\n".join(file.read_text() for file in included or [source])
    if "#define MXPLAN_LANES" not in text:
        return True
    target = re.search(r'^#pragma GCC target\("(.+)"\)', text, re.MULTILINE)
    wanted = set(target[1].split(",")) if target else set()
    there = {flag.replace("_", "") for flag in Path("/proc/cpuinfo").read_text().split()}
    return wanted <= there and _width(wanted) == _width(there)


def _width(features: set[str]) -> int:
    return 2 if "avx512f" in features else 1 if "avx2" in features else 0


_NAMES_OF_THEIR_OWN = ("host", "kernels", "cudnn")


def joined(folder: Path, with_onednn: bool) -> list[Path]:
    """Sources, written into ``folder``, to compile in place of the runtime's: one for those of a room.

    The longest is first.  Those that define macros or change the compiler's target, which others would see,
    stay alone; so do those whose folders have names of their own for the same things.
    """
    left_out = {room for room in RUNTIME.rglob("ffi") if room.is_dir()}
    if not with_onednn:
        left_out.add(RUNTIME / "onednn")
    together: dict[Path, list[Path]] = {}
    for source in sorted(RUNTIME.rglob("*.cc")):
        if left_out & set(source.parents):
            continue
        alone = source.parent.name in _NAMES_OF_THEIR_OWN or re.search(
            r"^#(define|pragma GCC)", source.read_text(), re.MULTILINE
        )
        together.setdefault(source if alone else source.parent, []).append(source)
    written = []
    for place, members in sorted(together.items(), key=lambda item: -len(item[1])):
        written.append(folder / ("-".join(place.relative_to(RUNTIME).with_suffix("").parts) + ".cc"))
        written[-1].write_text("".join(f'#include "{member}"\n' for member in members))
    return written
