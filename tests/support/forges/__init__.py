"""Forges for tests: stateful worlds with real repositories behind real HTTP, and faults to switch on.

faults = Faults(app)                          # what goes wrong between the forge and us
with served(faults) as url: ...               # on loopback, in a thread
"""
