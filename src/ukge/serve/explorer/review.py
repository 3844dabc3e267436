"""Review: what a person should look at next, one fact at a time, with the keyboard or by touch.

y, n and u (or →, ←, ↓) say yes, no and unsure; j and k go on and back without a word; z takes the last word back. Each
word is on the disk before the next fact is shown. Who may say one is the guard's rule for whatever changes something.
"""

from __future__ import annotations

from nicegui import PageArguments, events, ui
from nicegui.context import context

from ukge.asking.review import ToReview
from ukge.errors import UkgeError
from ukge.runs.labels import LONGEST_PERSON, Triple, Word
from ukge.serve import schema
from ukge.serve.desk import Desk, Said
from ukge.serve.explorer.pages import KINDS, TELLING
from ukge.serve.explorer.parts import markup, put, url
from ukge.serve.problems import Problem
from ukge.serve.service import Service

PILE, ROUND = 12, 20
"""Facts that are fetched at a time, and words that make a round."""

KEYS: dict[str, Word] = {
    "y": "yes",
    "n": "no",
    "u": "unsure",
    "ArrowRight": "yes",
    "ArrowLeft": "no",
    "ArrowDown": "unsure",
}
SHOWN_WORDS: dict[Word, tuple[str, str]] = {"yes": ("Yes", "y"), "no": ("No", "n"), "unsure": ("Unsure", "u")}
READ_ONLY = (
    "Labels cannot be given from here: this service has no API key, and you are not at the machine that it runs on. "
    "Start it with a key."
)


async def build(service: Service, args: PageArguments) -> None:
    """Build the page."""
    by = (args.query_parameters.get("by") or "").strip()[:LONGEST_PERSON]
    request = context.client.request
    allowed = request is not None and bool(request.scope.get("may_change", False))
    put("title.html", title="Review", about="the facts of which a label tells most")
    if not allowed:
        put("note.html", text=READ_ONLY)
    elif not by:
        _ask_who()
    desk = Desk(service)
    facts, said = await desk.pile(by, min(PILE, service.limits.k))
    await _Sitting(service, desk, by, facts, said, may_say=allowed and bool(by)).show()


def _ask_who() -> None:
    def begin() -> None:
        name = (field.value or "").strip()[:LONGEST_PERSON]
        if name:
            ui.navigate.to(url("/review", by=name))

    with ui.element("section").classes("card who-card"):
        put("who.html")
        with ui.element("div").classes("asker-who"):
            field = (
                ui.input(placeholder="Your name").classes("field").props("outlined dense autocomplete=off autofocus")
            )
            field.props["aria-label"] = "Your name"
            field.props["maxlength"] = LONGEST_PERSON
            field.on("keydown.enter", begin)
            ui.button("Begin", on_click=begin, color=None).props("flat no-caps").classes("turn")


class _Sitting:
    """One person at the desk: the pile of facts, where in it the person is, and what was said of each."""

    def __init__(
        self, service: Service, desk: Desk, by: str, pile: list[ToReview], said: Said, *, may_say: bool
    ) -> None:
        self._service, self._desk, self._by, self._pile, self._said = service, desk, by, pile, said
        self._may_say = may_say
        self._at = 0
        self._words: dict[Triple, Word] = {}
        self._order: list[int] = []
        self._busy = False
        ui.keyboard(on_key=self._key, repeating=False, ignore=["input", "select", "textarea"])
        self._progress = ui.html("", sanitize=False).props("role=status aria-live=polite")
        with ui.element("section").classes("card review") as self._card:
            self._fact = ui.html("", sanitize=False)
            with ui.element("div").classes("say"):
                for word, (text, key) in SHOWN_WORDS.items():
                    button = ui.button(on_click=lambda word=word: self._say(word), color=None)
                    button.props("flat no-caps").classes(f"word {word}").props["aria-label"] = text
                    with button:
                        put("word.html", text=text, key=key)
                    button.set_enabled(may_say)
            with ui.element("div").classes("steps"):
                for text, key, act in (
                    ("Back", "k", lambda: self._go(-1)),
                    ("Skip", "j", lambda: self._go(1)),
                    ("Undo", "z", self._undo),
                ):
                    with ui.button(on_click=act, color=None).props("flat no-caps dense") as button:
                        put("word.html", text=text, key=key)
                    button.props["aria-label"] = text
        self._reasons = ui.html("", sanitize=False)

    async def show(self) -> None:
        """Show the fact at hand, then its reasons, which take a moment."""
        if self._card.is_deleted:
            return
        done = len(self._order)
        self._progress.content = markup(
            "review_progress.html",
            by=self._by,
            said=self._said,
            done=done % ROUND if done % ROUND or not done else ROUND,
            rounds=done // ROUND,
            of=ROUND,
        )
        self._card.visible = self._at < len(self._pile)
        if not self._card.visible:
            self._reasons.content = markup("review_done.html", labelled=self._said.labelled)
            return
        fact = self._pile[self._at]
        rows = await self._desk.stated(fact.fact)
        self._fact.content = markup(
            "review_fact.html", fact=fact, rows=rows, word=self._words.get(fact.fact), words=SHOWN_WORDS
        )
        self._reasons.content = ""
        told = await self._why(fact.fact)
        if not self._card.is_deleted and self._at < len(self._pile) and self._pile[self._at] is fact:
            self._reasons.content = told

    async def _why(self, fact: Triple) -> str:
        try:
            told = await self._service.explain(*fact)
        except Problem as error:
            return markup("note.html", text=error.detail)
        return markup("review_why.html", fact=told, reasons=_telling(told), kinds=KINDS)

    async def _key(self, event: events.KeyEventArguments) -> None:
        held = event.modifiers
        if not event.action.keydown or held.ctrl or held.alt or held.meta:
            return
        name = event.key.name
        key = name.lower() if len(name) == 1 else name
        if key in KEYS:
            await self._say(KEYS[key])
        elif key in ("j", "k"):
            await self._go(1 if key == "j" else -1)
        elif key == "z":
            await self._undo()

    async def _say(self, word: Word) -> None:
        if not self._may_say or self._busy or self._at >= len(self._pile):
            return
        fact = self._pile[self._at].fact
        if await self._keep(fact, word):
            self._words[fact] = word
            self._order.append(self._at)
            await self._go(1)

    async def _undo(self) -> None:
        if not self._order or self._busy:
            return
        fact = self._pile[self._order[-1]].fact
        if await self._keep(fact, "withdrawn"):
            self._at = self._order.pop()
            self._words.pop(fact, None)
            await self.show()

    async def _keep(self, fact: Triple, word: Word) -> bool:
        self._busy = True
        try:
            await self._desk.keep(self._by, [(fact, word)])
            self._said = await self._desk.counted(self._by)
        except (Problem, UkgeError, OSError) as error:
            ui.notify(f"Not kept: {getattr(error, 'detail', None) or error}", type="negative")
            return False
        finally:
            self._busy = False
        return True

    async def _go(self, step: int) -> None:
        self._at = max(0, min(self._at + step, len(self._pile)))
        if self._at == len(self._pile):
            seen = [each.fact for each in self._pile]
            more, self._said = await self._desk.pile(self._by, min(PILE, self._service.limits.k), seen)
            self._pile += more
        await self.show()


def _telling(told: schema.ExplainResponse) -> list[schema.ReasonOut]:
    return [each for each in told.reasons if each.contribution is None or abs(each.contribution) >= TELLING]
