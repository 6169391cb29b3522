// Elements made from values. Text is always set as text: whatever a name in the cluster holds, it is never markup.

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  return fill(made, attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return fill(made, attributes, children);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// Sets a text only where it differs, so that nothing else is drawn anew.
export function text(element, value) {
  const wanted = value === null || value === undefined || value === "" ? "-" : String(value);
  if (element.textContent !== wanted) element.textContent = wanted;
}

export function byId(id) {
  return document.getElementById(id);
}

// Milliseconds as short text, as `oarlock top` writes them: 850ms, 12.3s, 4m10s, 2h05m, 3d4h.
export function span(ms) {
  if (ms === null || ms === undefined) return "-";
  if (Math.abs(ms) < 1000) return `${Math.round(ms)}ms`;
  const seconds = ms / 1000;
  if (Math.abs(seconds) < 60) return `${seconds.toFixed(1)}s`;
  const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
  if (minutes < 60) return `${minutes}m${two(Math.floor(seconds % 60))}s`;
  return hours < 48 ? `${hours}h${two(minutes % 60)}m` : `${Math.floor(hours / 24)}d${hours % 24}h`;
}

function two(number) {
  return String(number).padStart(2, "0");
}

export function size(bytes) {
  let value = bytes;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (value < 1000) return unit === "B" ? `${value} B` : `${value.toFixed(1)} ${unit}`;
    value /= 1000;
  }
  return `${value.toFixed(1)} TB`;
}
