// JSON whose integers keep all their digits: 64-bit ids do not fit into JavaScript's numbers.

const INTEGER = /^-?\d+$/;

/** Returns the value of a JSON text; integers beyond 2^53 become BigInt. */
export function parseJson(text) {
  return JSON.parse(text, (_, value, context) => {
    const source = context?.source;
    if (typeof value === "number" && !Number.isSafeInteger(value) && INTEGER.test(source ?? ""))
      return BigInt(source);
    return value;
  });
}

/** Returns JSON on one line, or spread over lines with lists of numbers kept on one. */
export function toJson(value, indent = "") {
  return write(value, indent, "\n", ({ text }) => text);
}

/** Returns a literal of Python for a value of JSON. */
export function toPython(value) {
  return write(value, "    ", "\n", ({ value: word, text }) => PYTHON.get(word) ?? text);
}

const PYTHON = new Map([
  [true, "True"],
  [false, "False"],
  [null, "None"],
]);

function write(value, indent, margin, spell) {
  if (value === null || typeof value !== "object")
    return spell({
      value,
      text: typeof value === "bigint" ? String(value) : JSON.stringify(value),
    });
  const isList = Array.isArray(value);
  const inner = margin + indent;
  const parts = isList
    ? value.map((each) => write(each, indent, inner, spell))
    : Object.entries(value)
        .filter(([, each]) => each !== undefined)
        .map(([name, each]) => `${JSON.stringify(name)}: ${write(each, indent, inner, spell)}`);
  const [open, close] = isList ? "[]" : "{}";
  const isFlat = indent === "" || parts.length === 0 || (isList && value.every(isPlain));
  if (isFlat) return open + parts.join(", ") + close;
  return open + inner + parts.join(`,${inner}`) + margin + close;
}

function isPlain(value) {
  return value === null || typeof value !== "object";
}
