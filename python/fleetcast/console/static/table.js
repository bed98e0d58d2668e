// A table of any length: only the rows in sight exist, and only their pages are loaded.

import { el } from "./dom.js";

const ROW_PX = 30;
const PAGE = 100;
const SPARE = 8;

/**
 * `columns` have `title`, `cell(row)` (a text or a node), and optionally `sort` (its name for the
 * service), `number`, `lowest` (a number whose lowest value comes first), `width` and `wide` (left
 * out if the window is narrow). `load(first, limit, sort, signal)` returns `{total, rows}`.
 * `open(row)` is called when the user chooses a row.
 */
export class Table {
  constructor({ label, columns, load, open, sort = "", empty }) {
    Object.assign(this, { columns, load, open, sort, empty });
    this.rows = new Map();
    this.shown = new Map();
    this.total = null;
    this.active = 0;
    this.chosen = null;
    this.above = spacer();
    this.below = spacer();
    this.body = el("tbody", { keydown: (event) => this.key(event) }, this.above, this.below);
    this.heads = columns.map((column) => this.head(column));
    this.table = el("table", { role: "grid", "aria-label": label },
      el("thead", {}, el("tr", {}, ...this.heads)), this.body);
    this.scroller = el("div", { class: "scroller", scroll: () => this.moved() }, this.table);
    this.node = el("div", { class: "table" }, this.scroller);
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this.scroller);
  }

  head(column) {
    const attributes = { scope: "col", class: classes(column) };
    if (!column.sort) return el("th", attributes, column.title);
    const head = el("th", attributes, el("button", {
      type: "button", click: () => this.order(column),
    }, column.title));
    head.dataset.sort = column.sort;
    return head;
  }

  order(column) {
    const down = column.number && !column.lowest;
    const [first, second] = down ? [`-${column.sort}`, column.sort] : [column.sort, `-${column.sort}`];
    this.sort = this.sort === first ? second : first;
    this.reset();
  }

  /** Loads all rows again, from the top. */
  reset() {
    this.rows.clear();
    this.active = 0;
    this.scroller.scrollTop = 0;
    return this.refresh().catch((error) => this.failed?.(error));
  }

  /** Loads the pages in sight again. */
  async refresh(signal) {
    const [first, end] = this.range();
    const pages = [];
    for (let at = Math.floor(first / PAGE); at * PAGE < Math.max(end, 1); at += 1) pages.push(at);
    await Promise.all(pages.map((page) => this.fetch(page, signal)));
    this.forget(pages);
    this.draw();
  }

  async fetch(page, signal) {
    const sort = this.sort;
    const answer = await this.load(page * PAGE, PAGE, sort, signal);
    if (sort !== this.sort) return;
    this.total = answer.total;
    answer.rows.forEach((row, index) => this.rows.set(page * PAGE + index, row));
    for (let index = answer.rows.length; index < PAGE; index += 1) this.rows.delete(page * PAGE + index);
  }

  /** Drops pages far from the pages in sight. */
  forget(pages) {
    for (const index of this.rows.keys()) {
      if (Math.abs(Math.floor(index / PAGE) - pages[0]) > 20) this.rows.delete(index);
    }
  }

  range() {
    const height = this.scroller.clientHeight || 600;
    const first = Math.max(Math.floor(this.scroller.scrollTop / ROW_PX) - SPARE, 0);
    const end = first + Math.ceil(height / ROW_PX) + 2 * SPARE;
    return [first, Math.min(end, this.total ?? end)];
  }

  moved() {
    this.draw();
    const [first, end] = this.range();
    let missing = false;
    for (let index = first; index < end; index += 1) missing ||= !this.rows.has(index);
    clearTimeout(this.timer);
    if (missing) {
      this.timer = setTimeout(() => this.refresh().catch((error) => this.failed?.(error)), 60);
    }
  }

  draw() {
    const [first, end] = this.range();
    const total = this.total ?? 0;
    this.table.setAttribute("aria-rowcount", total + 1);
    this.node.classList.toggle("none", this.total === 0);
    this.emptied?.remove();
    if (this.total === 0) this.node.append((this.emptied = this.empty()));
    for (const head of this.heads) {
      const of = head.dataset.sort;
      if (!of) continue;
      const order = { [of]: "ascending", [`-${of}`]: "descending" }[this.sort] ?? "none";
      head.setAttribute("aria-sort", order);
    }
    this.active = Math.min(this.active, Math.max(total - 1, 0));
    const focused = this.body.contains(document.activeElement);
    for (const [index, line] of this.shown) {
      if (index < first || index >= end) {
        line.remove();
        this.shown.delete(index);
      }
    }
    this.above.firstChild.style.height = `${first * ROW_PX}px`;
    this.below.firstChild.style.height = `${Math.max(total - end, 0) * ROW_PX}px`;
    let before = this.above;
    for (let index = first; index < end; index += 1) {
      const line = this.shown.get(index) ?? this.line(index);
      if (before.nextSibling !== line) before.after(line);
      this.fill(line, index);
      before = line;
    }
    const tab = this.shown.has(this.active) ? this.active : first;
    for (const [index, line] of this.shown) line.tabIndex = index === tab ? 0 : -1;
    if (focused && !this.body.contains(document.activeElement)) this.shown.get(this.active)?.focus();
  }

  line(index) {
    const cells = this.columns.map((column) => el("td", { class: classes(column) }));
    const line = el("tr", {
      "aria-rowindex": index + 2, tabindex: "-1",
      click: () => this.choose(index), focus: () => { this.active = index; },
    }, ...cells);
    this.shown.set(index, line);
    return line;
  }

  fill(line, index) {
    const row = this.rows.get(index);
    line.classList.toggle("coming", !row);
    line.setAttribute("aria-selected", this.chosen !== null && this.chosen === index);
    this.columns.forEach((column, at) => {
      const shown = row ? column.cell(row) : "…";
      const cell = line.children[at];
      if (typeof shown !== "string") cell.replaceChildren(shown);
      else if (cell.textContent !== shown || cell.firstElementChild) {
        cell.textContent = shown;
        cell.title = shown.length > 24 ? shown : "";
      }
    });
  }

  choose(index) {
    const row = this.rows.get(index);
    if (!row || !this.open) return;
    this.chosen = index;
    this.active = index;
    this.draw();
    this.open(row);
  }

  key(event) {
    const rows = Math.max(Math.floor(this.scroller.clientHeight / ROW_PX) - 2, 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: rows, PageUp: -rows,
      Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      event.preventDefault();
      this.go(Math.min(Math.max(this.active + steps[event.key], 0), (this.total ?? 1) - 1));
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.choose(this.active);
    }
  }

  /** Scrolls to a row and gives it the focus. */
  go(index) {
    this.active = index;
    const head = this.heads[0].offsetHeight;
    const top = index * ROW_PX;
    const seen = this.scroller.clientHeight - head - ROW_PX;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top > this.scroller.scrollTop + seen) this.scroller.scrollTop = top - seen;
    this.draw();
    this.moved();
    this.shown.get(index)?.focus();
  }

  end() {
    clearTimeout(this.timer);
    this.watch.disconnect();
  }
}

const classes = (column) =>
  [column.number && "number", column.wide && "wide", column.width].filter(Boolean).join(" ") || null;

const spacer = () => el("tr", { class: "spacer", "aria-hidden": "true" }, el("td"));
