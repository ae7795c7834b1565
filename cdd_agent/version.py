"""The version of cdd. This module imports nothing, which keeps `cdd --version` fast."""

VERSION = "0.2.0"
