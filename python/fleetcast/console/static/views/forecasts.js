// Forecasts of an entity at one horizon: a band over the values measured at the same times.

import { ask, ofTenant } from "../api.js";
import { Chart } from "../chart.js";
import { el, labelled, notice, select } from "../dom.js";
import { togetherOrNot, withGaps } from "../gaps.js";
import { entityPicker, tenantPicker } from "../pickers.js";

const FAMILIES = {
  snr: { text: "SNR of links", measurement: "link", unit: "dB", horizons: ["5", "15", "30", "60"] },
  demand: { text: "Demand of pools", measurement: "pool_interval", unit: "bytes in 15 min", horizons: ["15", "60", "360", "1440"] },
};
const minutes = (of) => (of < 60 ? `${of} min` : `${of / 60} h`);
const familyOf = (measurement) => (measurement === "pool_interval" ? "demand" : "snr");

/** Lines and bands of the chart. A band has a hole if one of its bounds is missing. */
export function bandOf(answer) {
  const [low, middle, high] = togetherOrNot(answer.quantiles);
  const { times, columns } = withGaps(answer.times, [low, high, middle, answer.observed], answer.step_seconds);
  return { times, low: columns[0], high: columns[1], middle: columns[2], observed: columns[3] };
}

export const forecasts = {
  title: "Forecasts",
  seconds: 60,
  begin({ parameters, go }) {
    const asked = {
      tenant: parameters.tenant ?? "", entity: parameters.entity ?? "",
      family: parameters.family ?? familyOf(parameters.measurement), horizon: parameters.horizon ?? "",
    };
    const family = () => FAMILIES[asked.family];
    let chart = null;
    const place = el("div", { class: "charts one" });
    const change = (what) => {
      Object.assign(asked, what);
      if (!family().horizons.includes(asked.horizon)) asked.horizon = family().horizons[1];
      go.note({ ...what, measurement: family().measurement });
      pick();
      go.again();
    };
    const scope = () => ({ tenant: asked.tenant, measurement: family().measurement });
    const entity = entityPicker(asked.entity, scope, (id) => change({ entity: id }));
    const families = select(Object.entries(FAMILIES).map(([name, of]) => [name, of.text]), asked.family,
      (name) => change({ family: name, entity: "" }));
    const horizons = el("div", { class: "field" });
    const pick = () => {
      const made = select(family().horizons.map((of) => [of, minutes(Number(of))]), asked.horizon,
        (horizon) => change({ horizon }));
      horizons.replaceChildren(...labelled("Horizon", made).children);
    };
    if (!family().horizons.includes(asked.horizon)) asked.horizon = family().horizons[1];
    pick();

    const empty = (title, advice, kind) => {
      chart?.end();
      chart = null;
      place.replaceChildren(notice(title, advice, kind));
    };

    async function refresh(signal) {
      if (!asked.tenant) return empty("Choose a tenant.");
      if (!asked.entity) {
        asked.entity = await entity.first() ?? "";
        entity.set(asked.entity);
        if (asked.entity) go.note({ entity: asked.entity, measurement: family().measurement });
      }
      if (!asked.entity) {
        return empty(`There is no ${family().measurement} yet.`, "Forecasts are made of links and pools.");
      }
      let answer;
      try {
        answer = await ask(ofTenant(asked.tenant, "forecasts"), {
          family: asked.family, entity_id: asked.entity, horizon: asked.horizon,
        }, { signal });
      } catch (error) {
        if (error.code !== "predictions_not_enabled") throw error;
        return empty("Nothing is predicted here.", error.message);
      }
      const { times, low, high, middle, observed } = bandOf(answer);
      if (![...middle, ...observed].some((of) => of !== null)) {
        return empty("Too little was measured for a forecast.", answer.error ?? "");
      }
      if (!chart) {
        chart = new Chart(asked.entity, family().unit);
        place.replaceChildren(chart.node, about);
      }
      const [first, , last] = answer.quantile_names;
      const lines = [
        { label: "measured", values: observed, kind: "first" },
        { label: "median", values: middle, kind: "second" },
      ];
      chart.show({ times, low, high, lines, now: Date.now() / 1000 }, asked.entity, family().unit);
      about.textContent = `Band from ${first} to ${last}, each value computed from rows ${minutes(answer.horizon_minutes)}`
        + ` and more before its instant, by ${answer.model_version}. Nothing of it is kept.`
        + (answer.error ? ` No forecast now: ${answer.error}.` : "");
    }
    const about = el("p", { class: "help" });
    const node = el("div", { class: "view" },
      el("div", { class: "filters" },
        tenantPicker(asked.tenant, (tenant) => change({ tenant, entity: "" })),
        labelled("Family", families), entity.node, horizons),
      place);
    return { node, refresh, end: () => chart?.end() };
  },
};
