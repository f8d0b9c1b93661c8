// Completion of column names in filters, as a list box that keyboards and screen readers know.

import { freshId, h, replace } from "./dom.js";

const WORDS = [
  "AND",
  "OR",
  "NOT",
  "IN",
  "IS NULL",
  "IS NOT NULL",
  "LIKE",
  "BETWEEN",
  "TRUE",
  "FALSE",
];
const BEFORE_CARET = /(?:`[^`]*|[A-Za-z_][\w.]*)$/;
const WHOLE_QUOTES = /`[^`]*`|'[^']*'/g;
const MOST = 8;

/** Completes what is typed into a text area; returns the list to put behind it. */
export function completeColumns(input, columns) {
  const list = h("ul", {
    class: "choices",
    role: "listbox",
    id: freshId("choices"),
    "aria-label": "Columns",
  });
  const candidates = [
    ...columns.map(({ path, type }) => ({ text: path, told: type })),
    ...WORDS.map((text) => ({ text, told: "" })),
  ];
  let chosen = -1;
  list.hidden = true;
  for (const [name, value] of Object.entries({
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": list.id,
  }))
    input.setAttribute(name, value);

  function open(isWanted) {
    const word = wordBefore(input);
    const found = word === null || (word === "" && !isWanted) ? [] : matching(candidates, word);
    const entries = found.map(({ text, told }) =>
      h(
        "li",
        { role: "option", id: freshId("choice"), "data-text": text, on: { pointerdown: pick } },
        h("span", { class: "mono" }, text),
        h("small", { class: "muted" }, told),
      ),
    );
    replace(list, entries);
    list.hidden = entries.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
    mark(list.hidden ? -1 : 0);
  }

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    mark(-1);
  }

  function mark(at) {
    chosen = at;
    [...list.children].forEach((each, index) => {
      each.setAttribute("aria-selected", String(index === at));
      if (index === at) each.scrollIntoView({ block: "nearest" });
    });
    if (at < 0) input.removeAttribute("aria-activedescendant");
    else input.setAttribute("aria-activedescendant", list.children[at].id);
  }

  function pick(event) {
    event.preventDefault();
    take(event.currentTarget.dataset.text);
  }

  function take(text) {
    const word = wordBefore(input) ?? "";
    const end = input.selectionStart;
    input.setRangeText(text, end - word.length, end, "end");
    close();
  }

  function steer(event) {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      open(true);
      return;
    }
    if (list.hidden) return sendOnEnter(event, input);
    const length = list.children.length;
    const actions = {
      ArrowDown: () => mark((chosen + 1) % length),
      ArrowUp: () => mark((chosen - 1 + length) % length),
      Enter: () => take(list.children[chosen].dataset.text),
      Tab: () => take(list.children[chosen].dataset.text),
      Escape: close,
    };
    const act = event.shiftKey ? undefined : actions[event.key];
    if (act === undefined) return;
    event.preventDefault();
    act();
  }

  input.addEventListener("input", () => open(false));
  input.addEventListener("keydown", steer);
  input.addEventListener("blur", close);
  return list;
}

function sendOnEnter(event, input) {
  if (event.key !== "Enter" || event.shiftKey) return;
  event.preventDefault();
  input.form.requestSubmit();
}

/** Returns the name that is being typed, "" between names, null inside a text. */
function wordBefore(input) {
  const before = input.value.slice(0, input.selectionStart);
  const open = before.replaceAll(WHOLE_QUOTES, (quoted) => " ".repeat(quoted.length));
  return open.includes("'") ? null : (BEFORE_CARET.exec(open)?.[0] ?? "");
}

function matching(candidates, word) {
  const wanted = word.replaceAll("`", "").toLowerCase();
  const found = candidates.filter(({ text }) => text !== word);
  const plain = (text) => text.replaceAll("`", "").toLowerCase();
  const starting = found.filter(({ text }) => plain(text).startsWith(wanted));
  const holding = found.filter(
    ({ text }) =>
      wanted.length > 1 &&
      plain(text).includes(wanted) &&
      !starting.some((each) => each.text === text),
  );
  return [...starting, ...holding].slice(0, MOST);
}
