// What is asked of the server. All paths are relative, so the page works below any path.

import { byId } from "./dom.js";

const KEPT = "oarlock-token";
const RETRY_MS = [500, 1000, 2000, 4000];
const SILENT_MS = 15000;

export async function ask(path, query = {}, options = {}) {
  const asked = new URLSearchParams(query).toString();
  const token = sessionStorage.getItem(KEPT);
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const answer = await fetch(`api/${path}${asked ? `?${asked}` : ""}`, { cache: "no-store", ...options, headers });
  if (answer.status === 401) {
    sessionStorage.removeItem(KEPT);
    await askForToken();
    return ask(path, query, options);
  }
  return answer;
}

export async function askJson(path, query, options) {
  const answer = await ask(path, query, options);
  if (answer.ok) return answer.json();
  const type = answer.headers.get("Content-Type") ?? "";
  const told = type.startsWith("application/json") ? (await answer.json()).problem : await answer.text();
  throw new Error(told.trim() || `the server answers ${answer.status}`);
}

export function post(path, value) {
  return askJson(path, {}, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) });
}

let asking = null;

function askForToken() {
  asking ??= new Promise((resolve) => {
    const dialog = byId("token-dialog"), form = dialog.querySelector("form");
    const take = () => {
      sessionStorage.setItem(KEPT, form.elements.token.value.trim());
      form.reset();
      asking = null;
      resolve();
    };
    dialog.addEventListener("close", take, { once: true });
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.showModal();
  });
  return asking;
}

// A stream of looks that comes back by itself. `query()` is asked at each begin; `on` takes the name of an event and its
// value; `onState` takes "live" or why it is not.
export class Stream {
  constructor(query, on, onState) {
    this.query = query;
    this.on = on;
    this.onState = onState;
    this.failures = 0;
    this.round = 0;
  }

  // Begin, or begin anew with another query.
  begin() {
    this.abort?.abort();
    this.abort = new AbortController();
    clearTimeout(this.timer);
    this.run(++this.round, this.abort.signal);
  }

  // Give the connection back; `begin` asks for what was missed.
  end() {
    this.round++;
    this.abort?.abort();
    clearTimeout(this.timer);
  }

  async run(round, signal) {
    let why = "the server has ended the stream";
    try {
      const answer = await ask("events", this.query(), { signal });
      if (!answer.ok) throw new Error((await answer.text()).trim() || `the server answers ${answer.status}`);
      await this.read(answer.body.getReader());
    } catch (error) {
      why = error instanceof TypeError ? "the server does not answer" : error.message;
    }
    if (round !== this.round) return;
    this.onState(why);
    this.timer = setTimeout(() => this.begin(), RETRY_MS[Math.min(this.failures++, RETRY_MS.length - 1)]);
  }

  async read(reader) {
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const { value, done } = await within(SILENT_MS, reader.read(), reader);
      if (done) return;
      const events = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = events.pop();
      for (const each of events) {
        const [name, data] = each.split("\n");
        this.failures = 0;
        this.onState("live");
        this.on(name.slice("event: ".length), JSON.parse(data.slice("data: ".length)));
      }
    }
  }
}

async function within(ms, promise, reader) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("the server is silent")), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } catch (error) {
    reader.cancel().catch(() => {});
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
