// Processes of the service, and its readiness.

import { ask } from "../api.js";
import { el, figures, movable, plain } from "../dom.js";
import { bytes, count, figure, span } from "../format.js";

const GAUGES = {
  http_requests_in_flight: "HTTP requests under way",
  http_connections: "HTTP connections",
  http_queue_length: "Requests waiting",
  grpc_requests_in_flight: "gRPC calls under way",
};

function line(of, depth) {
  const cells = [String(of.pid), bytes(of.memory_bytes), count(of.descriptors), count(of.threads),
    `${figure(of.cpu_seconds)} s`, span(Date.now() / 1000 - of.started_at)];
  const name = el("th", { scope: "row", class: "name" }, of.name);
  name.style.paddingInlineStart = `${0.6 + 1.1 * depth}rem`;
  return el("tr", {}, name, ...cells.map((shown, at) =>
    el("td", { class: [0, 2, 3].includes(at) ? "number wide" : "number" }, shown)));
}

/** Sorts each process after its parent. */
function tree(processes) {
  const found = [];
  const add = (parent, depth) => {
    for (const of of processes) {
      if (of.parent !== parent) continue;
      found.push(line(of, depth));
      add(of.pid, depth + 1);
    }
  };
  add(null, 0);
  return found;
}

function check([name, of]) {
  const kind = of.ok ? "good" : "bad";
  const failing = of.failing?.length ? `: fails for ${of.failing.map((each) => each.tenant).join(", ")}` : "";
  return el("li", { class: failing && of.ok ? "warn" : kind },
    el("span", { class: "mark", "aria-hidden": "true" }, of.ok ? "✓" : "✕"),
    `${name.replaceAll("_", " ")} ${of.ok ? "well" : "not well"}${failing}`);
}

export const processes = {
  title: "Processes",
  seconds: 5,
  begin() {
    const sums = el("div");
    const checks = el("ul", { class: "checks" });
    const heads = ["Process", ["PID", "number wide"], "Memory", ["Descriptors", "number wide"], ["Threads", "number wide"], "CPU time", "Age"];
    const table = plain("Processes of the service", heads, []);
    async function refresh(signal) {
      const answer = await ask("processes", {}, { signal });
      const memory = answer.processes.reduce((sum, of) => sum + of.memory_bytes, 0);
      sums.replaceChildren(figures([
        ["Service", answer.ready ? "ready" : "not ready", answer.ready ? "good" : "bad"],
        ["Memory", bytes(memory)],
        ...Object.entries(GAUGES).map(([name, text]) => [text, count(answer.gauges[name])]),
        ["Waiting for a flush", bytes(answer.gauges.ingest_buffer_bytes)],
      ]));
      checks.replaceChildren(...Object.entries(answer.checks).map(check));
      table.tBodies[0].replaceChildren(...tree(answer.processes));
    }
    const node = el("div", { class: "view" }, sums, el("h2", {}, "Checks of /readyz"), checks,
      movable("Processes", table));
    return { node, refresh };
  },
};
