// Keeps an open page up to date: it fetches itself again when its queue changes, except while its tab is hidden.

const MIN_REFRESH_INTERVAL_MS = 600; // longer than the transitions, so that an element arrives before it moves again
const RECONNECT_DELAY_MS = 5000;
let coolingDown = false;
let refreshPending = false;

function refresh() {
  if (coolingDown) { refreshPending = true; return; }
  coolingDown = true;
  htmx.trigger(document.body, "refresh");
  setTimeout(() => {
    coolingDown = false;
    if (refreshPending) { refreshPending = false; refresh(); }
  }, MIN_REFRESH_INTERVAL_MS);
}

function followQueue(url) {
  let stream = null;
  const open = () => {
    stream = new EventSource(url);
    stream.addEventListener("follow", refresh); // the queue may have changed after the page was rendered
    stream.addEventListener("change", refresh);
    stream.addEventListener("gone", () => { stream.close(); refresh(); });
    // The browser does not reconnect after a response that is no event stream (a proxy error, or an expired session).
    stream.addEventListener("error", () => {
      if (stream.readyState === EventSource.CLOSED) { refresh(); setTimeout(reopen, RECONNECT_DELAY_MS); }
    });
  };
  const reopen = () => { if (!document.hidden && stream.readyState === EventSource.CLOSED) open(); };
  // With HTTP/1.1, browsers open at most six connections to a server: a hidden tab closes its own.
  document.addEventListener("visibilitychange", () => {
    stream?.close();
    if (!document.hidden) open();
  });
  if (!document.hidden) open();
}

function refreshEvery(seconds) {
  const isNeeded = () => !document.hidden && document.querySelector("[data-look-every]");
  setInterval(() => { if (isNeeded()) refresh(); }, seconds * 1000);
}

// Names elements for view transitions, so that a card that changes its position is animated.
function nameForTransition(root) {
  // Morphing can leave a name on the element where the card was before.
  for (const element of root.querySelectorAll("[style]:not([data-moves])")) element.style.viewTransitionName = "";
  for (const element of root.querySelectorAll("[data-moves]")) {
    element.style.viewTransitionName = element.dataset.moves;
  }
}

function showLocalTimes(root) {
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

// A success message disappears after 15 s; an error message stays until the next action.
function expireSuccessMessage(event) {
  const message = event.detail.target.id === "said" && event.detail.target.querySelector(".good");
  if (message) setTimeout(() => message.remove(), 15000);
}

// The actions of a pull request open over the page, and close after one was performed.
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
  // After an error the form keeps its values, so that the user can correct them.
  if (event.detail.xhr.status < 400) for (const form of sheet.querySelectorAll("form")) form.reset();
}

function closeSheetInsteadOfNavigating(event) {
  const sheet = event.target.closest("[data-closes-sheet]") && event.target.closest("[popover]");
  if (!sheet) return;
  event.preventDefault();
  sheet.hidePopover();
}

function prepare(root) {
  nameForTransition(root);
  showLocalTimes(root);
}

// A refresh during a view transition aborts the transition; that rejection is harmless.
function ignoreAbortedTransition(event) {
  if (/transition/i.test(event.reason?.message)) event.preventDefault();
}

// The transition names are inline styles that only this script sets; morphing must not remove them.
Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name) => name !== "style";
addEventListener("unhandledrejection", ignoreAbortedTransition);
document.addEventListener("htmx:afterSwap", openSheet);
document.addEventListener("htmx:afterSwap", expireSuccessMessage);
document.addEventListener("htmx:afterRequest", closeSheets);
document.addEventListener("click", closeSheetInsteadOfNavigating);
document.addEventListener("htmx:afterSettle", (event) => prepare(event.target.parentNode || document));
document.querySelector("[data-theme-switch]")?.addEventListener("click", switchTheme);
prepare(document);
const live = document.querySelector("[data-live]");
if (live) followQueue(live.dataset.live);
const periodic = document.querySelector("[data-look-every]");
if (periodic) refreshEvery(Number(periodic.dataset.lookEvery));
