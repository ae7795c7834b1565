"""`python -m cdd_agent` is `cdd`."""

import sys

from cdd_agent.cli import main

sys.exit(main())
