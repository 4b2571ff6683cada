"""What is sent goes only where it may, and secrets stay secret."""
