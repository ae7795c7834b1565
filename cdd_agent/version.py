"""The version of this program, alone in its module so that `cdd --version` imports
nothing else.
"""

VERSION = "0.2.0"
