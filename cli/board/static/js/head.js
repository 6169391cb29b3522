// The figures of the fleet, and what is wrong with it. The places of the figures stay; only their texts change.

import { byId, el, text } from "./dom.js";

const ALARMING = { failing: /[1-9]/, parked: /[1-9]/, "429s/s": /[1-9]/ };
const TITLES = {
  epoch: "One life of the data in Redis, and its phase",
  view: "The age of the cache: since an ingestor confirmed it, of the oldest resource",
  "turns/s": "Turns that began",
  "API budget": "Requests a second that all workers together may make now, and at most",
  "429s/s": "Requests that the API server throttled",
  failing: "Keys whose last turn failed",
  parked: "Keys that crash their workers",
  oldest: "How long the first queued key has waited",
};

export function drawHead(head) {
  figures(byId("fleet-figures"), head.figures, head.lost);
  figures(byId("key-figures"), head.keys, head.lost);
  const list = byId("problems");
  while (list.children.length > head.problems.length) list.lastChild.remove();
  head.problems.forEach((problem, at) => text(list.children[at] ?? list.appendChild(el("li")), problem));
}

function figures(list, found, lost) {
  list.classList.toggle("old", lost);
  for (const [name, value] of Object.entries(found)) {
    let item = [...list.children].find((each) => each.dataset.name === name);
    if (!item) {
      item = el("div", { "data-name": name, title: TITLES[name] }, el("dt", {}, name), el("dd"));
      list.append(item);
    }
    text(item.lastChild, value);
    item.classList.toggle("alarm", Boolean(ALARMING[name]?.test(value)));
  }
}
