"""What queues did in a time, counted: for everybody who asks how they do."""
