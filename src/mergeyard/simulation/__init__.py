"""Runs the production engine on simulated time: what-if replays of a queue's past, and forecasts of its future.

- `engine_driver`: drives `decide` with a light Git host whose runs take a given time and pass or fail by a given rule
- `history`: what happened in a period, read from stored submissions and runs
- `outcomes`: which pull requests would fail, alone or together, and how long each run takes, inferred from the history
- `replay`, `whatif`: replays a period with the settings it had and with others, and compares both
- `report`: percentiles, and how reliable the comparison is
- `forecast`: when waiting pull requests will merge (p50 and p90 of many simulated courses)

`whatif` and `forecast` run in processes of their own (`python -m mergeyard.simulation.whatif`), so that they never
delay a decision.
"""
