"""What people deploy with: the files hold together, and know nothing that the code does not know."""
