// The views below the head: the overview, a tab with its table, and the page of a key. Each takes the parts of a look.

import { el, text } from "./dom.js";
import { Lanes } from "./lanes.js";
import { Plots } from "./plots.js";
import { Table } from "./table.js";

const SHORT = 6;

// A tab: one table, with a filter.
export class TabView {
  constructor(hello, name) {
    const tab = hello.tabs.find((each) => each.name === name);
    this.parts = [name];
    this.table = new Table(tab);
    this.caption = el("span", { class: "caption" });
    this.field = el("input", { type: "search", placeholder: "filter", "aria-label": "Show only rows with these words", autocomplete: "off", spellcheck: "false" });
    this.field.addEventListener("input", () => {
      this.table.filter(this.field.value);
      this.tell();
    });
    const bar = el("div", { class: "bar" }, el("h2", {}, tab.title), this.caption, this.field);
    this.element = el("section", { class: "tab" }, bar, this.table.element);
  }

  take(event, part) {
    this.told = part.caption;
    if (event === "part") this.table.set(part.rows);
    else this.table.change(part.rows);
    this.tell();
  }

  tell() {
    const filtered = this.table.words.length ? `; the filter leaves ${this.table.visible.length} rows` : "";
    text(this.caption, this.told + filtered);
  }

  end() {}
}

// The start: plots, who needs a person, who fills the queue, who comes and goes.
export class Overview {
  constructor(hello, points) {
    this.parts = ["trouble", "namespaces", "processes"];
    this.plots = new Plots(hello, points);
    this.lanes = new Lanes();
    const tab = (name) => hello.tabs.find((each) => each.name === name);
    this.tables = {
      trouble: new Table(tab("trouble"), { shown: [1, 2, 3, 7], most: SHORT }),
      namespaces: new Table(tab("namespaces"), { shown: [0, 1, 2, 4], most: SHORT }),
    };
    this.captions = { trouble: el("p", { class: "caption" }), namespaces: el("p", { class: "caption" }) };
    const short = (name, title) =>
      el("section", {}, el("h2", {}, el("a", { href: `#/${name}` }, title)), this.captions[name], this.tables[name].element);
    this.element = el("div", { class: "overview" }, this.plots.element,
      el("div", { class: "halves" }, short("trouble", "Failing and parked"), short("namespaces", "Who fills the queue")),
      el("section", {}, el("h2", {}, "Processes coming and going"), this.lanes.element));
  }

  get table() {
    return this.tables.trouble;
  }

  take(event, part) {
    if (part.part === "processes") {
      this.lanes.set(part.lanes);
      return;
    }
    const table = this.tables[part.part];
    if (event === "part") table.set(part.rows);
    else table.change(part.rows);
    text(this.captions[part.part], part.caption);
  }

  point() {
    this.plots.draw();
  }

  end() {
    this.plots.end();
  }
}
