"""Words that tool answers promise to other programs: they are a format, and do not
change.
"""

NOT_ALLOWED = "Command '{}' is not allowed"
NOT_FOUND = "Error: Command not found: {}"
TIMED_OUT = "Command timed out after {} seconds"
NOT_STARTED = "Error executing command: "
