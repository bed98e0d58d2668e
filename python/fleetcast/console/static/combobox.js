// A text field with suggestions at the cursor, as the pattern of a combobox asks: arrows move,
// Enter takes the suggestion, Escape closes the list.

import { el, labelled } from "./dom.js";

let boxes = 0;

/**
 * `suggest(text, cursor, asked)` returns `{options, take(option)}`: options have a `name` and a
 * `kind`, and `take` returns the `query` and the `cursor` after it. `asked` is true if the user
 * wants suggestions for an empty word. `run(text)` is called when the user presses Enter. `said` is
 * the place of a refusal.
 */
export class Combobox {
  constructor(title, text, { suggest, run, ...attributes }) {
    Object.assign(this, { suggest, run, options: [], active: -1, asking: 0 });
    const name = `combobox-${(boxes += 1)}`;
    this.list = el("ul", { id: `${name}-list`, role: "listbox", "aria-label": "Suggestions", hidden: true });
    this.said = el("p", { id: `${name}-said`, class: "said", role: "alert" });
    this.control = el("input", {
      type: "text", role: "combobox", value: text, autocomplete: "off", autocapitalize: "off", spellcheck: "false",
      "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": this.list.id,
      "aria-describedby": this.said.id, ...attributes,
      input: () => this.look(), blur: () => this.close(), keydown: (event) => this.key(event),
    });
    this.node = labelled(title, this.control, "field combobox");
    this.node.append(this.list);
  }

  get text() {
    return this.control.value.trim();
  }

  set text(text) {
    this.control.value = text;
    this.close();
  }

  /** Shows why a text was refused; an empty message takes the last one away. */
  refuse(message) {
    if (this.said.textContent !== message) this.said.textContent = message;
    this.control.setAttribute("aria-invalid", String(Boolean(message)));
  }

  async look(asked = false) {
    const mine = (this.asking += 1);
    const found = await this.suggest(this.control.value, this.control.selectionStart, asked).catch(() => null);
    if (mine !== this.asking || document.activeElement !== this.control) return;
    this.take = found?.take;
    this.options = found?.options ?? [];
    this.active = -1;
    this.list.replaceChildren(...this.options.map(({ name, kind }, at) =>
      el("li", { id: `${this.list.id}-${at}`, role: "option", "aria-selected": "false",
        mousedown: (event) => event.preventDefault(), // the field keeps the focus
        click: () => this.choose(at) }, el("span", {}, name), " ", el("small", {}, kind))));
    this.open(this.options.length > 0);
  }

  open(isOpen) {
    this.list.hidden = !isOpen;
    this.control.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) this.control.removeAttribute("aria-activedescendant");
  }

  close() {
    this.asking += 1;
    this.open(false);
  }

  choose(at) {
    const { query, cursor } = this.take(this.options[at]);
    this.control.value = query;
    this.control.setSelectionRange(cursor, cursor);
    this.look();
  }

  move(step) {
    const count = this.options.length;
    this.active = this.active < 0 && step < 0 ? count - 1 : (this.active + step + count) % count;
    [...this.list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === this.active)));
    const chosen = this.list.children[this.active];
    this.control.setAttribute("aria-activedescendant", chosen.id);
    chosen.scrollIntoView({ block: "nearest" });
  }

  key(event) {
    const isOpen = !this.list.hidden;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      if (isOpen) this.move(step);
      else this.look(true);
    } else if (event.key === "Escape" && isOpen) {
      event.preventDefault();
      this.close();
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (isOpen && this.active >= 0) return this.choose(this.active);
      this.close();
      this.run(this.text);
    }
  }
}
