// Run: curves, certificate, coefficients, groups, settings against defaults, log.
import {h, get, number, seconds, bytes, when, status, card, tile, facts, same, known, empty} from "/dom.js";
import {Chart} from "/charts.js";

const TIER = (i, n) => (n === 1 ? "links" : i === 0 ? "top links" : i === n - 1 ? "client links" : `links at depth ${i + 1}`);

// Appends the rows that came to those that are there; a longer series than `most` keeps every second row.
function join(all, part, most = 4000) {
  for (const key of Object.keys(part)) {
    if (key.endsWith("_tier")) part[key].forEach((column, i) => ((all[key][i] ??= []).push(...column)));
    else all[key].push(...part[key]);
  }
  if (all.iteration.length > most) {
    const last = all.iteration.length - 1, keep = (v, i) => i % 2 === 0 || i === last;
    for (const key of Object.keys(all)) all[key] = key.endsWith("_tier") ? all[key].map((c) => c.filter(keep)) : all[key].filter(keep);
  }
}

function above(column, best) {
  return column.map((v) => (known(v) ? v - best : null));
}

export function runPage(id) {
  let run = null, trace = null, models = null, defaults = null, log = [], charts = {}, onlyChanged = true, settled = false, modelsDue = 0;
  const head = h("div.head"), tiles = h("div.tiles"), grid = h("div.grid"), verdict = h("section"), lower = h("div.grid"), logBody = h("tbody");
  const logCard = card("Log", "newest last", h("div.log", h("table", logBody)));
  const settingsBody = h("div.scroll");
  const changedButton = h("button", {type: "button", "aria-pressed": "true", onclick: () => {
    onlyChanged = !onlyChanged;
    changedButton.setAttribute("aria-pressed", String(onlyChanged));
    drawSettings();
  }}, "Changed only");
  const settingsCard = h("section.card", h("header", h("h2", "Settings against defaults"), h("span.spacer"), changedButton), settingsBody);
  const fragment = document.createDocumentFragment();
  fragment.append(head, tiles, verdict, grid, lower);

  function drawHead() {
    head.replaceChildren(h("h1", run.name), status(run.status), ...run.tags.map((t) => h("span.tag", t)), h("span.spacer"),
                         run.federation ? h("a", {href: `/federation/${id}`}, "Federation") : "", h("a", {href: `/compare?ids=${id}`}, "Compare"),
                         h("div.sub", `#${id} · hfsad ${run.kind} · ${when(run.started)}` + (run.why ? ` · ${run.why}` : "")));
  }

  function drawTiles() {
    const last = (key) => trace[key].findLast(known);
    const sent = known(last("bytes_up")) ? last("bytes_up") + last("bytes_down") : NaN;
    const part = h("div", number(run.iteration));
    if (run.iterations && run.status === "running") part.append(h("progress", {max: run.iterations, value: run.iteration || 0, "aria-label": "iterations"}));
    const support = models?.length ? models.at(-1) : null, privacy = run.summary?.privacy;
    tiles.replaceChildren(...[
      tile("Objective", number(last("objective"), 8), `best ${number(run.best, 8)}`),
      tile("Iteration", part, run.iterations ? `of at most ${number(run.iterations)}` : ""),
      tile("Proven gap", known(last("gap_bound")) ? number(last("gap_bound"), 3) : "–", known(last("gap_bound")) ? `${number(last("gap_bound") / Math.abs(last("objective") || 1), 2)} of the objective` : "no bound so far"),
      tile("Consensus gap", number(last("consensus_gap"), 4), known(last("relative_error")) ? `error ${number(last("relative_error"), 3)}` : ""),
      tile("Non-zero", support ? number(support.nonzero) : "–", support ? `of ${number(support.width)} coefficients` : ""),
      ...(privacy ? [tile("Privacy", `ε ${number(privacy.epsilon_spent, 4)}`, `ρ ${number(privacy.rho_spent, 4)} of ${number(privacy.rho, 4)}, δ ${number(privacy.delta, 2)}` +
                                                                              (privacy.guaranteed ? "" : ", a simulation"))] : []),
      tile("Sent", bytes(sent), known(sent) ? `${bytes(last("bytes_up"))} up, ${bytes(last("bytes_down"))} down` : ""),
      tile("Time", seconds(run.ended ? (run.ended - run.started) / 1000 : last("seconds")), `training ${seconds(last("seconds"))}`)
    ]);
  }

  function drawVerdict() {
    const s = run.summary;
    const text = s?.verdict || (run.status === "running" ? "The verdict comes with the end of the run." : "The run has left no summary.");
    verdict.className = "card verdict " + (s?.converged === true ? "yes" : s?.converged === false ? "no" : "");
    const more = [];
    if (s?.stopped) more.push(`stopped: ${s.stopped}`);
    if (s?.polish) more.push(`polish: ${s.polish.accepted ? "accepted" : "not accepted"}, ${number(s.polish.exchanges)} exchanges`);
    const repair = log.findLast((e) => /^safeguard: repair/.test(e.text))?.text.match(/repair (\d+) at iteration (\d+)/);
    if (!s?.safeguard && repair) more.push(`safeguard: ${repair[1]} ${repair[1] === "1" ? "repair" : "repairs"} so far, the last at iteration ${repair[2]}`);
    if (s?.safeguard) more.push(s.safeguard.repairs ? `safeguard: ${s.safeguard.repairs} repairs, the last at iteration ${s.safeguard.last_iteration}` : "safeguard: never needed");
    if (s?.theorem_1) more.push(s.theorem_1.holds ? "Theorem 1 holds" : `Theorem 1 does not apply: ${s.theorem_1.reason}`);
    if (!run.out_exists) more.push(`the folder ${run.out} is no longer there; the history has kept what is shown`);
    verdict.replaceChildren(h("div.body", h("div", h("b", "Certificate  "), text), h("div.soft", more.join(" · "))));
  }

  const has = (key) => trace[key].some(known);
  function chart(name, settings, series) {
    charts[name] ??= new Chart({label: "iteration", sync: `run${id}`, ...settings}, series);
    return charts[name];
  }

  function drawCurves() {
    const x = trace.iteration, best = Math.min(...trace.objective.filter(known)), bestAll = Math.min(...trace.consensus_objective.filter(known));
    const tiers = trace.primal_tier.length, gaps = ["consensus_gap", "smoothing_gap", "relative_error"].filter(has);
    const bound = has("gap_bound");
    chart("objective", {title: "Objective above its best", hint: `best ${number(best, 8)}`, log: true},
          [{label: "objective"}, {label: "all at the cloud's model"}, ...(bound ? [{label: "proven gap"}] : [])])
      .update(x, [above(trace.objective, best), above(trace.consensus_objective, bestAll), ...(bound ? [trace.gap_bound] : [])]);
    if (has("primal_residual") && (trace.primal_residual.some((v) => v > 0) || trace.dual_residual.some((v) => v > 0))) {
      const series = tiers ? trace.primal_tier.flatMap((c, i) => [{label: `primal, ${TIER(i, tiers)}`, index: i, dash: 0}, {label: `dual, ${TIER(i, tiers)}`, index: i, dash: 1}])
                           : [{label: "primal"}, {label: "dual"}];
      chart("residuals", {title: "Residuals by tier", log: true}, series)
        .update(x, tiers ? trace.primal_tier.flatMap((c, i) => [c, trace.dual_tier[i]]) : [trace.primal_residual, trace.dual_residual]);
    }
    if (gaps.length) chart("gaps", {title: "Gaps" + (gaps.includes("relative_error") ? " and error" : ""), log: true}, gaps.map((g) => ({label: g.replace("_", " ")}))).update(x, gaps.map((g) => trace[g]));
    chart("bytes", {title: "Bytes of models", format: bytes, soft: 0}, [{label: "up"}, {label: "down"}]).update(x, [trace.bytes_up, trace.bytes_down]);
    if (models?.length) drawModels();
    grid.replaceChildren(...Object.values(charts).map((c) => c.element));
  }

  function featureName(i) {
    const names = run.summary?.data?.feature_names;
    return names?.[i] ?? (names && i === names.length ? "intercept" : `w${i + 1}`);
  }

  function drawModels() {
    const size = new Map();
    for (const m of models) m.index.forEach((at, i) => size.set(at, Math.max(size.get(at) || 0, Math.abs(m.value[i]))));
    const top = [...size.entries()].sort((a, b) => b[1] - a[1]).slice(0, 12).map(([at]) => at).sort((a, b) => a - b);
    const name = top.join(",") + Boolean(run.summary);
    if (charts.models && charts.models.key !== name) {
      charts.models.destroy();
      delete charts.models;
    }
    const x = models.map((m) => m.iteration);
    const c = chart("models", {title: "Coefficients of the cloud", hint: size.size > top.length ? `the ${top.length} largest of ${models.at(-1).width}` : "", soft: 0}, top.map((at) => ({label: featureName(at)})));
    c.key = name;
    c.update(x, top.map((at) => models.map((m) => {
      const k = m.index.indexOf(at);
      return k < 0 ? 0 : m.value[k];
    })));
    chart("support", {title: "Support", hint: "non-zero coefficients of the cloud", soft: 0}, [{label: "non-zero"}]).update(x, [models.map((m) => m.nonzero)]);
  }

  function drawGroups() {
    const groups = run.summary?.groups;
    if (!Array.isArray(groups) || !groups.length) return null;
    return card("Groups of clients", `${groups.length} ${groups.length === 1 ? "group" : "groups"}`, h("div.scroll", h("table",
      h("thead", h("tr", h("th", "Group"), h("th.num", "Clients"), h("th", "Names"))),
      h("tbody", groups.map((g, i) => h("tr", h("td", String(i + 1)), h("td.num", number(g.clients)), h("td.text", (g.names || []).slice(0, 40).join(", ") + ((g.names || []).length > 40 ? " …" : "") || h("span.soft", "the others"))))))));
  }

  function drawSettings() {
    const settings = run.settings || run.given || {};
    const rows = defaults.map((d) => [d, settings[d.key] ?? run.given?.[d.key] ?? d.fallback]).map(([d, v]) => ({d, v, given: run.given?.[d.key] !== undefined, changed: !same(v, d.fallback)}))
      .filter((r) => !onlyChanged || r.changed);
    settingsBody.replaceChildren(rows.length ? h("table", h("thead", h("tr", h("th", "Setting"), h("th", "Value"), h("th", "Default"), h("th", "From"))),
      h("tbody", rows.map((r) => h("tr", {title: r.d.help}, h("td.mono", r.d.key), h("td.mono" + (r.changed ? ".changed" : ""), r.v), h("td.mono.soft", r.d.fallback), h("td.soft", r.given ? "spec" : r.changed ? "resolved" : "default")))))
      : empty("All settings are at their defaults."));
  }

  function drawLower() {
    lower.replaceChildren(...[settingsCard, logCard, drawGroups(),
      card("Origin", "", h("div.body", facts([["Folder", run.out], ["Spec", run.spec_path], ["Spec SHA-256", run.spec_hash && h("code", run.spec_hash)], ["Data SHA-256", run.data_hash && h("code", run.data_hash)],
                                              ["Seed", String(run.seed ?? "")], ["Made by", `hfsad ${run.version} on ${run.host}`], ["Started", when(run.started)], ["Ended", run.ended ? when(run.ended) : ""]]))),
      run.spec ? card("Spec", run.spec_path?.split("/").at(-1), h("pre", run.spec)) : null].filter(Boolean));
    drawSettings();
  }

  function drawLog(fresh) {
    for (const e of fresh) logBody.append(h("tr", h("td.nowrap.soft", when(e.at)), h("td.nowrap", e.node), h("td.level" + e.level, e.text)));
    while (logBody.rows.length > 1000) logBody.deleteRow(0);
    if (!logBody.rows.length) logBody.append(h("tr", h("td.soft", "Nothing so far.")));
    if (fresh.length) logBody.closest(".log").scrollTop = 1e9;
  }

  async function refresh() {
    defaults ??= await get("/settings");
    const was = run?.status;
    if (settled) return;
    run = await get(`/run/${id}`);
    if (!trace) trace = await get(`/trace/${id}`);
    else join(trace, await get(`/trace/${id}?after=${trace.iteration.at(-1) ?? -1}`));
    if (!models || run.status !== "running" || Date.now() > modelsDue) { // they are long, and seldom new
      models = await get(`/models/${id}`);
      modelsDue = Date.now() + 2000;
    }
    const fresh = await get(`/log/${id}?after=${log.at(-1)?.id ?? 0}`);
    log.push(...fresh);
    drawHead();
    drawTiles();
    drawVerdict();
    if (trace.iteration.length) drawCurves();
    else grid.replaceChildren(h("section.card.wide", empty("No row of the trace yet.")));
    if (was !== run.status) drawLower();
    drawLog(fresh);
    settled = run.status !== "running" && was === run.status;
  }

  return {element: fragment, title: () => `${run?.name ?? ""} #${id}`, refresh, drawn: () => run !== null,
          recolor: () => Object.values(charts).forEach((c) => c.recolor()), close: () => Object.values(charts).forEach((c) => c.destroy())};
}
