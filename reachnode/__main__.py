"""`python -m reachnode`: the same as the command `reachnode`."""

import sys

from reachnode.cli.main import main

sys.exit(main())
