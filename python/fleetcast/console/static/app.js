// The frame around the views: the signed-in operator, the open view, and the age of its values.

import { ask } from "./api.js";
import { el, notice } from "./dom.js";
import { moment, span } from "./format.js";
import { poll } from "./poll.js";
import { signIn } from "./signin.js";
import { questions } from "./views/ask.js";
import { backtest } from "./views/backtest.js";
import { channels } from "./views/channels.js";
import { entities } from "./views/entities.js";
import { forecasts } from "./views/forecasts.js";
import { outlook } from "./views/outlook.js";
import { overview } from "./views/overview.js";
import { processes } from "./views/processes.js";
import { refusals } from "./views/refusals.js";
import { storage } from "./views/storage.js";
import { tenants } from "./views/tenants.js";

/**
 * A view has a `title`, the `seconds` between two refreshes, and `begin(place)`. `begin` returns
 * its `node`, `refresh(signal)`, and if the view needs them `end()`, and `seconds` of its own.
 */
const VIEWS = { overview, tenants, entities, channels, ask: questions, forecasts, outlook, backtest, storage, processes, refusals };
const FIRST = "overview";
const KEPT = ["tenant", "measurement", "entity"];

const main = document.getElementById("main");
const bar = document.getElementById("bar");
let open = null;
let polled = null;
let last = null;
let kept = {};

const status = el("output", { class: "status", role: "status" });

/** Reads the view and its parameters from the address. */
function place() {
  const [name, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { name: name in VIEWS ? name : FIRST, parameters: Object.fromEntries(new URLSearchParams(query)) };
}

const address = (name, parameters) => {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value)).toString();
  return `#/${name}${query ? `?${query}` : ""}`;
};

const go = {
  /** Opens a view. */
  to(name, parameters = {}) {
    location.hash = address(name, { ...kept, ...parameters });
  },
  /** Writes the state of a view into the address, without a new view. */
  note(parameters) {
    const { name, parameters: before } = place();
    const now = { ...before, ...parameters };
    keep(now);
    history.replaceState(null, "", address(name, now));
    navigate(name);
  },
  /** Refreshes at once. */
  again: () => polled?.now(),
  /** Shows an error from outside of a turn. */
  failed: (error) => said({ ...(last ?? { at: null, seconds: 5 }), error }),
};

/** Remembers the shown tenant, entity and measurement, for links to the other views. */
function keep(parameters) {
  if (!parameters.tenant) return;
  kept = Object.fromEntries(KEPT.map((key) => [key, parameters[key] ?? ""]));
}

let links = {};

function navigate(name) {
  for (const [key, link] of Object.entries(links)) {
    link.href = address(key, ["overview", "tenants"].includes(key) ? {} : kept);
    if (key === name) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else link.removeAttribute("aria-current");
  }
}

function frame(session) {
  links = Object.fromEntries(Object.entries(VIEWS).map(([name, view]) => [name, el("a", {}, view.title)]));
  const leave = async () => {
    await ask("session", {}, { method: "DELETE" }).catch(() => null);
    location.reload();
  };
  bar.replaceChildren(
    el("span", { class: "brand" }, "fleetcast"),
    el("nav", { "aria-label": "Views" }, ...Object.values(links)),
    status,
    el("span", { class: "who", title: `Token ${session.token_id}, until ${moment(session.expires_at)}` },
      session.name || "operator"),
    el("button", { type: "button", class: "quiet", click: leave }, "Sign out"));
}

function show() {
  const { name, parameters } = place();
  polled?.stop();
  open?.end?.();
  keep(parameters);
  navigate(name);
  const view = VIEWS[name];
  document.title = `${view.title} – fleetcast console`;
  open = view.begin({ parameters, go });
  main.replaceChildren(el("h1", {}, view.title), open.node);
  main.dataset.view = name;
  main.dataset.state = "loading";
  main.setAttribute("aria-busy", "true");
  last = null;
  status.textContent = "loading…";
  const begun = open;
  polled = poll((signal) => begun.refresh(signal), () => begun.seconds ?? view.seconds, said);
}

/** Shows the age of the answers, and the last error. */
function said(state) {
  last = state;
  const { at, error, seconds } = state;
  if (error?.status === 401) {
    polled?.stop();
    begin();
    return;
  }
  main.setAttribute("aria-busy", "false");
  const old = at !== null && Date.now() - at > 2500 * seconds;
  main.dataset.state = error ? "failed" : old ? "old" : "fresh";
  status.dataset.state = main.dataset.state;
  const again = state.due > Date.now() ? ` Asked again in ${span((state.due - Date.now()) / 1000)}.` : "";
  const text = error
    ? `${at ? `Old: as of ${moment(at / 1000)}. ` : ""}${error.message}${again}`
    : old ? `Old: as of ${moment(at / 1000)}.` : `Up to date at ${moment(at / 1000)}`;
  if (status.textContent !== text) status.textContent = text;
  if (error && !at) {
    main.querySelector(".failure")?.remove();
    const shown = notice("This cannot be shown now.", error.message, "error");
    shown.classList.add("failure");
    main.querySelector("h1").after(shown);
  } else {
    main.querySelector(".failure")?.remove();
  }
}

setInterval(() => last && !document.hidden && !last.error && said(last), 1000);
addEventListener("hashchange", () => links[FIRST] && show());

const DROPPED = { message: "The browser did not keep the session: open the console on 127.0.0.1 or over TLS." };

async function begin(wasSignedIn = false) {
  let session;
  try {
    session = await ask("session");
  } catch (error) {
    open?.end?.();
    open = polled = last = null;
    links = {};
    bar.replaceChildren(el("span", { class: "brand" }, "fleetcast"));
    delete main.dataset.view;
    main.dataset.state = "signed-out";
    main.replaceChildren(signIn(() => begin(true), error.status !== 401 ? error : wasSignedIn ? DROPPED : null));
    main.querySelector("input").focus();
    return;
  }
  frame(session);
  show();
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the views own the address
  main.focus();
});
begin();
