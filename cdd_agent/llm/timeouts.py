"""How long the adapters wait for a server, in seconds."""

CONNECT_TIMEOUT = 30.0
"""Until the server takes the call."""
SILENCE_TIMEOUT = 300.0
"""Without a byte, before the first piece of the answer or between two."""
