// The menu marks the section in view.

const menu = document.querySelector("body > nav");
const targets = [...menu.querySelectorAll("a")].map((link) => [document.querySelector(link.hash), link]);
let marked;

function markSection() {
  const reached = targets.filter(([part]) => part.offsetParent && part.getBoundingClientRect().top < innerHeight / 3);
  const [, link] = reached.at(-1) ?? [];
  if (link === marked) return;
  marked?.removeAttribute("aria-current");
  link?.setAttribute("aria-current", "location");
  marked = link;
  // Only a menu with its own scrollbar is scrolled, because the page must not move.
  if (link && menu.scrollHeight > menu.clientHeight) menu.scrollTop = link.offsetTop - menu.clientHeight / 2;
}

const line = new IntersectionObserver(markSection, { rootMargin: "0px 0px -66% 0px" });
for (const [part] of targets) line.observe(part);
