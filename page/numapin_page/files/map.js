// Each node as a cell: its colour and sign say its state, its filled part how much is given away.

import { KINDS } from "./kinds.js";

const SMALL = 5;
const LARGE = 22;
const GAP = 2;
const READABLE = 10;
const layouts = new WeakMap();

export function drawMap(canvas, rows) {
  const width = canvas.parentElement?.clientWidth || 600;
  const { side, gap, across } = layoutFor(rows.length, width);
  const height = Math.max(1, Math.ceil(rows.length / across) * (side + gap));
  const scale = devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  layouts.set(canvas, { side, gap, across, rows });
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.font = `${Math.floor(side * 0.75)}px sans-serif`;
  const colours = coloursOf(canvas);
  rows.forEach((row, index) => cell(pen, colours, row, (index % across) * (side + gap), Math.floor(index / across) * (side + gap), side));
}

export function nodeAt(canvas, event) {
  const layout = layouts.get(canvas);
  if (!layout) return "";
  const column = Math.floor(event.offsetX / (layout.side + layout.gap));
  const line = Math.floor(event.offsetY / (layout.side + layout.gap));
  if (column >= layout.across) return "";
  return layout.rows[line * layout.across + column]?.name ?? "";
}

function layoutFor(count, width) {
  const most = 420;
  for (let side = LARGE; ; side -= 1) {
    const gap = side < READABLE ? 1 : GAP;
    const across = Math.max(1, Math.floor((width + gap) / (side + gap)));
    if (side === SMALL || Math.ceil(count / across) * (side + gap) <= most) return { side, gap, across };
  }
}

function coloursOf(canvas) {
  const style = getComputedStyle(canvas);
  const names = [...Object.keys(KINDS), "ink", "full-ink", "empty"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

function cell(pen, colours, row, x, y, side) {
  pen.fillStyle = colours.empty;
  pen.fillRect(x, y, side, side);
  pen.fillStyle = colours[row.kind];
  const isPart = row.kind === "ready" || row.kind === "fragmented";
  const used = isPart && row.cpus ? Math.max(0.12, 1 - row.free / row.cpus) : 1;
  pen.fillRect(x, y + side * (1 - used), side, side * used);
  if (row.kind === "ready" || side < READABLE) return;
  pen.fillStyle = row.kind === "full" ? colours["full-ink"] : colours.ink;
  pen.fillText(KINDS[row.kind].sign, x + side / 2, y + side / 2 + 0.5);
}
