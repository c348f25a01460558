"""One form for each idea, before anything is decided: see the text of each pass."""

from .attention import AttendCaches, RecoverAttention, RecoverRotary
from .fold_constants import FoldConstants
from .merge_axes import MergeAxes
from .multiply_einsums import MultiplyEinsums
from .name_symbols import NameSymbols
from .narrow_products import NarrowProducts
from .recover_operators import RecoverOperators
from .recover_rms_norms import RecoverRmsNorms
from .recover_scales import RecoverScales
from .simplify_inference import SimplifyInference
from .split_long_sums import SplitLongSums
from .widen_floats import WidenFloats

__all__ = [
    "AttendCaches",
    "FoldConstants",
    "MergeAxes",
    "MultiplyEinsums",
    "NameSymbols",
    "NarrowProducts",
    "RecoverAttention",
    "RecoverOperators",
    "RecoverRmsNorms",
    "RecoverRotary",
    "RecoverScales",
    "SimplifyInference",
    "SplitLongSums",
    "WidenFloats",
]
