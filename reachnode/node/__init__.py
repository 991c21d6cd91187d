"""One node: every service wired once, then one loop for each file. Nothing is decided here."""
