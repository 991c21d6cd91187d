"""Stands in the way of httptools where this directory is first on the path, as if missing."""

raise ModuleNotFoundError("httptools is kept out", name="httptools")
