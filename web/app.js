// Addresses, the event stream, theme and keyboard.
import {h, get} from "/dom.js";
import {runsPage} from "/page_runs.js";
import {runPage} from "/page_run.js";
import {federationPage} from "/page_federation.js";
import {comparePage} from "/page_compare.js";

const main = document.getElementById("main"), live = document.getElementById("live");
let page = null, busy = false, again = false, about = {};

function choose(path, query) {
  const [, name, id] = path.split("/");
  if (name === "run" && /^\d+$/.test(id || "")) return ["run", () => runPage(Number(id))];
  if (name === "federation" && /^\d+$/.test(id || "")) return ["federation", () => federationPage(Number(id))];
  if (name === "compare") return ["compare", () => comparePage((query.get("ids") || "").split(",").filter((s) => /^\d+$/.test(s)).map(Number), open)];
  return ["runs", () => runsPage(open)];
}

function failed(error) {
  main.replaceChildren(h("div.card.error", {role: "alert"}, error.message), h("p", h("a", {href: "/runs"}, "All runs")));
}

// A page is {element, title, refresh(), keys, recolor, close}.
async function show() {
  const [name, make] = choose(location.pathname, new URLSearchParams(location.search));
  page?.close?.();
  page = null;
  for (const a of document.querySelectorAll("nav a")) {
    if (a.dataset.page === name) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  try {
    const made = make();
    page = made;
    main.replaceChildren(made.element);
    main.className = "";
    await made.refresh();
    document.title = made.title() + " · hfsad";
    main.dataset.ready = location.pathname;
  } catch (error) {
    failed(error);
  }
}

export function open(address) {
  history.pushState(null, "", address);
  return show();
}

// One refresh at a time; what comes meanwhile is one more.
async function refresh() {
  if (busy) {
    again = true;
    return;
  }
  busy = true;
  do {
    again = false;
    const shown = page;
    try {
      await shown?.refresh();
      if (shown && shown === page) document.title = shown.title() + " · hfsad";
    } catch (error) {
      if (shown === page && !shown?.drawn?.()) failed(error);
    }
    await new Promise((done) => setTimeout(done, 200));
  } while (again);
  busy = false;
}

function listen() {
  const events = new EventSource("/api/events");
  events.addEventListener("open", () => {
    live.textContent = "live";
    live.classList.add("on");
  });
  events.addEventListener("change", () => document.hidden || refresh());
  events.addEventListener("error", () => {
    live.textContent = "not connected";
    live.classList.remove("on");
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
  });
}

document.addEventListener("visibilitychange", () => document.hidden || refresh());
window.addEventListener("popstate", show);
document.addEventListener("click", (event) => {
  const a = event.target.closest("a[href^='/']");
  if (!a || event.button || event.metaKey || event.ctrlKey || event.shiftKey || a.hasAttribute("download")) return;
  event.preventDefault();
  open(a.getAttribute("href"));
});

const themes = [undefined, "light", "dark"];
function nextTheme() {
  const root = document.documentElement;
  const next = themes[(themes.indexOf(root.dataset.theme) + 1) % themes.length];
  if (next) {
    root.dataset.theme = next;
    localStorage.setItem("hfsad-theme", next);
  } else {
    delete root.dataset.theme;
    localStorage.removeItem("hfsad-theme");
  }
  page?.recolor?.();
}
document.getElementById("theme").addEventListener("click", nextTheme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page?.recolor?.());
const keys = document.getElementById("keys");
document.getElementById("help").addEventListener("click", () => keys.showModal());

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "?") keys.showModal();
  else if (event.key === "t") nextTheme();
  else if (event.key === "r") open("/runs");
  else if (event.key === "/") {
    document.querySelector("input[type=search]")?.focus();
    event.preventDefault();
  } else page?.keys?.(event);
});

about = await get("/about").catch(() => ({}));
if (location.pathname === "/" && about.run) history.replaceState(null, "", `/run/${about.run}`);
await show();
listen();
