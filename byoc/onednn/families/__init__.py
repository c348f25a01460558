"""Families of operators with files of their own: patterns, checks and steps of each."""
