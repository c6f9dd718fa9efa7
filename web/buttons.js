// Buttons that ask the server for something once. A failure is shown beside the button.

import { post, save, token } from "./api.js";
import { h, notice } from "./dom.js";

/** Does the work of a button. Gives whether it succeeded. */
async function once(button, work) {
  if (button.nextElementSibling?.matches(".failure")) button.nextElementSibling.remove();
  button.disabled = true;
  try {
    await work();
    return true;
  } catch (error) {
    button.after(notice("bad failure", error.message));
    button.disabled = false;
    return false;
  }
}

/** A button that stops work. It asks once more, since stopped work cannot be taken up from here. */
export function cancelButton(path, label) {
  const button = h("button", { type: "button", class: "danger" }, label);
  const rest = () => { delete button.dataset.sure; button.textContent = label; };
  button.addEventListener("click", async () => {
    if (button.dataset.sure === undefined) { button.dataset.sure = ""; button.textContent = "Really? Click again"; return; }
    button.textContent = "Stopping…";
    if (!await once(button, () => post(path))) rest();
  });
  button.addEventListener("blur", () => { if (!button.disabled) rest(); });
  return button;
}

/** A button that saves a file of the server. */
export function saveButton(path, name, text) {
  const button = h("button", { type: "button" }, text);
  button.addEventListener("click", async () => { if (await once(button, () => save(path, name))) button.disabled = false; });
  return button;
}

/** The same as a link where no token is needed. */
export const downloadLink = (path, name, text) => (token.get() ? saveButton(path, name, text) : h("a", { class: "button", href: path, download: name }, text));
