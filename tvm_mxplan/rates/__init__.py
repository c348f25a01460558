"""What the machine that is compiled for can do: measured once, kept, or given by hand."""
