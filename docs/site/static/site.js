// Sphinx marks the words of a search on the page that is opened, and fails on a word that names an icon of the theme.
document.querySelectorAll("svg title").forEach((title) => title.classList.add("nohighlight"));
