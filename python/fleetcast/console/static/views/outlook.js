// Outlook: links that may lose their signal within the hour, and pools that may reach their
// capacity within the day.

import { ask, ofTenant } from "../api.js";
import { el, labelled, movable, notice, plain, searchBox } from "../dom.js";
import { bytes, count, figure } from "../format.js";
import { tenantPicker } from "../pickers.js";

const RISKY = 0.5;

/** A chance in whole percent. No forecast is certain, so none says 0 % or 100 %. */
const chance = (of) => (of === null ? "no forecast" : of < 0.01 ? "under 1 %" : of > 0.99 ? "over 99 %"
  : `${(100 * of).toFixed(0)} %`);
const decibels = (of) => (of === null ? "–" : `${figure(of)} dB`);
const load = (row) => (row.capacity ? (row.high ?? 0) / row.capacity : 0);

const table = (caption, heads, rows) => movable(caption, plain(caption, heads, rows));
const left = ({ rows, total }) => (total > rows.length ? `; ${count(total - rows.length)} more were not looked at` : "");

export const outlook = {
  title: "Outlook",
  seconds: 60,
  begin({ parameters, go }) {
    const asked = { tenant: parameters.tenant ?? "", threshold: parameters.threshold || "6" };
    const place = el("div", { class: "cards wide-cards" });
    const change = (what) => {
      Object.assign(asked, what);
      go.note(what);
      go.again();
    };
    const name = (measurement, id) => el("th", { scope: "row", class: "name" }, el("a", {
      href: `#/forecasts?${new URLSearchParams({ tenant: asked.tenant, measurement, entity: id })}`,
    }, id));
    const cells = (kind, ...texts) => texts.map((text) => el("td", { class: `number ${kind}` }, text));

    function links(answer) {
      const { rows } = answer;
      if (!rows.length) return notice("No link wrote in the last quarter of an hour.", "Send link records with snr_db: their outlook is here a minute later.");
      rows.sort((a, b) => (b.below ?? -1) - (a.below ?? -1) || (a.low ?? Infinity) - (b.low ?? Infinity));
      return table(`Links by the chance of less than ${asked.threshold} dB within the hour${left(answer)}`,
        ["Link", "Chance", "Now", "Median in an hour", "Low (p10)"], rows.map((row) => el("tr", {}, name("link", row.entity_id),
          ...cells(row.below >= RISKY ? "bad" : "", chance(row.below), decibels(row.now), decibels(row.median), decibels(row.low)))));
    }

    function pools(answer) {
      const { rows } = answer;
      if (!rows.length) return notice("No pool wrote in the last seven days.", "Send pool_interval records with offered_bytes and capacity_bytes.");
      rows.sort((a, b) => load(b) - load(a));
      return table(`Pools by their highest demand (p99) within the day${left(answer)}`,
        ["Pool", "Of capacity", "Capacity", "Highest (p99)", "Now"], rows.map((row) => el("tr", {}, name("pool_interval", row.entity_id),
          ...cells(load(row) >= 1 ? "bad" : "", row.capacity ? `${(100 * load(row)).toFixed(0)} %` : "sends no capacity_bytes",
            bytes(row.capacity), bytes(row.high), bytes(row.now)))));
    }

    async function refresh(signal) {
      if (!asked.tenant) return place.replaceChildren(notice("Choose a tenant."));
      let answer;
      try {
        answer = await ask(ofTenant(asked.tenant, "outlook"), { threshold: asked.threshold }, { signal });
      } catch (error) {
        if (error.code !== "predictions_not_enabled") throw error;
        return place.replaceChildren(notice("Nothing is predicted here.", error.message));
      }
      return place.replaceChildren(links(answer.links), pools(answer.pools));
    }
    const node = el("div", { class: "view" },
      el("div", { class: "filters" },
        tenantPicker(asked.tenant, (tenant) => change({ tenant })),
        labelled("Least SNR, dB", searchBox(asked.threshold, "6", (threshold) => change({ threshold: threshold || "6" })))),
      place);
    return { node, refresh };
  },
};
