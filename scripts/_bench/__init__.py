"""The benchmark harness: engines in their own processes, interleaved round by round.

engines     how each engine compiles, loads and runs a model
worker      the process that holds one engine, and its protocol
process     the parent's end of that process: requests, timeouts, cleanup
files       the files that those processes share
schedule    one configuration (model, batch, threads): check, then time in rounds
statistics  medians, spreads, ratios, geometric means
table       the results as markdown
models      the command line of scripts/bench models

In one process, variants of our own:

variants      one model under several options, taking turns; choices and layouts are command lines on it
convolutions  algorithms of convolutions, layer by layer
machine       what the machine can do now; profile: the time of every step; roofline: what bounds a model

allocation        the allocation solver on problems known to have a plan; nothing is compiled
derived_problems  such problems, made from solved ones or at random

accuracy      every engine against float64
precision     networks in bf16 beside float32
documents     runs them all and writes their tables into docs/performance.md
"""
