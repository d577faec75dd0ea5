"""Hebe: how much energy a GPU kernel costs, and how sure that is.

This package depends on neither torch nor Triton. `hebe.case` is what the author of a case imports;
`python -m hebe.worker` is the compile worker that the `hebe` program starts.
"""

__version__ = "0.1.0"
