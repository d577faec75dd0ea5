"""The rooms of src/ include only what CMakeLists.txt allows them, and keep the manners of a library."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
GENERATED = {"core/build_identity.hpp", "core/embedded_schemas.hpp"}  # made by CMake under build/
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)

#: What a library may not do: print, exit, read the environment. The command line (src/cli) may.
FORBIDDEN = re.compile(r"\b(?:printf|fprintf|puts|fputs|putchar|perror|exit|quick_exit|getenv|secure_getenv|setenv|putenv)\s*\("
                       r"|\bstd::(?:cout|cerr|clog|exit|quick_exit)\b|\bfmt::print\b|\bstd::print(?:ln)?\b")


def allowed_rooms() -> dict[str, set[str]]:
    text = re.sub(r"#.*", "", (ROOT / "CMakeLists.txt").read_text())
    rows = [row.split() for row in re.findall(r"^hebe_room\(([^)]*)\)", text, re.MULTILINE)]
    return {row[0]: set(row[1:]) for row in rows}


ROOMS = allowed_rooms()


def code_of(path: Path) -> str:
    """The file's text without comments and string literals; line breaks stay."""
    keep_lines = lambda match: "\n" * match.group().count("\n")
    text = re.sub(r'R"(\w*)\((?:.|\n)*?\)\1"', keep_lines, path.read_text())
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)
    return re.sub(r"//[^\n]*|/\*(?:.|\n)*?\*/", keep_lines, text)


def sources(room: str) -> list[Path]:
    return sorted(path for path in (SOURCE / room).rglob("*") if path.suffix in {".hpp", ".cpp"})


def test_the_table_and_the_folders_are_the_same():
    assert set(ROOMS) | {"cli"} == {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert not [path.name for path in SOURCE.iterdir() if path.is_file()]


def test_no_room_is_allowed_itself_a_later_one_or_an_unknown_one():
    order = list(ROOMS)
    for position, (room, may) in enumerate(ROOMS.items()):
        assert may <= set(order[:position]), f"{room} may include {may - set(order[:position])}, which comes later or does not exist"


@pytest.mark.parametrize("room", [*ROOMS, "cli"])
def test_includes_are_allowed_and_exist(room):
    may = set(ROOMS) | {"cli"} if room == "cli" else ROOMS[room] | {room}
    wrong = []
    for path in sources(room):
        for include in INCLUDE.findall(path.read_text()):
            target = include.split("/")[0]
            exists = (SOURCE / include).is_file() or include in GENERATED
            if "/" not in include or target not in may or not exists:
                wrong.append(f"{path.relative_to(ROOT)} includes {include}")
    assert not wrong


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_does_not_print_exit_or_read_the_environment(room):
    wrong = [f"{path.relative_to(ROOT)}:{number}: {line.strip()}" for path in sources(room)
             for number, line in enumerate(code_of(path).splitlines(), 1) if FORBIDDEN.search(line)]
    assert not wrong


def test_the_guard_sees_what_it_forbids_and_not_what_only_looks_like_it(tmp_path):
    for text in ('std::printf("x");', "exit(3);", "std::cout << 1;", 'auto p = getenv("X");', 'fmt::print("x");', "std::exit (1);"):
        assert FORBIDDEN.search(text), text
    file = tmp_path / "a.cpp"
    file.write_text('// exit(1)\nauto s = "printf(x)"; // "\n::_exit(127);\nexit_code_of(x);\nfmt::format("{}", 1);\nsnprintf(b, 3, "x");\n/* getenv(\n) */\n')
    assert not FORBIDDEN.search(code_of(file))


@pytest.mark.parametrize("room", [*ROOMS, "cli"])
def test_every_header_begins_with_its_purpose_and_has_a_guard(room):
    for path in sources(room):
        if path.suffix != ".hpp":
            continue
        text = path.read_text()
        assert text.startswith("// "), f"{path.relative_to(ROOT)} does not say what it is for"
        assert "#pragma once" in text, path.relative_to(ROOT)
        assert "using namespace" not in code_of(path), path.relative_to(ROOT)


@pytest.mark.parametrize("room", ROOMS)
def test_every_declaration_that_can_refuse_is_nodiscard(room):
    """`Result` and `Status` are std::expected, which g++ 12 lets a caller drop: each function has to say so itself."""
    wrong = []
    for path in sources(room):
        if path.suffix != ".hpp":
            continue
        lines = code_of(path).splitlines()
        for number, line in enumerate(lines):
            declares = re.match(r"\s*(?:virtual |static |inline )*(?:hebe::)?(?:Result<.*>|Status) \w+\(", line)
            before = lines[number - 1] if number else ""
            if declares and "[[nodiscard]]" not in before + line and "override" not in line + "".join(lines[number + 1:number + 3]):
                wrong.append(f"{path.relative_to(ROOT)}:{number + 1}: {line.strip()}")
    assert not wrong
