"""Does what the facts say is to be done outside, one task per room, and tells what happened."""
