"""Helpers for tests, demonstrations and benchmarks, shipped with the package as `tvm.testing` is."""
