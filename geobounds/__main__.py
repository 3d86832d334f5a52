"""``python -m geobounds`` is the ``geobounds`` command."""

import sys

from geobounds.cli import main

sys.exit(main())
