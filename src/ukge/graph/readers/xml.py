"""XML that is safe to read: parsed by expat, which knows its line at every moment, piece by piece.

Document type declarations are refused, whatever the encoding, so that no entity can be made to grow; and no tag,
comment or text is longer than any fact, so that a small compressed file cannot fill the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.parsers import expat

from ukge.errors import DataError
from ukge.graph.files import LONGEST
from ukge.graph.readers.diagnosis import printable, stopped

_PIECE = 1 << 16
_DEEPEST = 1000


class XmlFeed:
    """Feeds a document to expat, which tells `start` and `end` of elements and `text` between them."""

    def __init__(
        self,
        path: Path,
        start: Callable[[str, dict[str, str]], None],
        end: Callable[[str], None],
        text: Callable[[str], None],
        *,
        namespaces: bool = False,
    ) -> None:
        self.parser: Any = expat.ParserCreate(namespace_separator=" " if namespaces else None)
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self._tell = start, end, text
        self._path = path
        self._fed = 0
        self._depth = 0
        self._length = 0  # of the text since the last tag

    @property
    def line(self) -> int:
        """The line that is being read."""
        line: int = self.parser.CurrentLineNumber
        return line

    def feed(self, data: bytes) -> None:
        """Take the next piece; an empty one ends the document. What is wrong is a `DataError` with its line."""
        try:
            self.parser.Parse(data, not data)
        except expat.ExpatError as error:
            what = f"is not well-formed XML: {expat.ErrorString(error.code)} (at character {error.offset})"
            raise stopped(self._path, what, error.lineno, "Write or fetch the file again.") from None
        except (LookupError, ValueError) as error:  # an encoding that nobody knows, or that expat cannot read
            what = f"is in an encoding that cannot be read: {printable(str(error))}"
            raise stopped(self._path, what, self.line, "Convert the file to UTF-8.") from None
        self._fed += len(data)
        if self._fed - self.parser.CurrentByteIndex > LONGEST + _PIECE:
            raise self._endless()

    def read(self, stream: Any) -> None:
        """Take a whole stream."""
        while data := stream.read(_PIECE):
            self.feed(data)
        self.feed(b"")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._length = 0
        self._depth += 1
        if self._depth > _DEEPEST:
            what = f"elements are nested more than {_DEEPEST:,} deep"
            raise stopped(self._path, what, self.line, "Check the file's format.")
        self._tell[0](tag, attributes)

    def _end(self, tag: str) -> None:
        self._length = 0
        self._depth -= 1
        self._tell[1](tag)

    def _text(self, text: str) -> None:
        self._length += len(text)
        if self._length > LONGEST:
            raise self._endless()
        self._tell[2](text)

    def _endless(self) -> DataError:
        what = f"a tag or a text is longer than {LONGEST:,} bytes, as none of a fact is"
        return stopped(self._path, what, self.line, "Check the file's format.")

    def _doctype(self, *_: Any) -> None:
        what = "declares a document type, which is not read"
        raise stopped(self._path, what, self.line, "Remove <!DOCTYPE …>.")


class GuardedXml:
    """A stream of XML for another parser, which gets no byte that expat would refuse; it must be UTF-8."""

    def __init__(self, stream: Any, path: Path) -> None:
        self._stream = stream
        self._path = path
        self._begun = False
        self._feed = XmlFeed(path, _nothing, _nothing, _nothing)
        self._feed.parser.XmlDeclHandler = self._declaration

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, once they are known to be harmless."""
        data: bytes = self._stream.read(_PIECE if size < 0 else min(size, _PIECE))
        if not self._begun and (data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in data[:4]):
            raise self._not_utf8()
        self._begun = True
        self._feed.feed(data)
        return data

    def _declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and encoding.lower() not in ("utf-8", "utf8", "us-ascii", "ascii"):
            raise self._not_utf8()

    def _not_utf8(self) -> DataError:
        return stopped(self._path, "is not in UTF-8", self._feed.line, "Convert the file to UTF-8.")


def _nothing(*_: Any) -> None:
    """Let other parsers listen."""
