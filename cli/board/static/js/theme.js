// The look, chosen before anything is drawn: the system's, or what was chosen with the button.
"use strict";
{
  const kept = localStorage.getItem("oarlock-theme");
  const dark = kept ? kept === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}
