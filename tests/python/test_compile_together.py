"""cmake/compile_together.py: sources share a compilation only where each means what it means alone."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("compile_together", ROOT / "cmake/compile_together.py")
together = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(together)


def groups(folder: Path, *texts: str, lines: int = 1000, **headers: str) -> list[list[str]]:
    """Sources a.cpp, b.cpp, ... with these texts in the namespace n, grouped: their letters."""
    for name, text in headers.items():
        (folder / f"{name}.hpp").write_text("#pragma once\n" + text)
    sources = []
    for letter, text in zip("abcdef", texts):
        file = folder / f"{letter}.cpp"
        file.write_text(text)
        sources.append(together.Source(file, [folder]))
    found = together.Headers([folder])
    for source in sources:
        source.reads(found)
    return [[s.path.stem for s in group] for group in together.grouped(sources, lines)]


def own(text: str) -> str:
    return "namespace n {\nnamespace {\n" + text + "\n} // namespace\n} // namespace n\n"


def space(text: str) -> str:
    return "namespace n {\n" + text + "\n} // namespace n\n"


def test_sources_with_nothing_in_common_are_compiled_as_one(tmp_path):
    assert groups(tmp_path, own("int one() { return 1; }"), own("int two() { return 2; }")) == [["a", "b"]]


@pytest.mark.parametrize("kept", [
    "int f(int x) { return x; }", "template <class T> T f(T x) { return x; }", "constexpr int f = 1;", "struct f {};",
    "enum class f { a };", "enum { f };", "std::map<int, std::pair<int, int>> f;", "const auto f = [](int x) { return x; };",
    "int f[2] = {1, 2};", "using f = int;", "namespace f = other;", "std::optional<int> f(const std::vector<int>& x = {}) {}",
    "auto f(int x) -> int { return x; }", "constexpr std::array<int, 2> f{1, 2};"])
def test_what_one_source_keeps_to_itself_is_not_found_from_another(tmp_path, kept):
    caller = space("void f(long);\nvoid g() { f (1L); }")
    assert groups(tmp_path, own(kept), caller) == [["a"], ["b"]]
    assert groups(tmp_path, caller, own(kept)) == [["a"], ["b"]]


@pytest.mark.parametrize("kept", ["static int f(int x) { return x; }", "constexpr int f = 1;", "using f = int;", "#define f(x) x\n"])
def test_a_named_namespace_keeps_what_is_static_constant_or_an_alias(tmp_path, kept):
    assert groups(tmp_path, space(kept), space("int g() { return f(1L); }")) == [["a"], ["b"]]


def test_a_function_of_a_header_is_shared_by_those_who_call_it(tmp_path):
    header = space("int shared(int x);")
    assert groups(tmp_path, '#include "h.hpp"\n' + space("int shared(int x) { return x; }"),
                  '#include "h.hpp"\n' + space("int g() { return shared(1); }"), h=header) == [["a", "b"]]


def test_a_name_that_a_header_of_the_other_declares_is_apart(tmp_path):
    header = space("struct Type { int a; };")
    assert groups(tmp_path, own("struct Type { double b; };"), '#include "h.hpp"\nint g();', h=header) == [["a"], ["b"]]
    reads_it = '#include "outer.hpp"\nint g();'
    assert groups(tmp_path, own("struct Type { double b; };"), reads_it, h=header, outer='#include "h.hpp"\n') == [["a"], ["b"]]


def test_members_locals_comments_and_texts_of_the_same_name_are_no_mention(tmp_path):
    harmless = space('int g(const S& s) { int f = s.f + s.t->f; /* f() */ return f + h("f()"); } // f(1)')
    assert groups(tmp_path, own("int f(int x) { return x; }"), harmless) == [["a", "b"]]


def test_the_same_alias_may_stand_in_both(tmp_path):
    same, other = own("namespace fs = std::filesystem;\nusing testing::Eq;"), own("namespace fs = my::files;")
    assert groups(tmp_path, same, own("namespace fs = std::filesystem;\nusing ::testing::Eq;\nfs::path p;"), other) == [["a", "b"], ["c"]]


def test_a_source_that_opens_a_namespace_shares_only_with_those_that_open_it(tmp_path):
    opened = "using namespace n;\n"
    assert groups(tmp_path, opened + own("int a();"), own("int b();"), opened + own("int c();")) == [["a", "c"], ["b"]]


def test_a_nested_namespace_of_the_same_name_is_apart_from_a_source_that_means_the_outer_one(tmp_path):
    inner, outer = "namespace n::test {\nint x();\n}\n", "namespace test {\nstruct S {};\n}\n"
    assert groups(tmp_path, '#include "inner.hpp"\n', '#include "outer.hpp"\n' + space("test::S s();"), inner=inner, outer=outer) == [["a"], ["b"]]


def test_a_macro_is_apart_from_every_use_of_its_name(tmp_path):
    assert groups(tmp_path, "#define f 1\n", space("int g(S s) { return s.f; }")) == [["a"], ["b"]]


def test_a_pragma_is_for_its_own_source_only(tmp_path):
    assert groups(tmp_path, '#pragma GCC diagnostic ignored "-Wshadow"\n', "int a();", "int b();") == [["a"], ["b", "c"]]
    back = '#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored "-Wshadow"\n#pragma GCC diagnostic pop\n'
    assert groups(tmp_path, back, "int a();") == [["a", "b"]]


def test_groups_are_bounded(tmp_path):
    long = "\n" * 600
    assert groups(tmp_path, long, long, "\n", lines=1000) == [["a", "c"], ["b"]]


def run(folder: Path, *sources: Path) -> list[Path]:
    done = subprocess.run(["python3", ROOT / "cmake/compile_together.py", "--folder", folder, "--roots", ROOT, ROOT / "src", ROOT / "include",
                           "--", *sources], capture_output=True, text=True, check=True)
    return [Path(line) for line in done.stdout.splitlines()]


def included(file: Path) -> list[Path]:
    return [ROOT / line.split('"')[1] for line in file.read_text().splitlines() if line.startswith("#include") and ".cpp" in line]


@pytest.mark.parametrize("room", sorted(p.name for p in (ROOT / "src").iterdir() if p.is_dir()))
def test_every_source_of_a_room_is_compiled_exactly_once(room, tmp_path):
    sources = sorted((ROOT / "src" / room).glob("*.cpp"))
    compiled = run(tmp_path, *sources)
    once = [s for file in compiled for s in (included(file) if file.parent == tmp_path else [file])]
    assert sorted(once) == sources and len(compiled) < len(sources)


def test_nothing_is_written_again_so_that_nothing_is_built_again(tmp_path):
    sources = sorted((ROOT / "src/report").glob("*.cpp"))
    compiled = run(tmp_path, *sources)
    times = {f: f.stat().st_mtime_ns for f in tmp_path.iterdir()}
    assert run(tmp_path, *sources) == compiled
    assert {f: f.stat().st_mtime_ns for f in tmp_path.iterdir()} == times


def test_headers_are_read_before_the_first_source(tmp_path):
    (file, *_) = run(tmp_path, *sorted((ROOT / "src/report").glob("*.cpp")))
    kinds = [".cpp" in line for line in file.read_text().splitlines()[1:]]
    assert kinds == sorted(kinds) and not kinds[0]


def test_a_warning_in_a_source_of_a_group_is_still_an_error(tmp_path):
    (tmp_path / "a.cpp").write_text("namespace {\nint unused(int) { return 1; }\n}\n")
    (tmp_path / "b.cpp").write_text("int g(unsigned);\nint g(unsigned x) { return x; }\n")
    (tmp_path / "c.cpp").write_text("int h(int);\n")
    for first, warning in (("a.cpp", "unused-function"), ("b.cpp", "sign-conversion")):
        (made,) = run(tmp_path / "made", tmp_path / first, tmp_path / "c.cpp")
        assert made.parent == tmp_path / "made"
        done = subprocess.run(["g++", "-std=c++23", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror", "-c", "-o", "/dev/null", made],
                              capture_output=True, text=True)
        assert done.returncode != 0 and warning in done.stderr, done.stderr
