"""`python -m hebe` is `hebe`."""

from .program import main

main()
