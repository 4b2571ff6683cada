"""What every kind of database must guarantee when it is transferred as a whole, or checked."""
