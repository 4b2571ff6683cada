// Keeps an open page true: it fetches itself anew when its queue changes, and stays silent while nobody looks at it.

const BETWEEN_LOOKS = 600; // milliseconds: what moves has arrived before it moves again
const BETWEEN_ATTEMPTS = 5000;
let resting = false;
let again = false;

function look() {
  if (resting) { again = true; return; }
  resting = true;
  htmx.trigger(document.body, "look");
  setTimeout(() => { resting = false; if (again) { again = false; look(); } }, BETWEEN_LOOKS);
}

function follow(address) {
  let stream = null;
  const open = () => {
    stream = new EventSource(address);
    stream.addEventListener("follow", look); // something may have happened since the page was drawn
    stream.addEventListener("change", look);
    stream.addEventListener("gone", () => { stream.close(); look(); });
    // After an answer that is no stream the browser gives up for ever: a proxy in between, or a session that ended.
    stream.addEventListener("error", () => {
      if (stream.readyState === EventSource.CLOSED) { look(); setTimeout(reopen, BETWEEN_ATTEMPTS); }
    });
  };
  const reopen = () => { if (!document.hidden && stream.readyState === EventSource.CLOSED) open(); };
  // Browsers open only six lines to one server: a tab in the background gives its own back.
  document.addEventListener("visibilitychange", () => {
    stream?.close();
    if (!document.hidden) open();
  });
  if (!document.hidden) open();
}

function lookEvery(seconds) {
  const wanted = () => !document.hidden && document.querySelector("[data-look-every]");
  setInterval(() => { if (wanted()) look(); }, seconds * 1000);
}

// A card that moves to another place is seen moving there.
function nameForTransition(root) {
  // One that moved on may have left its name on the element where it stood.
  for (const element of root.querySelectorAll("[style]:not([data-moves])")) element.style.viewTransitionName = "";
  for (const element of root.querySelectorAll("[data-moves]")) {
    element.style.viewTransitionName = element.dataset.moves;
  }
}

function inTheReadersZone(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (isNaN(at)) continue;
    time.title = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
    if ("clock" in time.dataset) time.textContent = at.toLocaleTimeString(undefined, { timeStyle: "short" });
  }
}

function switchTheme() {
  const root = document.documentElement;
  const dark = (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
}

// What went well is said for a while; what did not stays until it is answered.
function forgetWhatWentWell(event) {
  const said = event.detail.target.id === "said" && event.detail.target.querySelector(".good");
  if (said) setTimeout(() => said.remove(), 15000);
}

// What can be done with something is shown over the page, and goes away once it was done.
function openSheet(event) {
  const sheet = document.getElementById("sheet");
  if (event.detail.target !== sheet) return;
  sheet.showPopover();
  sheet.querySelector("[autofocus]")?.focus();
}

function closeSheets(event) {
  const sheet = event.detail.elt.closest("[popover]");
  if (!sheet || event.detail.requestConfig.verb !== "post") return;
  sheet.hidePopover();
  // What was refused can be repaired: it stays as it was typed.
  if (event.detail.xhr.status < 400) for (const form of sheet.querySelectorAll("form")) form.reset();
}

function closeInstead(event) {
  const sheet = event.target.closest("[data-closes-sheet]") && event.target.closest("[popover]");
  if (!sheet) return;
  event.preventDefault();
  sheet.hidePopover();
}

function prepare(root) {
  nameForTransition(root);
  inTheReadersZone(root);
}

// A change that overtakes another one cuts its movement short, and nothing is lost by that.
function mindNoTransition(event) {
  if (/transition/i.test(event.reason?.message)) event.preventDefault();
}

// The names of transitions are styles that the server does not know of.
Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name) => name !== "style";
addEventListener("unhandledrejection", mindNoTransition);
document.addEventListener("htmx:afterSwap", openSheet);
document.addEventListener("htmx:afterSwap", forgetWhatWentWell);
document.addEventListener("htmx:afterRequest", closeSheets);
document.addEventListener("click", closeInstead);
document.addEventListener("htmx:afterSettle", (event) => prepare(event.target.parentNode || document));
document.querySelector("[data-theme-switch]")?.addEventListener("click", switchTheme);
prepare(document);
const live = document.querySelector("[data-live]");
if (live) follow(live.dataset.live);
const repeated = document.querySelector("[data-look-every]");
if (repeated) lookEvery(Number(repeated.dataset.lookEvery));
