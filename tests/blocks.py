"""The blocked layout that oneDNN has code for on this processor: 16 channels with AVX-512, 8 without."""

from __future__ import annotations

from tvm_mxplan.byoc.onednn.backend import OneDNN

BLOCK = OneDNN().block
BLOCKED = f"aBcd{BLOCK}b"
LAYOUTS = ["abcd", "acdb", BLOCKED]
BLOCKED_NAME = f"nChw{BLOCK}c"
