// How far a change has come: of a Deployment a bar a ReplicaSet, of a DaemonSet a field a node.

import { el } from "./dom.js";

const STATES = {
  new: "new, ready", starting: "new, not ready", both: "old and new", old: "old", ending: "ending", none: "none", failed: "failed", astray: "where it may not stay",
};

export function rollout({ new: present, old, complete, waiting_for, error }) {
  const sets = [...(present ? [present] : []), ...[...old].reverse()].filter((each) => each === present || each.replicas || each.created);
  const most = Math.max(1, ...sets.map((each) => Math.max(each.replicas, each.created)));
  const kept = old.filter((each) => !each.replicas && !each.created).length;
  const told = error || (waiting_for ? `It waits: ${waiting_for}.` : complete ? "It is complete." : "It goes on.");
  return el("div", { class: "rollout" },
    ...sets.map((each) => replicaSetBar(each, most, each === present)),
    el("p", { class: "caption" }, told + (kept ? ` ${kept} older ReplicaSets without pods are kept.` : "")));
}

function replicaSetBar(set, most, present) {
  const part = (count, kind) => {
    const bar = el("i", { class: kind });
    bar.style.width = `${(100 * count) / most}%`;
    return bar;
  };
  const revision = set.revision ? `revision ${set.revision}` : "no revision";
  return el("div", { class: `set ${present ? "present" : "old"}` },
    el("span", { class: "name", title: set.name }, set.name),
    el("span", { class: "which" }, `${present ? "present, " : ""}${revision}`),
    el("div", { class: "track" }, part(set.replicas, "asked"), part(set.created, "created"), part(set.available, "available")),
    el("span", { class: "count" }, `${set.available} available, ${set.created} created of ${set.replicas}`));
}

export function nodes({ counts, each }) {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const used = Object.keys(STATES).filter((state) => counts[state]);
  const shares = used.map((state) => {
    const bar = el("i", { class: `n-${state}`, title: `${counts[state]} ${STATES[state]}` });
    bar.style.width = `${(100 * counts[state]) / total}%`;
    return bar;
  });
  const legend = used.map((state) => el("li", {}, el("i", { class: `n-${state}` }), `${counts[state]} ${STATES[state]}`));
  const fields = Object.entries(each).map(([node, state]) => el("i", { class: `n-${state}`, title: `${node}: ${STATES[state] ?? state}` }));
  const more = total > fields.length ? `The first ${fields.length} of ${total} nodes.` : `${total} nodes.`;
  return el("div", { class: "nodes" }, el("div", { class: "shares" }, ...shares), el("ul", { class: "legend" }, ...legend),
    el("div", { class: "fields", role: "img", "aria-label": "A field for each node" }, ...fields), el("p", { class: "caption" }, more));
}
