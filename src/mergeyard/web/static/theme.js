// Before anything is drawn: the theme that the reader chose, if they did.
const chosen = localStorage.getItem("theme");
if (chosen) document.documentElement.dataset.theme = chosen;
