"""What every store must hold to; what only SQLite must is in the rooms that name it."""
