"""Decisions of a compilation as plain data: what was chosen, why, what is kept and what is told."""
