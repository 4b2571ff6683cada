// Lets a slider and its number say the same, and says that a replay is under way.

const form = document.querySelector("[data-replays]");
const say = (words) => { document.getElementById("said").textContent = words; };

for (const slider of form.querySelectorAll("[data-slides]")) {
  const number = document.getElementById(slider.dataset.slides);
  slider.addEventListener("input", () => { number.value = slider.value; });
  number.addEventListener("input", () => { slider.value = number.value; });
}

form.addEventListener("htmx:beforeRequest", () => say("Replaying…"));
form.addEventListener("htmx:afterRequest", () => say(""));
