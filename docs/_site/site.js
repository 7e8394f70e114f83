// A table or a code block that is wider than the screen scrolls: with the keyboard too.
const scrollable = () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code, .md-typeset .scroll")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
};
addEventListener("load", () => requestAnimationFrame(scrollable));
addEventListener("resize", scrollable);
