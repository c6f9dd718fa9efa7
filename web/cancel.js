// A button that stops work. It asks once more, since stopped work cannot be taken up from here.

import { post } from "./api.js";
import { h, notice } from "./dom.js";

export function cancelButton(path, label) {
  const button = h("button", { type: "button", class: "danger" }, label);
  button.addEventListener("click", async () => {
    if (button.dataset.sure === undefined) { button.dataset.sure = ""; button.textContent = "Really? Click again"; return; }
    button.disabled = true;
    button.textContent = "Stopping…";
    try { await post(path); } catch (error) { button.after(notice("bad", error.message)); button.disabled = false; }
  });
  button.addEventListener("blur", () => { if (!button.disabled) { delete button.dataset.sure; button.textContent = label; } });
  return button;
}
