"""The source tree: files, the modules that they are, and the tests that mirror them."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"tvm_mxplan": "tvm_mxplan", "passes": "tvm_mxplan.passes", "byoc": "tvm_mxplan.byoc"}

# All of the core but the allocation, which has its own.
_CORE = (
    "tests/core/test_*.py",
    "tests/core/decisions/test_*.py",
    "tests/core/program/test_*.py",
    "tests/core/layout/test_*.py",
)

# Tests of operators as oneDNN runs them.
_ONEDNN_OPERATORS = (
    "tests/operators/elementwise/test_binary.py",
    "tests/operators/layers/test_convolution.py",
    "tests/operators/movement/test_data_movement.py",
    "tests/operators/layers/test_deconvolution.py",
    "tests/operators/elementwise/test_eltwise.py",
    "tests/operators/graphs/test_fallbacks.py",
    "tests/operators/graphs/test_hidden_forms.py",
    "tests/operators/layers/test_matmul.py",
    "tests/operators/layers/test_normalization.py",
    "tests/operators/layers/test_pooling.py",
    "tests/operators/elementwise/test_post_ops.py",
    "tests/operators/movement/test_slices.py",
)

# Tests of a folder that are not found by name: what holds for every file in it, or for one file.  The first
# pattern that fits says which, beside the tests of the file's own name.
TESTS: dict[str, tuple[str, ...]] = {
    "tvm_mxplan/core/allocation/csvio.py": ("tests/core/allocation/test_allocation_csv.py",),
    "tvm_mxplan/core/allocation/*": (
        "tests/core/allocation/test_allocation_problem.py",
        "tests/core/allocation/test_allocation_search.py",
        "tests/core/allocation/test_allocation_solver.py",
        "tests/core/allocation/test_allocation_validator.py",
    ),
    "tvm_mxplan/core/solve.py": ("tests/core/allocation/test_allocation_csv.py",),
    "tvm_mxplan/core/ordering/*": ("tests/core/test_ordering.py", "tests/passes/memory/test_order_steps.py"),
    "tvm_mxplan/core/program/program.py": (*_CORE, "tests/byoc/onednn/rewrites/test_fusion.py"),
    "tvm_mxplan/core/program/program_rules.py": (*_CORE, "tests/test_step_kinds.py"),
    "tvm_mxplan/core/program/kinds/*.py": (*_CORE, "tests/test_step_kinds.py"),
    "tvm_mxplan/core/program/attributes.py": (
        *_CORE,
        "tests/byoc/onednn/rewrites/test_fusion.py",
        "tests/opcheck/test_batch_statistics.py",
        "tests/test_step_kinds.py",
    ),
    "tvm_mxplan/core/program/post_ops.py": (*_CORE, "tests/byoc/onednn/rewrites/test_fusion.py"),
    "tvm_mxplan/core/program/builder.py": (*_CORE, "tests/byoc/onednn/rewrites/test_fusion.py"),
    "tvm_mxplan/core/program/decided.py": ("tests/passes/layout/test_decided.py",),
    "tvm_mxplan/core/decisions/choices.py": (
        "tests/core/decisions/test_choices.py",
        "tests/cache/test_choices_file.py",
    ),
    "tvm_mxplan/core/layout/layout_decision.py": (*_CORE, "tests/cache/test_choices_file.py"),
    "tvm_mxplan/core/program/dims.py": (*_CORE, "tests/passes/storage/test_storage_rewrite.py"),
    "tvm_mxplan/core/program/specialize.py": (*_CORE, "tests/passes/layout/test_queries.py"),
    "tvm_mxplan/core/program/graph.py": (*_CORE, "tests/byoc/onednn/rewrites/test_*.py"),
    "tvm_mxplan/core/program/operands.py": (*_CORE, "tests/passes/layout/test_apply_layouts.py"),
    "tvm_mxplan/core/program/renumber.py": (*_CORE, "tests/passes/memory/test_order_steps.py"),
    "tvm_mxplan/core/*": _CORE,
    "passes/canonicalize/*": (
        "tests/passes/canonicalize/test_recover_operators.py",
        "tests/passes/canonicalize/test_simplify_inference.py",
        "tests/passes/canonicalize/test_simplify_batch_norms.py",
        "tests/passes/canonicalize/test_fold_constants.py",
    ),
    "passes/dispatch/c*.py": (
        "tests/passes/dispatch/test_choose_algorithms.py",
        "tests/passes/dispatch/test_convolutions.py",
    ),
    "passes/dispatch/*": (
        "tests/passes/dispatch/test_dispatch_operators.py",
        "tests/passes/dispatch/test_weigh_candidates.py",
    ),
    "passes/kernels/*": ("tests/passes/kernels/test_serial_small_kernels.py",),
    "passes/layout/apply.py": ("tests/passes/layout/test_apply_layouts.py",),
    "passes/borders/*state*.py": (
        "tests/core/decisions/test_stored_state.py",
        "tests/training/test_blocked_weights.py",
    ),
    "passes/borders/*": ("tests/passes/borders/test_*.py",),
    "passes/layout/greedy.py": ("tests/passes/layout/test_greedy_layouts.py",),
    "passes/costs/*": ("tests/passes/layout/test_measure.py", "tests/passes/costs/test_movement_costs.py"),
    "byoc/onednn/costs/*": ("tests/byoc/onednn/costs/test_*.py", "tests/byoc/onednn/test_*.py"),
    "passes/layout/infer_layouts.py": (
        "tests/passes/layout/test_replayed_layouts.py",
        "tests/passes/layout/test_apply_layouts.py",
        "tests/passes/layout/test_greedy_layouts.py",
    ),
    "passes/layout/together.py": ("tests/training/test_blocked_weights.py",),
    "passes/layout/stored_weights.py": ("tests/training/test_blocked_weights.py",),
    "passes/layout/overrides.py": ("tests/api/test_layer_options.py",),
    "passes/layout/*": (
        "tests/passes/layout/test_apply_layouts.py",
        "tests/passes/layout/test_choose.py",
        "tests/passes/layout/test_greedy_layouts.py",
        "tests/passes/layout/test_queries.py",
        "tests/passes/dispatch/test_weigh_candidates.py",
    ),
    "passes/storage/storage_check.py": (
        "tests/passes/storage/test_storage_*.py",
        "tests/passes/region/test_lend_arenas.py",
        "tests/passes/storage/regions/test_arena_bindings.py",
    ),
    "passes/storage/storage_*.py": (
        "tests/passes/storage/test_storage_*.py",
        "tests/passes/region/test_lend_arenas.py",
    ),
    "passes/storage/stock_plan.py": (
        "tests/passes/storage/test_storage_rewrite.py",
        "tests/report/test_memory_report.py",
    ),
    "passes/storage/relax_*.py": (
        "tests/passes/storage/test_storage_*.py",
        "tests/passes/storage/test_order_bindings.py",
    ),
    "passes/storage/region_calls.py": (
        "tests/passes/storage/regions/test_branches.py",
        "tests/passes/region/test_lend_arenas.py",
    ),
    "passes/memory/plan_memory.py": (
        "tests/passes/memory/test_order_steps.py",
        "tests/passes/memory/test_view_slices.py",
    ),
    "passes/storage/tvm_pipeline.py": (
        "tests/passes/storage/test_storage_rewrite.py",
        "tests/passes/storage/test_order_bindings.py",
    ),
    "passes/memory/elide_concats.py": (
        "tests/passes/memory/test_view_slices.py",
        "tests/passes/layout/test_random_programs.py",
    ),
    "passes/memory/*": (
        "tests/passes/memory/test_view_slices.py",
        "tests/passes/memory/test_plan_memory.py",
        "tests/passes/storage/test_storage_published_bugs.py",
    ),
    "passes/region/dissolve.py": (
        "tests/passes/borders/test_propagate_layouts.py",
        "tests/passes/region/test_partition_regions.py",
    ),
    "passes/region/emit_modules.py": ("tests/passes/region/test_lend_arenas.py",),
    "passes/region/annotate.py": ("tests/passes/region/test_attached.py",),
    "passes/region/build_programs.py": (
        "tests/passes/region/test_attached.py",
        "tests/byoc/onednn/test_patterns.py",
    ),
    "passes/region/*": (
        "tests/passes/region/test_partition_regions.py",
        "tests/passes/region/test_outline_blocks.py",
        "tests/passes/region/test_attached.py",
    ),
    "passes/annotations.py": (
        "tests/passes/region/test_attached.py",
        "tests/passes/devices/test_choose_devices.py",
        "tests/passes/dispatch/test_dispatch_operators.py",
    ),
    "passes/*": (
        "tests/passes/dispatch/test_dispatch_operators.py",
        "tests/passes/borders/test_propagate_layouts.py",
    ),
    "byoc/spelled_out/activations.py": (
        "tests/operators/elementwise/test_eltwise.py",
        "tests/byoc/onednn/test_patterns.py",
        "tests/operators/graphs/test_hidden_forms.py",
        "tests/operators/elementwise/test_post_ops.py",
    ),
    "byoc/onednn/families/codegen_elementwise.py": (
        "tests/byoc/onednn/test_codegen.py",
        "tests/byoc/onednn/test_patterns.py",
        "tests/operators/elementwise/test_binary.py",
        "tests/operators/elementwise/test_eltwise.py",
        "tests/operators/graphs/test_hidden_forms.py",
    ),
    "byoc/onednn/families/recurrent.py": (
        "tests/operators/layers/test_recurrent_layers.py",
        "tests/byoc/onednn/test_patterns.py",
    ),
    "byoc/onednn/codegen.py": (
        "tests/byoc/onednn/families/test_translated_operators.py",
        *_ONEDNN_OPERATORS,
    ),
    "byoc/onednn/rewrites/fusion.py": (
        "tests/byoc/onednn/rewrites/test_fusion.py",
        "tests/operators/elementwise/test_post_ops.py",
    ),
    "byoc/rewrites/graph.py": (
        "tests/byoc/onednn/rewrites/test_fusion.py",
        "tests/byoc/onednn/rewrites/test_folding.py",
    ),
    "byoc/onednn/broadcasting.py": (
        "tests/byoc/onednn/rewrites/test_fusion.py",
        "tests/operators/elementwise/test_binary.py",
    ),
    "byoc/onednn/rewrites/transposes.py": ("tests/byoc/onednn/rewrites/test_transposes.py",),
    "byoc/onednn/rewrites/depthwise.py": ("tests/byoc/onednn/rewrites/test_depthwise.py",),
    "byoc/onednn/rewrites/flattened.py": ("tests/byoc/onednn/rewrites/test_flattened.py",),
    "byoc/onednn/rewrites/folding.py": ("tests/byoc/onednn/rewrites/test_folding.py",),
    "byoc/onednn/library.py": (
        "tests/byoc/runtime/primitives/test_caches.py",
        "tests/byoc/runtime/primitives/test_preferred.py",
        "tests/byoc/runtime/test_runtime.py",
        "tests/execution/test_determinism.py",
        "tests/export/test_shared_library.py",
    ),
    "byoc/onednn/backend.py": (
        "tests/byoc/onednn/test_layouts.py",
        "tests/byoc/onednn/rewrites/test_fusion.py",
        "tests/export/test_weights_in_libraries.py",
        "tests/operators/elementwise/test_eltwise.py",
    ),
    "byoc/onednn/patterns.py": (
        "tests/operators/graphs/test_hidden_forms.py",
        "tests/operators/graphs/test_fallbacks.py",
    ),
    "byoc/onednn/checks.py": (
        "tests/operators/graphs/test_fallbacks.py",
        "tests/operators/layers/test_pooling.py",
    ),
    "byoc/onednn/layouts.py": ("tests/byoc/onednn/test_layouts.py",),
    "byoc/composite.py": ("tests/byoc/onednn/test_codegen.py", "tests/byoc/onednn/test_patterns.py"),
    "byoc/translate.py": ("tests/byoc/onednn/test_codegen.py", "tests/byoc/onednn/test_patterns.py"),
    "byoc/onednn/*": _ONEDNN_OPERATORS,
    "byoc/*": ("tests/passes/dispatch/test_dispatch_operators.py",),
    "tvm_mxplan/cache/choices_file.py": ("tests/byoc/cudnn/plans/test_cudnn_plans_file.py",),
    "tvm_mxplan/cache/plans_file.py": ("tests/byoc/cudnn/plans/test_cudnn_plans_file.py",),
    "tvm_mxplan/cache/maintenance.py": ("tests/tvmc/test_tvmc_cache.py",),
    "tvm_mxplan/cache/*": (
        "tests/cache/test_store.py",
        "tests/cache/test_container.py",
        "tests/cache/test_compile_cache.py",
        "tests/cache/test_choices_file.py",
    ),
    "tvm_mxplan/opcheck/*": ("tests/opcheck/test_*.py",),
    "tvm_mxplan/tuning/*": ("tests/tuning/test_*.py",),
}


def sources(patterns: Iterable[str]) -> list[str]:
    """Python files of the packages that fit one of the patterns; a folder stands for all in it."""
    found = []
    for top in PACKAGES:
        for path in sorted((ROOT / top).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if any(fnmatch.fnmatch(name, p) or name.startswith(f"{p.rstrip('/')}/") for p in patterns):
                found.append(name)
    return found


def module_of(source: str) -> str:
    """The name by which a file is imported."""
    top, *parts = source.removesuffix(".py").split("/")
    return ".".join([PACKAGES[top], *(part for part in parts if part != "__init__")])


def tests_of(source: str, without: Sequence[str] = ()) -> list[str]:
    """Test files that mirror a source file; none that ``without`` names.

    Those of its own name first, then those that the table has, then all others of the nearest folder that
    mirrors its own or one above it.
    """
    patterns = _named(source)
    patterns += next((tests for pattern, tests in TESTS.items() if fnmatch.fnmatch(source, pattern)), ())
    folders = (f"{place}/test_*.py" for place in _places(source))
    patterns += next(([tests] for tests in folders if any(ROOT.glob(tests))), [])
    return _found(patterns, without)


def named_tests_of(source: str, without: Sequence[str] = ()) -> list[str]:
    """Test files of a source file's own name; none that ``without`` names."""
    return _found(_named(source), without)


def _places(source: str) -> list[str]:
    """Folders of tests that may mirror a source file, the nearest first."""
    folders = source.split("/")[:-1]
    below = folders[1:] if folders[0] == "tvm_mxplan" else folders
    return ["/".join(["tests", *below[:depth]]) for depth in range(len(below), -1, -1)]


def _named(source: str) -> list[str]:
    """Patterns of test files of a source file's own name."""
    stem, room = Path(source).stem, source.split("/")[-2]
    names = (f"test_{stem}.py", f"test_{room}_{stem}.py", f"test_{stem}_{room}.py")
    if stem == "__init__":
        names = (f"test_{room}.py",)
    places = _places(source)
    return [f"{place}/{name}" for place in [places[0], f"{places[0]}/*", *places[1:]] for name in names]


def _found(patterns: Iterable[str], without: Sequence[str]) -> list[str]:
    found = [path.relative_to(ROOT).as_posix() for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return [test for test in dict.fromkeys(found) if not any(fnmatch.fnmatch(test, out) for out in without)]
