// Stacked bars: how devices, ranks and runs spend their time.

const maxBars = 40;

// What a device did, in parts that add up to its window. Computing hides the
// rest, communication hides copies.
const breakdown = [
  ["compute", "compute", (r) => r.compute_ns],
  ["communication", "exposed communication", (r) => r.exposed_communication_ns],
  ["memory", "exposed memory", (r) => r.exposed_memory_ns],
  ["idle", "idle", (r) => r.idle_ns],
];

function legend(parts) {
  return el("span", { class: "legend" }, ...parts.map(([name, text]) => el("span", {}, el("i", { background: `var(--${name})` }), text)));
}

// One bar; parts are [colour, text, ns].
function bar(label, parts, whole, value) {
  const say = parts.filter((p) => p[2] > 0).map(([, text, ns]) => `${text} ${duration(ns)} (${percent(ns, whole)})`);
  const strip = el("div", { class: "bar", role: "img", "aria-label": `${label}: ${say.join(", ")}`,
    onmousemove: (e) => showTip(e.clientX, e.clientY, [label, ...say]), onmouseleave: hideTip },
  ...parts.filter((p) => p[2] > 0).map(([name, , ns]) => el("i", { background: `var(--${name})`, width: `${(100 * ns) / whole}%` })));
  // A long run is cut, and not what tells its ranks and devices apart.
  const at = oneRun ? -1 : label.indexOf(" · ");
  const name = at < 0 ? [el("span", {}, label)] : [el("span", {}, label.slice(0, at)), el("b", {}, label.slice(at))];
  return [el("span", { class: "name", title: label }, ...name), strip, el("span", { class: "value" }, value)];
}

// Bars with a choice of what a bar is and which come first. groups is a list of
// [table, rows, labelOf].
function barPane(groups, firstScale = "share") {
  const orders = [
    ["as listed", null],
    ["least busy first", (r) => (r.idle_ns / (r.window_ns || 1))],
    ["most exposed communication first", (r) => r.exposed_communication_ns / (r.window_ns || 1)],
    ["most exposed memory first", (r) => r.exposed_memory_ns / (r.window_ns || 1)],
    ["longest first", (r) => r.window_ns],
  ];
  const by = el("select", { onchange: draw }, ...groups.map(([name], i) => el("option", { value: i }, name.slice(0, -1))));
  const order = el("select", { onchange: draw }, ...orders.map(([name], i) => el("option", { value: i }, name)));
  const scale = el("select", { onchange: draw }, el("option", { value: "share" }, "share of the window"), el("option", { value: "time", selected: firstScale === "time" }, "time"));
  const box = el("div", { class: "bars" });
  const note = el("p", { class: "muted" });

  function draw() {
    const [table, rows, labelOf] = groups[by.value];
    const key = orders[order.value][1];
    const sorted = (key ? rows.slice().sort((a, b) => key(b) - key(a)) : rows).filter((r) => r.window_ns > 0);
    const shown = sorted.slice(0, maxBars);
    const longest = shown.reduce((m, r) => Math.max(m, r.window_ns), 0);
    box.replaceChildren(...shown.flatMap((r) => {
      const parts = breakdown.map(([name, text, of]) => [name, text, of(r)]);
      const busy = `${percent(r.window_ns - r.idle_ns, r.window_ns)} busy of ${duration(r.window_ns)}`;
      return bar(labelOf(r), parts, scale.value === "time" ? longest : r.window_ns, busy);
    }));
    const left = data.tables[table].total - data.tables[table].rows.length;
    note.textContent = [
      sorted.length > shown.length ? `${count(shown.length)} of ${count(sorted.length)} bars are drawn; choose another order to see others.` : "",
      left > 0 ? `${count(left)} more ${table} are left out of this file.` : "",
    ].join(" ");
  }
  draw();
  return el("div", { class: "card" },
    el("div", { class: "tools" },
      groups.length > 1 ? el("label", {}, "per", by) : null,
      el("label", {}, "order", order), el("label", {}, "scale", scale), legend(breakdown)),
    box, note);
}

const reasons = ["host", "graph", "short", "other", "unknown"];

// Why each device waited.
function waitPane() {
  const rows = rowsOf("waits");
  const shown = rows.slice(0, maxBars);
  const bars = shown.flatMap((r) => bar(deviceLabel(r), reasons.map((reason) => [reason, reason, r[`${reason}_ns`]]), r.idle_ns, `${duration(r.idle_ns)} idle`));
  return el("div", { class: "card" },
    el("div", { class: "tools" }, legend(reasons.map((r) => [r, r]))),
    el("div", { class: "bars" }, ...bars),
    rows.length > shown.length ? el("p", { class: "muted" }, `The ${count(shown.length)} devices with the most idle time of ${count(data.tables.waits.total)} are drawn.`) : null);
}

// What can be on a critical path, with its colour.
const onPath = [
  ["compute", "compute"], ["communication", "communication"], ["memory", "memory"], ["graph", "launch"], ["short", "stream"],
  ["other", "wait"], ["accent", "call"], ["unknown", "sync"], ["host", "host"],
];

// What the slowest iterations consist of.
function pathPane() {
  const rows = rowsOf("path_parts");
  const seen = onPath.filter(([, what]) => rows.some((r) => r[what] > 0));
  const bars = rows.flatMap((r) => {
    const parts = seen.map(([colour, what]) => [colour, what, r[what] * 1e6]);
    const label = `${traceLabel(r)} · ${r.iteration === null ? "whole trace" : `iteration ${r.iteration}`}`;
    return bar(label, parts, parts.reduce((n, p) => n + p[2], 0), duration(r.path_ms * 1e6));
  });
  return el("div", { class: "card" }, el("div", { class: "tools" }, legend(seen)), el("div", { class: "bars" }, ...bars), el("p", { class: "muted" }, pathNote()));
}

// Which paths are not here.
function pathNote() {
  const rows = rowsOf("paths");
  const { traces, too_large: large } = rows[0];
  const walked = rows.filter((r) => r.walked).length;
  return [
    walked < traces ? `The slowest iterations of ${count(walked)} of ${count(traces)} traces are looked at.` : "Of each trace the slowest iteration is looked at.",
    large ? `${count(large)} traces are too large for this page: tracelake analyze critical-path with --trace and --iteration walks their paths.` : "",
  ].join(" ");
}
