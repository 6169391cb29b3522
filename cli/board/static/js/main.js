// The page: which view is shown, what the keyboard does, and the stream of looks that all views are drawn from.

import { askJson, post, Stream } from "./api.js";
import { byId, el, text } from "./dom.js";
import { drawHead } from "./head.js";
import { KeyPage } from "./key_page.js";
import { keyAddress } from "./table.js";
import { Overview, TabView } from "./views.js";

const POINTS_MAX = 5000;
const SAID_MS = 6000;
const HIDDEN_MS = 10000;
let hello = null, view = null, route = null, points = [], saidTimer = null;

const stream = new Stream(
  () => ({ parts: (view?.parts ?? []).join(","), after: points.at(-1)?.[0] ?? 0 }),
  (event, value) => {
    if (event === "hello") greet(value);
    else if (event === "head") drawHead(value);
    else if (event === "point") addPoint(value);
    else if (view?.parts?.includes(value.part)) view.take(event, value);
  },
  (state) => {
    const live = state === "live";
    document.body.classList.toggle("lost", !live);
    text(byId("live").lastChild, live ? "live" : state);
  },
);

function greet(value) {
  const first = hello === null;
  hello = value;
  points.push(...value.points);
  if (!first) return;
  drawTabs();
  show();
}

function addPoint(point) {
  if (point[0] > (points.at(-1)?.[0] ?? 0)) points.push(point); // the greeting may have had it
  if (points.length > POINTS_MAX) points.splice(0, points.length - POINTS_MAX / 2);
  view?.point?.();
}

// -- which view is shown

function drawTabs() {
  const tabs = [{ name: "overview", title: "Overview" }, ...hello.tabs];
  byId("tabs").replaceChildren(...tabs.map(({ name, title }, at) =>
    el("a", { role: "tab", id: `tab-${name}`, href: `#/${name}`, "aria-controls": "main" }, el("kbd", { "aria-hidden": "true" }, String(at)), title)));
}

function show() {
  if (hello === null) return;
  const wanted = location.hash.replace(/^#\/?/, "") || "overview";
  if (wanted === route || wanted === "main") return;
  view?.end();
  route = wanted;
  const [name, ...rest] = wanted.split("/").map(decode);
  if (name === "key" && rest.length === 3) view = keyView(rest);
  else if (hello.tabs.some((tab) => tab.name === name)) view = new TabView(hello, name);
  else view = new Overview(hello, points);
  byId("main").replaceChildren(view.element);
  document.title = name === "key" ? `${rest[2]} - oarlock` : "oarlock";
  for (const tab of byId("tabs").children) {
    const is = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(is));
    if (is) byId("main").setAttribute("aria-labelledby", tab.id);
  }
  scrollTo(0, 0);
  view.begin?.();
  view.point?.();
  stream.begin();
}

function keyView(task) {
  const button = el("button", { type: "button", class: "act", title: "Queue it again, now (R)", onclick: () => requeue(task) }, "Requeue");
  return new KeyPage(task, hello.write ? [button] : []);
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// -- what may be done

async function requeue(task) {
  if (!hello.write) return say("the board only looks; start it with --write to requeue", true);
  if (!task) return say("this row is about no key", true);
  const [shard, queue, key] = task;
  try {
    say((await post("requeue", { shard, queue, key })).told);
    view.again?.();
  } catch (error) {
    say(error.message, true);
  }
}

async function find(key) {
  if (!key) return;
  try {
    const { tasks } = await askJson("find", { key });
    location.hash = keyAddress(tasks[0]);
    byId("main").focus();
  } catch (error) {
    say(error.message, true);
  }
}

function say(told, alarm = false) {
  const said = byId("said");
  text(said, told);
  said.className = alarm ? "shown alarm" : "shown";
  clearTimeout(saidTimer);
  saidTimer = setTimeout(() => (said.className = ""), SAID_MS);
}

function turnTheme() {
  const root = document.documentElement, dark = root.dataset.theme === "dark";
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("oarlock-theme", root.dataset.theme);
  nameTheme();
  view?.plots?.recolour();
}

function nameTheme() {
  byId("theme").textContent = document.documentElement.dataset.theme === "dark" ? "Light" : "Dark";
}

// -- the keyboard

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const field = event.target.closest("input");
  if (field) {
    if (event.key === "Escape" && field === view?.field) {
      field.value = "";
      view.table.filter("");
      view.tell();
    }
    if (event.key === "Escape" || (event.key === "Enter" && field === view?.field)) {
      field.blur();
      view?.table?.move(0);
      event.preventDefault();
    }
    return;
  }
  const done = KEYS[event.key] ?? KEYS[/^[0-5]$/.test(event.key) ? "number" : ""];
  if (done && done(event) !== false) event.preventDefault();
}

const KEYS = {
  number: (event) => (location.hash = `#/${["overview", ...hello.tabs.map((tab) => tab.name)][Number(event.key)]}`),
  j: () => view?.table?.move(1),
  k: () => view?.table?.move(-1),
  ArrowDown: () => (view?.table ? view.table.move(1) : false),
  ArrowUp: () => (view?.table ? view.table.move(-1) : false),
  ArrowLeft: (event) => besideTab(event, -1),
  ArrowRight: (event) => besideTab(event, 1),
  Enter: (event) => {
    if (event.target.closest("a, button") || !view?.table) return false;
    if (view.table.task) location.hash = keyAddress(view.table.task);
    else say("this row is about no key", true);
  },
  Escape: () => (route?.startsWith("key/") ? history.back() : false),
  "/": () => (view?.field ? view.field.focus() : (location.hash = "#/keys")),
  g: () => byId("find").elements.key.focus(),
  R: () => requeue(view?.task ?? view?.table?.task),
  t: turnTheme,
  "?": () => byId("keys-help").showModal(),
};

function besideTab(event, step) {
  const tabs = [...byId("tabs").children], at = tabs.indexOf(event.target.closest("[role=tab]"));
  if (at < 0) return false;
  const tab = tabs[(at + step + tabs.length) % tabs.length];
  tab.focus();
  location.hash = tab.getAttribute("href");
}

// A page that nobody sees gives its stream back: a browser has six connections to a server for all of its tabs.
let hiding = null;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(() => stream.end(), HIDDEN_MS);
  else stream.begin();
});
addEventListener("pagehide", () => stream.end());
addEventListener("pageshow", (event) => event.persisted && stream.begin());

document.addEventListener("keydown", onKey);
addEventListener("hashchange", show);
byId("theme").addEventListener("click", turnTheme);
byId("help").addEventListener("click", () => byId("keys-help").showModal());
byId("find").addEventListener("submit", (event) => {
  event.preventDefault();
  find(event.target.elements.key.value.trim());
});
nameTheme();
stream.begin();
