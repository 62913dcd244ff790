// A pod's way from its creation to its CPUs, and what numapin explain says.

import { ask, el, nodeLink, replace, table } from "./dom.js";
import { fleet, listen } from "./live.js";

const SIGNS = { done: "\u2713", waiting: "\u2026", failed: "\u2715", notNeeded: "\u2013" };
const SAYS = { done: "done", waiting: "not yet", failed: "failed", notNeeded: "not needed" };

export function podPage(parent, namespace, name) {
  const body = el("div", { "aria-busy": "true" }, el("p", {}, "Looking for what the pod has, and what would help."));
  document.title = `${namespace}/${name} - numapin`;
  replace(parent, el("nav", { "aria-label": "Way back" }, el("a", { href: "#/" }, "\u2190 all nodes")), el("h1", {}, `Pod ${namespace}/${name}`), body);
  let asking = new AbortController();
  let node = "";
  let timer = 0;
  const load = async () => {
    asking.abort();
    asking = new AbortController();
    try {
      const page = await ask(`api/pods/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`, asking.signal);
      node = page.explanation.node ?? "";
      draw(body, page);
    } catch (error) {
      if (error.name === "AbortError") return;
      replace(body, el("p", { class: "notice bad", role: "alert" }, error.message));
    }
    body.removeAttribute("aria-busy");
  };
  load();
  const unlisten = listen((names) => {
    if (!node || !names.has(node) || !fleet.rows.has(node)) return;
    clearTimeout(timer);
    timer = setTimeout(load, 500); // what would help takes many plans to find
  });
  return () => {
    unlisten();
    clearTimeout(timer);
    asking.abort();
  };
}

function draw(parent, { explanation: found, steps }) {
  replace(
    parent,
    el("p", {}, `It ${found.verdict}${found.reason ? ` (${found.reason})` : ""}.`, found.node && [" Node ", el("a", { href: nodeLink(found.node) }, found.node), "."]),
    steps.length ? el("section", {}, el("h2", {}, "Its way"), el("ol", { class: "steps" }, steps.map(step))) : null,
    list("Why", found.why.filter((text) => !steps.some((one) => one.text.includes(text)))),
    found.facts.length ? el("section", {}, el("h2", {}, "What is known"), el("dl", {}, found.facts.map((one) => [el("dt", {}, one.subject), el("dd", {}, one.text)]))) : null,
    found.remedies.length ? el("section", {}, el("h2", {}, "What would help"), el("ul", {}, found.remedies.map((one) => el("li", {}, one.text)))) : null,
    found.inTheWay.length ? el("section", {}, el("h2", {}, "Who is in the way"), table("Who is in the way", ["Pod", "CPUs", "NUMA of its memory"], found.inTheWay.map(holder))) : null,
    list("Not tried", found.notTried),
    list("Taken for granted", found.assumed),
  );
}

function step(one) {
  const time = one.time ? el("time", { datetime: one.time }, ` ${new Date(one.time).toLocaleString()}`) : null;
  return el(
    "li", {},
    el("span", { class: `sign ${one.state}`, role: "img", "aria-label": SAYS[one.state] }, SIGNS[one.state]),
    el("div", {}, el("strong", {}, one.what), one.text && `: ${one.text}`, time),
  );
}

const holder = (one) => el("tr", {}, el("th", { scope: "row" }, one.pod), el("td", {}, one.cpus), el("td", {}, one.numaNodes || "not bound"));

function list(title, texts) {
  return texts.length ? el("section", {}, el("h2", {}, title), el("ul", {}, texts.map((text) => el("li", {}, text)))) : null;
}
