// The query at hand for other programs. Keys are never part of it.

import { h, replace } from "./dom.js";
import { toJson, toPython } from "./json.js";

const KEY_NAME = "LANCE_KEY";

/**
 * Returns {curl, python, typescript} for a query.
 *
 * `header` is {name, prefix} of the header of the key, which they take from the environment; null
 * where no key is sent.
 */
export function snippets(url, body, header) {
  return {
    curl: curl(url, body, header),
    python: python(url, body, header),
    typescript: typescript(url, body, header),
  };
}

function curl(url, body, header) {
  const key = header ? ` \\\n  -H "${header.name}: ${header.prefix}$${KEY_NAME}"` : "";
  return `curl -sS '${url}' \\
  -H 'Content-Type: application/json' -H 'Accept: application/json'${key} \\
  --data-binary @- <<'JSON'
${toJson(body, "  ")}
JSON
`;
}

function python(url, body, header) {
  const key = header
    ? `\n    "${header.name}": ${prefixText(header)}os.environ["${KEY_NAME}"],`
    : "";
  return `import json
${header ? "import os\n" : ""}from urllib.request import Request, urlopen

query = ${toPython(body)}
headers = {
    "Content-Type": "application/json",
    "Accept": "application/json",${key}
}
request = Request(${JSON.stringify(url)}, json.dumps(query).encode(), headers)
with urlopen(request) as response:
    answer = json.load(response)
for row in answer["rows"]:
    print(row)
`;
}

function typescript(url, body, header) {
  const key = header
    ? `\n    "${header.name}": ${prefixText(header)}(process.env.${KEY_NAME} ?? ""),`
    : "";
  return `const query = ${bodyLiteral(body)};
const response = await fetch(${JSON.stringify(url)}, {
  method: "POST",
  headers: {
    "Content-Type": "application/json",
    Accept: "application/json",${key}
  },
  body: query,
});
if (!response.ok) throw new Error(await response.text());
const answer: { rows: Record<string, unknown>[] } = await response.json();
console.table(answer.rows);
`;
}

function prefixText({ prefix }) {
  return prefix === "" ? "" : `"${prefix}" + `;
}

/** Returns what makes the JSON text; as a text where numbers would lose digits. */
function bodyLiteral(body) {
  const isLong = Object.values(body).some((value) => typeof value === "bigint");
  return isLong ? JSON.stringify(toJson(body)) : `JSON.stringify(${toJson(body, "  ")})`;
}

/** Shows the snippets in an element. */
export function showSnippets(element, url, body, header) {
  const found = snippets(url, body, header);
  const note = header ? `They take the key from the environment variable ${KEY_NAME}.` : null;
  replace(
    element,
    note === null ? null : h("p", { class: "muted" }, note),
    [
      ["curl", found.curl],
      ["Python", found.python],
      ["TypeScript", found.typescript],
    ].map(([title, text]) => snippet(title, text)),
  );
}

function snippet(title, text) {
  const copy = h(
    "button",
    { type: "button", class: "small", "aria-label": `Copy ${title}`, on: { click: put } },
    "Copy",
  );
  const shown = h(
    "pre",
    { tabindex: "0", "data-language": title.toLowerCase(), "aria-label": title },
    h("code", {}, text),
  );
  async function put() {
    // Browsers have a clipboard only for pages from this machine or by TLS.
    if (navigator.clipboard === undefined) {
      getSelection().selectAllChildren(shown);
      return;
    }
    await navigator.clipboard.writeText(text);
    copy.textContent = "Copied";
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  }
  return h(
    "section",
    { class: "snippet" },
    h("div", { class: "heading" }, h("h3", {}, title), copy),
    shown,
  );
}
