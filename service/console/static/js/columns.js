// The columns of a table, as `describe` tells them: flat, with their types in short.

const NUMBERS = ["halffloat", "float", "double", "uint8"];
const LISTS = ["list", "large_list"];
const PLAIN_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Returns every column and every part of a struct: {path, type, dimension, isText, isTop}. */
export function flatten(fields, prefix = "") {
  return fields.flatMap((each) => {
    const path = prefix + quoted(each.name);
    const own = {
      path,
      name: each.name,
      type: typeText(each.type),
      nullable: each.nullable,
      metadata: each.metadata ?? {},
      dimension: dimensionOf(each.type),
      isText: ["string", "large_string"].includes(elementOf(each.type).type),
      depth: prefix === "" ? 0 : prefix.split(".").length - 1,
    };
    const parts = each.type.type === "struct" ? flatten(each.type.fields ?? [], `${path}.`) : [];
    return [own, ...parts];
  });
}

/** Returns a name as filters spell it. */
export function quoted(name) {
  return PLAIN_NAME.test(name) ? name : `\`${name.replaceAll("`", "``")}\``;
}

/** Returns the length of the vectors of a column, null where it holds none. */
function dimensionOf(type) {
  const inner = elementOf(type);
  if (inner.type !== "fixed_size_list") return null;
  return NUMBERS.includes(inner.fields?.[0]?.type.type) ? inner.length : null;
}

function elementOf(type) {
  return LISTS.includes(type.type) ? (type.fields?.[0]?.type ?? type) : type;
}

function typeText(type) {
  const inner = (type.fields ?? []).map((each) => typeText(each.type));
  switch (type.type) {
    case "fixed_size_list":
      return `${type.length} × ${inner[0]}`;
    case "fixed_size_binary":
      return `${type.length} bytes`;
    case "list":
    case "large_list":
      return `list of ${inner[0]}`;
    case "struct":
      return "struct";
    default:
      return type.type;
  }
}
