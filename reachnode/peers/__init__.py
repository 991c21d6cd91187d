"""Agreeing and gossiping with the other nodes of the cluster."""
