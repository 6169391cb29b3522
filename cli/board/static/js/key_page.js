// The page of one key: why nothing happens, its life, its rollout, its last turns, its last traceback.

import { askJson } from "./api.js";
import { el, span } from "./dom.js";
import { nodes, rollout } from "./rollout.js";
import { timeline } from "./timeline.js";

export class KeyPage {
  constructor([shard, queue, key], actions) {
    this.task = [shard, queue, key];
    this.why = el("ul", { class: "sentences" }, el("li", {}, "asking ..."));
    this.state = el("span", { class: "state" });
    this.rest = el("div");
    const title = el("h2", {}, el("span", { class: "kind" }, queue), ` ${key} `, this.state);
    this.element = el("article", { class: "key" },
      el("p", { class: "back" }, el("a", { href: "#/keys" }, "\u2190 Keys")), el("div", { class: "title" }, title, ...actions), this.why, this.rest);
  }

  begin() {
    this.ended = false;
    this.again();
  }

  end() {
    this.ended = true;
    clearTimeout(this.timer);
  }

  async again() {
    clearTimeout(this.timer);
    const [shard, queue, key] = this.task;
    let next_ms = 3000;
    try {
      const about = await askJson("key", { shard, queue, key });
      if (this.ended) return;
      this.draw(about);
      next_ms = about.again_ms;
    } catch (error) {
      if (this.ended) return;
      this.why.replaceChildren(el("li", { class: "alarm" }, error.message));
    }
    this.timer = setTimeout(() => this.again(), next_ms);
  }

  draw(about) {
    const told = JSON.stringify({ ...about, age_ms: 0, again_ms: 0 });
    if (told === this.told) return;
    this.told = told;
    this.state.textContent = about.state + (about.failures ? `, failed ${about.failures} times in a row` : "");
    this.state.className = `state ${about.failures || about.state === "parked" ? "alarm" : about.state.replace("+", "")}`;
    this.why.replaceChildren(...about.sentences.map((sentence) => el("li", {}, sentence)));
    const parts = [section("Its life", el("div", { class: "scroll" }, timeline(about)), LEGEND())];
    if (about.rollout) parts.push(section("Its rollout", rollout(about.rollout)));
    if (about.nodes && Object.keys(about.nodes.each).length) parts.push(section("Its nodes", nodes(about.nodes)));
    parts.push(section("Its last turns", turns(about)));
    if (about.traceback.length) parts.push(section("Its last traceback", el("pre", { tabindex: "0" }, about.traceback.join("\n"))));
    this.rest.replaceChildren(...parts);
  }
}

function section(title, ...content) {
  return el("section", {}, el("h3", {}, title), ...content);
}

const LEGEND = () => el("p", { class: "caption life" }, el("i", { class: "waited" }), "waited in the queue ", el("i", { class: "took" }), "took ", el("i", { class: "failed" }), "failed or lost; heights are logarithmic");

function turns(about) {
  if (!about.turns.length) return el("p", { class: "empty" }, "no turn of this key is remembered");
  const heads = ["ENDED", "OUTCOME", "WAITED", "TOOK", "DID", "BECAUSE", "WORKER"].map((name) =>
    el("th", { scope: "col", class: `c-${name.toLowerCase()}` }, name));
  const rows = about.turns.map((turn) => {
    const many = turn.turns > 1 ? ` x${turn.turns}` : "";
    const cells = [`${span(about.now_ms - turn.ended_ms)} ago`, turn.verdict + many, span(turn.waited_ms), span(turn.took_ms), turn.did, turn.because, turn.holder];
    return el("tr", { class: turn.verdict === "retry" || turn.verdict === "lost" ? "alarm" : null },
      ...cells.map((cell, at) => el("td", { class: heads[at].className, title: cell.length > 24 ? cell : null }, cell)));
  });
  return el("div", { class: "scroll" }, el("table", { class: "turns" }, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows)));
}
