"""Which source files a build may compile as one, and the files that include them.

In: --folder FOLDER --roots DIR... SOURCE... (C++ files of one target). Out: one file a group in FOLDER, written only where it
changes, and on stdout what to compile, one path a line: those files, and each source that is alone.
Invariant: compiled together a file means what it means alone. Two files share a group only where neither writes a name that the
other keeps to itself (what stands in an unnamed namespace, is static, an alias, a constant or a macro), so that no name of the
one can be found from the other; and all headers of a group are read before the first of its sources.
"""

import argparse
import pathlib
import re

LINES = 2400  # of a group: more gains little and makes one edit slow to build
TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r'|(?P<raw>\b(?:u8|[uUL])?R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)")'
    r'|(?P<text>"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\')'
    r"|(?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<number>\d(?:[\w.']|(?<=[eEpP])[+-])*)"
    r"|(?P<mark_of>::|->|==|[^\s\w])", re.S | re.M)
USES = {"(", "<", "{", "::", "*", "&"}  # after a name: a call, or a type
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
WORDS = set("const constexpr constinit static inline extern auto unsigned signed template typename struct class union enum "
            "using namespace noexcept override final operator thread_local mutable volatile explicit requires".split())


class Source:
    """What of a file matters here.

    Its own: .kept (types, variables, macros), .functions, .aliases; of a header all that it declares. What it names: .written,
    of that .used (in a call or as a type), .qualified (name to what stands before its ::), .all_names. What it reads and opens:
    .headers, .spaces, .paths (namespaces), .open_spaces (using namespace). .alone: it changes how what follows is compiled.
    """

    def __init__(self, path, roots, header=False):
        self.path, text = path, path.read_text()
        self.lines, self.headers, self.alone, self.pushed = text.count("\n"), [], False, 0
        self.kept, self.functions, self.aliases, self.macros = set(), set(), {}, set()
        self.written, self.used, self.qualified = set(), set(), {}
        self.spaces, self.open_spaces, self.paths = {""}, set(), set()
        tokens, conditions = [], 0
        for found in TOKEN.finditer(text):
            kind, word = found.lastgroup, found.group()
            if kind == "directive":
                conditions += self.directive(word, roots, conditions)
            elif kind in ("name", "mark_of", "number"):
                before = tokens[-1] if tokens else ""
                if before in self.written and (kind == "name" or word in USES):
                    self.used.add(before)
                if kind == "name" and before == "::":
                    self.qualified.setdefault(word, set()).add(tokens[-2] if tokens[-2][0].isalnum() else "")
                elif kind == "name" and before not in (".", "->"):
                    self.written.add(word)
                tokens.append(word)
            elif kind in ("raw", "text"):
                tokens.append('""')
        self.all_names = {t for t in tokens if t[0].isalpha() or t[0] == "_"}
        self.qualifiers = set().union(*self.qualified.values())
        self.scope(tokens, 0, len(tokens), (), unnamed=header)
        self.kept |= self.macros

    def directive(self, line, roots, conditions):
        """One line of the preprocessor; by how much it changes the depth of conditions."""
        word = re.match(r"\s*#\s*(\w+)\s*(.*)", line, re.S)
        if word is None:
            return 0
        if word[1] == "include" and conditions == 0 and (quoted := re.match(r'"([^"]+)"', word[2])):
            places = [self.path.parent, *roots]
            file = next((p / quoted[1] for p in places if (p / quoted[1]).is_file()), None)
            if file is not None and file.suffix in (".hpp", ".h"):
                self.headers.append(file.resolve())
        if word[1] == "pragma":
            self.pushed += ("diagnostic push" in word[2]) - ("diagnostic pop" in word[2])
            self.alone = self.alone or not self.pushed and not re.search(r"^once|GCC (ivdep|unroll)|diagnostic pop", word[2])
        if word[1] == "define":
            self.macros.add(re.match(r"\w+", word[2])[0])
            self.written |= set(re.findall(r"[A-Za-z_]\w*", word[2]))
        return {"if": 1, "ifdef": 1, "ifndef": 1, "endif": -1}.get(word[1], 0)

    def reads(self, headers):
        """Takes what its headers declare; .outside are the names that it can find outside of its functions."""
        reached = headers.reached(self)
        self.declared = headers.declared(reached)
        self.paths = self.paths.union(*(headers.read[h].paths for h in reached))
        self.outside = self.declared | self.kept | self.functions | self.aliases.keys()

    def scope(self, tokens, at, end, path, unnamed):
        """The declarations of the namespace `path`; `unnamed`: all of them are this file's own."""
        while at < end:
            if tokens[at] == ";":
                at += 1
            elif tokens[at] == "namespace" or tokens[at : at + 2] == ["inline", "namespace"]:
                brace = next(i for i in range(at, end) if tokens[i] in "{=;")
                if tokens[brace] == "{":
                    close = matching(tokens, brace)
                    inner = tuple(t for t in tokens[at:brace] if t not in ("namespace", "inline", "::"))
                    self.spaces |= set(inner)
                    self.paths |= {path + inner[: i + 1] for i in range(len(inner))}
                    self.scope(tokens, brace + 1, close, path + inner, unnamed or not inner)
                    at = close + 1
                else:  # an alias
                    end_of = tokens.index(";", at)
                    self.aliases[tokens[at + 1]] = tokens[at:end_of]
                    at = end_of + 1
            else:
                at = self.declaration(tokens, at, end, unnamed)

    def declaration(self, tokens, at, end, unnamed):
        """One declaration, that begins at `at`; where the next begins."""
        flat, spans, start = [], [], at  # its tokens outside of brackets
        assigned = called = False
        while at < end:
            word = tokens[at]
            if word == ";":
                at += 1
                break
            if word == "<" and flat and (flat[-1] == "template" or re.match(r"[A-Za-z_]", flat[-1])) and not assigned:
                at = after_angle(tokens, at)
                flat.append("<>")
                continue
            if word in OPEN:
                close = matching(tokens, at)
                flat.append(word)
                spans.append((len(flat) - 1, at, close))
                is_type = any(k in flat for k in ("struct", "class", "union", "enum")) and not called
                at = close + 1
                if word == "(":
                    called = True
                if word == "{" and called and not assigned and not is_type:
                    break  # the body of a function
                continue
            assigned = assigned or word == "="
            flat.append(word)
            at += 1
        self.names_of(flat, spans, tokens, tokens[start:at], unnamed)
        assert at > start
        return at

    def names_of(self, flat, spans, tokens, whole, unnamed):
        """Takes the names of one declaration: `flat` outside of brackets, `spans` of its brackets, `whole` with them."""
        if not flat:
            return
        own = unnamed or any(w in ("static", "constexpr", "const") for w in flat[:4])
        if flat[0] == "using":
            if flat[1] == "namespace":
                self.open_spaces.add("".join(flat[2:]))
            elif "=" in flat:
                self.aliases[flat[1]] = whole
            else:
                for one in "".join(whole[1:]).strip(";").split(","):
                    self.aliases[one.rpartition("::")[2]] = one.removeprefix("::")
            return
        if flat[0].isupper() and flat[1:2] == ["("]:
            return  # a macro's call: TEST and the like
        body = flat[flat.index("<>") + 1 :] if flat[0] == "template" else flat
        keyword = next((k for k in ("struct", "class", "union", "enum") if k in body and "(" not in body[: body.index(k)]), None)
        if keyword:
            self.names_of_type(keyword, body, flat, spans, tokens, unnamed)
        elif own and "operator" in body:
            self.kept.add("operator")
        elif own:
            self.names_of_value(body)

    def names_of_type(self, keyword, body, flat, spans, tokens, unnamed):
        """A class or an enumeration, the values of an unscoped one, and what is declared behind it."""
        rest = [w for w in body[body.index(keyword) + 1 :] if w not in ("class", "struct")]
        if rest and rest[0] not in ("{", ":") and "::" not in rest[:2] and (unnamed or "{" in rest):
            self.kept.add(rest[0])
        brace = next((s for s in spans if flat[s[0]] == "{"), None)
        if keyword == "enum" and "class" not in body and brace:
            self.kept |= {w for w in tokens[brace[1] + 1 : brace[2]] if re.match(r"[A-Za-z_]", w)}
        if "{" in rest:
            self.kept |= {w for w in rest[rest.index("{") + 1 :] if re.match(r"[A-Za-z_]", w)}

    def names_of_value(self, body):
        """A function (not a member: its class is declared elsewhere), or variables."""
        head = body[: body.index("=")] if "=" in body else body
        if "(" in head and "=" not in body:
            before = head[: head.index("(")]
            if before[-2:-1] != ["::"]:
                self.functions |= set(before[-1:]) - {"<>"}
            return
        for word, after in zip(head, [*head[1:], "="]):
            if re.match(r"[A-Za-z_]", word) and word not in WORDS and after in ("=", "{", "[", ","):
                self.kept.add(word)


def matching(tokens, at):
    """Where the bracket that opens at `at` closes."""
    depth = 0
    for i in range(at, len(tokens)):
        if tokens[i] in OPEN:
            depth += 1
        elif tokens[i] in CLOSE:
            depth -= 1
            if depth == 0:
                return i
    raise SystemExit("a bracket is not closed")


def after_angle(tokens, at):
    """What follows the list of template arguments that opens at `at`."""
    depth = 0
    while True:
        if tokens[at] == "<":
            depth += 1
        elif tokens[at] == ">":
            depth -= 1
            if depth == 0:
                return at + 1
        elif tokens[at] in OPEN:
            at = matching(tokens, at)
        at += 1


class Headers:
    """What the headers of a file, and theirs, declare."""

    def __init__(self, roots):
        self.roots, self.read = roots, {}

    def reached(self, source):
        seen, todo = set(), list(source.headers)
        while todo:
            if (file := todo.pop()) not in seen:
                seen.add(file)
                if file not in self.read:
                    self.read[file] = Source(file, self.roots, header=True)
                todo += self.read[file].headers
        return seen

    def declared(self, files):
        return set().union(*(self.read[f].kept | self.read[f].functions | self.read[f].aliases.keys() for f in files))


def hides(a, b):
    """Whether what `a` keeps to itself could be found from `b`, or is declared by headers that `a` does not read."""
    alike = {n for n, to in a.aliases.items() if b.aliases.get(n) == to}
    own = a.kept | a.functions | a.aliases.keys()
    return (any(n in b.written or b.qualified.get(n, set()) & a.spaces for n in a.kept | a.aliases.keys() - alike)
            or any(n in b.used or n in b.written & b.outside or b.qualified.get(n, set()) & a.spaces for n in a.functions)
            or any(path[-1] in b.qualifiers for path in a.paths - b.paths) # test::x is found in the innermost test
            or a.macros & b.all_names or own & b.declared - a.declared)


def may_share(a, b):
    return not a.alone and not b.alone and a.open_spaces == b.open_spaces and not hides(a, b) and not hides(b, a)


def grouped(sources, lines):
    """The sources, each in the first group that it fits."""
    groups = []
    for source in sources:
        fits = (g for g in groups if sum(s.lines for s in g) + source.lines <= lines and all(may_share(source, s) for s in g))
        group = next(fits, None)
        if group is None:
            groups.append([source])
        else:
            group.append(source)
    return groups


def text_of(group, roots):
    """The file that compiles a group: all headers, then the sources; paths as the sources' own includes write them."""
    seen = list(dict.fromkeys(h for s in group for h in s.headers))
    lines = [f"// Made by cmake/compile_together.py: {len(group)} sources that are compiled as one."]
    return "\n".join(lines + [f'#include "{shown(p, roots)}"' for p in seen + [s.path.resolve() for s in group]]) + "\n"


def shown(path, roots):
    root = next((r for r in roots if path.is_relative_to(r)), None)
    return path.relative_to(root) if root else path


def main():
    parse = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parse.add_argument("--folder", type=pathlib.Path, required=True)
    parse.add_argument("--roots", type=pathlib.Path, nargs="+", required=True)
    parse.add_argument("sources", type=pathlib.Path, nargs="+")
    given = parse.parse_args()
    roots = [r.resolve() for r in given.roots]
    given.folder.mkdir(parents=True, exist_ok=True)
    made = set()
    sources, headers = [Source(s, roots) for s in given.sources], Headers(roots)
    for source in sources:
        source.reads(headers)
    for group in grouped(sources, LINES):
        if len(group) == 1:
            print(group[0].path)
            continue
        file = given.folder / f"{group[0].path.stem}_and_{len(group) - 1}_more.cpp"
        made.add(file)
        text = text_of(group, roots)
        if not file.is_file() or file.read_text() != text:
            file.write_text(text)
        print(file)
    for old in set(given.folder.glob("*.cpp")) - made:
        old.unlink()


if __name__ == "__main__":
    main()
