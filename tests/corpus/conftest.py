import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # this folder's modules import each other by name, in child processes too
