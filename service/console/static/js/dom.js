// Elements made by hand: text only ever becomes text nodes, so no cell of a table can be markup.

const SVG = "http://www.w3.org/2000/svg";

/** Returns an HTML element; `props` are attributes, `on` holds listeners, null attributes are left out. */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Returns an SVG element, in the way of `h`. */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, { on = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, String(value));
  }
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
  element.append(...children.flat(Infinity).filter((each) => each !== null && each !== undefined));
  return element;
}

/** Puts children in the place of those that an element has. */
export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((each) => each !== null));
  return element;
}

let numIds = 0;

/** Returns an id that no other element has. */
export function freshId(word) {
  numIds += 1;
  return `${word}-${numIds}`;
}

/** Returns a labelled control: the label's text, then the control, then a hint if there is one. */
export function field(label, control, hint = null) {
  control.id ||= freshId("field");
  const told = hint === null ? null : h("small", { class: "muted", id: freshId("hint") }, hint);
  if (told !== null) control.setAttribute("aria-describedby", told.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, told);
}

/** Returns a table of data; `columns` are {title, class?}, cells are text or elements. */
export function table(caption, columns, rows) {
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", { class: "hidden" }, caption),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map((each) => h("th", { scope: "col", class: each.class }, each.title)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            {},
            row.map((cell, at) => h("td", { class: columns[at].class }, cell)),
          ),
        ),
      ),
    ),
  );
}

/** Returns a bar that shows a share of a whole; `label` says it to those who do not see it. */
export function bar(value, whole, label) {
  const share = Math.min(100, (100 * Number(value)) / Math.max(Number(whole), Number.MIN_VALUE));
  const inner = h("span", {});
  inner.style.width = `${share}%`;
  return h("span", { class: "meter", role: "img", "aria-label": label }, inner);
}

/** Returns what is shown where there is nothing. */
export function empty(text) {
  return h("p", { class: "empty" }, text);
}
