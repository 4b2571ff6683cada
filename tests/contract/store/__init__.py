"""What every store must guarantee; tests for SQLite alone are in the modules that name it."""
