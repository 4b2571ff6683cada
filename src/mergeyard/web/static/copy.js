// Copy buttons; they show for a moment that the text was copied. Over plain http (except localhost) browsers offer no
// clipboard, and the buttons are hidden.

if (!navigator.clipboard) document.documentElement.classList.add("uncopyable");

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.classList.add("done");
  setTimeout(() => button.classList.remove("done"), 1500);
});
