"""Makes `shell.svg` for the README: the demo, run in the shell up to its failing third step."""

import asyncio
from pathlib import Path

from cdd_agent.cli import opening_notices
from cdd_agent.demo.sample import SLUG, copy_sample
