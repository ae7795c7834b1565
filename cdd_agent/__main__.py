"""`python -m cdd_agent` is `cdd`."""

import sys

from cdd_agent.cli.main import main

sys.exit(main())
