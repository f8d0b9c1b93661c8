// Tabs as screen readers and keyboards know them: arrows move, one tab stop.

import { freshId, h } from "./dom.js";

const MOVES = { ArrowRight: 1, ArrowLeft: -1 };

/** Returns tabs; `panels` are {id, title, element}, `shown` is called with the id of the one in view. */
export function tabs(label, panels, shown) {
  const buttons = panels.map(({ title, element }, at) => {
    element.id ||= freshId("panel");
    const button = h(
      "button",
      {
        type: "button",
        role: "tab",
        id: freshId("tab"),
        "aria-controls": element.id,
        on: { click: () => show(at) },
      },
      title,
    );
    element.setAttribute("role", "tabpanel");
    element.setAttribute("aria-labelledby", button.id);
    return button;
  });
  const bar = h("div", { class: "tabs", role: "tablist", "aria-label": label }, buttons);
  bar.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(document.activeElement);
    const next = target(event.key, at, buttons.length);
    if (next === null) return;
    event.preventDefault();
    buttons[next].focus();
    show(next);
  });

  function show(chosen) {
    panels.forEach(({ element }, at) => {
      element.hidden = at !== chosen;
      buttons[at].setAttribute("aria-selected", String(at === chosen));
      buttons[at].tabIndex = at === chosen ? 0 : -1;
    });
    shown(panels[chosen].id);
  }

  const open = (id) =>
    show(
      Math.max(
        0,
        panels.findIndex((each) => each.id === id),
      ),
    );
  return {
    element: h(
      "div",
      {},
      bar,
      panels.map(({ element }) => element),
    ),
    open,
  };
}

function target(key, at, length) {
  if (key in MOVES) return (at + MOVES[key] + length) % length;
  if (key === "Home") return 0;
  return key === "End" ? length - 1 : null;
}
