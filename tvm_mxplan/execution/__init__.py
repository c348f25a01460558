"""Running what was compiled: executable, virtual machine, calls, threads, caches of the process."""
