"""What clients connect to: the listener, the paths and their handlers."""
