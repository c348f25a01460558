"""Every kernel of oneDNN, and every one of our own, against float64: the parts of scripts/sweep_kernels.

    problems/*.txt -- grammar.py --> problem lines
    problem line   -- subjects.py --> a step: attributes, operands, shapes
    step           -- chains.py, numbers.py --> post-ops, numbers whose sums are exact
                   -- expected.py --> its result in float64
                   -- execution.py --> the step run by every implementation, in several layouts
    results        -- tally.py --> counts, and the smallest failing case of each group

``worker.py`` does that for one instruction set in a process of its own; ``sweep.py`` is the command line.
"""
