"""Benchmarks of the compiler: its time, its plans, its reports and its verification."""
