// Curves by uPlot: colours with dashes, so that curves differ in print too; legends are buttons that show the last value.
import {h, svg, number, known, empty} from "/dom.js";

const LIGHT = ["#2f56b8", "#c4501b", "#1a7f4b", "#8a3fa0", "#0e7c86", "#a16207", "#be185d", "#4b5563", "#3f7d20", "#6d28d9", "#b45309", "#0369a1"];
const DARK = ["#8fb0ff", "#ff9a6b", "#5fd197", "#d58ff0", "#4fd1dc", "#e3b341", "#ff8fc0", "#b4bfcc", "#a3d977", "#b79cff", "#f5b870", "#7cc7f5"];
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [14, 4], [4, 2, 1, 2]];

export const isDark = () => getComputedStyle(document.documentElement).colorScheme.includes("dark");
export const hasCharts = () => typeof window.uPlot === "function";

function color(i) {
  return (isDark() ? DARK : LIGHT)[i % LIGHT.length];
}

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const RAISED = {"-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹"};
function power(v) {
  const e = Math.round(Math.log10(v));
  return "10" + String(e).split("").map((c) => RAISED[c]).join("");
}

// Of a logarithmic axis only the powers of ten, and not more than fit.
function tens(u, splits) {
  const all = splits.filter((v) => v !== null && Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9);
  const every = Math.ceil(all.length / 7);
  return splits.map((v) => (all.includes(v) && Math.round(Math.log10(v)) % every === 0 ? v : null));
}

function axis(log, format) {
  return {
    stroke: css("--soft"), font: "11px system-ui, sans-serif", size: log ? 52 : 62, gap: 6,
    grid: {stroke: css("--line"), width: 1, ...(log ? {filter: tens} : {})}, ticks: {show: false},
    ...(log ? {
      filter: tens,
      values: (u, splits) => splits.map((v) => (v === null ? "" : power(v)))
    } : {values: (u, splits) => splits.map((v) => (format || number)(v))})
  };
}

// The range of a logarithmic axis: whole powers, and something sensible for one value.
function logRange(u, low, high) {
  if (!known(low) || !known(high) || low <= 0) return [1e-3, 1];
  const a = Math.floor(Math.log10(low)), b = Math.ceil(Math.log10(high));
  return [10 ** a, 10 ** (b > a ? b : a + 1)];
}

function sample(s) {
  const dash = DASHES[s.dash % DASHES.length];
  return svg("svg", {width: 22, height: 8, "aria-hidden": "true"},
             svg("line", {x1: 0, x2: 22, y1: 4, y2: 4, stroke: s.color, "stroke-width": 2.2, "stroke-dasharray": dash.join(" ")}));
}

/*
 * A card with a chart. settings: title, hint, label (of x), log, format; series: [{label, dash}], in their order.
 * update(x, columns) draws; values of null leave a gap.
 */
export class Chart {
  constructor(settings, series) {
    this.settings = settings;
    this.series = series.map((s, i) => ({shown: true, dash: s.dash ?? Math.floor(i / 1), ...s}));
    this.area = h("div.chart", {role: "img"});
    this.legend = h("div.legend");
    this.element = h("section.card" + (settings.wide ? ".wide" : ""), h("header", h("h2", settings.title), settings.hint ? h("span.hint", settings.hint) : null),
                     this.area, this.legend);
    this.data = null;
    this.plot = null;
    new ResizeObserver(() => this.resize()).observe(this.area);
  }

  width() {
    return Math.max(200, this.area.clientWidth - 12);
  }

  resize() {
    if (this.plot && Math.abs(this.plot.width - this.width()) > 1) this.plot.setSize({width: this.width(), height: this.settings.height || 230});
  }

  make() {
    this.plot?.destroy();
    this.series.forEach((s, i) => (s.color = color(s.index ?? i)));
    const {log, format, label} = this.settings;
    this.plot = new window.uPlot({
      width: this.width(), height: this.settings.height || 230, padding: [10, 14, 0, 0],
      legend: {show: false},
      cursor: {sync: {key: this.settings.sync || "hfsad"}, drag: {x: true, y: false}, points: {size: 6}},
      scales: {x: {time: false}, y: log ? {distr: 3, range: logRange} : {range: (u, a, b) => window.uPlot.rangeNum(a ?? 0, b ?? 1, {min: {pad: 0.08, soft: this.settings.soft, mode: 3}, max: {pad: 0.08, soft: this.settings.soft, mode: 3}})}},
      axes: [{...axis(false, this.settings.xformat), size: 28, label, labelSize: 18, labelFont: "11px system-ui, sans-serif", labelGap: -2}, axis(log, format)],
      series: [{}, ...this.series.map((s) => ({
        label: s.label, stroke: s.color, width: 1.8, dash: DASHES[s.dash % DASHES.length], points: {show: false}, spanGaps: true, show: s.shown
      }))],
      hooks: {setCursor: [(u) => this.tell(u.cursor.idx)]}
    }, this.data, this.area);
    this.drawLegend();
  }

  drawLegend() {
    this.legend.replaceChildren(...this.series.map((s, i) => {
      s.value = h("b", "");
      return h("button", {type: "button", "aria-pressed": String(s.shown), title: "show or hide", onclick: () => {
        s.shown = !s.shown;
        this.plot.setSeries(i + 1, {show: s.shown});
        this.drawLegend();
      }}, sample(s), s.label, s.value);
    }));
    this.tell(null);
  }

  // The values under the cursor, or the last ones.
  tell(at) {
    if (!this.data) return;
    this.series.forEach((s, i) => {
      const column = this.data[i + 1];
      let k = known(at) ? at : column.length - 1;
      while (!known(at) && k > 0 && !known(column[k])) k--;
      if (s.value) s.value.textContent = known(column[k]) ? (this.settings.format || number)(column[k]) : "–";
    });
  }

  update(x, columns) {
    const data = [x, ...columns.map((c) => (this.settings.log ? c.map((v) => (v > 0 ? v : null)) : c))];
    const first = !this.data;
    this.data = data;
    if (!hasCharts()) {
      this.area.replaceChildren(empty("This build of hfsad has no charts: uPlot could not be fetched when it was built."));
      this.drawLegend();
      return;
    }
    this.area.setAttribute("aria-label", `${this.settings.title}: ` + this.series.map((s, i) => `${s.label} ${number(data[i + 1].findLast(known))}`).join(", "));
    this.area.dataset.points = String(x.length);
    if (first || !this.plot) this.make();
    else {
      const zoomed = this.plot.scales.x.min > this.plot.data[0][0] || this.plot.scales.x.max < this.plot.data[0].at(-1);
      this.plot.setData(data, !zoomed);
      if (zoomed) this.plot.redraw();
      this.tell(null);
    }
  }

  recolor() {
    if (this.data && hasCharts()) this.make();
  }

  destroy() {
    this.plot?.destroy();
    this.plot = null;
  }
}
