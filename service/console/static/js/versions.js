// The history of a table; any version can be looked at.

import { post, withParameter } from "./api.js";
import { h, replace, table } from "./dom.js";
import { ago, bytes, moment, plural } from "./format.js";
import { problem } from "./problem.js";

const PAGE = 100;

/** Returns the panel of versions; `pin` is called with the version to look at, null for the latest. */
export function versionsPanel(pin) {
  const element = h("section", {});

  async function show(context) {
    replace(element, h("div", { class: "card busy" }, "Reading the versions"));
    try {
      const [page, tags] = await Promise.all([read(context), readTags(context)]);
      replace(element, card(context, page, tags));
    } catch (error) {
      replace(element, problem(error));
    }
  }

  function card(context, { versions, page_token: rest }, tags) {
    const heads = [
      { title: "Version", class: "number" },
      { title: "Committed" },
      { title: "" },
      { title: "Tags" },
      { title: "Manifest", class: "number" },
      { title: "" },
    ];
    const rows = versions.map((each) => [
      h("b", {}, String(each.version)),
      moment(each.timestamp_millis),
      h("span", { class: "muted" }, ago(each.timestamp_millis)),
      (tags.get(Number(each.version)) ?? []).map((name) =>
        h("span", { class: "pill accent" }, name),
      ),
      bytes(each.manifest_size),
      lookButton(context, each.version),
    ]);
    const more = rest ? h("p", { class: "muted" }, `The newest ${PAGE} are shown.`) : null;
    const heading = h("h2", {}, rest ? "Versions" : plural(versions.length, "version"));
    return h("div", { class: "card" }, heading, table("Versions", heads, rows), more);
  }

  function lookButton(context, version) {
    const isShown = context.description.version === version;
    if (isShown && context.version !== null)
      return h(
        "button",
        { type: "button", class: "small", on: { click: () => pin(null) } },
        "Back to the latest",
      );
    if (isShown) return h("span", { class: "pill good" }, "in view");
    return h(
      "button",
      {
        type: "button",
        class: "small",
        "aria-label": `Look at version ${version}`,
        on: { click: () => pin(version) },
      },
      "Look at it",
    );
  }

  return { id: "versions", title: "Versions", element, show };
}

function read({ path, signal }) {
  const asked = withParameter(
    withParameter(path("version/list"), "limit", PAGE),
    "descending",
    true,
  );
  return post(asked, {}, { signal });
}

async function readTags({ path, signal }) {
  const { tags } = await post(path("tags/list"), {}, { signal });
  const named = new Map();
  for (const [name, { version }] of Object.entries(tags))
    named.set(Number(version), [...(named.get(Number(version)) ?? []), name]);
  return named;
}
