"""What an agent's client says as it works, through commands it runs at each event.

`spool` keeps an event on disk, and is all that a hook needs to load; `facts` makes facts of the
events, `drain` brings them into the ledger in their order.
"""
