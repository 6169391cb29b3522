// Plots of the last quarter of an hour, drawn by uPlot (vendor/).
/* global uPlot */

import { el, size } from "./dom.js";

const WINDOW_S = 900;
const SHORTEST_S = 120;
const HEIGHT = 170;
const PALETTE = ["--s1", "--s2", "--s3", "--s4", "--s5", "--s6"];
const whole = (value) => (value === null || value === undefined ? "-" : value.toLocaleString("en", { maximumFractionDigits: 1 }));
const axis = (value) => (value >= 1e6 ? `${value / 1e6}M` : value >= 1e3 ? `${value / 1e3}k` : String(value));

// Which plots there are: title, names of series, how a value is written.
function kinds(hello) {
  return [
    { title: "Queued keys", series: hello.queues, tell: whole },
    { title: "Per second", series: ["turns", "calls", "throttled"], named: ["turns", "API calls", "429s"], tell: whole },
    { title: "Waiting, in seconds", series: ["oldest_s", "view_s"], named: ["oldest queued key", "age of the view"], tell: whole },
    { title: "Redis memory", series: ["memory"], named: ["used"], tell: (value) => (value === null ? "-" : size(value)), memory: true },
  ];
}

export class Plots {
  constructor(hello, points) {
    this.hello = hello;
    this.points = points;
    this.element = el("div", { class: "plots" });
    this.drawn = kinds(hello).map((kind) => this.add(kind));
    this.sized = new ResizeObserver(() => this.resize());
    this.sized.observe(this.element);
  }

  add(kind) {
    const holder = el("div");
    this.element.append(el("figure", { role: "img", "aria-label": kind.title }, el("figcaption", {}, kind.title), holder));
    return { kind, holder, plot: null };
  }

  begin(each) {
    const { kind, holder } = each, style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axisLook = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const series = kind.series.map((name, at) => ({
      label: kind.named?.[at] ?? name,
      stroke: colour(PALETTE[at % PALETTE.length]),
      fill: kind.series.length === 1 ? colour("--wash") : undefined,
      width: 1.6,
      points: { show: false },
      spanGaps: false,
      value: (_, value) => kind.tell(value),
    }));
    const options = {
      width: holder.clientWidth || 300,
      height: HEIGHT,
      padding: [8, 8, 0, 0],
      cursor: { sync: { key: "oarlock" }, y: false, drag: { x: false, y: false } },
      scales: { x: { time: true, range: (_, low, high) => [Math.min(low, high - SHORTEST_S), high] }, y: { range: (_, low, high) => (kind.memory ? [0, high * 1.15 || 1] : [0, Math.max(high * 1.15, 1)]) } },
      axes: [
        { ...axisLook, size: 26, space: 70, values: (_, marks) => marks.map((mark) => clock(mark)) },
        { ...axisLook, size: 46, space: 28, values: (_, marks) => marks.map((mark) => (kind.memory ? size(mark).replace(".0", "") : axis(mark))) },
      ],
      series: [{ label: "at", value: (_, value) => (value ? clock(value, true) : "-") }, ...series],
    };
    each.plot = new uPlot(options, this.data(kind), holder);
  }

  data(kind) {
    const columns = ["", ...this.hello.series], at = kind.series.map((name) => columns.indexOf(name));
    const last = this.points.at(-1)?.[0] ?? Date.now() / 1000;
    const shown = this.points.filter((point) => point[0] > last - WINDOW_S);
    const times = shown.map((point) => point[0]);
    const values = at.map((column) => shown.map((point) => point[column]));
    // Where nobody watched there are no points: a line across would tell what nobody saw.
    for (let i = times.length - 1; i > 0; i--) {
      if (times[i] - times[i - 1] > 5 + this.hello.interval_s) {
        times.splice(i, 0, times[i - 1] + this.hello.interval_s);
        values.forEach((each) => each.splice(i, 0, null));
      }
    }
    return [times, ...values];
  }

  draw() {
    for (const each of this.drawn) {
      if (!each.plot) this.begin(each);
      else each.plot.setData(this.data(each.kind));
      const { plot } = each;
      if (plot.cursor.idx === null || plot.cursor.left < 0) plot.setLegend({ idx: plot.data[0].length - 1 });
    }
  }

  resize() {
    for (const { plot, holder } of this.drawn) plot?.setSize({ width: holder.clientWidth, height: HEIGHT });
  }

  // Other colours: canvases do not follow the style.
  recolour() {
    for (const each of this.drawn) {
      each.plot?.destroy();
      each.plot = null;
    }
    this.draw();
  }

  end() {
    this.sized.disconnect();
    for (const { plot } of this.drawn) plot?.destroy();
  }
}

function clock(unix_s, seconds = false) {
  return new Date(unix_s * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(seconds ? { second: "2-digit" } : {}) });
}
