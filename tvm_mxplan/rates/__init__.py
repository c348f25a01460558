"""The rates of the machine that is compiled for: measured once, kept, or given by hand."""
