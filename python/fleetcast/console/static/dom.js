// Elements made of names, attributes and children. Text stays text and is never read as markup.

/** An element. An attribute with a function becomes a listener; `null` and `false` are left out. */
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** An element of SVG, made as by `el`. */
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(key, value === true ? "" : value);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

let labels = 0;

/** A control and its label, one above the other. */
export function labelled(text, control, className = "field") {
  control.id = `control-${(labels += 1)}`;
  return el("div", { class: className }, el("label", { for: control.id }, text), control);
}

/** A list to choose from; `options` are values, or pairs of a value and its text. */
export function select(options, chosen, change) {
  const control = el("select", { change: () => change(control.value) });
  fillSelect(control, options, chosen);
  return control;
}

/** Puts other options into a list, keeping the choice if it is still there. */
export function fillSelect(control, options, chosen = control.value) {
  const pairs = options.map((option) => (Array.isArray(option) ? option : [option, option]));
  control.replaceChildren(...pairs.map(([value, text]) => el("option", { value }, text)));
  if (pairs.some(([value]) => value === chosen)) control.value = chosen;
}

/** A text field that acts when the user has stopped typing for a moment. */
export function searchBox(text, placeholder, change, list = null) {
  let timer = 0;
  let said = text;
  const say = () => {
    clearTimeout(timer);
    if (control.value.trim() === said) return; // leaving a field repeats the event
    said = control.value.trim();
    change(said);
  };
  const control = el("input", {
    type: "search", value: text, placeholder, list, autocomplete: "off", spellcheck: "false",
    input: () => {
      clearTimeout(timer);
      timer = setTimeout(say, 250);
    },
    change: say,
  });
  return control;
}

/** A title and advice, shown in place of an empty view. */
export function notice(title, advice = "", kind = "empty") {
  return el("div", { class: `notice ${kind}`, role: kind === "error" ? "alert" : null },
    el("strong", {}, title), advice ? el("p", {}, advice) : null);
}

/** Names with their values, a line each. */
export function pairs(entries, title = null) {
  return el("table", { class: "pairs" }, title && el("caption", {}, title),
    el("tbody", {}, ...entries.map(([name, shown]) =>
      el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, shown)))));
}

/**
 * A table with the titles of its columns; the first column names the rows. A title has numbers below
 * it, or is a pair of the title and its class.
 */
export function plain(caption, heads, rows) {
  const pairs = heads.map((head, at) => (Array.isArray(head) ? head : [head, at ? "number" : null]));
  return el("table", { class: "plain" }, el("caption", {}, caption),
    el("thead", {}, el("tr", {}, ...pairs.map(([head, kind]) => el("th", { scope: "col", class: kind }, head)))),
    el("tbody", {}, ...rows));
}

/** A table with its own scroll bar, so that a wide table does not move the page. */
export function movable(label, table) {
  return el("div", { class: "scroller free", tabindex: "0", role: "region", "aria-label": label }, table);
}

/** Totals, each with its name. */
export function figures(pairs) {
  return el("dl", { class: "figures" }, ...pairs.map(([name, value, kind]) =>
    el("div", { class: kind ?? null }, el("dt", {}, name), el("dd", {}, value))));
}
