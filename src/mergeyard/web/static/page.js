// Keeps an open page up to date: it fetches itself again when its queue changes, except while its tab is hidden.
// When it cannot, it says so, and disables what would change something.

const MIN_REFRESH_INTERVAL_MS = 600; // longer than the transitions, so that an element arrives before it moves again
const REFRESH_TIMEOUT_MS = 10_000;
const MAX_SILENCE_MS = 3800; // the server sends an event every 1.5 s; a lost connection is shown within 5 s
const PROBE_INTERVAL_MS = 1900; // of a page without a stream
const PROBE_TIMEOUT_MS = 2900;
const RETRY_INTERVAL_MS = 2000 + Math.random() * 1000; // while the connection is lost; not all pages at the same time
const FALLBACK_INTERVAL_MS = 5000; // while requests succeed but there is no stream
let coolingDown = false;
let refreshPending = false;

function refresh() {
  if (coolingDown) { refreshPending = true; return; }
  coolingDown = true;
  connection.triedAt = Date.now();
  htmx.trigger(document.body, "refresh");
  setTimeout(() => {
    coolingDown = false;
    if (refreshPending) { refreshPending = false; refresh(); }
  }, MIN_REFRESH_INTERVAL_MS);
}

// A refresh that succeeds is the only proof that the page is true: it ends the state "lost", and its failure begins it.
const connection = { lost: false, trueAt: new Date(), triedAt: Date.now(), probedAt: Date.now(), probe: null };

function confirmConnection() {
  clearTimeout(connection.probe);
  connection.probe = null;
  connection.trueAt = new Date();
  if (connection.lost) showConnection(false);
}

function loseConnection() {
  clearTimeout(connection.probe);
  connection.probe = null;
  if (!connection.lost) showConnection(true);
}

function probeConnection() {
  if (!document.querySelector("[data-refreshes]")) { probeServer(); return; }
  connection.probe ??= setTimeout(loseConnection, PROBE_TIMEOUT_MS);
  refresh();
}

// A page without a stream asks whether the server answers, which is cheaper than to fetch the whole page.
async function probeServer() {
  connection.probedAt = Date.now();
  try {
    const response = await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    if (!response.ok) loseConnection();
    else if (connection.lost && !document.querySelector("[data-refreshes]")) confirmConnection();
  } catch {
    loseConnection();
  }
}

function showConnection(lost) {
  connection.lost = lost;
  document.documentElement.toggleAttribute("data-lost", lost);
  const bar = document.getElementById("connection");
  const at = formatTime(connection.trueAt, { timeStyle: "medium" });
  bar.textContent = lost ? `Connection lost. This page shows the state of ${at}. Reconnecting…` : "";
  bar.hidden = !lost;
  disableChanges(lost);
}

// Buttons and links that change something. What was typed stays.
function disableChanges(lost) {
  for (const button of document.querySelectorAll("form[method=post] button, form[method=post] input[type=submit]")) {
    if (lost ? !button.disabled : "lost" in button.dataset) {
      button.disabled = lost;
      button.toggleAttribute("data-lost", lost);
    }
  }
  for (const link of document.querySelectorAll("a[data-changes]")) {
    if (lost) link.setAttribute("aria-disabled", "true"); else link.removeAttribute("aria-disabled");
  }
}

function blockDisabledLink(event) {
  if (!event.target.closest?.("a[aria-disabled=true]")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

function isRefresh(event) {
  return "refreshes" in event.detail.elt.dataset && event.detail.requestConfig.verb === "get";
}

function limitRefreshTime(event) {
  if ("refreshes" in event.detail.elt.dataset) event.detail.timeout = REFRESH_TIMEOUT_MS;
}

// A response without the server's request id comes from a proxy: its error page, or its own sign-in page.
function isAnswered(xhr) {
  return xhr.status < 500 && xhr.getResponseHeader("x-request-id") !== null;
}

function judgeRefresh(event) {
  if (!isRefresh(event) || event.detail.xhr.status === 0) return;
  if (isAnswered(event.detail.xhr)) confirmConnection(); else loseConnection();
}

function noteFailedRefresh(event) {
  if (isRefresh(event)) loseConnection();
}

// The bar tells that the server does not answer: the page keeps its content, without another message.
function keepPageWithoutAnswer(event) {
  if (isRefresh(event) && !isAnswered(event.detail.xhr)) event.detail.shouldSwap = false;
}

const live = { url: null, stream: null, heardAt: 0, isOpen: false };

function openStream() {
  live.stream?.close();
  live.heardAt = Date.now();
  live.isOpen = false;
  const stream = live.stream = new EventSource(live.url);
  const listen = (name, act) => stream.addEventListener(name, () => {
    live.heardAt = Date.now();
    live.isOpen = true;
    act();
  });
  listen("follow", refresh); // the queue may have changed after the page was rendered
  listen("change", refresh);
  listen("alive", () => { if (!connection.lost && !connection.probe) connection.trueAt = new Date(); });
  listen("gone", () => { closeStream(); refresh(); });
  // The browser reconnects by itself, but not after a response that is no event stream: a proxy error, or an expired
  // session. `keepAlive` does that.
  stream.addEventListener("error", () => {
    if (stream !== live.stream) return;
    live.isOpen = false;
    probeConnection();
  });
}

function closeStream() {
  live.stream?.close();
  live.stream = null;
  live.isOpen = false;
}

// Runs every second. A page that was replaced because its queue is gone has neither a stream nor an interval.
function keepAlive() {
  if (document.hidden) return;
  const refreshing = document.querySelector("[data-refreshes]");
  if (!live.isOpen && Date.now() - connection.probedAt >= PROBE_INTERVAL_MS) probeServer();
  if (!refreshing) {
    closeStream();
    return;
  }
  if (live.stream && Date.now() - live.heardAt > MAX_SILENCE_MS) {
    const wasOpen = live.isOpen;
    openStream();
    if (wasOpen) { loseConnection(); refresh(); return; }
  } else if (live.stream?.readyState === EventSource.CLOSED && Date.now() - live.heardAt > FALLBACK_INTERVAL_MS) {
    openStream();
  }
  const interval = connection.lost ? RETRY_INTERVAL_MS
    : live.url && !live.isOpen ? FALLBACK_INTERVAL_MS
    : Number(refreshing.dataset.lookEvery) * 1000;
  if (interval && Date.now() - connection.triedAt >= interval) refresh();
}

function followQueue(url) {
  live.url = url;
  // With HTTP/1.1, browsers open at most six connections to a server: a hidden tab closes its own.
  document.addEventListener("visibilitychange", () => { if (document.hidden) closeStream(); else openStream(); });
  if (!document.hidden) openStream();
}

// Names elements for view transitions, so that a card that changes its position is animated.
function nameForTransition(root) {
  // Morphing can leave a name on the element where the card was before.
  for (const element of root.querySelectorAll("[style]:not([data-moves])")) element.style.viewTransitionName = "";
  for (const element of root.querySelectorAll("[data-moves]")) {
    element.style.viewTransitionName = element.dataset.moves;
  }
}

// Times are in the time zone of the browser, or in UTC if the user chose that in the footer.
const FULL_TIME = { dateStyle: "medium", timeStyle: "medium" };
const FULL_TIME_WITH_ZONE = { dateStyle: "medium", timeStyle: "long" };

function isUtcChosen() {
  return localStorage.getItem("times") === "utc";
}

function formatTime(at, options) {
  const text = new Intl.DateTimeFormat(undefined, { ...options, timeZone: isUtcChosen() ? "UTC" : undefined }).format(at);
  return isUtcChosen() && options.timeStyle !== "long" ? `${text} UTC` : text;
}

function showTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (isNaN(at)) continue;
    time.title = formatTime(at, FULL_TIME_WITH_ZONE);
    if ("clock" in time.dataset) time.textContent = formatTime(at, { timeStyle: "short" });
    if ("full" in time.dataset) time.textContent = formatTime(at, FULL_TIME);
  }
}

function showZoneSwitch() {
  const button = document.querySelector("[data-zone-switch]");
  if (button) button.textContent = isUtcChosen() ? "Times: UTC" : "Times: local";
}

function switchZone() {
  localStorage.setItem("times", isUtcChosen() ? "local" : "utc");
  showZoneSwitch();
  showTimes(document);
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

// In the same frame as the swap: the server writes times in UTC, which must not be seen before they are converted.
function showTimesOfSwap(event) {
  showTimes(event.target.parentNode || document);
}

function prepare(root) {
  nameForTransition(root);
  if (connection.lost) disableChanges(true);
}

// A refresh during a view transition aborts the transition; that rejection is harmless.
function ignoreAbortedTransition(event) {
  if (/transition/i.test(event.reason?.message)) event.preventDefault();
}

// Morphing must not remove the transition names, which only this script sets, nor close what the user opened.
Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name) => name !== "style" && name !== "open";
addEventListener("unhandledrejection", ignoreAbortedTransition);
addEventListener("offline", loseConnection);
addEventListener("online", () => { if (live.url && !document.hidden) openStream(); refresh(); });
document.addEventListener("click", blockDisabledLink, true);
document.addEventListener("htmx:configRequest", limitRefreshTime);
document.addEventListener("htmx:beforeSwap", keepPageWithoutAnswer);
document.addEventListener("htmx:afterRequest", judgeRefresh);
document.addEventListener("htmx:sendError", noteFailedRefresh);
document.addEventListener("htmx:timeout", noteFailedRefresh);
document.addEventListener("htmx:afterSwap", expireSuccessMessage);
document.addEventListener("htmx:afterSwap", showTimesOfSwap);
document.addEventListener("htmx:afterSettle", (event) => prepare(event.target.parentNode || document));
document.querySelector("[data-theme-switch]")?.addEventListener("click", switchTheme);
document.querySelector("[data-zone-switch]")?.addEventListener("click", switchZone);
for (const element of document.querySelectorAll(".scripted")) element.hidden = false;
showZoneSwitch();
showTimes(document);
prepare(document);
const followed = document.querySelector("[data-live]");
if (followed) followQueue(followed.dataset.live);
if (document.getElementById("connection")) setInterval(keepAlive, 1000);
