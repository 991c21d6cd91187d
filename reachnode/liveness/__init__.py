"""Who is alive: leases at the home, what other nodes say, probes, and the state they amount to.

Read `outlook.py` first: it joins the others and is what the loops above call. Nothing here is
replicated and nothing knows a clock; silence makes an instance suspect and never takes it away.
"""
