// All nodes at a glance: how many are in which state, what still fits, a map, and a list.

import { ask, el, nodeLink, number, plural, podLink, replace, table } from "./dom.js";
import { KINDS, ORDER } from "./kinds.js";
import { fleet, listen } from "./live.js";
import { drawMap, nodeAt } from "./map.js";

const SIZES = [1, 2, 4, 8, 16, 32, 64];
const PAGE = 50;
const ATTENTION = {
  refused: { title: "Refuse pods", test: (row) => row.refused > 0 },
  drift: { title: "Had drift", test: (row) => row.drift > 0 },
};
const COLUMNS = [
  { key: "name", title: "Node", order: (a, b) => 0 },
  { key: "kind", title: "State", order: (a, b) => ORDER[a.kind] - ORDER[b.kind] },
  { key: "policy", title: "Policy", order: (a, b) => compare(a.policy, b.policy) },
  { key: "free", title: "Free CPUs", order: (a, b) => b.free - a.free },
  { key: "largest", title: "Largest pod", order: (a, b) => b.largest - a.largest },
  { key: "refused", title: "Refused", order: (a, b) => b.refused - a.refused },
  { key: "drift", title: "Reverted", order: (a, b) => b.drift - a.drift },
];
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

// Kept while other pages are looked at.
const view = { text: "", kind: "", attention: "", sort: "kind", page: 0 };

export function fleetPage(parent) {
  const parts = {
    tiles: el("div", { class: "tiles", role: "group", "aria-label": "Show nodes by state" }),
    capacity: el("section", { "aria-labelledby": "capacity" }),
    map: el("canvas", { class: "map", role: "img" }),
    hint: el("p", { class: "hint" }),
    pods: el("div", { "aria-live": "polite" }),
    list: el("div"),
    empty: el("div"),
  };
  parts.columns = el(
    "div", { class: "columns" },
    parts.capacity,
    el("section", { "aria-labelledby": "map" }, el("h2", { id: "map" }, "Map"), parts.map, legend()),
  );
  const search = el("input", {
    id: "search", type: "search", placeholder: "node, policy, reason or pod", autocomplete: "off",
    value: view.text, "aria-label": "Search nodes and pods", "aria-keyshortcuts": "/",
  });
  let due = 0;
  let asking = new AbortController();

  const draw = () => {
    due = 0;
    const rows = [...fleet.rows.values()];
    const found = rows.filter(matchesText);
    const shown = found.filter(matchesKind).sort(inOrder());
    parts.tiles.hidden = !rows.length;
    parts.columns.hidden = parts.list.hidden = !shown.length;
    drawTiles(parts.tiles, found, changed);
    drawCapacity(parts.capacity, shown);
    drawMap(parts.map, shown);
    parts.map.setAttribute("aria-label", `A map of ${plural(shown.length, "node")}; the list below says the same`);
    drawList(parts.list, shown, changed);
    drawEmpty(parts.empty, rows, shown);
  };
  const soon = () => (due ||= requestAnimationFrame(draw));
  const changed = () => {
    view.page = 0;
    soon();
  };
  const searchPods = async () => {
    asking.abort();
    asking = new AbortController();
    const text = view.text.trim();
    if (text.length < 2) return replace(parts.pods);
    try {
      const { pods, most } = await ask(`api/search?pod=${encodeURIComponent(text)}`, asking.signal);
      drawPods(parts.pods, pods, most);
    } catch (error) {
      if (error.name !== "AbortError") replace(parts.pods);
    }
  };
  search.addEventListener("input", () => {
    view.text = search.value;
    changed();
    searchPods();
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") parts.list.querySelector("tbody a")?.click();
  });
  parts.map.addEventListener("click", (event) => {
    const name = nodeAt(parts.map, event);
    if (name) location.hash = nodeLink(name);
  });
  parts.map.addEventListener("mousemove", (event) => {
    const row = fleet.rows.get(nodeAt(parts.map, event));
    parts.map.title = row ? `${row.name}: ${KINDS[row.kind].title}, ${row.free} of ${row.cpus} CPUs free` : "";
  });
  addEventListener("resize", soon);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", soon);
  replace(
    parent,
    el("div", { class: "bar" }, el("h1", {}, "Nodes"), search),
    parts.tiles, parts.empty, parts.pods,
    parts.columns,
    parts.list,
  );
  document.title = "numapin";
  draw();
  searchPods();
  const unlisten = listen(soon);
  return () => {
    unlisten();
    asking.abort();
    cancelAnimationFrame(due);
    removeEventListener("resize", soon);
    dark.removeEventListener("change", soon);
  };
}

function matchesText(row) {
  const text = view.text.trim().toLowerCase();
  return !text || [row.name, row.policy, row.reason].some((one) => one.toLowerCase().includes(text));
}

function matchesKind(row) {
  return (!view.kind || row.kind === view.kind) && (!view.attention || ATTENTION[view.attention].test(row));
}

function inOrder() {
  const { order } = COLUMNS.find((one) => one.key === view.sort);
  return (a, b) => order(a, b) || compare(a.name, b.name);
}

function legend() {
  const entry = ([kind, { title, sign, says }]) =>
    el("li", {}, el("span", { class: `sign ${kind}`, "aria-hidden": "true" }, sign), ` ${title}: ${says}`);
  return el("details", {}, el("summary", {}, "What the colours mean"), el("ul", { class: "legend" }, Object.entries(KINDS).map(entry), el("li", {}, "The filled part of a cell is what is given away.")));
}

function drawTiles(parent, rows, changed) {
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.tile : null;
  const tile = (id, title, count, sign, kind, isPressed, press) =>
    el(
      "button",
      { class: "tile", "data-tile": id, type: "button", "aria-pressed": String(isPressed), onclick: () => { press(); changed(); } },
      el("span", { class: "count" }, number(count)),
      el("span", {}, sign && el("span", { class: `sign ${kind}`, "aria-hidden": "true" }, sign), ` ${title}`),
    );
  const counts = {};
  for (const row of rows) counts[row.kind] = (counts[row.kind] ?? 0) + 1;
  const kinds = Object.entries(KINDS)
    .filter(([kind]) => counts[kind] || view.kind === kind)
    .map(([kind, { title, sign }]) =>
      tile(kind, title, counts[kind] ?? 0, sign, kind, view.kind === kind, () => (view.kind = view.kind === kind ? "" : kind)));
  const attention = Object.entries(ATTENTION).map(([key, { title, test }]) =>
    tile(key, title, rows.filter(test).length, "", "", view.attention === key, () => (view.attention = view.attention === key ? "" : key)));
  const all = tile("all", "All", rows.length, "", "", !view.kind && !view.attention, () => (view.kind = view.attention = ""));
  replace(parent, all, kinds, attention);
  if (focused) parent.querySelector(`[data-tile="${focused}"]`)?.focus();
}

function drawCapacity(parent, rows) {
  const sums = SIZES.map((_, index) => rows.reduce((sum, row) => sum + row.fits[index], 0));
  const free = rows.reduce((sum, row) => sum + row.free, 0);
  const all = rows.reduce((sum, row) => sum + row.cpus, 0);
  const most = Math.max(...sums, 1);
  const line = (size, index) =>
    el(
      "tr", {},
      el("th", { scope: "row" }, plural(size, "CPU")),
      el("td", { class: "number" }, number(sums[index])),
      el("td", { class: "wide" }, el("meter", { min: 0, max: most, value: sums[index], "aria-hidden": "true" })),
    );
  replace(
    parent,
    el("h2", { id: "capacity" }, "What still fits"),
    el("p", {}, `${number(free)} of ${plural(all, "CPU")} free on ${plural(rows.length, "node")}. So many more pods of a size fit, each on one NUMA node, counting CPUs alone:`),
    table("Pods that still fit by size", ["Pod of", "More pods", ""], SIZES.map(line), { class: "capacity" }),
  );
}

function drawPods(parent, pods, most) {
  const more = pods.length === most ? ` (the first ${most})` : "";
  const entry = ({ pod, node }) => {
    const [namespace, name] = pod.split("/", 2);
    return el("li", {}, el("a", { href: podLink(namespace, name) }, pod), " on ", el("a", { href: nodeLink(node) }, node));
  };
  replace(parent, pods.length ? [el("h2", {}, `Pods${more}`), el("ul", { class: "pods" }, pods.map(entry))] : null);
}

function drawEmpty(parent, rows, shown) {
  if (shown.length) return replace(parent);
  const { loaded, problem } = fleet.status;
  const text = rows.length
    ? "No node matches."
    : problem ? "No node can be shown."
    : loaded ? "There is no node." : "Reading the cluster.";
  replace(parent, el("p", { role: "status" }, text));
}

function drawList(parent, rows, changed) {
  const pages = Math.max(1, Math.ceil(rows.length / PAGE));
  view.page = Math.min(view.page, pages - 1);
  const shown = rows.slice(view.page * PAGE, (view.page + 1) * PAGE);
  const focused = parent.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
  const heading = ({ key, title }) =>
    el("button", { type: "button", class: "sort", "data-focus": `sort-${key}`, onclick: () => { view.sort = key; changed(); } },
      title, el("span", { "aria-hidden": "true" }, view.sort === key ? " \u25be" : ""));
  const list = table("Nodes", COLUMNS.map(heading), shown.map(line), { class: "nodes" });
  list.querySelectorAll("th[scope=col]").forEach((one, index) => {
    if (COLUMNS[index].key === view.sort) one.setAttribute("aria-sort", index < 3 ? "ascending" : "descending");
  });
  const step = (title, by) =>
    el("button", {
      type: "button", "data-focus": title, disabled: view.page + by < 0 || view.page + by >= pages,
      onclick: () => { view.page += by; drawList(parent, rows, changed); },
    }, title);
  replace(
    parent,
    list,
    pages > 1 && el("nav", { class: "pages", "aria-label": "Pages of the list" }, step("Previous", -1), ` page ${view.page + 1} of ${number(pages)} `, step("Next", 1)),
  );
  if (focused) [...parent.querySelectorAll("[data-focus]")].find((one) => one.dataset.focus === focused)?.focus();
}

function line(row) {
  const { title, sign } = KINDS[row.kind];
  const why = row.reason ? `: ${row.reason}` : "";
  return el(
    "tr", {},
    el("th", { scope: "row" }, el("a", { href: nodeLink(row.name), "data-focus": `row-${row.name}` }, row.name)),
    el("td", { title: row.message }, el("span", { class: `sign ${row.kind}`, "aria-hidden": "true" }, sign), ` ${title}${why}`),
    el("td", {}, row.policy),
    el("td", { class: "number" }, row.cpus ? `${row.free} of ${row.cpus}` : ""),
    el("td", { class: "number" }, row.cpus ? plural(row.largest, "CPU") : ""),
    el("td", { class: "number" }, row.refused || ""),
    el("td", { class: "number" }, row.drift || ""),
  );
}
