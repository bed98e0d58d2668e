// Forecasts of an entity: past forecasts of one horizon over the measured values, and from now on
// a fan of all horizons.

import { ask, ofTenant } from "../api.js";
import { Chart, ChartGroup } from "../chart.js";
import { el, labelled, notice, select } from "../dom.js";
import { minutes, span } from "../format.js";
import { entityOf, entityPicker, tenantPicker } from "../pickers.js";
import { togetherOrNot } from "../series.js";

const FAMILIES = {
  snr: { text: "SNR of links", measurement: "link", target: "snr_db", unit: "dB", horizons: ["5", "15", "30", "60"],
    needs: "at least one snr_db in the last 15 minutes" },
  demand: { text: "Demand of pools", measurement: "pool_interval", target: "offered_bytes", unit: "bytes in 15 min",
    horizons: ["15", "60", "360", "1440"], needs: "offered_bytes of the last 7 days" },
};
const familyOf = (measurement) => (measurement === "pool_interval" ? "demand" : "snr");

/** The lines of the chart: measured, forecast at one horizon, and the fan from now on. */
export function linesOf(answer) {
  const { times, quantiles, quantile_names: names, step_seconds: step, issued } = answer;
  const [low, middle, high] = togetherOrNot(quantiles);
  const past = times.filter((time) => time <= issued).length;
  const range = `${names[0]} to ${names.at(-1)}`;
  const lines = [
    { label: "measured", times, values: answer.observed, step, colour: 0 },
    { label: `forecast ${minutes(answer.horizon_minutes)} before (${range})`, times: times.slice(0, past),
      values: middle.slice(0, past), low: low.slice(0, past), high: high.slice(0, past), step, colour: 1, dashed: true },
  ];
  const last = answer.observed.findLastIndex((value) => value !== null);
  const whole = answer.horizons_minutes.map((_, at) => at).filter((at) => answer.fan[at].every((of) => of !== null));
  if (!whole.length) return lines;
  const from = last < 0 ? [] : [[times[last], ...names.map(() => answer.observed[last])]];
  const rows = [...from, ...whole.map((at) => [issued + 60 * answer.horizons_minutes[at], ...answer.fan[at]])];
  const column = (at) => rows.map((row) => row[at]);
  // Horizons grow, so no hole lies between two of them.
  lines.push({ label: `forecast from now on (${range})`, times: column(0), values: column(2), low: column(1), high: column(3),
    step: answer.horizons_minutes.at(-1) * 60, colour: 2 });
  return lines;
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
    const place = el("div", { class: "charts one tall" });
    const change = (what) => {
      Object.assign(asked, what);
      zoomed = null;
      if (!family().horizons.includes(asked.horizon)) asked.horizon = family().horizons[1];
      go.note({ ...what, measurement: family().measurement });
      pick();
      go.again();
    };
    const scope = () => ({ tenant: asked.tenant, measurement: family().measurement, field: family().target, sort: "-time" });
    const entity = entityPicker(asked.entity, scope, (id) => change({ entity: id }));
    const families = select(Object.entries(FAMILIES).map(([name, of]) => [name, of.text]), asked.family,
      (name) => change({ family: name, entity: "" }));
    const horizons = el("div", { class: "field" });
    const pick = () => {
      const made = select(family().horizons.map((of) => [of, `${minutes(Number(of))} before`]), asked.horizon,
        (horizon) => change({ horizon }));
      horizons.replaceChildren(...labelled("Past forecasts, made", made).children);
    };
    if (!family().horizons.includes(asked.horizon)) asked.horizon = family().horizons[1];
    pick();

    let zoomed = null;
    let answer = null;
    const zoom = (start, end) => {
      zoomed = end > start ? [start, end] : null;
      draw();
    };
    const group = new ChartGroup(zoom, () => zoom(0, 0));

    const empty = (title, advice, kind) => {
      chart?.end();
      chart = null;
      place.replaceChildren(notice(title, advice, kind));
    };

    /** Why there is no forecast, in words. */
    async function why(signal) {
      const { measurement, target, needs } = family();
      const found = await entityOf(asked.tenant, measurement, asked.entity, signal);
      if (!found) return [`${asked.entity} has written no ${measurement}.`, `Choose another entity, or send ${measurement} with ${target}.`];
      if (!(target in found.fields)) {
        return [`${asked.entity} sends no ${target}.`, `Its newest ${measurement} has ${Object.keys(found.fields).join(", ") || "no fields"}.`];
      }
      const silent = Date.now() / 1000 - Date.parse(found.observed_at) / 1000;
      return [`There is no forecast of ${asked.entity} now.`,
        `A forecast needs ${needs}. The newest ${measurement} of ${asked.entity} is ${span(silent)} old.`];
    }

    async function refresh(signal) {
      if (!asked.tenant) return empty("Choose a tenant.");
      const { measurement, target } = family();
      if (!asked.entity) {
        asked.entity = await entity.first() ?? "";
        entity.set(asked.entity);
        if (asked.entity) go.note({ entity: asked.entity, measurement });
      }
      if (!asked.entity) {
        return empty(`There is no ${measurement} yet.`, `Forecasts are made of ${measurement} records with ${target}: send some, or choose the other family.`);
      }
      try {
        answer = await ask(ofTenant(asked.tenant, "forecasts"), {
          family: asked.family, entity_id: asked.entity, horizon: asked.horizon,
        }, { signal });
      } catch (error) {
        if (error.code !== "predictions_not_enabled") throw error;
        return empty("Nothing is predicted here.", error.message);
      }
      const reason = answer.fan.some((row) => row.some((of) => of !== null)) ? null : await why(signal);
      if (!linesOf(answer).some((line) => line.values.some((of) => of !== null))) return empty(...reason);
      if (!chart) {
        chart = new Chart(asked.entity, family().unit, group);
        place.replaceChildren(chart.node, about);
      }
      draw();
      about.textContent = `Past forecasts are computed again from the rows ${minutes(answer.horizon_minutes)}`
        + ` and more before each instant, by ${answer.model_version}. Nothing of them is kept.`
        + (reason ? ` ${reason.join(" ")}` : "");
    }

    function draw() {
      if (!chart) return;
      const lines = linesOf(answer);
      const ends = lines.flatMap((line) => [line.times[0], line.times.at(-1)]).filter((time) => time !== undefined);
      const [start, end] = zoomed ?? [Math.min(...ends), Math.max(...ends)];
      chart.show({ lines, start, end, now: Date.now() / 1000 }, asked.entity, family().unit);
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
