// The form that takes a token once. The service answers with a cookie that no script can read.

import { ask } from "./api.js";
import { el, labelled } from "./dom.js";

export function signIn(done, problem) {
  const token = el("input", {
    type: "password", name: "token", autocomplete: "off", spellcheck: "false", required: true,
    "aria-describedby": "sign-in-help",
  });
  const said = el("p", { class: "said", role: "alert" }, problem?.message ?? "");
  const button = el("button", { type: "submit" }, "Open");
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    const headers = { Authorization: `Bearer ${token.value.trim()}` };
    try {
      await ask("session", {}, { method: "POST", headers });
      token.value = "";
      await done();
    } catch (error) {
      said.textContent = error.message;
      token.select();
    } finally {
      button.disabled = false;
    }
  };
  return el("form", { class: "sign-in", submit },
    el("h1", {}, "Console"),
    labelled("Operator token", token),
    el("p", { id: "sign-in-help", class: "help" }, "Made on the host with ",
      el("code", {}, "fleetcast operator token"), "; it is asked for once and not kept here."),
    said, button);
}
