// Keeps each slider and its number in sync, and shows a message while a replay runs.

const form = document.querySelector("[data-replays]");
const showMessage = (message) => { document.getElementById("said").textContent = message; };

for (const slider of form.querySelectorAll("[data-slides]")) {
  const number = document.getElementById(slider.dataset.slides);
  slider.addEventListener("input", () => { number.value = slider.value; });
  number.addEventListener("input", () => { slider.value = number.value; });
}

form.addEventListener("htmx:beforeRequest", () => showMessage("Replaying…"));
form.addEventListener("htmx:afterRequest", () => showMessage(""));
