// Buttons that copy, and show for a moment that they did. Browsers let nobody copy over plain http from elsewhere.

if (!navigator.clipboard) document.documentElement.classList.add("uncopyable");

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.classList.add("done");
  setTimeout(() => button.classList.remove("done"), 1500);
});
