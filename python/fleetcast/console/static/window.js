// The window of time that all charts of a page show: the last hours and live, or from one time to
// another. All times are UTC.

import { el, labelled, select } from "./dom.js";

const LENGTHS = [["900", "last 15 minutes"], ["3600", "last hour"], ["21600", "last 6 hours"], ["86400", "last day"],
  ["604800", "last 7 days"], ["2592000", "last 30 days"]];
const FIXED = ["", "from … to …"];
const INTERVALS = [["10", "every 10 s"], ["30", "every 30 s"], ["60", "every minute"], ["", "off"]];
const SECONDS_MIN = 10;
const textOf = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19);
const secondsOf = (text) => Date.parse(`${text}Z`) / 1000;

export class TimeWindow {
  /** `change(parameters)` is called with what the address keeps. */
  constructor(parameters, length, change) {
    const { from, to, live } = parameters;
    this.length = LENGTHS.some(([seconds]) => seconds === parameters.seconds) ? parameters.seconds : length;
    this.interval = INTERVALS.some(([seconds]) => seconds === live) ? live : INTERVALS[0][0];
    this.fixed = secondsOf(to) > secondsOf(from) ? [secondsOf(from), secondsOf(to)] : null;
    this.earlier = [];
    this.change = change;
    this.lengths = select([...LENGTHS, FIXED], this.fixed ? "" : this.length, (seconds) => this.take(seconds));
    this.ends = ["From (UTC)", "To (UTC)"].map((title) => {
      const control = el("input", { type: "datetime-local", step: "1", change: () => this.typed() });
      return { control, node: labelled(title, control) };
    });
    this.lives = select(INTERVALS, this.interval, (seconds) => {
      this.interval = seconds;
      this.say();
    });
    this.live = labelled("Live", this.lives);
    this.leave = el("button", { type: "button", click: () => this.back() }, "Back");
    this.node = el("div", { class: "window" }, labelled("Window", this.lengths),
      ...this.ends.map((end) => end.node), this.live, this.leave);
    this.draw();
  }

  /** Seconds between two refreshes; `Infinity` if the window does not move. */
  get every() {
    return this.fixed || !this.interval ? Infinity : Number(this.interval);
  }

  /** The length of the window. */
  get seconds() {
    return this.fixed ? Math.max(Math.round(this.fixed[1] - this.fixed[0]), 1) : Number(this.length);
  }

  /** What a request asks for. */
  get query() {
    return { seconds: this.seconds, end: this.fixed ? `${textOf(this.fixed[1])}Z` : "" };
  }

  /** Shows a stretch; `back` returns to the window before it. */
  zoom(start, end) {
    const [first, last] = [Math.floor(start), Math.ceil(end)];
    if (last - first < SECONDS_MIN) return;
    this.earlier.push(this.fixed);
    this.fixed = [first, last];
    this.say();
  }

  back() {
    if (!this.fixed) return;
    this.fixed = this.earlier.pop() ?? null;
    this.say();
  }

  take(seconds) {
    this.earlier = [];
    if (seconds) this.length = seconds;
    const now = Math.floor(Date.now() / 1000);
    this.fixed = seconds ? null : [now - Number(this.length), now];
    this.say();
  }

  typed() {
    const [start, end] = this.ends.map(({ control }) => secondsOf(control.value));
    if (!(end - start >= 1)) return; // half typed, or the wrong way round
    this.fixed = [start, end];
    this.say();
  }

  say() {
    this.draw();
    const [from, to] = this.fixed ?? [];
    this.change({ seconds: this.length, live: this.interval,
      from: this.fixed ? textOf(from) : "", to: this.fixed ? textOf(to) : "" });
  }

  draw() {
    this.lengths.value = this.fixed ? "" : this.length;
    this.ends.forEach(({ control, node }, at) => {
      node.hidden = !this.fixed;
      if (this.fixed) control.value = textOf(this.fixed[at]);
    });
    this.live.hidden = Boolean(this.fixed);
    this.leave.hidden = !this.fixed;
  }
}
