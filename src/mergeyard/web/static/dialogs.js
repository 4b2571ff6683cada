// Dialogs over the page. A dialog stays open, with what was typed, until its action succeeded or the user closes it.

const NO_ANSWER = "The server did not answer. Try again when the connection is back.";
const NO_ANSWER_TO_ACTION = "The server did not answer, so it is not known whether this was done. " +
  "When the connection is back, check the page, then try again.";
const sheet = document.getElementById("sheet");

function openSheet(event) {
  if (event.detail.target !== sheet) return;
  if (!sheet.open) sheet.showModal();
  // A second Enter must not destroy something: a dangerous button does not get the focus by itself.
  (sheet.querySelector("[autofocus]") || sheet.querySelector("button:not(.danger)") || sheet.querySelector("#act-title")).focus();
}

// The open page shows the message and refreshes itself. One that does not refresh itself is left or loaded again.
function finishAction(event) {
  const { elt, requestConfig, xhr } = event.detail;
  if (requestConfig.verb !== "post" || !elt.closest("#act") || xhr.status !== 200) return;
  if (document.querySelector("[data-refreshes]")) {
    sheet.close();
    document.getElementById("said").focus(); // the link that opened the dialog may be gone, or mean another action now
  } else location.assign(elt.elements.there.value);
}

// The server explains its own errors. An error without its request id comes from a proxy, whose page is not shown.
function refuseForeignError(event) {
  const { xhr, elt } = event.detail;
  if (xhr.status < 400 || xhr.getResponseHeader("x-request-id") || "refreshes" in elt.dataset) return;
  event.detail.shouldSwap = false;
  explainLostRequest(event);
}

// A transition would draw the moving cards over the dialog.
function skipTransitionUnderDialog(event) {
  if (document.querySelector("dialog[open]")) event.preventDefault();
}

function explainLostRequest(event) {
  if ("refreshes" in event.detail.elt.dataset) return;
  const place = sheet.contains(event.detail.elt) && sheet.querySelector("#act-said");
  const isAction = event.detail.requestConfig.verb === "post";
  showFailure(place || document.getElementById("said"), isAction ? NO_ANSWER_TO_ACTION : NO_ANSWER);
  probeConnection();
}

function showFailure(place, text) {
  const message = document.createElement("p");
  message.className = "said bad";
  message.textContent = text;
  place?.replaceChildren(message);
}

// The session has ended. Leaving for the sign-in page would lose what was typed, so the dialog offers it in another tab.
function keepDialogWithoutSession(event) {
  const signIn = event.detail.xhr.getResponseHeader("hx-redirect");
  if (!signIn?.startsWith("/sign-in") || !sheet.open) return;
  event.preventDefault();
  const place = sheet.querySelector("#act-said") || sheet;
  if (place.querySelector("[data-sign-in]")) return;
  const link = Object.assign(document.createElement("a"), { href: signIn, target: "_blank", textContent: "Sign in" });
  link.dataset.signIn = "";
  showFailure(place, "You are signed out. Copy what you typed, then sign in again in another tab: ");
  place.querySelector(".said").append(link);
}

function closeInsteadOfNavigating(event) {
  if (!sheet.open || !event.target.closest?.("[data-closes-dialog]")) return;
  event.preventDefault();
  sheet.close();
}

// The picker: the text filters the open pull requests, the arrow keys choose one, and Enter sends the form.
function visibleChoices() {
  return [...sheet.querySelectorAll(".picker label:not([hidden]) input")];
}

function filterChoices(event) {
  if (event.target.id !== "number" || !sheet.contains(event.target)) return;
  const text = event.target.value.trim().toLowerCase();
  for (const label of sheet.querySelectorAll(".picker label")) {
    label.hidden = !label.dataset.text.toLowerCase().includes(text);
    label.querySelector("input").checked = false;
  }
  const none = sheet.querySelector("[data-no-match]");
  if (none) none.hidden = visibleChoices().length > 0;
}

function choose(event) {
  if (event.target.name === "picked") sheet.querySelector("#number").value = `#${event.target.value}`;
}

function moveToChoices(event) {
  if (event.target.id !== "number" || !sheet.contains(event.target)) return;
  const [first, ...others] = visibleChoices();
  if (event.key === "ArrowDown" && first) {
    event.preventDefault();
    first.focus();
    first.click();
  }
  // Then the browser sends the form. A number that was typed counts as it is, also if only a title contains it.
  const isNumber = /^#?\d+$/.test(event.target.value.trim());
  if (event.key === "Enter" && first && !others.length && !isNumber) first.click();
}

if (sheet) {
  document.addEventListener("htmx:afterSwap", openSheet);
  document.addEventListener("htmx:afterRequest", finishAction);
  document.addEventListener("htmx:beforeOnLoad", keepDialogWithoutSession);
  document.addEventListener("htmx:beforeSwap", refuseForeignError);
  document.addEventListener("htmx:beforeTransition", skipTransitionUnderDialog);
  document.addEventListener("htmx:sendError", explainLostRequest);
  document.addEventListener("htmx:timeout", explainLostRequest);
  document.addEventListener("click", closeInsteadOfNavigating);
  sheet.addEventListener("input", filterChoices);
  sheet.addEventListener("change", choose);
  sheet.addEventListener("keydown", moveToChoices);
  sheet.addEventListener("close", () => sheet.replaceChildren());
}
