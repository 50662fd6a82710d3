// Federation: the tree with its states; inner nodes are folded, and of many clients those that need attention come first.
import {h, svg, get, number, bytes, when, status, card, tile, known, empty} from "/dom.js";

const STATES = ["gone", "stale", "unknown", "other run", "live", "done"];
const PAGE = 100;
// Patterns beside colours: full, dotted, striped, empty.
const FILL = {live: "--good", done: "--idle", stale: "--warn", gone: "--bad", unknown: "--line", "other run": "--line"};

function meter(counts) {
  const total = STATES.reduce((n, s) => n + (counts[s] || 0), 0);
  const bar = svg("svg", {viewBox: "0 0 100 10", preserveAspectRatio: "none"});
  let x = 0;
  for (const s of ["live", "done", "stale", "gone", "unknown", "other run"]) {
    const w = total ? (100 * (counts[s] || 0)) / total : 0;
    if (w) {
      const part = svg("rect", {x, y: s === "gone" ? 3 : 0, width: w, height: s === "gone" ? 4 : s === "stale" ? 6 : 10});
      part.style.fill = `var(${FILL[s]})`;
      bar.append(part);
    }
    x += w;
  }
  const text = STATES.filter((s) => counts[s]).map((s) => `${number(counts[s])} ${s}`).join(", ");
  return h("span.below", h("span.meter", {role: "img", "aria-label": text}, bar), " ", h("span", text));
}

function figures(n) {
  const parts = [`${n.phase}`, `round ${number(n.round)}`, `${bytes(n.sent)} sent`, `${bytes(n.received)} received`];
  if (n.refused) parts.push(`${number(n.refused)} refused`);
  if (n.repeated) parts.push(`${number(n.repeated)} repeated`);
  if (n.losses) parts.push(`${number(n.losses)} × lost`);
  return h("span.figures", parts.map((p) => h("span", p)));
}

export function federationPage(id) {
  let run = null, data = null, log = [];
  const opened = new Map(); // number of an inner node -> how many of its clients are shown
  let first = true;
  const head = h("div.head"), tiles = h("div.tiles"), waits = h("section.card"), tree = h("section.card"), logBody = h("tbody");
  const logCard = card("Log", "lost, back, restarted", h("div.log", h("table", logBody)));
  const fragment = document.createDocumentFragment();
  fragment.append(head, tiles, waits, tree, logCard);

  function countsOf(number) {
    const counts = {};
    for (const c of data.counts) if (c.parent === number) counts[c.state] = (counts[c.state] || 0) + c.count;
    return counts;
  }

  function depthOf(n) {
    let depth = 0;
    for (let at = n; at && at.parent >= 0; at = data.inner.find((m) => m.number === at.parent)) depth++;
    return Math.min(4, depth);
  }

  function leaf(n) {
    return h("li", h("div.node", {"data-node": n.path, "data-state": n.state}, h("span.name.deep" + Math.min(5, depthOf(n) + 1), h("span.path", n.path.split("/").at(-1))), status(n.state), figures(n)));
  }

  function inner(n) {
    const counts = countsOf(n.number), total = Object.values(counts).reduce((a, b) => a + b, 0), shown = opened.get(n.number) || 0;
    const fold = h("button.fold", {type: "button", "aria-expanded": String(shown > 0), "aria-label": `clients of ${n.path}`, onclick: () => {
      if (shown) opened.delete(n.number);
      else opened.set(n.number, PAGE);
      refresh();
    }}, total ? (shown ? "▾" : "▸") : "");
    const list = h("ul");
    const children = data.children.get(n.number) || [];
    list.append(...children.map(leaf));
    if (shown && total > children.length) list.append(h("li", h("div.node", h("button", {type: "button", onclick: () => {
      opened.set(n.number, shown + 500);
      refresh();
    }}, `Show more of ${number(total)}`))));
    return h("li", h("div.node", {"data-node": n.path, "data-state": n.state}, h("span.name.deep" + depthOf(n), fold, h("span.path", n.path)), status(n.state), figures(n), total ? meter(counts) : null), list);
  }

  function drawTiles() {
    const all = {};
    for (const c of data.counts) all[c.state] = (all[c.state] || 0) + c.count;
    for (const n of data.inner) all[n.state] = (all[n.state] || 0) + 1;
    const clients = data.counts.reduce((n, c) => n + c.count, 0);
    const refused = data.counts.reduce((n, c) => n + (c.refused || 0), 0) + data.inner.reduce((n, c) => n + (c.refused || 0), 0);
    const losses = data.counts.reduce((n, c) => n + (c.losses || 0), 0) + data.inner.reduce((n, c) => n + (c.losses || 0), 0);
    const cloud = data.inner[0], over = run.status !== "running", seen = (note) => (over ? "as last seen" : note);
    tiles.replaceChildren(tile("Nodes", number(clients + data.inner.length), `${number(data.inner.length)} inner, ${number(clients)} clients`),
      tile("Live", number(all.live || 0), all.done ? `${number(all.done)} done` : seen("heard of within 15 s")), tile("Stale", number(all.stale || 0), seen("silent for 15 s")), tile("Gone", number(all.gone || 0), seen("their process has ended")),
      tile("Lost and back", number(losses), "killed or cut off"), tile("Messages refused", number(refused), "old ones not counted"), tile("Round of the cloud", number(cloud?.round), cloud?.phase || ""));
  }

  function drawWaits() {
    const waiting = data.inner.filter((n) => n.waits_for && n.waits_ms >= 1000 && n.state === "live");
    waits.replaceChildren(h("header", h("h2", "Waiting for")), waiting.length ? h("div.scroll", h("table", h("tbody", waiting.slice(0, 50).map((n) => h("tr", h("td.nowrap", n.path), h("td.waits", `waits for ${n.waits_for}` + (n.waits_more ? ` and ${number(n.waits_more)} more` : "")),
      h("td.num", `${number(n.waits_ms / 1000, 3)} s`)))))) : empty("No node waits for a child."));
  }

  function drawLog(fresh) {
    for (const e of fresh) logBody.append(h("tr", h("td.nowrap.soft", when(e.at)), h("td.nowrap", e.node), h("td.level" + e.level, e.text)));
    while (logBody.rows.length > 1000) logBody.deleteRow(0);
    if (fresh.length) logBody.closest(".log").scrollTop = 1e9;
  }

  async function refresh() {
    run = await get(`/run/${id}`);
    const got = await get(`/nodes/${id}?under=-2`);
    if (first && got.inner.length) {
      first = false;
      const total = got.counts.reduce((n, c) => n + c.count, 0);
      if (total <= 60) for (const n of got.inner) opened.set(n.number, PAGE);
    }
    const children = new Map();
    for (const [number, most] of opened) children.set(number, (await get(`/nodes/${id}?under=${number}&most=${Math.min(1000, most)}`)).children);
    data = {inner: got.inner, counts: got.counts, children};
    const fresh = await get(`/log/${id}?after=${log.at(-1)?.id ?? 0}`);
    log.push(...fresh);
    head.replaceChildren(h("h1", `Federation of ${run.name}`), status(run.status), h("span.spacer"), h("a", {href: `/run/${id}`}, "Run"), h("div.sub", `#${id} · hfsad ${run.kind} · ${when(run.started)}`));
    if (!data.inner.length) {
      tree.replaceChildren(empty("No node has been observed. hfsad up observes its nodes; hfsad cloud needs --dash and, with --keys, a certificate for 'observer'."));
      drawLog(fresh);
      return;
    }
    drawTiles();
    drawWaits();
    const at = document.activeElement?.getAttribute("aria-label");
    tree.replaceChildren(h("header", h("h2", "Nodes"), h("span.hint", run.status === "running" ? "inner nodes open to their clients, those that need attention first" : "as last seen: the run has ended")), h("div.tree", h("ul", data.inner.map(inner))));
    if (at) tree.querySelector(`[aria-label="${CSS.escape(at)}"]`)?.focus();
    drawLog(fresh);
  }

  return {element: fragment, title: () => `Federation #${id}`, refresh, drawn: () => run !== null};
}
