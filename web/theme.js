// Before the first paint: the theme that was chosen.
const theme = localStorage.getItem("hfsad-theme");
if (theme) document.documentElement.dataset.theme = theme;
