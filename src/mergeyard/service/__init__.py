"""The use cases: it looks things up, lets the engine decide, saves, and has the work done."""
