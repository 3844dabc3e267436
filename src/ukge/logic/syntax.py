"""Reading rules in PSL's syntax.

One rule per line; `#` and `//` start comments::

    1.0: Synonym(A, B) & Synonym(B, C) -> Synonym(A, C) ^2
    0.4: "concept:athleteplaysforteam"(A, B) && "concept:athleteplayssport"(A, C) -> "concept:teamplayssport"(B, C)

A missing weight is 1. `>>` may stand for `->`, and `<-` or `<<` put the head first. `^2` squares the distance to
satisfaction. `!` or `~` negates the head. `str(rule)` prints what is read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ukge.errors import RuleError
from ukge.graph.files import check_target
from ukge.logic.rules import Atom, Rule
from ukge.storage.files import read_given, write_atomically

TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>(\#|//).*)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<quoted>"(?:[^"\\]|\\.)*")
      | (?P<constant>'[^']*')
      | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<arrow>->|>>|<-|<<)
      | (?P<and>&&?)
      | (?P<unequal>!=)
      | (?P<not>[!~])
      | (?P<or>\|\|?)
      | (?P<sign>[(),:^.])
    """,
    re.VERBOSE,
)
LARGEST = 1 << 28
"""Bytes of a file of rules: millions of rules fit, and a device or a bomb does not."""
SHOWN = 60
"""Characters of a long line that an error shows on each side of the place."""
UNESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
EXAMPLE = "A rule looks like this: 1.0: Synonym(A, B) & Synonym(B, C) -> Synonym(A, C) ^2"
ARROW = "expected '&' and another atom, or '->' and the head"
NOT_READ = {
    "constant": "constants are not supported: an atom relates two variables",
    "unequal": "inequalities are not written: different variables stand for different entities",
    "or": "disjunctions are not supported: write the rule as body -> head",
}


def parse_rule(text: str, *, source: str = "rule", line: int | None = None) -> Rule:
    """Read one rule; `RuleError` quotes it and points at the place that cannot be read."""
    return _Reader(text, source, line).rule()


def parse_rules(text: str, *, source: str = "rules") -> list[Rule]:
    """Read the text of a rules file: one rule per line, empty lines and comments left out."""
    readers = (_Reader(line, source, number) for number, line in enumerate(text.split("\n"), start=1))
    return [reader.rule() for reader in readers if not reader.empty]


def read_text(path: str | Path) -> str:
    """Return the text of a rules file, or say why it cannot be read."""
    try:
        content = read_given(path, LARGEST + 1)
        if len(content) > LARGEST:
            raise RuleError(f"{path} is larger than {LARGEST >> 20:,} MiB, as no file of rules is")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise RuleError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise RuleError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from None


def write_rules(path: str | Path, rules: Iterable[Rule], *, comment: str = "") -> None:
    """Write rules one per line, under a comment."""
    remarks = [f"# {line}".rstrip() for line in comment.splitlines()]
    write_text(path, "".join(f"{line}\n" for line in [*remarks, *map(str, rules)]))


def write_text(path: str | Path, text: str) -> None:
    """Write a UTF-8 text file, whole or not at all."""
    check_target(Path(path))
    write_atomically(Path(path), text.encode())


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


class _Reader:
    """Recursive descent over the tokens of one line."""

    def __init__(self, text: str, source: str, line: int | None) -> None:
        self.text = text.rstrip()
        self.place = source if line is None else f"{source}, line {line}"
        self.tokens = self._tokens()
        self.next = 0
        self.variables: list[_Token] = []

    @property
    def empty(self) -> bool:
        return self.tokens[0].kind == "end"

    def rule(self) -> Rule:
        weight = self._weight()
        start = self._peek()
        negated, first = self._literal()
        if self._peek().text in ("<-", "<<"):
            self._take("arrow", "")
            head, body = first, self._body(self._positive())
        else:
            if negated:
                raise self._error("only the head can be negated", start)
            body = self._body(first)
            arrow = self._take("arrow", ARROW)
            if arrow.text not in ("->", ">>"):
                raise self._error("a rule has one arrow and one head", arrow)
            negated, head = self._literal()
        squared = self._power()
        end = self._peek()
        if end.text == ".":
            raise self._error("hard rules (ending in '.') are not supported: give the rule a weight", end)
        if end.kind != "end":
            raise self._error("expected the end of the rule", end)
        try:
            return Rule(body, head, weight, squared, negated)
        except RuleError as error:
            raise self._error(error.what, self._free_variable(body, head) or self.tokens[0]) from None

    def _free_variable(self, body: tuple[Atom, ...], head: Atom) -> _Token | None:
        free = set(head.variables).difference(v for atom in body for v in atom.variables)
        return next((token for token in self.variables if token.text in free), None)

    def _variable(self) -> str:
        token = self._take("name", "expected a variable")
        self.variables.append(token)
        return token.text

    def _weight(self) -> float:
        if self._peek().kind != "number":
            return 1.0
        number = self._take("number", "")
        if float(number.text) < 0:
            raise self._error("a weight is a number from 0 upwards", number)
        self._take(":", "expected ':' after the weight")
        return float(number.text)

    def _body(self, first: Atom) -> tuple[Atom, ...]:
        body = [first]
        while self._peek().kind == "and":
            self._take("and", "")
            body.append(self._positive())
        return tuple(body)

    def _positive(self) -> Atom:
        start = self._peek()
        negated, atom = self._literal()
        if negated:
            raise self._error("only the head can be negated", start)
        return atom

    def _literal(self) -> tuple[bool, Atom]:
        negated = self._peek().kind == "not"
        if negated:
            self._take("not", "")
        return negated, self._atom()

    def _atom(self) -> Atom:
        token = self._peek()
        if token.kind == "quoted":
            relation = re.sub(r"\\(.)", lambda m: UNESCAPED.get(m[1], m[1]), self._take("quoted", "").text[1:-1])
            if not relation:
                raise self._error("a relation's name is not empty", token)
        elif token.text == "(":
            raise self._error(NOT_READ["unequal"], token)
        else:
            relation = self._take("name", "expected a relation's name (in double quotes unless a plain word)").text
        self._take("(", "expected '(' after the relation's name")
        subject = self._variable()
        self._take(",", "expected ',': an atom relates two variables")
        target = self._variable()
        self._take(")", "expected ')': an atom relates two variables")
        return Atom(relation, subject, target)

    def _power(self) -> bool:
        if self._peek().text != "^":
            return False
        self._take("^", "")
        power = self._take("number", "expected 1 or 2 after '^'")
        if power.text not in ("1", "2"):
            raise self._error("the distance to satisfaction is taken as it is or squared: ^1 or ^2", power)
        return power.text == "2"

    def _peek(self) -> _Token:
        return self.tokens[self.next]

    def _take(self, kind: str, problem: str) -> _Token:
        token = self._peek()
        if kind not in (token.kind, token.text):
            raise self._error(NOT_READ.get(token.kind, problem), token)
        self.next += 1
        return token

    def _tokens(self) -> list[_Token]:
        tokens, at = [], 0
        while at < len(self.text):
            match = TOKEN.match(self.text, at)
            if match is None:
                unread = _Token("unread", self.text[at], at)
                what = "this name's closing quote is missing" if unread.text in "\"'" else "this cannot be read"
                raise self._error(what, unread)
            kind = match.lastgroup or ""
            if kind == "comment":
                break
            if kind != "space":
                tokens.append(_Token(kind, match[0], at))
            at = match.end()
        return [*tokens, _Token("end", "", at)]

    def _error(self, what: str, token: _Token) -> RuleError:
        # A tab before the caret keeps the caret under its place however wide the terminal shows tabs.
        start = max(0, token.at - SHOWN)
        shown = self.text[start : token.at + SHOWN]
        before = "".join("\t" if character == "\t" else " " for character in self.text[start : token.at])
        marks = "^" * max(1, min(len(token.text), SHOWN))
        return RuleError(f"{self.place}: {what}\n  {shown}\n  {before}{marks}", hint=EXAMPLE)
