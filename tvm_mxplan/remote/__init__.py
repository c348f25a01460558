"""Another machine behind TVM's RPC: what a server answers, and how it is asked."""
