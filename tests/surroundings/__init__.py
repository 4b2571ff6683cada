"""What the real server shows and does when its surroundings fail, and that it goes on by itself when they are back."""
