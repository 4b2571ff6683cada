/** The page about the API: an index, a card for every endpoint, and a form to try it. */

import { element, prose, refusals, table } from "./render.js";

const byId = (id) => document.getElementById(id);

function card(path, method, operation, { schemas, base }) {
  const body = operation.requestBody?.content["application/json"];
  const [answered] = Object.values(operation.responses["200"].content);
  return element(
    "article",
    { class: "endpoint", id: operation.operationId },
    element(
      "h2",
      {},
      element("span", { class: "method" }, method.toUpperCase()),
      element("code", {}, base + path),
      element("span", { class: "scope" }, `scope ${operation["x-scope"]}`),
    ),
    element("p", {}, ...prose(`${operation.summary}.`)),
    element("h3", {}, body ? "Request" : "Query"),
    table(body?.schema ?? asObject(operation.parameters), schemas),
    element("h3", {}, "Response"),
    answered.schema.$ref ? table(answered.schema, schemas) : element("pre", {}, answered.example),
    element("h3", {}, "Errors"),
    ...refusals(operation.responses),
    trial(base + path, method, body),
  );
}

function asObject(parameters) {
  const members = parameters.map(({ name, description, schema }) => [name, { ...schema, description }]);
  return { properties: Object.fromEntries(members) };
}

function trial(address, method, body) {
  const written = element("textarea", { spellcheck: "false", "aria-label": body ? "Body" : "Query" });
  written.value = body ? JSON.stringify(body.example, null, 2) : "";
  written.placeholder = body ? "{}" : "repo=acme/app&repoHost=github.com";
  const button = element("button", { type: "submit" }, "Send");
  const outcome = element("div", { class: "outcome", "aria-live": "polite" });
  const form = element("form", {}, written, button, outcome);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    outcome.replaceChildren(...(await sent(address, method, body, written.value)));
    button.disabled = false;
  });
  return element("details", {}, element("summary", {}, "Try it"), form);
}

async function sent(address, method, body, written) {
  const headers = { "x-api-token": byId("token").value };
  try {
    const answer = body
      ? await fetch(address, { method, body: written, headers: { ...headers, "content-type": "application/json" } })
      : await fetch(written ? `${address}?${written}` : address, { headers });
    const words = `${answer.status} ${answer.statusText} · ${answer.headers.get("x-request-id")}`;
    return [
      element("p", { class: answer.ok ? "good" : "bad" }, words),
      element("pre", {}, indented(await answer.text())),
    ];
  } catch (error) {
    return [element("p", { class: "bad" }, `The server does not respond: ${error.message}`)];
  }
}

function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function filterIndex() {
  const sought = byId("filter").value.toLowerCase();
  for (const entry of byId("index").children) entry.hidden = !entry.textContent.toLowerCase().includes(sought);
}

function markVisible() {
  const seen = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const link = document.querySelector(`nav a[href="#${target.id}"]`);
        if (isIntersecting) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    },
    { rootMargin: "-20% 0px -60% 0px" },
  );
  for (const shown of document.querySelectorAll(".endpoint")) seen.observe(shown);
}

async function draw() {
  const description = await (await fetch("/openapi.json")).json();
  const context = { schemas: description.components.schemas, base: description.servers[0].url };
  byId("version").textContent = `${description.info.version} · ${description.info.summary}`;
  for (const [path, methods] of Object.entries(description.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const { operationId } = operation;
      byId("index").append(element("li", {}, element("a", { href: `#${operationId}` }, operationId)));
      byId("endpoints").append(card(path, method, operation, context));
    }
  }
  markVisible();
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

byId("filter").addEventListener("input", filterIndex);
draw().catch(() => byId("endpoints").append(element("p", { class: "notice" }, "openapi.json cannot be read. Reload the page.")));
