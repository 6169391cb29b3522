// A table whose rows are replaced again and again. Rows keep their elements, so neither selection nor view jumps.

import { el, text } from "./dom.js";

export function keyAddress(task) {
  const [shard, queue, key] = task;
  return `#/key/${[shard, queue, key].map(encodeURIComponent).join("/")}`;
}

export class Table {
  // `shown`: the indices of the columns that are shown, of a table that is a part of a page.
  constructor(tab, { shown = null, most = Infinity } = {}) {
    this.columns = shown ?? tab.columns.map((_, at) => at);
    this.tab = tab;
    this.most = most;
    this.rows = [];
    this.elements = new Map();
    this.words = [];
    this.selected = null;
    this.body = el("tbody");
    const heads = this.columns.map((at) => el("th", { scope: "col", class: cssName(tab.columns[at]) }, tab.columns[at]));
    const table = el("table", { "data-tab": tab.name }, el("thead", {}, el("tr", {}, ...heads)), this.body);
    this.empty = el("p", { class: "empty" }, "nothing");
    this.element = el("div", { class: "scroll" }, table, this.empty);
    this.body.addEventListener("click", (event) => this.select(event.target.closest("tr")?.dataset.name ?? null));
  }

  set(rows) {
    this.rows = rows;
    this.draw();
  }

  // Only these rows have other cells.
  change(changed) {
    for (const [at, row] of changed) this.rows[at] = row;
    this.draw();
  }

  filter(words) {
    this.words = words.toLowerCase().split(/\s+/).filter(Boolean);
    this.draw();
  }

  get visible() {
    const fits = (row) => {
      const all = row.cells.join(" ").toLowerCase();
      return this.words.every((word) => all.includes(word));
    };
    return (this.words.length ? this.rows.filter(fits) : this.rows).slice(0, this.most);
  }

  draw() {
    const visible = this.visible, names = new Set(visible.map((row) => row.name));
    for (const [name, element] of this.elements) {
      if (!names.has(name)) {
        element.remove();
        this.elements.delete(name);
      }
    }
    let place = this.body.firstChild;
    for (const row of visible) {
      const element = this.elementOf(row);
      if (element === place) place = place.nextSibling;
      else this.body.insertBefore(element, place);
    }
    this.empty.hidden = visible.length > 0;
    this.mark();
  }

  elementOf(row) {
    let element = this.elements.get(row.name);
    if (!element) {
      element = el("tr", { "data-name": row.name, tabindex: "-1" });
      for (const at of this.columns) element.append(this.cell(row, at));
      this.elements.set(row.name, element);
    }
    element.classList.toggle("alarm", row.alarm);
    this.columns.forEach((at, i) => {
      const cell = element.children[i], holder = cell.firstElementChild ?? cell;
      if (holder.textContent !== row.cells[at]) {
        text(holder, row.cells[at]);
        cell.title = row.cells[at].length > 24 ? row.cells[at] : "";
      }
    });
    return element;
  }

  cell(row, at) {
    const name = cssName(this.tab.columns[at]), cell = el("td", { class: name });
    if (name === "c-did") cell.append(el("span"));
    if (name === "c-key" && row.task) cell.append(el("a", { href: keyAddress(row.task), tabindex: "-1" }));
    if (name === "c-share") cell.append(el("span"));
    return cell;
  }

  // -- selection

  get task() {
    return this.rows.find((row) => row.name === this.selected)?.task ?? null;
  }

  select(name) {
    this.selected = name;
    this.mark();
  }

  move(step) {
    const visible = this.visible;
    if (!visible.length) return;
    const at = visible.findIndex((row) => row.name === this.selected);
    const next = at < 0 ? 0 : Math.min(visible.length - 1, Math.max(0, at + step));
    this.select(visible[next].name);
    const element = this.elements.get(this.selected);
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block: "nearest" });
  }

  mark() {
    for (const [name, element] of this.elements) {
      const is = name === this.selected;
      if ((element.getAttribute("aria-selected") === "true") !== is) element.setAttribute("aria-selected", String(is));
    }
  }
}

function cssName(column) {
  return `c-${column.toLowerCase().replaceAll(" ", "-")}`;
}
