"""``python -m tvm_mxplan.tvmc``."""

import sys

from .main import main

sys.exit(main())
