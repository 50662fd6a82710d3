// Runs: the table of the history, with the settings that differ.
import {h, get, number, seconds, ago, when, status, same, known, empty} from "/dom.js";

const COLUMNS = [
  {key: "name", label: "Run"}, {key: "status", label: "Status"}, {key: "started", label: "Started"},
  {key: "iteration", label: "Iteration", num: true}, {key: "objective", label: "Last objective", num: true},
  {key: "best", label: "Best", num: true}, {key: "seconds", label: "Time", num: true}
];
const STATES = ["running", "done", "failed", "diverged", "interrupted", "killed", "silent"];

// Settings that are not the same in all runs; one that a run does not name is at its default.
function differing(runs, defaults) {
  const keys = [...new Set(runs.flatMap((r) => Object.keys(r.given || {})))].sort();
  const value = (r, k) => r.given?.[k] ?? defaults.get(k) ?? "";
  return keys.filter((k) => runs.some((r) => !same(value(r, k), value(runs[0], k))));
}

export function runsPage(open) {
  const state = {sort: "started", rising: false, text: "", status: "", differ: true, selected: new Set(), at: -1, runs: [], limit: 100};
  const search = h("input", {type: "search", placeholder: "Search name, spec, folder, tag", "aria-label": "Search", oninput: () => {
    state.text = search.value;
    refresh();
  }});
  const states = h("select", {"aria-label": "Status", onchange: () => {
    state.status = states.value;
    refresh();
  }}, h("option", {value: ""}, "All states"), STATES.map((s) => h("option", {value: s}, s)));
  const differ = h("button", {type: "button", "aria-pressed": "true", title: "Show the settings that are not the same in all runs of the list", onclick: () => {
    state.differ = !state.differ;
    differ.setAttribute("aria-pressed", String(state.differ));
    draw();
  }}, "Settings that differ");
  const compare = h("button.main", {type: "button", disabled: true, onclick: () => go()}, "Compare");
  const count = h("span.count", "");
  const more = h("button", {type: "button", hidden: true, onclick: () => {
    state.limit = Math.min(500, state.limit + 200);
    refresh();
  }}, "More runs");
  const table = h("div.scroll");
  let defaults = null, drawn = "";
  const fragment = document.createDocumentFragment();
  fragment.append(h("div.head", h("h1", "Runs"), h("span.spacer"), h("div.tools", search, states, differ, compare)), h("section.card", table), h("div.tools", count, more));

  function go() {
    if (state.selected.size) open("/compare?ids=" + [...state.selected].join(","));
  }

  function head(c) {
    const sorted = state.sort === c.key;
    return h(c.num ? "th.num" : "th", {"aria-sort": sorted ? (state.rising ? "ascending" : "descending") : "none"},
             h("button", {type: "button", onclick: () => {
               state.rising = sorted ? !state.rising : c.key === "name";
               state.sort = c.key;
               refresh();
             }}, c.label + (sorted ? (state.rising ? " ↑" : " ↓") : "")));
  }

  function mark(run, on) {
    if (on) state.selected.add(run.id);
    else state.selected.delete(run.id);
    draw();
  }

  function row(run, i, keys, best) {
    const box = h("input", {type: "checkbox", checked: state.selected.has(run.id), "aria-label": `Select run ${run.id}`, onchange: () => mark(run, box.checked)});
    const part = run.iterations && known(run.iteration) ? `${number(run.iteration)} / ${number(run.iterations)}` : number(run.iteration);
    return h("tr" + (state.selected.has(run.id) ? ".selected" : "") + (i === state.at ? ".at" : ""), {"data-run": String(run.id)},
             h("td", box),
             h("td.text", h("a", {href: `/run/${run.id}`}, run.name), h("span.soft", ` #${run.id} ${run.kind}`), run.tags.length ? h("div", run.tags.map((t) => h("span.tag", t))) : null),
             h("td", {title: run.why || ""}, status(run.status)),
             h("td.nowrap.soft.wideonly", {title: when(run.started), "data-started": String(run.started)}, ago(run.started)),
             h("td.num.wideonly", part),
             h("td.num", number(run.objective, 7)),
             h("td.num.wideonly" + (run.best === best ? ".changed" : ""), number(run.best, 7)),
             h("td.num.soft.wideonly", seconds(run.seconds)),
             keys.map((k) => h("td.wideonly.mono" + (run.given?.[k] === undefined ? ".soft" : ""), run.given?.[k] ?? defaults.get(k) ?? "")));
  }

  function draw() {
    const keys = state.differ ? differing(state.runs, defaults).slice(0, 8) : [];
    compare.disabled = state.selected.size < 1;
    compare.textContent = state.selected.size ? `Compare ${state.selected.size}` : "Compare";
    count.textContent = state.runs.length ? `${state.runs.length} ${state.runs.length === 1 ? "run" : "runs"}` : "";
    more.hidden = state.runs.length < state.limit || state.limit >= 500;
    if (!state.runs.length) {
      table.replaceChildren(empty(state.text || state.status ? "No run fits." : "No run yet. hfsad run SPEC.yaml makes the first."));
      return;
    }
    // objectives compare only if data, losses and priors are the same: then the best of the list is marked
    const problem = (r) => r.data_hash + JSON.stringify(Object.entries(r.given || {}).filter(([k]) => /^(loss|prior|link|features|overrides)/.test(k)));
    const one = new Set(state.runs.map(problem)).size === 1;
    const best = one && state.runs.length > 1 ? Math.min(...state.runs.map((r) => r.best).filter(known)) : NaN;
    const focus = document.activeElement?.getAttribute("aria-label");
    table.replaceChildren(h("table.runs", h("thead", h("tr", h("th", ""), COLUMNS.map(head), keys.map((k) => h("th.setting", {title: k}, k.split(".").flatMap((part, i, all) => (i < all.length - 1 ? [part + ".", h("wbr")] : [part])))))),
                            h("tbody", state.runs.map((r, i) => row(r, i, keys, best)))));
    if (focus) table.querySelector(`[aria-label="${CSS.escape(focus)}"]`)?.focus();
  }

  async function refresh() {
    defaults ??= new Map((await get("/settings")).map((s) => [s.key, s.fallback]));
    const q = new URLSearchParams({sort: state.sort, rising: state.rising ? "1" : "0", text: state.text, status: state.status, limit: String(state.limit)});
    const runs = await get("/runs?" + q), now = JSON.stringify(runs) + state.limit;
    if (now === drawn) { // nothing moves under a reader's hand without a reason
      for (const cell of table.querySelectorAll("td[data-started]")) cell.textContent = ago(Number(cell.dataset.started));
      return;
    }
    drawn = now;
    state.runs = runs;
    draw();
  }

  function keys(event) {
    const n = state.runs.length;
    if (event.key === "j") state.at = Math.min(n - 1, state.at + 1);
    else if (event.key === "k") state.at = Math.max(0, state.at - 1);
    else if (event.key === "x" && state.runs[state.at]) mark(state.runs[state.at], !state.selected.has(state.runs[state.at].id));
    else if (event.key === "c") go();
    else if (event.key === "Enter" && event.target === document.body && state.runs[state.at]) open(`/run/${state.runs[state.at].id}`);
    else return;
    draw();
    table.querySelector("tr.at")?.scrollIntoView({block: "nearest"});
  }

  return {element: fragment, title: () => "Runs", refresh, keys, drawn: () => state.runs.length > 0};
}
