"""Tuning by measurement: records of what was timed, a budget, and whole plans compared."""
