"""The benchmark harness: engines in their own processes, interleaved round by round.

In ``harness``:

engines     how each engine compiles, loads and runs a model
worker      the process that holds one engine, and its protocol
process     the parent's end of that process: requests, timeouts, cleanup
files       the files that those processes share
schedule    one configuration (model, batch, threads): check, then time in rounds
statistics  medians, spreads, ratios, geometric means
table       the results as markdown
variants    one model under several options of ours, in one process and taking turns

Rooms beside it:

whole       whole networks: engines, precisions, options, layout policies; every engine against float64
gpu         whole networks on a GPU, all engines in one process
steps       single operators and steps, the machine's rates, and what bounds a model
compiler    compile times, plans before and after a change, coverage, verification
memory      memory plans, and the allocation solver on problems known to have a plan
caches      what the caches save
inputs      networks beside those of the zoo

documents   runs them all and writes their tables into docs
"""
