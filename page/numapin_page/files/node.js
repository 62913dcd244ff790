// A node as a machine: who has what, and what would fit.

import { ask, el, number, plural, podLink, replace, table } from "./dom.js";
import { KINDS } from "./kinds.js";
import { fleet, listen } from "./live.js";

export const COLOURS = 8;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const WORDS = { shared: "shared", reserved: "reserved", outside: "not in use" };

const SIGNS = { shared: "\u00a0\u00a0\u00a0", reserved: "r", outside: "\u2013" };

export const mark = (index) => (index < LETTERS.length ? LETTERS[index] : LETTERS[Math.floor(index / 26) - 1] + LETTERS[index % 26]);

export function nodePage(parent, name) {
  const body = el("div");
  followPointer(body);
  const amounts = el("div");
  document.title = `${name} - numapin`;
  replace(parent, el("nav", { "aria-label": "Way back" }, el("a", { href: "#/" }, "\u2190 all nodes")), el("h1", {}, `Node ${name}`), body, amounts);
  let asking = new AbortController();
  let shown = -1;
  let isDrawn = false;
  const load = async () => {
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    shown = fleet.rows.get(name)?.version ?? 0;
    try {
      const page = await ask(`api/nodes/${encodeURIComponent(name)}`, signal);
      draw(body, page);
      isDrawn = true;
      if (page.pools) replace(amounts, left(await ask(`api/amounts/${encodeURIComponent(name)}`, signal)));
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!isDrawn) replace(body, el("p", { class: "notice bad", role: "alert" }, error.message));
      else replace(amounts, el("p", { class: "notice note" }, `Not up to date: ${error.message}`));
    }
  };
  load();
  const unlisten = listen((names) => names.has(name) && fleet.rows.get(name)?.version !== shown && load());
  return () => {
    unlisten();
    asking.abort();
  };
}

function draw(parent, page) {
  const { row } = page;
  const { title, sign } = KINDS[row.kind];
  const state = [el("span", { class: `sign ${row.kind}`, "aria-hidden": "true" }, sign), ` ${title}${row.reason ? `: ${row.reason}` : ""}`];
  replace(
    parent,
    el("p", {}, state, row.policy ? `, policy ${row.policy}, mode ${row.mode}` : ", every container runs as without numapin"),
    page.message && el("p", { class: "notice note" }, page.message),
    page.refused?.length ? refused(page) : null,
    page.rooms?.length ? fits(page) : null,
    page.containers ? containers(page) : null,
    page.machine ? machine(page) : row.policy && el("p", {}, "The enforcer has not reported the hardware yet."),
    page.machine ? hardware(page.machine) : null,
    page.drift && Object.keys(page.drift).length ? drift(page.drift) : null,
  );
}

function fits({ rooms, sizes }) {
  const most = Math.max(...rooms.map((room) => room.allocatable));
  const shown = sizes.filter((size) => size <= most);
  const line = (room) =>
    el(
      "tr", {},
      el("th", { scope: "row" }, `NUMA ${room.numaNode}`),
      el("td", { class: "number" }, `${room.free} of ${room.allocatable}`),
      room.fits.slice(0, shown.length).map((count) => el("td", { class: "number" }, count || "\u2013")),
    );
  const headings = ["", "Free CPUs", ...shown.map((size) => plural(size, "CPU"))];
  return el("section", {}, el("h2", {}, "What would fit"), el("p", { class: "small" }, "More pods of each size, by CPUs alone"), table("Pods that would fit on each NUMA node", headings, rooms.map(line)));
}

export function refused({ refused: listed, refusedOmitted }) {
  const line = (one) =>
    el("tr", {}, el("th", { scope: "row" }, pod(one)), el("td", {}, one.container), el("td", {}, one.reason), el("td", {}, one.message));
  return el("section", {}, el("h2", {}, `Refused: ${plural(listed.length + refusedOmitted, "pod or container", "pods and containers")}, on shared CPUs`),
    table("Refused pods", ["Pod", "Container", "Reason", "Numbers"], listed.map(line)));
}

export const pod = (one) => el("a", { href: podLink(one.namespace, one.pod) }, `${one.namespace}/${one.pod}`);

function containers({ containers: listed, pools }) {
  const some = (key) => listed.some((one) => one[key].length);
  const [hasMemory, hasNotes] = [some("memory"), some("notes")];
  const line = (one, index) =>
    el(
      "tr", { "data-holder": index },
      el("td", {}, one.cpus ? el("span", { class: `mark h${index % COLOURS}` }, mark(index)) : ""),
      el("th", { scope: "row" }, pod(one), ` ${one.container}`),
      el("td", { class: "ids" }, one.cpus ? `${one.cpus} (${one.count}${one.exclusive ? "" : ", within the pod"})` : "shared"),
      el("td", {}, one.numaNodes),
      hasMemory && el("td", {}, one.memory),
      el("td", { class: "ids" }, one.inKernel || "as decided"),
      hasNotes && el("td", {}, one.notes.join("; ")),
    );
  const headings = ["", "Pod, container", "CPUs", "NUMA", hasMemory && "Memory", "Kernel has", hasNotes && "Notes"].filter((one) => one !== false);
  return el(
    "section", { class: "holders" },
    el("h2", {}, "Who has what"),
    listed.length ? table("Containers with CPUs or memory of their own", headings, listed.map(line)) : el("p", {}, "No container has CPUs of its own."),
    el("p", { class: "small" }, pools.shared ? `Shared by all others: ${pools.shared}. Reserved: ${pools.reserved || "none"}.` : "The CPUs of this node are not divided."),
  );
}

// What a container has stands out while it, or a CPU of it, is pointed at or has the focus.
export function followPointer(parent) {
  const light = (event) => highlight(event.target.closest("[data-holder]")?.dataset.holder);
  parent.addEventListener("mouseover", light);
  parent.addEventListener("focusin", light);
  parent.addEventListener("mouseleave", () => highlight());
  parent.addEventListener("focusout", () => highlight());
}

function highlight(holder) {
  for (const one of document.querySelectorAll(".machine .cpu")) one.classList.toggle("dimmed", holder !== undefined && one.dataset.holder !== holder);
  for (const one of document.querySelectorAll("tr[data-holder]")) one.classList.toggle("lit", one.dataset.holder === holder);
}

function machine(page) {
  return el(
    "section", {},
    el("h2", {}, "The machine"),
    el("p", {}, page.machine.summary),
    drawing(page.machine, page.cpus, page.containers),
  );
}

// The boxes of a machine; `uses` says what each CPU is, by the number of its container.
export function drawing(found, uses, containers) {
  const counts = { shared: 0, reserved: 0, outside: 0 };
  for (const use of Object.values(uses)) if (use in counts) counts[use] += 1;
  const legend = Object.entries(counts)
    .filter(([, count]) => count)
    .map(([use, count]) => el("span", {}, el("span", { class: `cpu ${use}cpu` }, SIGNS[use]), ` ${WORDS[use]} (${count}) `));
  return [
    el("p", { class: "small" }, legend, " A letter: a container of the table. A core is a box of its threads."),
    el("div", { class: "machine" }, found.boxes.map((one) => box(one, uses, containers))),
  ];
}

const NAMES = { socket: "Socket", numa: "NUMA", cache: "L3" };

function box(one, uses, containers) {
  const facts = [one.memory, one.hugepages && `huge pages ${one.hugepages}`].filter(Boolean).join(", ");
  const title = one.kind === "cores" ? "" : `${NAMES[one.kind]} ${one.id}${facts ? `: ${facts}` : ""}`;
  return el(
    "div", { class: `box ${one.kind}` },
    title && el("h3", {}, title),
    one.cores ? el("div", { class: "cores" }, one.cores.map((core) => el("div", { class: "core" }, core.map((id) => cpu(id, uses, containers)))))
      : el("div", { class: "inside" }, one.boxes.map((inner) => box(inner, uses, containers))),
  );
}

function cpu(id, uses, containers) {
  const use = uses[id] ?? "outside";
  const holder = containers[use];
  if (!holder) return el("div", { class: `cpu ${use}cpu`, title: `CPU ${id}: ${WORDS[use]}` }, use === "shared" ? "" : el("b", {}, SIGNS[use]), ` ${id}`);
  return el(
    "div", { class: `cpu h${use % COLOURS}`, "data-holder": use, title: `CPU ${id}: ${holder.namespace}/${holder.pod} ${holder.container}` },
    el("b", {}, mark(use)), ` ${id}`,
  );
}

function left({ left: listed, leftUnknown }) {
  if (leftUnknown) return el("p", { class: "notice note" }, leftUnknown);
  const memory = listed.filter((one) => one.resource !== "cpu");
  if (!memory.length) return el("span");
  const line = (one) => el("tr", {}, el("th", { scope: "row" }, `NUMA ${one.numaNode}`), el("td", {}, one.resource), el("td", { class: "number" }, `${one.available} of ${one.allocatable}`));
  return el("section", {}, el("h2", {}, "Memory left for containers"), table("Memory left on NUMA nodes", ["", "Resource", "Left"], memory.map(line)));
}

function hardware(found) {
  const device = (one) =>
    el("tr", {}, el("th", { scope: "row" }, one.numaNode === null ? "no NUMA node" : `NUMA ${one.numaNode}`), el("td", { class: "number" }, one.count), el("td", {}, one.kind), el("td", {}, one.named.join(", "), one.count > one.named.length ? ` and ${number(one.count - one.named.length)} more` : ""));
  const only = (one) => el("li", {}, `NUMA ${one.id}: ${one.memory}${one.hugepages ? `, huge pages ${one.hugepages}` : ""} without CPUs${one.onDevice ? ", on a GPU, not for containers" : `, nearest to NUMA ${one.near.join(", ")}`}`);
  const odd = Object.entries(found.odd).map(([word, cpus]) => [el("dt", {}, `${word} CPUs`), el("dd", {}, cpus)]);
  return [
    found.memoryOnly.length ? el("section", {}, el("h2", {}, "Memory without CPUs"), el("ul", {}, found.memoryOnly.map(only))) : null,
    found.devices.length ? el("section", {}, el("h2", {}, "Devices"), table("Devices by NUMA node", ["", "", "Kind", "Address and name"], found.devices.map(device))) : null,
    found.distances.length ? distances(found.distances) : null,
    odd.length ? el("section", {}, el("h2", {}, "CPUs not in ordinary use"), el("dl", {}, odd)) : null,
    found.warnings.map((text) => el("p", { class: "notice note" }, text)),
  ];
}

function distances(rows) {
  const line = (row) => el("tr", {}, el("th", { scope: "row" }, `NUMA ${row.id}`), row.to.map((far) => el("td", { class: "number" }, far)));
  return el("details", {}, el("summary", {}, "Distances between NUMA nodes"), table("Distances between NUMA nodes", ["", ...rows.map((row) => row.id)], rows.map(line)));
}

function drift(causes) {
  const line = ([cause, count]) => [el("dt", {}, cause), el("dd", {}, number(count))];
  return el("section", {}, el("h2", {}, "Changes by others that were reverted"), el("dl", {}, Object.entries(causes).map(line)));
}
