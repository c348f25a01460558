"""Integers that stand for real numbers: what a model says of them, and the steps that compute with them."""
