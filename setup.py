"""Builds the C++ libraries; everything else about the package is in setup.cfg.

The sources below ``byoc/runtime`` become ``libmxplan_runtime.so``; those below
``tvm_mxplan/core/allocation/native``, which need no other library, become ``libmxplan_planner.so``; and where
cuDNN's headers are (the extra ``cuda``), those below ``byoc/cudnn/native`` become
``libmxplan_cudnn_planner.so``, and ``byoc/cudnn/no_driver`` the driver that it finds where there is none.
Each stands in the folder of its sources (in place for an editable install).  Headers and libraries come from
the distributions that pip installs for the build: tvm-ffi and oneDNN.  Files
are compiled on all cores, and again only where they or a header have changed: objects stay in
``build/objects``, also those of editable installs, whose temporary folders setuptools removes.
``MXPLAN_CXX`` names another compiler, ``MXPLAN_CXXFLAGS`` adds flags (say, a sanitizer's).
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

RUNTIME = "tvm_mxplan.byoc.runtime.libmxplan_runtime"
PLANNER = "tvm_mxplan.core.allocation.native.libmxplan_planner"
CUDNN = "tvm_mxplan.byoc.cudnn.native.libmxplan_cudnn_planner"
NO_DRIVER = "tvm_mxplan.byoc.cudnn.no_driver.libmxplan_no_driver"
CUDA_HEADERS = (
    # distribution, a header of it
    ("nvidia-cudnn-frontend", "cudnn_frontend.h"),
    ("nvidia-cudnn-cu13", "include/cudnn.h"),
    ("nvidia-cuda-runtime", "include/cuda_runtime_api.h"),
)
# Folders of the libraries' sources, which the sources' includes are relative to.
SOURCES = {
    RUNTIME: Path("byoc/runtime"),
    PLANNER: Path("tvm_mxplan/core/allocation/native"),
    CUDNN: Path("byoc/cudnn/native"),
    NO_DRIVER: Path("byoc/cudnn/no_driver"),
}
OBJECTS = Path("build/objects")
# From <prefix>/lib/pythonX.Y/site-packages/tvm_mxplan/byoc/runtime: oneDNN's library and tvm-ffi's.
RPATHS = ("$ORIGIN/../../../../..", "$ORIGIN/../../../tvm_ffi/lib")
FLAGS = (
    "-std=c++17",
    "-O2",
    "-g0",
    "-fPIC",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-MMD",
)


@dataclass(frozen=True)
class Libraries:
    """Flags that a shared library of ours is compiled and linked with.

    Attributes
    ----------
    compile, link : further arguments of the compiler, and of the linker behind the objects.
    includes : folders of other distributions' headers, which pip installs at another place for each build.
    versions : of those distributions; their headers are not among the compiler's notes.
    """

    compile: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()
    versions: tuple[str, ...] = ()


def distribution_file(distribution: str, name: str) -> Path:
    """A file that an installed distribution brought, by the end of its path."""
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        raise SystemExit(f"{distribution} is needed to build the runtime; install it") from None
    for file in files:
        if file.as_posix().endswith("/" + name):
            return Path(os.path.normpath(file.locate()))
    raise SystemExit(f"{distribution} is installed without {name}")


def tvm_ffi_folder() -> Path:
    """Folder of the tvm_ffi package, without importing it."""
    spec = importlib.util.find_spec("tvm_ffi")
    if spec is None or spec.origin is None:
        raise SystemExit("apache-tvm-ffi is needed to build the runtime; install it")
    return Path(spec.origin).parent


def is_stale(target: Path) -> bool:
    """Whether an object is older than something it was made of (as the compiler noted beside it)."""
    notes = target.with_suffix(".d")
    if not target.exists() or not notes.exists():
        return True
    made = target.stat().st_mtime
    _, _, prerequisites = notes.read_text().replace("\\\n", " ").partition(":")
    paths = [Path(name) for name in prerequisites.split()]
    return any(not path.exists() or path.stat().st_mtime > made for path in [*paths, Path(__file__)])


def runtime_libraries() -> Libraries:
    """The runtime's: OpenMP, oneDNN and tvm-ffi."""
    ffi = tvm_ffi_folder()
    header = distribution_file("onednn-devel-cpu-gomp", "include/oneapi/dnnl/dnnl.hpp")
    onednn = distribution_file("onednn-cpu-gomp", "libdnnl.so.3")
    return Libraries(
        compile=("-fopenmp",),
        link=(
            "-fopenmp",
            str(onednn),
            f"-L{ffi / 'lib'}",
            "-ltvm_ffi",
            *(f"-Wl,-rpath,{path}" for path in RPATHS),
        ),
        includes=(header.parents[2], ffi / "include"),
        versions=tuple(map(importlib.metadata.version, ("apache-tvm-ffi", "onednn-devel-cpu-gomp"))),
    )


def has_cuda_headers() -> bool:
    """Whether the extra ``cuda`` is installed where this is built: all that makes plans for GPUs needs it."""
    try:
        return all(importlib.metadata.version(distribution) for distribution, _ in CUDA_HEADERS)
    except importlib.metadata.PackageNotFoundError:
        return False


def cudnn_libraries() -> Libraries:
    """Those of cuDNN's planner: headers alone, cuDNN is loaded when it runs."""
    folders = [distribution_file(*header).parent for header in CUDA_HEADERS]
    return Libraries(
        compile=(
            "-DNV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING",
            f"-iquote{SOURCES[RUNTIME]}",
            *(f"-isystem{folder}" for folder in folders),
        ),
        link=("-ldl",),
        versions=tuple(importlib.metadata.version(distribution) for distribution, _ in CUDA_HEADERS),
    )


def no_driver_libraries() -> Libraries:
    """Those of the driver's stand-in, which has the name that cuDNN looks for."""
    return Libraries(link=("-Wl,-soname,libcuda.so.1",))


class BuildLibraries(build_ext):
    """Compiles and links shared libraries by calling the compiler."""

    def get_ext_filename(self, fullname: str) -> str:
        """A plain shared library, not a Python module: no ABI suffix."""
        return str(Path(*fullname.split("."))) + ".so"

    def build_extension(self, ext: Extension) -> None:
        needs = {RUNTIME: runtime_libraries, CUDNN: cudnn_libraries, NO_DRIVER: no_driver_libraries}
        needed = needs[ext.name]() if ext.name in needs else Libraries()
        objects = self._compile(sorted(map(Path, ext.sources)), SOURCES[ext.name], needed)
        output = Path(self.get_ext_fullpath(ext.name))
        output.parent.mkdir(parents=True, exist_ok=True)
        partial = output.with_suffix(f".{os.getpid()}")  # a running process may have the old one mapped
        linker = [*_compiler(), "-shared", *map(str, objects), *needed.link, "-Wl,--no-undefined"]
        subprocess.run([*linker, "-o", str(partial)], check=True)
        os.replace(partial, output)

    def _compile(self, sources: list[Path], root: Path, needed: Libraries) -> list[Path]:
        """Object files of ``sources`` below ``root``, made where they are missing or old."""
        command = [*_compiler(), *FLAGS, f"-iquote{root}", *needed.compile, "-c"]
        folder = OBJECTS / "-".join(root.parts)
        folder.mkdir(parents=True, exist_ok=True)
        settings = folder / "settings"
        wanted = " ".join([*command, *needed.versions, _compiler_version()])
        command += [f"-isystem{path}" for path in needed.includes]
        unchanged = settings.exists() and settings.read_text() == wanted
        objects = [folder / source.relative_to(root).with_suffix(".o") for source in sources]

        def compile_one(source: Path, target: Path) -> None:
            if not unchanged or is_stale(target):
                print(f"compiling {source}", flush=True)
                target.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run([*command, str(source), "-o", str(target)], check=True)

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            list(pool.map(compile_one, sources, objects))
        settings.write_text(wanted)
        return objects


def _compiler() -> list[str]:
    """The compiler, and the flags that the environment adds wherever it is called."""
    extra = os.environ.get("MXPLAN_CXXFLAGS", "").split()
    return [os.environ.get("MXPLAN_CXX", "g++"), *extra]


def _compiler_version() -> str:
    answer = subprocess.run([*_compiler(), "-dumpfullversion"], check=True, capture_output=True, text=True)
    return answer.stdout.strip()


setup(
    ext_modules=[
        Extension(name, sorted(map(str, folder.rglob("*.cc"))))
        for name, folder in SOURCES.items()
        if name not in (CUDNN, NO_DRIVER) or has_cuda_headers()
    ],
    cmdclass={"build_ext": BuildLibraries},
)
