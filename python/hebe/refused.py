"""How Hebe says no, as an exception. In: a refusal of the library, or of this package; out: `Refused`.

Invariant: a refusal has one code of docs/refusals.md, and nothing was written or recorded where it was raised.
"""

from __future__ import annotations

from collections.abc import Mapping

#: The exit code of each code that this package itself refuses with (docs/refusals.md).
_EXITS = {"bad_argument": 2, "case_failed": 2, "not_found": 2, "toolchain_unavailable": 3, "no_device": 3, "lease_held": 3,
          "meter_not_qualified": 3, "internal": 70}


_Plain = dict[str, object]


class Refused(RuntimeError):
    """Why something was not done: `code`, `what` (with the numbers), `where`, `next` (what to do), `not_written`, `exit`."""

    def __init__(self, code: str, what: str, where: str = "", next: str = "", not_written: str = "",
                 exit: int | None = None) -> None:
        self.code, self.what, self.where, self.next, self.not_written = code, what, where, next, not_written
        self.exit = _EXITS.get(code, 70) if exit is None else exit
        text = f"{code}: {what}"
        text += f" ({where})" if where else ""
        text += f"; not written: {not_written}" if not_written else ""
        super().__init__(text + (f"\n  next: {next}" if next else ""))

    def __reduce__(self) -> tuple[type[Refused], tuple[object, ...]]:
        return Refused, (self.code, self.what, self.where, self.next, self.not_written, self.exit)

    def dict(self) -> _Plain:
        """The refusal as `hebe --json` shows it."""
        return {"code": self.code, "what": self.what, "where": self.where, "next": self.next,
                "not_written": self.not_written, "exit": self.exit}


def refused_from(answer: Mapping[str, object]) -> Refused:
    """From the member "refused" of the library's answer."""
    text = {name: str(answer.get(name, "")) for name in ("code", "what", "where", "next", "not_written")}
    exit_code = answer.get("exit")
    return Refused(**text, exit=exit_code if isinstance(exit_code, int) else None)
