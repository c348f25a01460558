"""Whole networks on an NVIDIA GPU, all engines in one process.

cases     a model at a batch in a type of numbers, of the zoo or of a file, and its inputs
engines   how each engine prepares a case and answers it
answers   the right answer: float64 on the GPU where PyTorch is, else on the CPU
timing    answers judged, then bursts of calls in turns
kernels   the GPU's time by kernels
starts    fresh processes up to their first answers
rows      the table
main      the command line
"""
