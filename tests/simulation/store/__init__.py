"""An in-memory database shared by any number of replicas, fully deterministic: time and order come from the caller."""
