"""The nouns: frozen records of what reachnode talks about. Nothing is decided here."""
