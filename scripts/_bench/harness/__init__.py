"""Engines in their own processes, asked in turns, and what they answered as records and tables."""
