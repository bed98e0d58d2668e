// A chart of lines and one band between two bounds. No line is drawn across a hole.

import { el, svg } from "./dom.js";
import { compact, moment } from "./format.js";
import { rangeOf, timeTicks, valueTicks } from "./scale.js";

const HEIGHT = 210;
const LEFT = 50;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 22;
const PX_PER_TIME = 90;
const VALUES = 5;

/** Stretches of rows in which no column has a hole, as pairs `[first, end)`. */
export function stretches(columns) {
  const found = [];
  let first = null;
  for (let row = 0; row <= columns[0].length; row += 1) {
    const whole = row < columns[0].length && columns.every((column) => column[row] !== null);
    if (whole && first === null) first = row;
    if (!whole && first !== null) {
      found.push([first, row]);
      first = null;
    }
  }
  return found;
}

const points = (xs, ys, from, to) => {
  const found = [];
  for (let row = from; row < to; row += 1) found.push(`${xs[row].toFixed(1)} ${ys[row].toFixed(1)}`);
  return found;
};

/** The path of a line, a part for each stretch; a single value is a dot. */
function linePath(xs, ys) {
  return stretches([ys]).map(([from, to]) => {
    const of = points(xs, ys, from, to);
    return of.length === 1 ? `M${of[0]}h0` : `M${of.join("L")}`;
  }).join("");
}

/** The path around a band, a part for each stretch. */
function bandPath(xs, low, high) {
  return stretches([low, high]).map(([from, to]) =>
    `M${points(xs, high, from, to).join("L")}L${points(xs, low, from, to).reverse().join("L")}Z`).join("");
}

/**
 * A figure. `show({times, low, high, lines, now})` draws it. `times` are in seconds, ascending.
 * `low` and `high` bound the band. Each line has a `label`, its `values` and a `kind`, its style.
 * The values of one time stand in words next to the title: the time under the pointer, the time
 * that the arrow keys chose, or the newest time.
 */
export class Chart {
  constructor(title, unit) {
    this.name = el("strong", {}, title);
    this.unit = el("span", { class: "unit" }, unit);
    this.reading = el("span", { class: "reading" });
    this.plot = el("div", {
      class: "plot", role: "img", tabindex: "0",
      pointermove: (event) => this.point(event), pointerleave: () => this.say(null),
      keydown: (event) => this.key(event), blur: () => this.say(null),
    });
    this.node = el("figure", { class: "chart" },
      el("figcaption", {}, this.name, " ", this.unit, " ", this.reading), this.plot);
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.plot);
  }

  show(data, title = this.name.textContent, unit = this.unit.textContent) {
    this.name.textContent = title;
    this.unit.textContent = unit;
    this.data = data;
    this.draw();
    this.say(null);
  }

  draw() {
    const width = this.plot.clientWidth;
    if (!this.data || !width) return;
    const { times, low, high, lines, now } = this.data;
    const range = rangeOf([low, high, ...lines.map((line) => line.values)]) ?? [0, 1];
    const [begin, end] = [times[0], times.at(-1) > times[0] ? times.at(-1) : times[0] + 1];
    const x = (time) => LEFT + ((time - begin) / (end - begin)) * (width - LEFT - RIGHT);
    const y = (of) => (of === null ? null : TOP + ((range[1] - of) / (range[1] - range[0])) * (HEIGHT - TOP - BOTTOM));
    this.xs = times.map(x);
    const ys = (values) => values.map(y);
    this.cursor = svg("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
    const across = valueTicks(...range, VALUES).map(({ value: of, text }) => svg("g", {},
      svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(of), y2: y(of) }),
      svg("text", { x: LEFT - 6, y: y(of) + 4, "text-anchor": "end" }, text)));
    const up = timeTicks(begin, end, Math.max((width - LEFT) / PX_PER_TIME, 2)).map(({ value: of, text }) => svg("g", {},
      svg("line", { class: "grid", x1: x(of), x2: x(of), y1: TOP, y2: HEIGHT - BOTTOM }),
      svg("text", { x: x(of), y: HEIGHT - 6, "text-anchor": x(of) > width - 24 ? "end" : "middle" }, text)));
    const present = now && now > begin && now < end
      ? [svg("line", { class: "now", x1: x(now), x2: x(now), y1: TOP, y2: HEIGHT - BOTTOM })] : [];
    this.plot.replaceChildren(svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, "aria-hidden": "true" },
      ...across, ...up, svg("path", { class: "band", d: bandPath(this.xs, ys(low), ys(high)) }), ...present,
      ...lines.map((line) => svg("path", { class: `line ${line.kind}`, d: linePath(this.xs, ys(line.values)) })),
      this.cursor));
  }

  /** Says the values of a row; by default of the newest row with values. */
  say(row) {
    if (!this.data) return;
    const { times, low, high, lines } = this.data;
    this.row = row;
    let at = row ?? times.length - 1;
    while (row === null && at > 0 && lines[0].values[at] === null) at -= 1;
    const text = (of) => (of === null ? "none" : compact(of));
    const parts = [...lines.map((line) => `${line.label} ${text(line.values[at])}`),
      `${text(low[at])} to ${text(high[at])}`];
    this.reading.textContent = `${parts.join(" · ")} · ${moment(times[at])}`;
    this.plot.setAttribute("aria-label", `${this.name.textContent}: ${this.reading.textContent}`);
    this.cursor?.setAttribute("visibility", row === null ? "hidden" : "visible");
    this.cursor?.setAttribute("x1", this.xs[at]);
    this.cursor?.setAttribute("x2", this.xs[at]);
  }

  point(event) {
    if (!this.xs) return;
    const x = event.clientX - this.plot.getBoundingClientRect().left;
    const after = this.xs.findIndex((of) => of >= x);
    const row = after < 0 ? this.xs.length - 1 : after;
    this.say(row > 0 && x - this.xs[row - 1] < this.xs[row] - x ? row - 1 : row);
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (!step || !this.data) return;
    event.preventDefault();
    const last = this.data.times.length - 1;
    this.say(Math.min(Math.max((this.row ?? last) + step, 0), last));
  }

  end() {
    this.watch.disconnect();
  }
}
