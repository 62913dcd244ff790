// The stream of events: the lines of all nodes, and whether they are up to date.

const SILENT_MS = 40_000;

export const fleet = { rows: new Map(), status: {}, isLost: false, lostAt: null };

const listeners = new Set();
let heardAt = Date.now();
let stale = null;

export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(names) {
  for (const listener of [...listeners]) listener(names);
}

function heard() {
  heardAt = Date.now();
  if (fleet.isLost) {
    fleet.isLost = false;
    tell(new Set());
  }
}

function lost() {
  if (fleet.isLost) return;
  fleet.isLost = true;
  fleet.lostAt = new Date();
  tell(new Set());
}

function take(message) {
  const changed = new Set(message.gone);
  for (const name of message.gone) fleet.rows.delete(name);
  for (const row of message.rows) {
    fleet.rows.set(row.name, row);
    stale?.delete(row.name);
    changed.add(row.name);
  }
  tell(changed);
}

export function connect() {
  const events = new EventSource("events");
  events.addEventListener("start", () => {
    heard();
    stale = new Set(fleet.rows.keys());
  });
  events.addEventListener("rows", (event) => {
    heard();
    take(JSON.parse(event.data));
  });
  events.addEventListener("status", (event) => {
    heard();
    fleet.status = JSON.parse(event.data);
    tell(new Set());
  });
  events.addEventListener("alive", () => {
    heard();
    if (stale?.size) take({ rows: [], gone: [...stale] }); // deleted while there was no connection
    stale = null;
  });
  events.addEventListener("error", () => {
    lost();
    if (events.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  });
  setInterval(() => Date.now() - heardAt > SILENT_MS && lost(), 5000);
}
