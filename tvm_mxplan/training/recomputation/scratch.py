"""``with_scratch``: operations with the scratchpads that a compiled step has for them.

    arena of the step    mxplan_onednn_1.convolution_backward_data_2.scratchpad    3,613,952 bytes
    operations           the third ``mxplan.convolution_backward_data``: scratch 3,613,952

``NameOperators`` numbers operators of a kind in their order.  Where the pipeline has changed how many there
are, numbers and operations do not correspond, and the scratchpads of that kind are left out: the choice rests
on estimates, and its plan is looked at in the end.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace

from ...passes.costs.kept_times import kind_of
from ...report.report import Report
from .recompute import Traced

_NAME = re.compile(r"(?:.*\.)?(?P<kind>\w+?)_(?P<number>\d+)\.scratchpad")


def with_scratch(found: Traced, report: Report) -> Traced:
    """The operations, each with the bytes of its scratchpad in the step that the report is of."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for at, binding in enumerate(found.operations):
        places[kind_of(binding.value).rpartition(".")[2]].append(at)
    sizes: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for item in report.memory[-1].items:
        named = _NAME.fullmatch(item.name) if item.kind == "scratchpads" else None
        if named:
            sizes[named["kind"]][int(named["number"])] = item.nbytes
    operations = list(found.problem.operations)
    for kind, known in sizes.items():
        if max(known) < len(places[kind]):
            for number, nbytes in known.items():
                at = places[kind][number]
                operations[at] = replace(operations[at], scratch=nbytes)
    return replace(found, problem=replace(found.problem, operations=tuple(operations)))
