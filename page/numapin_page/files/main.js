import { el, replace } from "./dom.js";
import { connect, fleet, listen } from "./live.js";
import { fleetPage } from "./fleet.js";
import { nodePage } from "./node.js";
import { planPage } from "./plan.js";
import { podPage } from "./pod.js";

const content = document.getElementById("content");
let leave = () => {};

function route() {
  const [, kind, ...names] = location.hash.split("/").map(decoded);
  leave();
  if (kind === "node" && names[0]) leave = nodePage(content, names[0]);
  else if (kind === "pod" && names[1]) leave = podPage(content, names[0], names[1]);
  else if (kind === "plan") leave = planPage(content, names[0]);
  else leave = fleetPage(content);
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function notice(kind, text) {
  return el("p", { class: `notice ${kind}` }, text);
}

function showConnection() {
  const { status, isLost, lostAt } = fleet;
  const time = lostAt?.toLocaleTimeString();
  const label = isLost ? "disconnected" : status.problem ? "not up to date" : status.isFile ? "a file" : "live";
  const pill = document.getElementById("connection");
  if (pill.textContent !== label) pill.textContent = label;
  pill.className = isLost || status.problem ? "bad" : "good";
  replace(
    document.getElementById("notices"),
    isLost && notice("bad", `Connection to numapin serve lost at ${time}: what you see is from then. The page tries again by itself.`),
    !isLost && status.forbidden && notice("bad", `No rights, or no numapin: ${status.problem}`),
    !isLost && status.problem && !status.forbidden && notice("bad", `Not up to date: ${status.problem}`),
    (status.notes ?? []).map((text) => notice("note", text)),
  );
  document.getElementById("plan").hidden = !status.hasPlan;
  document.getElementById("source").textContent = status.source ?? "";
  document.getElementById("about").textContent = status.version ? `numapin ${status.version}, read-only` : "";
}

addEventListener("hashchange", () => {
  if (location.hash === "#content") return;
  route();
  scrollTo(0, 0);
  content.focus({ preventScroll: true });
});

addEventListener("keydown", (event) => {
  const isTyping = event.target.matches("input, textarea, select");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !isTyping) {
    const search = document.getElementById("search");
    if (!search) location.hash = "#/";
    setTimeout(() => document.getElementById("search")?.focus(), search ? 0 : 50);
    event.preventDefault();
  } else if (event.key === "Escape" && !isTyping && location.hash.length > 2) {
    location.hash = "#/";
  }
});

listen(showConnection);
showConnection();
connect();
route();
