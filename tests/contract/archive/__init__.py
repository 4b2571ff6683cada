"""What every kind of database must hold to when it is moved as a whole, or checked."""
