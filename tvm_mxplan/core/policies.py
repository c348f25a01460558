"""The names of what a user may ask for: how layouts are chosen, and algorithms of convolutions."""

from __future__ import annotations

from typing import Literal, TypeAlias

ConvolutionAlgorithm: TypeAlias = Literal["direct", "winograd_f2", "winograd_f4"]
CONVOLUTION_ALGORITHMS: tuple[ConvolutionAlgorithm, ...] = ("direct", "winograd_f2", "winograd_f4")

Policy: TypeAlias = Literal["cost", "any", "channels_last", "blocked", "plain", "naive"]
POLICIES: tuple[Policy, ...] = ("cost", "any", "channels_last", "blocked", "plain", "naive")

Rule: TypeAlias = Literal["cost", "direct", "winograd_f2", "winograd_f4"]
RULES: tuple[Rule, ...] = ("cost", *CONVOLUTION_ALGORITHMS)
