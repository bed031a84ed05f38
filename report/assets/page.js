// Puts the panes together.

const content = document.getElementById("content");
const sections = document.getElementById("sections");
const redraws = []; // what holds colours of its own
const absent = [];

const rowCount = (name) => data.tables[name].rows.length;

function link(id, title) {
  sections.append(el("li", {}, el("a", { href: `#${id}` }, title)));
}

// A section whose children are made where there is something to show.
function section(id, title, answers, rows, children) {
  if (!rows) {
    const needs = data.tables[id]?.needs;
    absent.push(needs ? `${title} (needs ${needs})` : title);
    return;
  }
  const made = children();
  const nodes = [];
  const starts = [];
  for (const c of made) {
    if (!Array.isArray(c)) {
      nodes.push(c);
      continue;
    }
    nodes.push(c[0]);
    starts.push(c[1]);
    redraws.push(c[2]);
  }
  content.append(el("section", { id }, el("h2", {}, title), answers ? el("p", { class: "answers" }, answers) : null, ...nodes.filter(Boolean)));
  for (const start of starts) start(); // needs the width that it has in the page
  link(id, title);
}

// What an analysis answers, without what only its SQL needs.
const answersOf = (name) => data.tables[name].answers.split(/(?<=[.?]) /).filter((s) => !s.startsWith("SET VARIABLE")).join(" ");
const titled = (title, ...nodes) => el("div", {}, el("h3", {}, title), ...nodes);

function tiles() {
  const t = rowsOf("totals")[0];
  const list = [
    ["traces", count(t.traces), "traces"], ["runs", count(t.runs), t.runs === 1 ? "run" : "runs"],
    t.ranks > 1 ? ["ranks", count(t.ranks), t.runs > 1 ? "ranks at most in a run" : "ranks"] : null,
    ["devices", count(t.devices), t.devices === 1 ? "device" : "devices"], ["gpu_events", count(t.gpu_events), "GPU events"],
    t.linked_pct === null ? null : ["linked_pct", `${grouped(t.linked_pct, 1)} %`, "linked to their launch"],
    t.busy_pct === null ? null : ["busy_pct", `${grouped(t.busy_pct, 1)} %`, `GPU busy of ${duration(t.window_ns)}`],
    t.window_ns > 0 ? ["idle_pct", percent(t.idle_ns, t.window_ns), "GPU idle"] : null,
    t.communication_ns > 0 ? ["exposed", percent(t.exposed_communication_ns, t.window_ns), "exposed communication"] : null,
    t.exposed_memory_ns > 0 ? ["memory", percent(t.exposed_memory_ns, t.window_ns), "exposed memory"] : null,
  ];
  return el("div", { class: "tiles" }, ...list.filter(Boolean).map(([name, value, text]) => el("div", { class: "tile", "data-tile": name }, el("b", {}, value), el("span", {}, text))));
}

function kernelNote() {
  const share = rowsOf("kernels").reduce((n, r) => n + r.share_pct, 0);
  return rowCount("kernels") < data.tables.kernels.total ? `The kernels shown take ${grouped(share, 1)} % of the kernel time.` : null;
}

function classBar() {
  const rows = rowsOf("classes");
  const total = rows.reduce((n, r) => n + r.total_ns, 0);
  const parts = rows.map((r) => [r.class || "other", `${r.class}: ${count(r.events)} events of ${count(r.kernels)} kernels,`, r.total_ns]);
  return el("div", { class: "card" }, el("div", { class: "tools" }, legend(rows.map((r) => [r.class || "other", `${r.class} ${percent(r.total_ns, total)}`]))),
    el("div", { class: "bars" }, ...bar("kernel time", parts, total, duration(total))));
}

link("trust", "Trust and provenance");
const ids = ["run", "rank", "trace_id"];
document.getElementById("trust-table").append(buildTable("trust", { label: "verdicts", rows: 10 }));
if (rowCount("diagnostics")) document.getElementById("trust-table").append(titled("Diagnostics", buildTable("diagnostics", { label: "diagnostics" })));

section("overview", "Overview", null, rowCount("summary"), () => [
  tiles(),
  titled("Runs", buildTable("runs", { label: "runs", rows: 10 })),
  titled("Traces", buildTable("summary", { label: "traces", rows: 10, lead: ["run", "rank", "trace_id", "path", "outcome", "busy_pct", "wall_ms"] })),
]);
section("breakdown", "Where the GPU time goes", answersOf("devices"), rowCount("devices"), () => [
  barPane([
    ["devices", rowsOf("devices"), deviceLabel],
    ...(rowCount("ranks") ? [["ranks", rowsOf("ranks"), rankLabel]] : []),
    ...(rowCount("runs") > 1 ? [["runs", rowsOf("runs").filter((r) => r.devices), (r) => r.run]] : []),
  ]),
  buildTable("devices", { label: "devices", rows: 10, lead: ["run", "rank", "trace_id", "process", "device", "gpu", "busy_pct"] }),
]);
section("waits", "Why GPUs wait", answersOf("waits"), rowCount("waits"), () => [waitPane(), buildTable("waits", { label: "waits", rows: 10 })]);
section("timeline", "Timeline", null, data.timeline.devices.length, () => [timelinePane()]);
section("iterations", "Iterations", answersOf("iterations"), rowCount("iterations"), () => [iterationPane(), titled("Slowest iterations", buildTable("iterations", { label: "iterations", rows: 10 }))]);
section("critical-path", "Critical path", answersOf("critical-path"), rowCount("paths"), () => (rowCount("critical-path")
  ? [pathPane(), buildTable("critical-path", { label: "critical path", rows: 10, lead: ["run", "rank", "trace_id", "iteration", "what", "name", "share_pct", "total_ms"] })]
  : [el("p", { class: "muted" }, pathNote())]));
section("ranks", "Ranks side by side", answersOf("ranks"), rowCount("ranks"), () => [
  barPane([["ranks", rowsOf("ranks"), rankLabel]], "time"),
  buildTable("ranks", { label: "ranks" }),
  rowCount("stragglers") ? titled("Stragglers", el("p", { class: "muted" }, answersOf("stragglers")), buildTable("stragglers", { label: "stragglers", rows: 10 })) : null,
]);
section("kernels", "Kernels", answersOf("kernels"), rowCount("kernels"), () => [classBar(), buildTable("kernels", { label: "kernels", hide: ["total_ns"], lead: ["name", "class", "share_pct", "total_ms", "events", "mean_us"], note: kernelNote() })]);
section("ops", "Operators", answersOf("ops"), rowCount("ops"), () => [buildTable("ops", { label: "operators", lead: ["name", "gpu_share_pct", "gpu_self_ms", "cpu_self_ms"] })]);
section("roofline", "Roofline of matrix operators", answersOf("roofline"), rowCount("roofline"), () => [buildTable("roofline", { label: "roofline", lead: ["op", "shapes", "dtype", "share_pct", "roof_pct", "bound_by"] })]);
section("collectives", "Collectives", answersOf("collectives"), rowCount("collectives"), () => [buildTable("collectives", { label: "collectives" })]);
section("steps", "Serving steps", answersOf("steps"), rowCount("steps"), () => [buildTable("steps", { label: "steps" })]);
section("launches", "Launches", answersOf("launches"), rowCount("launches"), () => [buildTable("launches", { label: "launches" })]);
section("sync", "Calls that block on the GPU", answersOf("sync"), rowCount("sync"), () => [buildTable("sync", { label: "blocking calls", rows: 10 })]);
section("copies", "Copies and sets", answersOf("copies"), rowCount("copies"), () => [buildTable("copies", { label: "copies", rows: 10 })]);
section("memory", "Memory of the allocator", answersOf("memory"), rowCount("memory"), () => [buildTable("memory", { label: "memory" })]);
section("inputs", "Inputs", answersOf("inputs"), rowCount("inputs"), () => [buildTable("inputs", { label: "inputs", rows: 10 })]);
if (absent.length) document.getElementById("absent").textContent = `Nothing to show in these traces for: ${absent.join("; ")}.`;

// Light or dark: as the system says, until the button is pressed.
const root = document.documentElement;
const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
function repaint() {
  for (const redraw of redraws) redraw();
}
document.getElementById("theme").addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  root.style.colorScheme = root.dataset.theme;
  repaint();
});
dark.addEventListener("change", repaint);

// The section that is read, in the list of sections.
const links = new Map([...sections.querySelectorAll("a")].map((a) => [a.hash.slice(1), a]));
const reading = new IntersectionObserver((entries) => {
  for (const e of entries) {
    if (!e.isIntersecting) continue;
    for (const a of links.values()) a.classList.remove("here");
    links.get(e.target.id)?.classList.add("here");
  }
}, { rootMargin: "-80px 0px -70% 0px" });
for (const id of links.keys()) reading.observe(document.getElementById(id));
