"""The compile worker: the only part of Hebe that touches Triton.

`python -m hebe.worker` reads one JSON request a line on stdin and writes one JSON answer a line on stdout; see
`protocol`. It stays alive between requests, because the first compile of a process is slow (Triton hashes itself).
"""
