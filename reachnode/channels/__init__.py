"""Talking out: one module per way to reach an instance.

What is carried, when and to whom is decided below; here it is done, and what came of it is
told in a word.
"""
