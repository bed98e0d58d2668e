// Fields to choose a tenant and an entity, with suggestions of existing names.

import { ask, ofTenant } from "./api.js";
import { el, labelled, searchBox } from "./dom.js";

const SUGGESTED = 20;
let lists = 0;

function picker(title, chosen, placeholder, suggest, change) {
  const list = el("datalist", { id: `list-${(lists += 1)}` });
  let asked = 0;
  const look = async (text) => {
    const mine = (asked += 1);
    const found = await suggest(text).catch(() => []);
    if (mine === asked) list.replaceChildren(...found.map((value) => el("option", { value })));
  };
  let last = chosen;
  const control = searchBox(chosen, placeholder, (text) => {
    look(text);
    if (text && text !== last) change((last = text));
  }, list.id);
  control.addEventListener("focus", () => look(control.value === last ? "" : control.value), { once: true });
  const node = labelled(title, control);
  node.append(list);
  return { node, set: (text) => { control.value = last = text; } };
}

/** A field for a tenant. If no tenant is chosen, it chooses the largest. */
export function tenantPicker(chosen, change) {
  const suggest = async (search) =>
    (await ask("tenants", { search, limit: SUGGESTED })).rows.map((row) => row.tenant);
  const made = picker("Tenant", chosen, "name", suggest, change);
  if (!chosen) {
    ask("tenants", { sort: "-bytes", limit: 1 }).then(({ rows: [largest] }) => {
      if (largest) {
        made.set(largest.tenant);
        change(largest.tenant);
      }
    }).catch(() => null);
  }
  return made.node;
}

/** A field for an entity; `scope()` returns its tenant and measurement, and may narrow and sort. */
export function entityPicker(chosen, scope, change, title = "Entity") {
  const suggest = async (search) => {
    const { tenant, measurement, field = "", sort = "" } = scope();
    if (!tenant) return [];
    const page = await ask(ofTenant(tenant, "entities"), { measurement, field, sort, search, limit: SUGGESTED });
    return page.entities.map((entity) => entity.entity_id);
  };
  const made = picker(title, chosen, "id", suggest, change);
  return { ...made, first: async () => (await suggest(""))[0] };
}

/** Returns the entity with exactly this id, and its newest state; `undefined` if none exists. */
export async function entityOf(tenant, measurement, id, signal) {
  const page = await ask(ofTenant(tenant, "entities"), { measurement, entity_id: id, limit: 1 }, { signal });
  return page.entities[0];
}

/** Returns the texts of a JSON array in the address; none if it cannot be read. */
export function severalOf(text) {
  try {
    return JSON.parse(text ?? "[]").filter((each) => typeof each === "string");
  } catch {
    return [];
  }
}

const CHANNELS_MAX = 16;

/** A list of channels to tick. While none is ticked, the service chooses. */
export function channelPicker(change) {
  const summary = el("summary", {}, "Channels");
  const list = el("div", { class: "ticks" });
  const node = el("details", { class: "ticked" }, summary, list);
  let shown = "";
  const fill = (names, chosen) => {
    summary.textContent = `Channels: ${chosen.length || Math.min(names.length, CHANNELS_MAX)} of ${names.length}`;
    const now = JSON.stringify([names, chosen]);
    if (now === shown) return;
    shown = now;
    const ticked = chosen.length ? chosen : names.slice(0, CHANNELS_MAX);
    list.replaceChildren(...names.map((name) => {
      const box = el("input", { type: "checkbox", checked: ticked.includes(name),
        disabled: !ticked.includes(name) && ticked.length >= CHANNELS_MAX,
        change: () => change(names.filter((each) => (each === name ? box.checked : ticked.includes(each)))) });
      return el("label", {}, box, " ", name);
    }));
  };
  return { node, fill };
}
