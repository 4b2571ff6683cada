// Keyboard shortcuts. They do nothing while the user types, with a modifier, over an open dialog, or when switched off.

const GO_TIMEOUT_MS = 3000;
const GO = { q: "/", m: "/pulls?author=@me", h: "/health" };
const help = document.getElementById("shortcuts");
let goPressedAt = 0;

function areShortcutsOff() {
  return localStorage.getItem("shortcuts") === "off";
}

function isTyping(element) {
  return element.closest("input, textarea, select, [contenteditable]") !== null;
}

function listRows() {
  return [...document.querySelectorAll(".wait > li, [data-rows] > *")].filter((row) => row.querySelector("a[href]"));
}

function moveInRows(step) {
  const rows = listRows();
  const current = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[current < 0 ? (step > 0 ? 0 : rows.length - 1) : current + step];
  const link = next?.querySelector("a[href]");
  link?.focus();
  link?.scrollIntoView({ block: "nearest" });
}

const SHORTCUTS = {
  "/": () => document.getElementById("jump").focus(),
  "?": () => help.showModal(),
  g: () => { goPressedAt = Date.now(); },
  j: () => moveInRows(1),
  k: () => moveInRows(-1),
  s: () => document.querySelector("main [data-action=submit]")?.click(),
};

function pressShortcut(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || areShortcutsOff()) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const target = Date.now() - goPressedAt < GO_TIMEOUT_MS && GO[event.key];
  goPressedAt = 0;
  if (target) {
    location.assign(target);
  } else if (Object.hasOwn(SHORTCUTS, event.key)) {
    SHORTCUTS[event.key]();
  } else {
    return;
  }
  event.preventDefault();
}

if (help) {
  const choice = help.querySelector("[data-shortcuts-switch]");
  choice.checked = !areShortcutsOff();
  choice.addEventListener("change", () => localStorage.setItem("shortcuts", choice.checked ? "on" : "off"));
  document.querySelector("[data-shortcuts-help]").addEventListener("click", () => help.showModal());
  document.addEventListener("keydown", pressShortcut);
}
