// The chart of iterations, drawn by uPlot.

const lineColors = ["compute", "communication", "memory", "host", "graph", "other", "short", "accent"];

// Returns null where there is nothing to draw.
function iterationPane() {
  const groups = new Map();
  for (const r of rowsOf("series")) {
    const key = `${r.trace_id} ${r.producer}`;
    if (!groups.has(key)) groups.set(key, { ...r, rows: [] });
    groups.get(key).rows.push(r);
  }
  const worked = (g) => g.rows.some((r) => r.gpu_busy_ms > 0);
  // A single iteration is no line; the table has it.
  const traces = [...groups.values()].filter((g) => g.rows.length > 1).sort((a, b) => worked(b) - worked(a));
  const runs = new Map(); // those whose ranks mark the same iterations
  for (const g of traces.filter((t) => t.rank !== null)) {
    const key = oneRun ? g.producer : `${g.run} (${g.producer})`;
    runs.set(key, [...(runs.get(key) || []), g]);
  }
  if (!traces.length) return null;
  const choices = [
    ...[...runs].filter(([, list]) => list.length > 1).map(([name, list]) => [`${name}: wall time of every rank`, () => ranksOf(list)]),
    ...traces.map((g) => [`${traceLabel(g)} (${g.producer})`, () => ofTrace(g)]),
  ];
  const select = el("select", { onchange: draw, "aria-label": "Trace of the chart" }, ...choices.map(([text], i) => el("option", { value: i }, text)));
  const box = el("div", { class: "chart" });
  const note = el("p", { class: "muted" });
  let plot = null;

  function ofTrace(g) {
    note.textContent = g.rows.length < g.iterations
      ? `${count(g.iterations)} iterations; of each group of neighbours the slowest and the fastest are drawn.` : `${count(g.iterations)} iterations.`;
    return [
      [{ label: "wall time", color: "compute" }, { label: "GPU busy", color: "communication" }],
      [g.rows.map((r) => r.nth), g.rows.map((r) => r.wall_ms), g.rows.map((r) => r.gpu_busy_ms)],
      (i) => g.rows[i] && g.rows[i].iteration,
    ];
  }

  function ranksOf(list) {
    const ranks = list.slice(0, lineColors.length);
    note.textContent = ranks.length < list.length ? `${count(ranks.length)} of ${count(list.length)} traces are drawn.` : "";
    const nths = [...new Set(ranks.flatMap((g) => g.rows.map((r) => r.nth)))].sort((a, b) => a - b);
    const at = ranks.map((g) => new Map(g.rows.map((r) => [r.nth, r])));
    return [
      ranks.map((g, i) => ({ label: g.rank === null ? g.trace_id.slice(0, 8) : `rank ${g.rank}`, color: lineColors[i] })),
      [nths, ...at.map((m) => nths.map((n) => (m.has(n) ? m.get(n).wall_ms : null)))],
      (i) => at.map((m) => m.get(nths[i])).filter(Boolean).map((r) => r.iteration)[0],
    ];
  }

  function draw() {
    if (plot) plot.destroy();
    const [lines, values, idOf] = choices[select.value][1]();
    const text = color("muted");
    const grid = { stroke: color("line"), width: 1 };
    const font = `12px ${getComputedStyle(document.body).fontFamily}`;
    plot = new uPlot({
      width: Math.max(320, box.clientWidth), height: 280,
      scales: { x: { time: false }, y: { range: (_, __, most) => [0, (most || 1) * 1.08] } },
      axes: [
        { stroke: text, grid, ticks: grid, font, label: "iteration, in order of start", labelFont: font, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 100000] },
        { stroke: text, grid, ticks: grid, font, label: "ms", labelFont: font, size: 64, values: (_, list) => list.map((v) => v.toLocaleString("en-US")) },
      ],
      series: [
        { label: "iteration", value: (_, v, __, i) => (v === null || i === null ? "–" : String(idOf(i) ?? v)) },
        ...lines.map((l) => ({
          label: l.label, stroke: color(l.color), width: 1.6, spanGaps: true,
          points: { show: values[0].length <= 60, size: 6 }, value: (_, v) => (v === null || v === undefined ? "–" : `${grouped(v, 3)} ms`),
        })),
      ],
    }, values, box);
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", `${choices[select.value][0]}: ${count(values[0].length)} iterations; the table below has the slowest`);
  }

  const pane = el("div", { class: "card" }, el("div", { class: "tools" }, el("label", {}, "trace", select)), box, note);
  return [pane, () => {
    draw();
    new ResizeObserver(() => plot.setSize({ width: Math.max(320, box.clientWidth), height: 280 })).observe(box);
  }, draw];
}
