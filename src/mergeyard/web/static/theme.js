// Runs before the first paint: applies the theme that the user chose, if any.
const chosen = localStorage.getItem("theme");
if (chosen) document.documentElement.dataset.theme = chosen;
