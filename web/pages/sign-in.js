// The page that asks for a token.

import { token } from "../api.js";
import { h, notice } from "../dom.js";

export function show({ main, hadToken, done }) {
  document.title = "Sign in · Anabranch";
  const field = h("input", { type: "password", name: "token", id: "token", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "where" });
  const sign = (event) => {
    event.preventDefault();
    token.set(field.value.trim());
    done();
  };
  main.replaceChildren(h("div", { class: "sign-in" },
    h("h1", null, "Sign in"),
    hadToken && notice("bad", "The server does not know this token, or it has expired."),
    h("form", { onsubmit: sign }, h("label", { for: "token" }, "Token"), field, h("button", { class: "primary" }, "Sign in")),
    h("p", { id: "where", class: "muted" }, h("code", null, "anabranch serve"), " prints a link with its token when it starts in a terminal, and the file ",
      h("code", null, "token"), " in its data folder has it. ", h("code", null, "anabranch token add NAME"),
      " makes others. The token stays in this tab and is forgotten when the tab is closed.")));
  field.focus();
}
