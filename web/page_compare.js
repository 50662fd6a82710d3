// Compare: curves of several runs by iteration, bytes or seconds, and the settings that differ.
import {h, get, number, seconds, bytes, status, card, same, known, empty} from "/dom.js";
import {Chart} from "/charts.js";

const METRICS = [["objective", "Objective above the best of all", true], ["consensus_objective", "Objective at the cloud's model, above the best", true], ["gap_bound", "Proven gap", false],
                 ["relative_error", "Relative error", false], ["consensus_gap", "Consensus gap", false], ["primal_residual", "Primal residual", false], ["dual_residual", "Dual residual", false]];
const AGAINST = {iteration: ["iteration", number, (t, i) => t.iteration[i]], bytes: ["bytes up and down", bytes, (t, i) => t.bytes_up[i] + t.bytes_down[i]], seconds: ["seconds", number, (t, i) => t.seconds[i]]};
const MOST = 12;

// All runs on one axis: the union of their places, with gaps where a run has none.
function align(traces, metric, best, place) {
  const all = [...new Set(traces.flatMap((t) => t.iteration.map((_, i) => place(t, i))))].filter(known).sort((a, b) => a - b);
  const at = new Map(all.map((v, i) => [v, i]));
  return [all, ...traces.map((t) => {
    const column = new Array(all.length).fill(null);
    t[metric].forEach((v, i) => {
      const k = at.get(place(t, i));
      if (known(v) && k !== undefined) column[k] = v - best;
    });
    return column;
  })];
}

export function comparePage(ids, open) {
  const state = {metric: "objective", against: "iteration", chart: null, runs: [], traces: []};
  let defaults = null;
  const metric = h("select", {"aria-label": "Figure", onchange: () => {
    state.metric = metric.value;
    redraw();
  }}, METRICS.map(([key, label]) => h("option", {value: key}, label)));
  const against = h("div.tools", {role: "group", "aria-label": "Horizontal axis"}, Object.keys(AGAINST).map((key) => h("button", {type: "button", "data-against": key, "aria-pressed": String(key === state.against), onclick: (event) => {
    state.against = key;
    for (const b of against.children) b.setAttribute("aria-pressed", String(b === event.currentTarget));
    redraw();
  }}, `by ${key}`)));
  const area = h("div"), table = h("div.scroll"), settings = h("div.scroll");
  const fragment = document.createDocumentFragment();
  fragment.append(h("div.head", h("h1", "Compare"), h("span.spacer"), h("div.tools", metric, against)));
  fragment.append(area, card("At the end", "objectives compare only if data, loss and priors are the same", table), card("Settings that differ", "", settings));

  function redraw() {
    state.chart?.destroy();
    state.chart = null;
    drawChart();
  }

  function drawChart() {
    const [label, format, place] = AGAINST[state.against], [, title, relative] = METRICS.find(([key]) => key === state.metric);
    const best = relative ? Math.min(...state.traces.flatMap((t) => t[state.metric].filter(known))) : 0;
    if (!state.chart) {
      state.chart = new Chart({title, hint: relative && known(best) ? `best ${number(best, 8)}` : "", label, log: true, height: 380, xformat: format, sync: "compare", wide: true},
                              state.runs.map((r) => ({label: `#${r.id} ${r.name}`})));
      area.replaceChildren(state.chart.element);
    }
    const [x, ...columns] = align(state.traces, state.metric, best, place);
    state.chart.update(x, columns);
  }

  function drawTable() {
    const best = Math.min(...state.runs.map((r) => r.best).filter(known));
    table.replaceChildren(h("table", h("thead", h("tr", ["Run", "Status"].map((t) => h("th", t)), ["Iteration", "Last objective", "Best", "Proven gap", "Sent", "Time"].map((t) => h("th.num", t)), h("th", ""))),
      h("tbody", state.runs.map((r) => h("tr", {"data-run": String(r.id)}, h("td.text", h("a", {href: `/run/${r.id}`}, r.name), h("span.soft", ` #${r.id} ${r.kind}`)), h("td", status(r.status)), h("td.num", number(r.iteration)),
        h("td.num", number(r.objective, 8)), h("td.num" + (r.best === best ? ".changed" : ""), number(r.best, 8)), h("td.num", number(r.gap, 3)), h("td.num", bytes(r.bytes)), h("td.num", seconds(r.seconds)),
        h("td", h("button", {type: "button", "aria-label": `Remove run ${r.id}`, onclick: () => open("/compare?ids=" + ids.filter((i) => i !== r.id).join(","))}, "Remove")))))));
  }

  function drawSettings() {
    const value = (r, d) => r.settings?.[d.key] ?? r.given?.[d.key] ?? d.fallback;
    const rows = defaults.filter((d) => state.runs.some((r) => !same(value(r, d), value(state.runs[0], d))));
    settings.replaceChildren(rows.length ? h("table", h("thead", h("tr", h("th", "Setting"), state.runs.map((r) => h("th", `#${r.id} ${r.name}`)))),
      h("tbody", rows.map((d) => h("tr", {title: d.help}, h("td.mono", d.key), state.runs.map((r) => h("td.mono" + (same(value(r, d), d.fallback) ? ".soft" : ".changed"), value(r, d)))))))
      : empty(state.runs.length > 1 ? "No setting differs." : "Add a run to see which settings differ."));
  }

  async function refresh() {
    defaults ??= await get("/settings");
    if (!ids.length) {
      area.replaceChildren(h("section.card", empty(h("span", "Select runs in the ", h("a", {href: "/runs"}, "list of runs"), " and choose Compare."))));
      return;
    }
    const wanted = ids.slice(0, MOST);
    state.runs = await Promise.all(wanted.map((id) => get(`/run/${id}`)));
    state.traces = await Promise.all(wanted.map((id) => get(`/trace/${id}?points=800`)));
    drawChart();
    drawTable();
    drawSettings();
  }

  return {element: fragment, title: () => "Compare", refresh, drawn: () => state.runs.length > 0, recolor: () => state.chart?.recolor(), close: () => state.chart?.destroy()};
}
