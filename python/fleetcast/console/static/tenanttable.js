// A view with a table of tenants: totals, a search by name, and perhaps a panel for the chosen tenant.

import { ask } from "./api.js";
import { el, figures, labelled, searchBox } from "./dom.js";
import { Table } from "./table.js";

/** The name of a tenant. If there is no room for its column, a bad state stands next to the name. */
export function named(row, state) {
  return state ? el("span", {}, row.tenant, el("span", { class: "narrow" }, " ", state)) : row.tenant;
}

/**
 * Begins the view of the answers of `path`. `totals(page)` returns the pairs of `figures`, `empty`
 * gets the text that is searched for, and all else is as `Table` takes it.
 */
export function tenantTable(path, { parameters, go }, { totals, empty, ...options }, side = null) {
  let search = parameters.search ?? "";
  const sums = el("div");
  const table = new Table({
    ...options,
    empty: () => empty(search),
    load: async (first, limit, sort, signal) => {
      const page = await ask(path, { search, sort, first, limit }, { signal });
      sums.replaceChildren(figures(totals(page)));
      return page;
    },
  });
  table.failed = go.failed;
  const box = searchBox(search, "part of a name", (text) => {
    search = text;
    go.note({ search });
    table.reset();
  });
  const node = el("div", { class: "view" }, sums, el("div", { class: "filters" }, labelled("Search", box)),
    side ? el("div", { class: "split" }, table.node, side) : table.node);
  return { node, refresh: (signal) => table.refresh(signal), end: () => table.end() };
}
