// What an edit would change: the nodes, and each of them before and after.

import { ask, el, number, plural, replace, table } from "./dom.js";
import { COLOURS, drawing, followPointer, mark, pod, refused } from "./node.js";

const LOOK_MS = 1000;

const planLink = (name) => `#/plan/${encodeURIComponent(name)}`;

export function planPage(parent, name) {
  document.title = "What the edit changes - numapin";
  return name ? onePage(parent, name) : allPage(parent);
}

function allPage(parent) {
  const how = el("p", { role: "status" }, "Reading the cluster.");
  const body = el("div");
  const way = el("nav", { "aria-label": "Way back" }, el("a", { href: "#/" }, "\u2190 all nodes"));
  replace(parent, way, el("h1", {}, "What the edit changes"), how, body);
  const rows = [];
  const asking = new AbortController();
  let timer = 0;
  const look = async () => {
    try {
      const found = await ask(`api/plan?first=${rows.length}`, asking.signal);
      rows.push(...found.rows);
      how.textContent = said(found, rows.length);
      draw(body, rows);
      if (!found.problem && (!found.nodes || found.planned < found.nodes)) timer = setTimeout(look, LOOK_MS);
    } catch (error) {
      if (error.name !== "AbortError") how.textContent = error.message;
    }
  };
  look();
  return () => {
    asking.abort();
    clearTimeout(timer);
  };
}

function said({ problem, nodes, planned, readAt }, changed) {
  if (problem) return `The edit cannot be planned: ${problem}`;
  if (!nodes) return "Reading the cluster.";
  const time = new Date(1000 * readAt).toLocaleTimeString();
  const done = planned < nodes ? `Planned ${number(planned)} of ${plural(nodes, "node")}` : `All of ${plural(nodes, "node")} planned`;
  return `${done}, as the cluster was at ${time}: ${number(changed)} would change.`;
}

const arrow = ([before, after]) => (before === after ? `${before}` : `${before} \u2192 ${after}`);

function draw(parent, rows) {
  const line = (row) =>
    el(
      "tr", {},
      el("th", { scope: "row" }, el("a", { href: planLink(row.name) }, row.name)),
      el("td", {}, row.policy),
      el("td", {}, arrow(row.mode)),
      el("td", { class: "ids" }, arrow(row.reserved)),
      el("td", { class: "number" }, arrow(row.exclusive)),
      el("td", { class: "number" }, row.moved),
      el("td", { class: "number" }, arrow(row.refused)),
      el("td", { class: "said" }, row.said),
    );
  const shown = [...rows].sort((a, b) => b.isStalled - a.isStalled || worse(b) - worse(a) || b.moved - a.moved).slice(0, 200);
  const headings = ["Node", "Policy", "Mode", "Reserved", "Exclusive CPUs", "Containers with other CPUs", "Refused", "Note"];
  replace(
    parent,
    rows.length ? table("Nodes that would change", headings, shown.map(line)) : null,
    rows.length > shown.length && el("p", {}, `The ${shown.length} that change most are shown.`),
  );
}

const worse = (row) => row.refused[1] - row.refused[0];

function onePage(parent, name) {
  const body = el("div", { "aria-busy": "true" }, el("p", {}, "Planning."));
  followPointer(body);
  const way = el("nav", { "aria-label": "Way back" }, el("a", { href: "#/plan" }, "\u2190 what the edit changes"));
  replace(parent, way, el("h1", {}, `Node ${name}, before and after`), body);
  const asking = new AbortController();
  ask(`api/plan/${encodeURIComponent(name)}`, asking.signal)
    .then((page) => drawOne(body, page))
    .catch((error) => error.name === "AbortError" || replace(body, el("p", { class: "notice bad", role: "alert" }, error.message)))
    .finally(() => body.removeAttribute("aria-busy"));
  return () => asking.abort();
}

function drawOne(parent, page) {
  const line = (one, index) =>
    el(
      "tr", { "data-holder": index },
      el("td", {}, el("span", { class: `mark h${index % COLOURS}` }, mark(index))),
      el("th", { scope: "row" }, pod(one), ` ${one.container}`),
      el("td", { class: "ids" }, one.before || "shared"),
      el("td", { class: "ids" }, one.after || "shared"),
    );
  const part = (title, uses) => el("section", {}, el("h2", {}, title), drawing(page.machine, uses, page.containers));
  replace(
    parent,
    page.row.said && el("p", { class: `notice ${page.row.isStalled ? "bad" : "note"}` }, page.row.said),
    page.refused.length ? refused({ refused: page.refused, refusedOmitted: 0 }) : null,
    page.containers.length ? el("h2", {}, "Containers") : null,
    page.containers.length ? table("Containers before and after", ["", "Pod, container", "CPUs before", "CPUs after"], page.containers.map(line)) : null,
    page.machine ? el("div", { class: "twice" }, part("Before", page.before), part("After", page.after)) : el("p", {}, "The enforcer has not reported the hardware yet."),
    page.moves.length ? el("section", {}, el("h2", {}, "Moves"), el("ul", {}, page.moves.map((text) => el("li", {}, text)))) : null,
  );
}
