// A key's life: a column a turn, the newest on the right, then now. Turns come in bursts with long pauses between, so the
// columns are equally wide and the time between two is written there. Heights are logarithmic: a bar ten times as long as
// another is one step higher.

import { span, svg } from "./dom.js";

const BASE = 92;
const HEIGHT = 128;
const STEP = 14;
const PAUSE_MS = 1000;

const high = (ms) => Math.min(BASE - 14, 3 + STEP * Math.log10(1 + ms));

export function timeline(about) {
  const turns = [...about.turns].reverse(), count = turns.length + 1.4, wide = 100 / count;
  const label = `Its last turns, the newest on the right: ${turns.map((turn) => turn.verdict).join(", ")}`;
  const drawn = svg("svg", { class: "timeline", height: HEIGHT, width: "100%", role: "img", "aria-label": label });
  drawn.append(svg("line", { x1: "0", x2: "100%", y1: BASE, y2: BASE, class: "axis" }));
  turns.forEach((turn, at) => {
    const middle = (at + 0.5) * wide, before = turns[at - 1], begun = turn.ended_ms - turn.took_ms - turn.waited_ms;
    if (before && begun - before.ended_ms > PAUSE_MS) drawn.append(pause(at * wide, begun - before.ended_ms));
    drawn.append(column(turn, middle, about.now_ms));
  });
  drawn.append(present(about, (count - 0.7) * wide));
  return drawn;
}

function column(turn, middle, now) {
  const many = turn.turns > 1 ? ` x${turn.turns}` : "", ago = span(now - turn.ended_ms);
  const told = `${ago} ago: ${turn.verdict}${many}, ${turn.did} (waited ${span(turn.waited_ms)}, took ${span(turn.took_ms)} on ${turn.holder}), because ${turn.because}`;
  return svg("g", {}, svg("title", {}, told),
    svg("rect", { x: `${middle}%`, transform: "translate(-13 0)", width: 12, y: BASE - high(turn.waited_ms), height: high(turn.waited_ms), class: "waited" }),
    svg("rect", { x: `${middle}%`, transform: "translate(1 0)", width: 12, y: BASE - high(turn.took_ms), height: high(turn.took_ms), class: `took ${turn.verdict}` }),
    svg("circle", { cx: `${middle}%`, cy: BASE, r: 5, class: turn.verdict }),
    svg("text", { x: `${middle}%`, y: BASE + 20, class: "label" }, ago),
    turn.turns > 1 || turn.verdict !== "ok" ? svg("text", { x: `${middle}%`, y: BASE + 33, class: `label ${turn.verdict}` }, turn.verdict + many) : null);
}

function pause(at, ms) {
  return svg("g", {}, svg("title", {}, `${span(ms)} between`),
    svg("line", { x1: `${at}%`, x2: `${at}%`, y1: 22, y2: BASE, class: "pause" }), svg("text", { x: `${at}%`, y: 14, class: "label pause" }, span(ms)));
}

function present(about, middle) {
  const due = about.delayed_in_ms ?? about.parked_in_ms, since = about.lock ? about.lock.age_ms : about.since_ms ? about.now_ms - about.since_ms : null;
  const kind = about.lock ? "running" : about.since_ms ? "queued" : "idle";
  return svg("g", {}, svg("title", {}, about.lock ? `in work on ${about.lock.holder}` : about.state),
    since === null ? null : svg("rect", { x: `${middle}%`, transform: "translate(-6 0)", width: 12, y: BASE - high(since), height: high(since), class: kind }),
    svg("circle", { cx: `${middle}%`, cy: BASE, r: 6, class: `present ${kind}` }),
    svg("text", { x: `${middle}%`, y: BASE + 20, class: "label strong" }, since === null ? about.state : `${about.state} ${span(since)}`),
    due === null || due === undefined ? null : svg("text", { x: `${middle}%`, y: BASE + 33, class: "label" }, due > 0 ? `again in ${span(due)}` : "due"));
}
