"""Compares merge queue policies by simulation: `python -m benchmarks.policy_race --help`.

`workload` generates a trace: changes that arrive at random, which of them are bad, and which conflict. `race` runs one
policy on one trace, `rounds` all policies on all seeds. A policy (`policies`, one module each) gets observations and
returns actions: start or stop a run, merge or fail a change. `report` computes the metrics relative to Oracle, which
knows all outcomes in advance; `plot` draws them.
"""
