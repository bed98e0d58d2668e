// A chart: lines with their bands over a window of time. uPlot draws; the page knows the window.

/* global uPlot */
import { el } from "./dom.js";
import { compact, moment, NOTHING } from "./format.js";
import { timeLabels, valueLabels } from "./scale.js";
import { aligned } from "./series.js";

const FEW = 40; // values of a line that are all marked by points
const COLOURS = 8;
const FONT = "11px system-ui, sans-serif";

const scheme = matchMedia("(prefers-color-scheme: dark)");
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
/** The name of a line's colour. From the ninth line on, colours come again with dashes. */
const colourOf = (line) => `line-${(line.colour % COLOURS) + 1}`;
const isDashed = (line) => line.dashed || line.colour >= COLOURS;

let groups = 0;

/** Charts of one page: they share the window, the cursor and the zoom. */
export class ChartGroup {
  /** `zoom(start, end)` is called for a stretch that the user chose, and `back()` to leave it. */
  constructor(zoom, back) {
    Object.assign(this, { zoom, back, key: `charts-${(groups += 1)}` });
  }

  /** Takes a choice; each chart of the group reports the same. */
  choose(start, end) {
    if (!this.chosen) queueMicrotask(() => {
      const [first, last] = this.chosen;
      this.chosen = null;
      this.zoom(first, last);
    });
    this.chosen = [start, end];
  }
}

/**
 * A figure. `show({lines, start, end, now})` draws it, with times in seconds. Each line has a
 * `label`, `times`, `values`, `step`, and a `colour`, its index; it may have `low` and `high`, the
 * bounds of its band, and be `dashed`. The values of one time stand next to the names: the time
 * under the pointer, the time that the arrow keys chose, or the newest time of each line.
 */
export class Chart {
  constructor(title, unit, group) {
    this.group = group;
    this.hidden = new Set();
    this.name = el("strong", {}, title);
    this.unit = el("span", { class: "unit" }, unit);
    this.when = el("span", { class: "reading" });
    this.legend = el("ul", { class: "legend" });
    this.plot = el("div", { class: "plot", role: "img", tabindex: "0",
      keydown: (event) => this.key(event), blur: () => this.leave() });
    this.node = el("figure", { class: "chart" },
      el("figcaption", {}, this.name, " ", this.unit, " ", this.when), this.legend, this.plot);
    this.watch = new ResizeObserver(() => this.size());
    this.watch.observe(this.plot);
    this.recolour = () => this.drawn && this.draw();
    scheme.addEventListener("change", this.recolour);
  }

  show(data, title = this.name.textContent, unit = this.unit.textContent) {
    this.name.textContent = title;
    this.unit.textContent = unit;
    const same = this.data && this.data.lines.map(shape).join() === data.lines.map(shape).join();
    this.data = data;
    const { times, columns } = aligned(data.lines);
    this.columns = columns;
    this.table = [times, ...columns.flatMap((of) => (of.low ? [of.values, of.high, of.low] : [of.values]))];
    if (!same) this.nameLines();
    if (same && this.drawn) this.drawn.setData(this.table);
    else this.draw();
    this.read(this.drawn?.cursor.idx ?? null);
  }

  nameLines() {
    this.readings = this.data.lines.map(() => el("span", { class: "value" }));
    const lone = this.data.lines.length === 1;
    this.legend.replaceChildren(...this.data.lines.map((line, at) => {
      const swatch = el("span", { class: `swatch ${colourOf(line)}${isDashed(line) ? " dashed" : ""}`,
        "aria-hidden": "true" });
      const button = el("button", { type: "button", "aria-pressed": String(!this.hidden.has(line.label)), disabled: lone,
        title: line.label, click: () => this.toggle(line.label, button) }, swatch, el("span", { class: "label" }, line.label));
      return el("li", {}, button, this.readings[at]);
    }));
  }

  toggle(label, button) {
    if (!this.hidden.delete(label)) this.hidden.add(label);
    button.setAttribute("aria-pressed", String(!this.hidden.has(label)));
    this.draw();
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.plot;
    this.drawn?.destroy();
    this.drawn = null;
    if (!this.data || !width) return;
    this.drawn = new uPlot(this.options(width, height), this.table, this.plot);
    this.plot.querySelector("canvas").setAttribute("aria-hidden", "true");
  }

  options(width, height) {
    const [muted, grid] = [style("--muted"), style("--line")];
    const axis = { stroke: muted, font: FONT, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1, size: 4 } };
    const series = [{}];
    const bands = [];
    this.data.lines.forEach((line, at) => {
      const colour = style(`--${colourOf(line)}`);
      const show = !this.hidden.has(line.label);
      const columns = () => this.columns[at];
      const few = () => (columns().values.filter((value) => (value ?? null) !== null).length <= FEW ? null : columns().lone);
      series.push({ show, stroke: colour, width: 1.5, dash: isDashed(line) ? [6, 4] : undefined,
        points: { show: () => few() === null, filter: few, size: 5, fill: colour } });
      if (!line.low) return;
      const edge = { show, stroke: "transparent", width: 0, points: { show: false } };
      bands.push({ series: [series.length, series.length + 1], fill: `${colour}${style("--band-alpha")}` });
      series.push(edge, { ...edge });
    });
    return {
      width, height, series, bands, legend: { show: false }, padding: [8, 12, 0, 0],
      scales: { x: { time: true, range: () => [this.data.start, this.data.end] }, y: { range: rangeOf } },
      axes: [
        { ...axis, size: 42, space: 64, values: (_, times, __, ___, step) => timeLabels(times, step) },
        { ...axis, space: 34, values: (_, values) => valueLabels(values),
          // Short labels have the same room, so that the charts of a page stand in line.
          size: (_, labels) => 14 + 7 * Math.max(6, ...(labels ?? []).map((label) => label.length)) },
      ],
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      cursor: {
        sync: { key: this.group.key, scales: ["x", null] }, drag: { x: true, y: false, setScale: false, dist: 6 },
        points: { size: 7 }, y: false, bind: { dblclick: () => () => this.group.back() },
      },
      hooks: {
        setSelect: [(drawn) => this.choose(drawn)],
        setCursor: [(drawn) => this.read(drawn.cursor.idx)],
        drawClear: [(drawn) => this.future(drawn)],
      },
    };
  }

  /** A line at the present, if the window goes on after it. */
  future(drawn) {
    const { now, start, end } = this.data;
    if (!now || now <= start || now >= end) return;
    const { ctx, bbox } = drawn;
    const x = Math.round(drawn.valToPos(now, "x", true)) + 0.5;
    ctx.save();
    ctx.strokeStyle = style("--muted");
    ctx.setLineDash([4, 4]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  }

  choose(drawn) {
    const { left, width } = drawn.select;
    if (width < 1 || left < 0) return;
    this.group.choose(drawn.posToVal(left, "x"), drawn.posToVal(left + width, "x"));
    drawn.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  }

  /** Shows the values of a row; `null` shows the newest value of each line. */
  read(row) {
    if (!this.data) return;
    const newest = (values) => values.findLastIndex((value) => (value ?? null) !== null);
    const said = this.data.lines.map((line, at) => {
      const { values, low, high } = this.columns[at];
      const found = row === null ? newest(values) : nearest(values, row);
      const text = found < 0 ? NOTHING : compact(values[found]) + rangeText(low?.[found], high?.[found]);
      this.readings[at].textContent = text;
      return `${line.label} ${text}`;
    });
    const shown = this.table[0][row ?? newest(this.columns[0]?.values ?? [])];
    this.when.textContent = shown === undefined ? "" : moment(shown);
    this.plot.setAttribute("aria-label", `${this.name.textContent}: ${said.join(", ")}, ${this.when.textContent}`);
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape") this.group.back();
    if (!step || !this.drawn) return;
    event.preventDefault();
    const { start, end } = this.data;
    const first = this.table[0].findIndex((time) => time >= start); // a step may begin before the window
    const last = this.table[0].findLastIndex((time) => time <= end);
    if (first < 0 || last < first) return;
    const row = Math.min(Math.max((this.drawn.cursor.idx ?? last) + step, first), last);
    this.keyed = true;
    this.drawn.setCursor({ left: this.drawn.valToPos(this.table[0][row], "x"), top: 0 }, true, true);
  }

  /** Takes the cursor of the keys away. The pointer's cursor may be amid a drag in another chart. */
  leave() {
    if (this.keyed) this.drawn?.setCursor({ left: -10, top: -10 }, true, true);
    this.keyed = false;
  }

  size() {
    const { clientWidth: width, clientHeight: height } = this.plot;
    if (this.drawn && width) this.drawn.setSize({ width, height });
    else if (this.data) this.draw();
  }

  end() {
    this.watch.disconnect();
    scheme.removeEventListener("change", this.recolour);
    this.drawn?.destroy();
    this.drawn = this.data = null;
  }
}

const shape = (line) => `${line.label}\0${line.colour}\0${Boolean(line.low)}\0${line.dashed}`;

const rangeText = (low, high) => ((low ?? null) === null || low === high ? "" : ` (${compact(low)} to ${compact(high)})`);

/** The row with a value nearest to `row`, unless a hole lies between; -1 if there is none. */
function nearest(values, row) {
  for (let off = 0; off < values.length; off += 1) {
    const [before, after] = [values[row - off], values[row + off]];
    if (before === null && after === null) return -1;
    if ((before ?? null) !== null) return row - off;
    if ((after ?? null) !== null) return row + off;
  }
  return -1;
}

/**
 * The range of the values, with some room; from 0 on if 0 is near. Values that differ only by the
 * rounding of a mean, such as 11.7 and 11.700000000000001, are the same.
 */
function rangeOf(_, low, high) {
  if (low === null || high === null) return [0, 1];
  const same = high - low <= Math.abs(high) * 1e-12;
  const room = (same ? 0 : (high - low) * 0.06) || Math.abs(high) * 0.05 || 1;
  return [low >= 0 && low < room ? 0 : low - room, high + room];
}
