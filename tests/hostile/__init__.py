"""What the server is sent by those who mean it ill."""
