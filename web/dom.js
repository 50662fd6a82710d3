// Elements, numbers and requests.

// h("td.num", {title: "x"}, child, ...): an element; children are elements or text, never markup.
export function h(name, attributes, ...children) {
  const [tag, ...classes] = name.split(".");
  const e = document.createElement(tag);
  if (classes.length) e.className = classes.join(" ");
  if (attributes !== null && (attributes?.nodeType || Array.isArray(attributes) || typeof attributes !== "object")) {
    children.unshift(attributes);
    attributes = null;
  }
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (key in e && key !== "list" && typeof value !== "string") e[key] = value;
    else e.setAttribute(key, value);
  }
  e.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined));
  return e;
}

const SVG = "http://www.w3.org/2000/svg";
export function svg(tag, attributes, ...children) {
  const e = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

export async function get(path) {
  const response = await fetch("/api" + path, {credentials: "same-origin"});
  const body = await response.json().catch(() => ({error: response.statusText}));
  if (!response.ok) throw new Error(body.error || response.statusText);
  return body;
}

export const known = (v) => v !== null && v !== undefined && Number.isFinite(v);

export function number(v, digits = 5) {
  if (!known(v)) return "–";
  if (v === 0) return "0";
  const size = Math.abs(v);
  if (Number.isInteger(v) && size < 1e7) return v.toLocaleString("en");
  if (size >= 1e7 || size < 1e-3) return v.toExponential(Math.min(3, digits - 1)).replace("e+", "e");
  return Number(v.toPrecision(digits)).toString();
}

export function bytes(v) {
  if (!known(v)) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let i = 0;
  while (Math.abs(v) >= 1000 && i < units.length - 1) {
    v /= 1000;
    i++;
  }
  return `${Number(v.toPrecision(3))} ${units[i]}`;
}

export function seconds(v) {
  if (!known(v)) return "–";
  if (v < 0.1) return `${Number((1000 * v).toPrecision(3))} ms`;
  if (v < 120) return `${Number(v.toPrecision(3))} s`;
  if (v < 7200) return `${Math.floor(v / 60)} min ${Math.round(v % 60)} s`;
  return `${Math.floor(v / 3600)} h ${Math.round((v % 3600) / 60)} min`;
}

export function when(ms) {
  if (!known(ms)) return "–";
  const d = new Date(ms), two = (n) => String(n).padStart(2, "0");
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

export function ago(ms) {
  const s = (Date.now() - ms) / 1000;
  if (s < 60) return `${Math.max(0, Math.floor(s))} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} d ago`;
}

// A sign and a word: readable without colour.
const SIGNS = {running: "▸", done: "✓", failed: "✕", diverged: "↗", interrupted: "‖", killed: "⊘", silent: "?",
               live: "●", stale: "◐", gone: "○", unknown: "·", "other run": "≠"};
export function status(word) {
  return h("span.status." + word.split(" ")[0], h("i", {"aria-hidden": "true"}, SIGNS[word] || "·"), word);
}

export function card(title, hint, ...body) {
  return h("section.card", h("header", h("h2", title), hint ? h("span.hint", hint) : null), ...body);
}

export function tile(label, value, note) {
  return h("div.tile", h("div.label", label), h("div.value", value), note ? h("div.note", note) : null);
}

export function facts(pairs) {
  return h("dl.facts", pairs.filter(([, v]) => v).map(([k, v]) => [h("dt", k), h("dd", v)]).flat());
}

// Settings are texts: 1e-4 and 0.0001 are the same.
export function same(a, b) {
  return a === b || (a !== "" && b !== "" && a !== undefined && b !== undefined && Number(a) === Number(b));
}

export const empty = (text) => h("div.empty", text);
