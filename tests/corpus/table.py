"""docs/ttgir-corpus.md from the results of full.py: python tests/corpus/table.py OUT.md RESULTS.json [RESULTS.json...]."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

HEAD = """# Corpus of Triton IR

Made by `tests/corpus/full`; do not edit. Real kernels of pip packages (nobody here wrote them; ids beginning with `ours.`
are this repository's), each compiled by Triton itself. For every kernel and compute capability six dumps are read:
TTIR and TTGIR, each as Triton prints it, without line info, and as `str_nodebug()`. A dump counts as
- **printed** when `hebe ttgir print` gives its bytes back, **from structure** when `--structural` does too;
- **same PTX** when the structural print of the TTGIR, given back to Triton, compiles to the PTX that the dump compiles to.

**read and print / compile**: what reading and printing the TTGIR with locations took inside `hebe`, by what Triton's own
compile of the kernel to a cubin took on the same machine.
"""


def main() -> int:
    out, *paths = map(Path, sys.argv[1:])
    results = [json.loads(path.read_text()) for path in paths]
    out.write_text("\n".join([HEAD, *(_summary(one) for one in results), *(_table(one) for one in results[:1]),
                              *(_failures(one) for one in results)]) + "\n")
    return 0


FAILURES = {"not_printed": "print", "not_structural": "structure", "other_ptx": "PTX", "not_remade": "made anew",
            "not_understood": "understood"}


def _summary(result: dict[str, Any]) -> str:
    lines = [f"## Triton {result['triton']}", "",
             f"{', '.join(f'{name} {version}' for name, version in result['packages'].items())}; torch {result['torch']}; "
             f"Python {result['python']}; {result['machine']}. {result['functions']} kernels in the list.", "",
             "| | entries compiled | kernels | dumps | MB | printed | from structure | same PTX | PTX after all is made anew | understood | read and print / compile "
             "(median, largest) |", "|---|---|---|---|---|---|---|---|---|---|---|"]
    for arch in result["archs"]:
        records = [record for record in result["records"] if record["arch"] == arch]
        dumps, refed = sum(r["dumps"] for r in records), sum(r["refed"] for r in records)
        ratios = [r["hebe_seconds"] / r["triton_seconds"] for r in records if r["hebe_seconds"] is not None]
        ratio = f"{statistics.median(ratios):.4f}, {max(ratios):.4f}" if ratios else "–"
        failed = {name: sum(len(r[name]) for r in records) for name in FAILURES}
        lines.append(f"| sm_{arch} | {len(records)} | {len({r['function'] for r in records})} | {dumps} | "
                     f"{sum(r['bytes'] for r in records) / 1e6:.1f} | {dumps - failed['not_printed']} | "
                     f"{dumps - failed['not_structural']} | {refed - failed['other_ptx']} of {refed} | "
                     f"{len(records) - failed['not_remade']} | {len(records) - failed['not_understood']} | {ratio} |")
    kinds: dict[str, list[int]] = {}
    for record in result["records"]:
        for name, count in record["operations"].items():
            kinds.setdefault(name, [0, 0])
            kinds[name][0] += 1
            kinds[name][1] += count
    listed = ", ".join(f"{name} {files}" for name, (files, _) in sorted(kinds.items(), key=lambda item: (-item[1][0], item[0])))
    lines += ["", f"{len(kinds)} operations, each with the number of kernels' compiles in whose IR it is: {listed}.", ""]
    return "\n".join(lines)


def _table(result: dict[str, Any]) -> str:
    by_id: dict[str, dict[int, Any]] = {}
    for record in result["records"]:
        by_id.setdefault(record["id"], {})[record["arch"]] = record
    archs = result["archs"]
    lines = [f"## Entries, Triton {result['triton']}", "",
             "Each column: ok or what failed, compile seconds, read and print / compile.", "",
             "| entry | " + " | ".join(f"sm_{arch}" for arch in archs) + " |", "|---|" + "---|" * len(archs)]
    lines += [f"| {name} | " + " | ".join(_cell(found.get(arch)) for arch in archs) + " |"
              for name, found in sorted(by_id.items())]
    return "\n".join(lines) + "\n"


def _cell(record: dict[str, Any] | None) -> str:
    if record is None:
        return ""
    failed = [label for label, name in ((label, name) for name, label in FAILURES.items())
              if record[name]]
    ratio = "–" if record["hebe_seconds"] is None else f"{record['hebe_seconds'] / record['triton_seconds']:.4f}"
    return f"{'ok' if not failed else ' and '.join(failed) + ' FAILED'}, {record['triton_seconds']:.2f}, {ratio}"


def _failures(result: dict[str, Any]) -> str:
    failed = [text for record in result["records"] for name in FAILURES
              for text in record[name]] + result["not_checked"]
    lines = [f"## Not compiled or failed, Triton {result['triton']}", ""]
    lines += [f"- {name}: {_line(reason)}" for name, reason in sorted(result["not_compiled"].items())]
    lines += [f"- FAILED {_line(text)}" for text in failed]
    return "\n".join(lines if len(lines) > 2 else [*lines, "None."]) + "\n"


def _line(text: str) -> str:
    return " ".join(text.split())[:220].replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
