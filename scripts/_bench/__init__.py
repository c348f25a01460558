"""The benchmark harness: engines in their own processes, interleaved round by round.

engines     how each engine compiles, loads and runs a model
worker      the process that holds one engine, and its protocol
process     the parent's end of that process: requests, timeouts, cleanup
files       the files that those processes share
schedule    one configuration (model, batch, threads): check, then time in rounds
statistics  medians, spreads, ratios, geometric means
table       the results as markdown
models      the command line of scripts/bench_models
"""
