"""The live conformance kit: it runs one story on a real Git host and on our fake of it, and compares every answer.

    make live-github ARGS="--owner acme --token-file token"

A story is a list of steps. A step acts on a repository of its own, with a real Mergeyard server on this machine, and
yields what it observed. `tests/live/report.py` compares the observations of the Git host with those of the fake.
"""
