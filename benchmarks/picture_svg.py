"""Draws a recorded takeover as one SVG that moves by CSS alone: no script, no font, legible in light and dark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from xml.sax.saxutils import escape

WIDTH, LEFT, CHIP, ROW, TOP = 860, 190, 150, 52, 74
SHOWN_S = 15.0
"""How long the picture takes, with a rest at its end."""
BEFORE, AROUND, AFTER, REST = 0.26, 0.36, 0.24, 0.14
"""Shares of it: before the kill, until all keys are claimed again, until all is done, and the rest."""
MOVE = 0.9
"""Per cent of the time in which a key goes from one row to another."""
_COLOURS = ("#2f6fdb", "#1a8a6b", "#a2591c", "#8a4bb8")


@dataclass(frozen=True, slots=True)
class Moment:
    """What Redis said at a time: key -> the worker that holds it, and the keys that are queued."""

    at_s: float
    held: dict[str, str]
    queued: list[str]


@dataclass(frozen=True, slots=True)
class Recording:
    """``lost``: keys that the victim held when it was killed. ``asked_for``, ``created``: pods."""

    keys: list[str]
    lost: list[str]
    victim: str
    killed_s: float
    moments: list[Moment]
    asked_for: int
    created: int

    def taken_over_ms(self) -> list[float]:
        """From the kill until another worker held each of the lost keys."""
        return [next(self._claims(key), float("nan")) for key in self.lost]

    def let_go_s(self, key: str, over_s: float) -> float:
        """When a key was let go of for the first time after the takeover; short turns about its status follow."""
        return next((each.at_s for each in self.moments if each.at_s > over_s and key not in each.held), over_s)

    def until_let_go(self, over_s: float) -> list[Moment]:
        last_s = max(self.let_go_s(key, over_s) for key in self.keys)
        return [each for each in self.moments if each.at_s <= last_s]

    def _claims(self, key: str) -> Iterator[float]:
        for moment in self.moments:
            if moment.at_s > self.killed_s and moment.held.get(key, self.victim) != self.victim:
                yield (moment.at_s - self.killed_s) * 1000


@dataclass(slots=True)
class _Picture:
    css: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)

    def shown(self, name: str, begin: float, end: float) -> None:
        """An animation that shows a thing from one per cent of the time to another."""
        stops = [(0.0, int(begin <= 0)), (begin, 0), (begin + 0.01, 1), (end, 1), (end + 0.01, 0), (100.0, 0)]
        if end >= 100:
            stops = [*stops[:3], (100.0, 1)]
        kept = [(at, value) for at, value in stops if 0 <= at <= 100 and not (begin <= 0 and at == begin and not value)]
        frames = "".join(f"{at:.2f}%{{opacity:{value}}}" for at, value in kept)
        self.css.append(f"@keyframes {name}{{{frames}}}.{name}{{animation-name:{name}}}")


def draw(told: Recording) -> str:
    """The whole file."""
    over_s = told.killed_s + max(told.taken_over_ms()) / 1000 + 0.004
    told = replace(told, moments=told.until_let_go(over_s))
    workers = _rows(told, over_s)
    picture = _Picture()
    picture.css.append(_style())
    _workers(picture, told, workers, over_s)
    for number, key in enumerate(told.keys):
        _key(picture, told, workers, number, key, over_s)
    _clock(picture, told, over_s)
    height = TOP + ROW * (len(workers) + 2) + 34
    times = ", ".join(f"{key} {ms:.0f} ms" for key, ms in zip(told.lost, told.taken_over_ms(), strict=True))
    end = (
        f"Taken over: {times} after the SIGKILL. "
        f"Pods asked for {told.asked_for}, created {told.created}, too many {told.created - told.asked_for}."
    )
    picture.body.append(f'<text class="e" x="24" y="{height - 16}">{escape(end)}</text>')
    picture.shown("e", _per_cent(told, over_s, over_s), 100)
    label = f"A worker is killed with SIGKILL and its keys are taken over. {end}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(label)}"><style>{"".join(picture.css)}</style>'
        f'<rect class="b" width="{WIDTH}" height="{height}" rx="10"/>{"".join(picture.body)}</svg>\n'
    )


def _style() -> str:
    return (
        "svg{--b:#fff;--i:#1c2128;--m:#667;--l:#dde2ea;--d:#c62828}"
        "@media(prefers-color-scheme:dark){svg{--b:#161b22;--i:#e6edf3;--m:#9aa4b2;--l:#313845;--d:#ff6b6b}}"
        "text{font:15px ui-sans-serif,system-ui,sans-serif;fill:var(--i)}.m{fill:var(--m);font-size:13px}"
        ".b{fill:var(--b)}.r{stroke:var(--l)}.c text{fill:#fff;font-weight:600}.x{fill:var(--d);font-weight:700}"
        f"g.c,.a,.e{{animation-duration:{SHOWN_S:g}s;animation-iteration-count:infinite;"
        "animation-timing-function:ease-in-out}"
        ".a,.e{animation-timing-function:step-end}"
        "@media(prefers-reduced-motion:reduce){g.c,.a,.e{animation:none}.t{opacity:0}}"
    )


def _rows(told: Recording, over_s: float) -> list[str]:
    """Workers in the order in which they came to hold a key; the killed one first."""
    found = [told.victim]
    for moment in told.moments:
        found += [worker for key, worker in moment.held.items() if moment.at_s < told.let_go_s(key, over_s)]
    return list(dict.fromkeys(found))


def _per_cent(told: Recording, at_s: float, over_s: float) -> float:
    """Where a moment of the recording stands in the time of the picture: slow around the kill."""
    first_s, last_s = told.moments[0].at_s, told.moments[-1].at_s
    if at_s <= told.killed_s:
        return 100 * BEFORE * (at_s - first_s) / (told.killed_s - first_s)
    if at_s <= over_s:
        return 100 * (BEFORE + AROUND * (at_s - told.killed_s) / (over_s - told.killed_s))
    return 100 * (BEFORE + AROUND + AFTER * min(1.0, (at_s - over_s) / max(last_s - over_s, 0.001)))


def _y(row: int) -> int:
    return TOP + ROW * row


def _workers(picture: _Picture, told: Recording, workers: Sequence[str], over_s: float) -> None:
    killed = _per_cent(told, told.killed_s, over_s)
    titles = ["queued", *(f"worker {each.rpartition('-')[2]}" for each in workers), "idle"]
    notes = ["keys that wait in the stream", *("" for _ in workers), "no turn is due"]
    for row, (title, note) in enumerate(zip(titles, notes, strict=True)):
        y = _y(row)
        picture.body.append(
            f'<path class="r" d="M24 {y + ROW - 8}H{WIDTH - 24}"/><text x="24" y="{y + 18}">{title}</text>'
        )
        if note:
            picture.body.append(f'<text class="m" x="24" y="{y + 36}">{note}</text>')
    y = _y(1)
    picture.body.append(f'<text class="x a v" x="24" y="{y + 36}" font-size="13">SIGKILL</text>')
    picture.shown("v", killed, 100)


def _places(told: Recording, workers: Sequence[str], key: str, over_s: float) -> Iterator[tuple[float, int]]:
    """When a key is in which row, until it is let go of for the first time after the takeover."""
    idle = len(workers) + 1
    let_go_s = told.let_go_s(key, over_s)
    for moment in told.moments:
        worker = moment.held.get(key)
        if moment.at_s >= let_go_s:
            yield moment.at_s, idle
        elif worker is not None:
            yield moment.at_s, 1 + workers.index(worker)
        else:
            yield moment.at_s, 0 if key in moment.queued else idle


def _key(picture: _Picture, told: Recording, workers: Sequence[str], number: int, key: str, over_s: float) -> None:
    x, frames, before, rest = LEFT + (CHIP + 12) * number, [], None, 0
    for at_s, row in _places(told, workers, key, over_s):
        at = _per_cent(told, at_s, over_s)
        if before is None:
            frames.append((0.0, row))
        elif row != before:
            last = frames[-1][0]
            begin = max(at, last + 0.02)
            frames += [(begin, before), (min(begin + MOVE, 99.8), row)]
        before = row
        if at_s <= over_s:
            rest = row
    frames.append((100.0, before or 0))
    name = f"k{number}"
    stops = "".join(f"{at:.2f}%{{transform:translate({x}px,{_y(row)}px)}}" for at, row in frames)
    picture.css.append(
        f"@keyframes {name}{{{stops}}}.{name}{{animation-name:{name};transform:translate({x}px,{_y(rest)}px)}}"
    )
    picture.body.append(
        f'<g class="c {name}"><rect width="{CHIP}" height="36" rx="8" fill="{_COLOURS[number % len(_COLOURS)]}"/>'
        f'<text x="{CHIP // 2}" y="23" text-anchor="middle">{escape(key)}</text></g>'
    )


def _clock(picture: _Picture, told: Recording, over_s: float) -> None:
    """What happens, and the time from the kill on, as it was measured."""
    first_s, last_s = told.moments[0].at_s, told.moments[-1].at_s
    span_ms = (over_s - told.killed_s) * 1000
    marks = [first_s + (told.killed_s - first_s) * part / 6 for part in range(6)]
    marks += [told.killed_s + span_ms * part / 12 / 1000 for part in range(13)]
    marks += [over_s + (last_s - over_s) * part / 8 for part in range(1, 9)]
    for number, at_s in enumerate(marks):
        begin = _per_cent(told, at_s, over_s)
        end = _per_cent(told, marks[number + 1], over_s) if number + 1 < len(marks) else 100.0
        ms = (at_s - told.killed_s) * 1000
        text = f"{ms:+.0f} ms" if abs(ms) >= 20 or ms == 0 else f"{ms:+.1f} ms"
        picture.body.append(f'<text class="m a t t{number}" x="{WIDTH - 24}" y="34" text-anchor="end">{text}</text>')
        picture.shown(f"t{number}", begin, end)
    picture.body.append(
        '<text x="24" y="34" font-weight="600">Who holds which key, as Redis said. Slow motion; times are real.</text>'
    )
