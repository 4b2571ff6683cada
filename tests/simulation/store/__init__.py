"""A database that any number of replicas share, in memory: no time, no chance and no order but what it is given."""
