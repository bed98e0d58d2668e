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

/** A field for a tenant. If no tenant is chosen, it chooses the first. */
export function tenantPicker(chosen, change) {
  const suggest = async (search) =>
    (await ask("tenants", { search, limit: SUGGESTED })).rows.map((row) => row.tenant);
  const made = picker("Tenant", chosen, "name", suggest, change);
  if (!chosen) {
    suggest("").then(([first]) => {
      if (first) {
        made.set(first);
        change(first);
      }
    }).catch(() => null);
  }
  return made.node;
}

/** A field for an entity; `scope()` returns its tenant and measurement. */
export function entityPicker(chosen, scope, change) {
  const suggest = async (search) => {
    const { tenant, measurement } = scope();
    if (!tenant) return [];
    const page = await ask(ofTenant(tenant, "entities"), { measurement, search, limit: SUGGESTED });
    return page.entities.map((entity) => entity.entity_id);
  };
  const made = picker("Entity", chosen, "id", suggest, change);
  return { ...made, first: async () => (await suggest(""))[0] };
}

/** Returns the entity with exactly this id, and its newest state; `undefined` if none exists. */
export async function entityOf(tenant, measurement, id, signal) {
  const page = await ask(ofTenant(tenant, "entities"), { measurement, entity_id: id, limit: 1 }, { signal });
  return page.entities[0];
}
