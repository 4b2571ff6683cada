/** Draws parts of the OpenAPI document as elements. Nothing here is ever read as HTML. */

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Text with `words` in backticks shown as code. */
export function prose(text) {
  return text.split("`").map((part, at) => (at % 2 ? element("code", {}, part) : part));
}

export function table(schema, schemas) {
  const rows = members(schema, schemas, 0).map(({ name, depth, required, kind, meaning }) =>
    element(
      "tr",
      {},
      element("td", { class: `deep-${Math.min(depth, 3)}` }, element("code", required ? { class: "required" } : {}, name)),
      element("td", {}, kind),
      element("td", {}, ...prose(meaning)),
    ),
  );
  return rows.length ? element("table", {}, element("tbody", {}, ...rows)) : element("p", {}, "No members.");
}

function members(schema, schemas, depth) {
  const { properties = {}, required = [] } = resolved(schema, schemas);
  return Object.entries(properties).flatMap(([name, member]) => [
    { name, depth, required: required.includes(name), kind: kind(member, schemas), meaning: meaning(member, schemas) },
    ...(depth < 3 ? members(inner(member, schemas), schemas, depth + 1) : []),
  ]);
}

function resolved(schema, schemas) {
  return schema.$ref ? schemas[schema.$ref.split("/").pop()] : schema;
}

/** What a list holds, or one of several kinds that has members of its own. */
function inner(schema, schemas) {
  const whole = resolved(schema, schemas);
  const several = whole.anyOf ?? [];
  const listed = whole.items ?? several.find((one) => resolved(one, schemas).properties);
  return listed ? inner(listed, schemas) : whole;
}

function meaning(member, schemas) {
  const parts = [member.description ?? resolved(member, schemas).description ?? ""];
  if (member.default !== undefined) parts.push(`Default \`${JSON.stringify(member.default)}\`.`);
  return parts.join(" ").trim();
}

function kind(member, schemas) {
  const schema = resolved(member, schemas);
  if (schema.anyOf) return schema.anyOf.map((one) => kind(one, schemas)).join(" | ");
  if (schema.enum) return schema.enum.map((word) => JSON.stringify(word)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return `${schema.items ? kind(schema.items, schemas) : "any"}[]`;
  return [schema.format ?? schema.type ?? "any", range(schema)].filter(Boolean).join(" ");
}

function range({ minimum, maximum }) {
  if (minimum === undefined && maximum === undefined) return "";
  return `${minimum ?? ""}–${maximum ?? ""}`;
}

export function refusals(responses) {
  const groups = Object.entries(responses).filter(([status]) => status !== "200");
  return groups.map(([status, { description }]) =>
    element(
      "div",
      { class: "codes" },
      element("b", {}, status),
      element("ul", {}, ...description.split(" ").map((code) => element("li", {}, ...prose(code)))),
    ),
  );
}
