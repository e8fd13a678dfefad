// What the server's pages cannot do by themselves: follow the log, move the moment, keys.
// Every page works without this script; no text of the database is ever turned into markup by it.
"use strict";

const body = document.body;
const mark = document.querySelector("[data-live-mark]");

function typing() {
  const at = document.activeElement;
  return Boolean(at && at.closest && at.closest("input:not([type=range]), textarea, select, dialog[open]"));
}

// Somebody who has begun to fill in a form, or opened one, keeps it.
function busy() {
  return typing() || Boolean(document.querySelector("main [data-dirty], main details[open] form, main [data-keep]"));
}

// --- times in the reader's own zone

function showTimes(root) {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    if ("ago" in time.dataset) time.title = format.format(moment);
    else time.textContent = format.format(moment);
  }
}

// --- on a phone each row is a card: its values say what they are

function labelCells(root) {
  for (const table of root.querySelectorAll("table.list.wide, table.changes")) {
    const names = [...table.querySelectorAll("thead th")].map((each) => each.querySelector(".sr") ? "" : each.textContent.trim());
    for (const cell of table.querySelectorAll("tbody td:not(:first-child)"))
      if (names[cell.cellIndex] && cell.textContent.trim()) cell.dataset.label = names[cell.cellIndex];
  }
}

// --- live: load the page anew when the log has grown

async function reload() {
  const response = await fetch(location.href, { headers: { accept: "text/html" }, credentials: "same-origin" });
  if (!response.ok || busy()) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const place of ["#main", ".slider svg"]) {
    const now = document.querySelector(place), next = fresh.querySelector(place);
    if (now && next && now.innerHTML !== next.innerHTML) now.replaceWith(document.adoptNode(next));
  }
  prepare(document);
}

let seen = null;

async function heard(head, words) {
  mark.dataset.on = "";
  words.textContent = "live";
  const news = seen !== null && head !== seen;
  seen = head;
  if (!news) return;
  mark.dataset.news = "";
  if (busy()) words.textContent = "new, not shown while you edit";
  else await reload();
  setTimeout(() => delete mark.dataset.news, 600);
}

// Browsers keep few connections to a server, so that a tab that nobody sees gives its own up.
function follow() {
  if (!body.dataset.live || body.dataset.moment || !window.EventSource) return;
  const words = mark.querySelector("[data-live-words]");
  let stream = null;
  const stop = () => { if (stream) stream.close(); stream = null; delete mark.dataset.on; };
  const start = () => {
    if (stream || document.hidden) return;
    stream = new EventSource(body.dataset.live);
    stream.addEventListener("head", (event) => heard(event.data, words));
    stream.addEventListener("error", () => { delete mark.dataset.on; words.textContent = "waiting for the server"; });
  };
  document.addEventListener("visibilitychange", () => document.hidden ? stop() : start());
  addEventListener("pagehide", stop);
  addEventListener("pageshow", start);
  start();
}

// --- the moment

function atPosition(form, position) {
  const oldest = Date.parse(form.dataset.oldest), latest = Date.parse(form.dataset.latest);
  return new Date(oldest + (latest - oldest) * position / 1000);
}

function prepareSlider() {
  const form = document.querySelector("[data-moment-form]");
  if (!form) return;
  const slider = form.querySelector("[data-slider]"), words = form.querySelector("[name=at]");
  const oldest = Date.parse(form.dataset.oldest), latest = Date.parse(form.dataset.latest);
  // What words mean only the server knows: browsers take "@220" for a year.
  const there = Date.parse(form.dataset.there);
  if (!Number.isNaN(there) && latest > oldest) slider.value = Math.min(1000 * (there - oldest) / (latest - oldest), 999);
  slider.addEventListener("input", () => {
    words.value = Number(slider.value) >= 1000 ? "" : atPosition(form, slider.value).toISOString();
    slider.setAttribute("aria-valuetext", words.value || "now");
  });
  slider.addEventListener("change", () => form.requestSubmit());
}

function moveMoment(step) {
  const form = document.querySelector("[data-moment-form]");
  if (!form) return;
  const slider = form.querySelector("[data-slider]");
  slider.value = Number(slider.value) + step;
  slider.dispatchEvent(new Event("input"));
  slider.dispatchEvent(new Event("change"));
}

// --- keys

let waitsForPlace = false;

function moveRow(step) {
  const rows = [...document.querySelectorAll("main [data-row]")];
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement);
  rows[Math.min(Math.max(at + step, 0), rows.length - 1)].focus();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && typing()) document.activeElement.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || typing()) return;
  if (waitsForPlace) {
    waitsForPlace = false;
    const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
    if (link) link.click();
    return;
  }
  const acts = {
    "/": () => document.querySelector('[data-key="/"]').focus(),
    "g": () => { waitsForPlace = true; },
    "j": () => moveRow(1), "k": () => moveRow(-1),
    "[": () => moveMoment(-25), "]": () => moveMoment(25),
    "n": () => { const now = document.querySelector("[data-now]"); if (now) now.click(); },
    "?": () => document.getElementById("keys").showModal(),
  };
  if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
});

// --- the graph: zoom, drag, find

function prepareGraph() {
  const graph = document.querySelector("[data-graph]");
  if (!graph || graph.dataset.ready) return;
  graph.dataset.ready = "";
  const all = graph.viewBox.baseVal, whole = { x: all.x, y: all.y, width: all.width, height: all.height };
  let view = { ...whole }, held = null;
  const show = () => graph.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
  const zoom = (factor, fx = .5, fy = .5) => {
    const width = Math.min(Math.max(view.width / factor, whole.width / 30), whole.width * 3), ratio = width / view.width;
    view.x += view.width * (1 - ratio) * fx; view.y += view.height * (1 - ratio) * fy;
    view.width = width; view.height *= ratio; show();
  };
  // Where the whole would be too small to read, as on a phone, it begins at the left, readable.
  const readable = graph.getBoundingClientRect().width / .8;
  if (readable < whole.width && readable < 700) zoom(whole.width / readable, 0);
  graph.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = graph.getBoundingClientRect();
    zoom(event.deltaY < 0 ? 1.18 : .85, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
  }, { passive: false });
  graph.addEventListener("pointerdown", (event) => { held = { x: event.clientX, y: event.clientY, moved: false }; });
  addEventListener("pointermove", (event) => {
    if (!held) return;
    const box = graph.getBoundingClientRect(), scale = Math.max(view.width / box.width, view.height / box.height);
    const dx = event.clientX - held.x, dy = event.clientY - held.y;
    if (!held.moved && Math.hypot(dx, dy) < 4) return;
    view.x -= dx * scale; view.y -= dy * scale;
    held = { x: event.clientX, y: event.clientY, moved: true };
    graph.classList.add("moving"); show();
  });
  addEventListener("pointerup", () => { if (held && held.moved) graph.dataset.dragged = ""; held = null; graph.classList.remove("moving"); });
  graph.addEventListener("click", (event) => { if ("dragged" in graph.dataset) { event.preventDefault(); delete graph.dataset.dragged; } }, true);
  for (const button of document.querySelectorAll("[data-zoom]"))
    button.addEventListener("click", () => { if (button.dataset.zoom === "fit") { view = { ...whole }; show(); } else zoom(Number(button.dataset.zoom)); });
  const find = document.querySelector("[data-graph-find]");
  const look = () => {
    const words = find.value.trim().toLowerCase();
    graph.classList.toggle("finding", Boolean(words));
    for (const node of graph.querySelectorAll(".node")) node.classList.toggle("found", Boolean(words) && node.querySelector("title").textContent.toLowerCase().includes(words));
  };
  if (find) { find.addEventListener("input", look); look(); }
}

// --- the rest

document.addEventListener("change", (event) => {
  const form = event.target.form;
  if (form && "auto" in form.dataset) form.requestSubmit();
});
document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (form && form.closest("main")) form.dataset.dirty = "";
});
document.addEventListener("submit", (event) => {
  const form = event.target, sure = form.dataset.confirm;
  if (sure && !confirm(sure)) { event.preventDefault(); return; }
  const button = form.querySelector("button[data-busy]");
  if (button) { button.textContent = button.dataset.busy; button.setAttribute("aria-busy", "true"); }
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-help]")) document.getElementById("keys").showModal();
});

function prepare(root) {
  showTimes(root);
  labelCells(root);
  prepareGraph();
}

// On a phone the navigation is one line that scrolls.
function showSection() {
  const side = document.querySelector(".side"), current = side && side.querySelector("[aria-current]");
  if (current && side.scrollWidth > side.clientWidth) side.scrollLeft = current.offsetLeft - (side.clientWidth - current.offsetWidth) / 2;
}

prepare(document);
showSection();
prepareSlider();
follow();
