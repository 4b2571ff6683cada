"""The values of a merge queue: frozen structs without I/O and without logic beyond lookups. Imports only msgspec.

Start with `queue` (the value that `engine.decide` transforms) and `states` (states, transitions and reasons). Events
are what the engine receives (`events`), tasks are what must be done outside (`tasks`), the journal is what is announced
(`journal`). `sorted_map` is the persistent map that makes copies of large queues cheap.
"""
