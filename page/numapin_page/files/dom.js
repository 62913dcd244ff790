// Elements are made here and nowhere else, with text as text: what a cluster's objects contain can
// never become markup.

const SVG = new Set(["svg", "rect"]);

export function el(tag, attributes = {}, ...children) {
  const node = SVG.has(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((one) => one !== null && one !== false && one !== ""));
  return node;
}

export function replace(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((one) => one !== null && one !== false));
}

export const number = (value) => value.toLocaleString("en");

export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

export const nodeLink = (name) => `#/node/${encodeURIComponent(name)}`;

export const podLink = (namespace, name) =>
  `#/pod/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

export function table(caption, headings, rows, attributes = {}) {
  return el(
    "div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    el(
      "table", attributes,
      el("caption", { class: "hidden" }, caption),
      el("thead", {}, el("tr", {}, headings.map((one) => (one === "" ? el("td") : el("th", { scope: "col" }, one))))),
      el("tbody", {}, rows),
    ),
  );
}

export async function ask(path, signal) {
  const response = await fetch(path, { signal });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}
