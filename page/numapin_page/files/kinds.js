// What of a node is seen first. Colours are of Okabe and Ito's palette, which people with any
// deficiency of colour vision tell apart; each kind has a sign as well. The order is that of the
// list: what needs somebody comes first.

export const KINDS = {
  stalled: { title: "Stalled", sign: "\u2715", says: "nothing is carried out until somebody acts" },
  unready: { title: "Not ready", sign: "!", says: "the kernel does not have what was decided, or the enforcer is silent" },
  away: { title: "Away", sign: "\u2026", says: "the node itself is not Ready, or does not run Linux" },
  fragmented: { title: "Fragmented", sign: "\u2237", says: "its free CPUs would hold a pod twice as large as any that fits on one NUMA node" },
  full: { title: "Full", sign: "\u25a0", says: "no container gets another CPU of its own" },
  ready: { title: "Has room", sign: "\u2713", says: "all is in force, and CPUs are free" },
  ungoverned: { title: "No policy", sign: "\u2013", says: "no policy selects it" },
};

export const ORDER = Object.fromEntries(Object.keys(KINDS).map((name, index) => [name, index]));
