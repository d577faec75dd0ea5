"""How Hebe says no, as an exception. In: a refusal of the library, or of this package; out: `Refused`.

Invariant: a refusal has one code of docs/refusals.md, and nothing was written or recorded where it was raised. What the
library says in the program's words (`--pairs`) is told in those of the call that was made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

#: The exit code of each code that this package itself refuses with (docs/refusals.md).
_EXITS = {"bad_argument": 2, "case_failed": 2, "not_found": 2, "toolchain_unavailable": 3, "no_device": 3, "lease_held": 3,
          "meter_not_qualified": 3, "internal": 70}

_OF_ALL = {"--device": "device", "--data-root": "data_root", "--sim-fault": "faults", "--protocol-tier": "tier", "--pairs": "pairs"}
#: The program's options, and the members of a request, as the arguments of `measure` and those like it.
OF_CALLABLES = {**_OF_ALL, "--batch-seconds": "window", "--warm-up-seconds": "warm_up", "--energy-margin": "energy_margin",
                "--latency-margin": "time_margin", "window_s": "window", "warm_up_s": "warm_up", "idle_s": "idle",
                "energy_margin_percent": "energy_margin", "latency_margin_percent": "time_margin"}
#: The program's options as the arguments of `run` and `status`, and as the keys of a specification (docs/campaigns.md).
OF_CAMPAIGNS = {**_OF_ALL, "--batch-seconds": "window_s", "--warm-up-seconds": "warm_up_s",
                "--energy-margin": "energy_margin_percent", "--latency-margin": "latency_margin_percent"}

#: An option or member, and the value behind it where that is one of those that texts name.
_WORD = re.compile(r"(?<![\w./-])(--[a-z][a-z-]*|[a-z]+(?:_[a-z]+)+)(?![\w./-]*[\w/-])(?: (sim(?::\d+)?|[a-z]+-v\d+)\b)?")
#: hebe::to_text of src/core/result.cpp.
_TEXT = re.compile(r"refused \((\w+)\): (.*?)(?:\n  where: (.*?))?(?:\n  not written: (.*?))?(?:\n  next: (.*))?", re.DOTALL)

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


def in_words_of(names: Mapping[str, str], text: str) -> str:
    """`text` with the program's options by those names. What stands in backticks is a command, and stays."""
    def told(found: re.Match[str]) -> str:
        word, value = found.groups()
        if word not in names:
            return found.group()
        return names[word] if value is None else f'{names[word]}="{value}"'

    parts = text.split("`")
    return "`".join(part if at % 2 else _WORD.sub(told, part) for at, part in enumerate(parts))


def refused_from(answer: Mapping[str, object], names: Mapping[str, str] = OF_CAMPAIGNS) -> Refused:
    """From the member "refused" of the library's answer, in the words of the call that was refused."""
    text = {name: str(answer.get(name, "")) for name in ("code", "what", "where", "next", "not_written")}
    for name in ("what", "where", "next"):
        text[name] = in_words_of(names, text[name])
    exit_code = answer.get("exit")
    return Refused(**text, exit=exit_code if isinstance(exit_code, int) else None)


def refused_from_text(text: str, code: str, exit: int, where: str, next: str) -> Refused:
    """From a refusal that a C function gives as one text; `code`, `where` and `next` are for what the text does not say."""
    found = _TEXT.fullmatch(text)
    if found is None:
        return Refused(code, text, where, next, exit=exit)
    told, what, at, not_written, then = found.groups(default="")
    return Refused(told, what, at or where, in_words_of(_OF_ALL, then) or next, not_written, exit)
