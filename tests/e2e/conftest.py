"""What tests of several folders share stands beside these folders."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
