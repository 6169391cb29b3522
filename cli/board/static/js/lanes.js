// The fleet's processes coming and going: a lane each over the last quarter of an hour, workers by supervisor.

import { el, span, text } from "./dom.js";

const WINDOW_MS = 900_000;

export class Lanes {
  constructor() {
    this.list = el("div", { class: "lanes" });
    this.caption = el("p", { class: "caption" });
    this.element = el("div", {}, this.caption, this.list);
    this.elements = new Map();
  }

  set(lanes) {
    const now = Date.now(), there = new Set();
    let group = null, place = this.list.firstChild;
    const put = (element) => {
      if (element === place) place = place.nextSibling;
      else this.list.insertBefore(element, place);
    };
    for (const lane of lanes) {
      if (lane[2] !== group) {
        group = lane[2];
        put(this.keep(there, `group ${group}`, () => el("h4", {}, group || "(no supervisor)")));
      }
      const element = this.keep(there, `lane ${lane[0]} ${lane[1]}`, () => laneElement(lane));
      place_bar(element, lane, now);
      put(element);
    }
    for (const [name, element] of this.elements) {
      if (!there.has(name)) {
        element.remove();
        this.elements.delete(name);
      }
    }
    const gone = lanes.filter((lane) => lane[4]).length, ingestors = count(lanes, true), workers = count(lanes, false);
    text(this.caption, `${workers} and ${ingestors} are there, ${gone} have left in the last 15 minutes`);
  }

  keep(there, name, make) {
    there.add(name);
    if (!this.elements.has(name)) this.elements.set(name, make());
    return this.elements.get(name);
  }
}

function count(lanes, ingestors) {
  const there = lanes.filter((lane) => !lane[4] && (lane[2] === "ingestors") === ingestors).length;
  return `${there} ${ingestors ? "ingestor" : "worker"}${there === 1 ? "" : "s"}`;
}

function laneElement([, name, group]) {
  const short = group ? name.replace(`${group}-`, "") : name;
  return el("div", { class: "lane", title: name }, el("span", { class: "name" }, short), el("div", { class: "track" }, el("i")), el("span", { class: "since" }));
}

function place_bar(element, [, , , began, gone, keys], now) {
  const bar = element.querySelector("i"), from = Math.max(0, 1 - (now - began) / WINDOW_MS);
  const to = gone ? 1 - (now - gone) / WINDOW_MS : 1;
  bar.style.left = `${100 * from}%`;
  bar.style.width = `max(3px, ${100 * Math.max(0, to - from)}%)`;
  element.classList.toggle("gone", gone > 0);
  element.classList.toggle("works", keys > 0);
  element.classList.toggle("came", !gone && began > now - WINDOW_MS);
  text(element.lastChild, gone ? `left ${span(now - gone)} ago` : `up ${span(now - began)}`);
}
