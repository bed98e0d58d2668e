// Channels of an entity over a window: the mean of each step between its minimum and its maximum.

import { ask, ofTenant } from "../api.js";
import { Chart } from "../chart.js";
import { el, fillSelect, labelled, notice, select } from "../dom.js";
import { withGaps } from "../gaps.js";
import { entityOf, entityPicker, tenantPicker } from "../pickers.js";

const WINDOWS = [["900", "15 minutes"], ["3600", "1 hour"], ["21600", "6 hours"], ["86400", "1 day"],
  ["604800", "7 days"], ["2592000", "30 days"]];
const STEPS = { "15s": 15, "30s": 30, "1m": 60, "5m": 300, "15m": 900, "1h": 3600 };

/** Times and the three columns of each channel, with a row of nulls in each hole. */
export function columnsOf(answer) {
  const { interval } = answer.mean;
  const [mean, low, high] = ["mean", "min", "max"].map((of) => answer[of].series[0]);
  const rows = new Map(mean.times.map((time, row) => [time, row]));
  const at = (series) => new Map(series.times.map((time, row) => [time, row]));
  const [lowAt, highAt] = [at(low), at(high)];
  const times = mean.times.map((time) => Date.parse(time) / 1000);
  return Object.keys(mean.channels).map((name) => {
    const of = (series, where) => mean.times.map((time) => series.channels[name]?.[where.get(time)] ?? null);
    const columns = [of(mean, rows), of(low, lowAt), of(high, highAt)];
    return { name, step: interval, ...withGaps(times, columns, STEPS[interval]) };
  });
}

export const channels = {
  title: "Channels",
  seconds: 10,
  begin({ parameters, go }) {
    const asked = {
      tenant: parameters.tenant ?? "", measurement: parameters.measurement ?? "",
      entity: parameters.entity ?? "", seconds: parameters.seconds ?? "21600",
    };
    let charts = new Map();
    const place = el("div", { class: "charts" });
    const change = (what) => {
      Object.assign(asked, what);
      go.note(what);
      go.again();
    };
    const measurements = select([["", "…"]], "", (measurement) => change({ measurement }));
    const entity = entityPicker(asked.entity, () => asked, (id) => change({ entity: id }));
    const empty = (title, advice) => {
      for (const chart of charts.values()) chart.end();
      charts = new Map();
      place.replaceChildren(notice(title, advice));
    };

    async function settle(signal) {
      const page = await ask(ofTenant(asked.tenant, "entities"), { measurement: asked.measurement, limit: 1 }, { signal });
      const known = Object.keys(page.measurements).filter((name) => page.measurements[name]);
      if (!known.includes(asked.measurement)) asked.measurement = known[0] ?? "";
      fillSelect(measurements, known, asked.measurement);
      if (asked.entity && await entityOf(asked.tenant, asked.measurement, asked.entity, signal)) return;
      asked.entity = asked.measurement ? await entity.first() ?? "" : "";
      entity.set(asked.entity);
      go.note({ measurement: asked.measurement, entity: asked.entity });
    }

    async function refresh(signal) {
      if (!asked.tenant) return empty("Choose a tenant.");
      await settle(signal);
      if (!asked.entity) return empty("Nothing was written yet.", "Channels are here as soon as records come.");
      const { measurement, seconds } = asked;
      const answer = await ask(ofTenant(asked.tenant, "channels"), {
        entity_id: asked.entity, measurement, seconds,
      }, { signal });
      const found = columnsOf(answer).filter((channel) => channel.times.length);
      if (!found.length) return empty("No number was measured in this window.", "Choose a longer one, or another entity.");
      draw(found);
    }

    function draw(found) {
      const names = found.map((channel) => channel.name);
      if ([...charts.keys()].join() !== names.join()) {
        for (const chart of charts.values()) chart.end();
        charts = new Map(names.map((name) => [name, new Chart(name, "")]));
        place.replaceChildren(...[...charts.values()].map((chart) => chart.node));
      }
      for (const { name, step, times, columns: [mean, low, high] } of found) {
        const lines = [{ label: "mean", values: mean, kind: "first" }];
        charts.get(name).show({ times, low, high, lines }, name, `mean of ${step}, minimum to maximum`);
      }
    }

    const node = el("div", { class: "view" },
      el("div", { class: "filters" },
        tenantPicker(asked.tenant, (tenant) => change({ tenant, measurement: "", entity: "" })),
        labelled("Measurement", measurements), entity.node,
        labelled("Window", select(WINDOWS, asked.seconds, (seconds) => change({ seconds })))),
      place);
    return { node, refresh, end: () => charts.forEach((chart) => chart.end()) };
  },
};
