// The timeline: a lane per stream, on a canvas.

const laneHeight = 20;
const titleHeight = 24;
const stripHeight = 16;
const axisHeight = 24;
const gutter = 132;

// The iterations of a trace, by the producer whose iterations have the GPU work.
function marksOf(series, trace) {
  const own = series.filter((s) => s.trace_id === trace);
  const busy = new Map();
  for (const s of own) busy.set(s.producer, (busy.get(s.producer) || 0) + s.gpu_busy_ms);
  const [best] = [...busy.keys()].sort((a, b) => busy.get(b) - busy.get(a));
  return own.filter((s) => s.producer === best);
}

function timelinePane() {
  const t = data.timeline;
  const series = rowsOf("series");
  const devices = t.devices.map((d) => {
    const [run, rank, trace_id, process, device, gpu, first, last, offset, events, cell, streams] = d.of;
    const r = { run, rank, trace_id, process, device, gpu, first, last, offset, events, cell, streams };
    for (const lane of d.lanes) {
      let at = 0;
      lane.start = lane.start.map((step) => (at += step));
      lane.longest = lane.dur.reduce((m, v) => Math.max(m, v), 0);
    }
    return { ...r, label: deviceLabel(r), lanes: d.lanes, marks: marksOf(series, trace_id) };
  });
  const runs = [...new Set(devices.map((d) => d.run))];
  const size = (run) => devices.filter((d) => d.run === run).reduce((n, d) => n + d.events, 0);
  const first = runs.reduce((best, run) => (size(run) > size(best) ? run : best), runs[0]);

  let shown = []; // devices of the run, with their shift on the axis
  let rows = []; // what stands where: {y, height, device, lane}
  let whole = [0, 1];
  let view = [0, 1]; // ns
  let chosen = null; // {row, index}

  const run = el("select", { onchange: choose }, ...runs.map((name) => el("option", { value: name, selected: name === first }, name)));
  const align = el("select", { onchange: choose }, el("option", { value: "start" }, "first GPU event of each device"), el("option", { value: "clock" }, "recorded clock"));
  const axis = el("canvas", { "aria-hidden": "true" });
  const body = el("canvas", { class: "body", tabindex: "0", role: "img",
    "aria-label": "Timeline. Left and right move, plus and minus zoom, 0 shows all, up and down choose a lane, comma and full stop step through its events." });
  const scroller = el("div", { class: "view" }, body);
  const picked = el("p", { class: "picked muted", "aria-live": "polite" });
  const note = el("p", { class: "muted" });

  function choose() {
    shown = devices.filter((d) => d.run === run.value);
    const clocks = shown.length > 1 && shown.every((d) => d.offset !== null);
    align.disabled = !clocks;
    if (!clocks) align.value = "start";
    for (const d of shown) d.shift = align.value === "clock" ? d.offset : -d.first;
    const from = Math.min(...shown.map((d) => d.first + d.shift));
    const to = Math.max(...shown.map((d) => d.last + d.shift));
    whole = [from, Math.max(to, from + 1)];
    view = whole.slice();
    chosen = null;
    picked.textContent = "Hover or click a box to see what it is. Ctrl and wheel zoom, dragging moves.";
    let y = 0;
    rows = [];
    for (const d of shown) {
      rows.push({ y, height: titleHeight, device: d });
      y += titleHeight;
      if (d.marks.length) {
        rows.push({ y, height: stripHeight, device: d, marks: d.marks });
        y += stripHeight;
      }
      for (const lane of d.lanes) {
        rows.push({ y, height: laneHeight, device: d, lane });
        y += laneHeight;
      }
    }
    note.replaceChildren(...rules().map((text) => el("span", {}, `${text} `)));
    body.style.height = `${y + 4}px`;
    axis.style.height = `${axisHeight}px`;
    draw();
  }

  // How the picture was thinned out.
  function rules() {
    const out = [];
    const coarse = shown.filter((d) => d.cell > 0);
    const exact = shown.length - coarse.length;
    if (exact) out.push(`${exact === shown.length ? "Every event is" : `Of ${count(exact)} devices every event is`} drawn.`);
    if (coarse.length) {
      const widest = coarse.reduce((m, d) => Math.max(m, d.cell), 0);
      out.push(`${exact ? `Of the other ${count(coarse.length)}, events` : "Events"} of a stream and class that start in the same ${duration(widest)} (or less) are one box, paler the less of it is busy.`);
    }
    const lanes = shown.reduce((n, d) => n + d.streams - d.lanes.length, 0);
    if (lanes) out.push(`${count(lanes)} streams with less work are left out.`);
    if (t.leftOut) out.push(`${count(t.leftOut)} devices, of runs with less GPU time or less busy, are not in this timeline; select a run or rank when writing the report.`);
    return out;
  }

  const x = (ns, width) => gutter + ((ns - view[0]) / (view[1] - view[0])) * (width - gutter);

  function prepare(canvas) {
    const ratio = devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const c = canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    c.font = `12px ${getComputedStyle(document.body).fontFamily}`;
    c.textBaseline = "middle";
    return [c, width, height];
  }

  function ticks(width) {
    const about = ((view[1] - view[0]) / (width - gutter)) * 110;
    const power = 10 ** Math.floor(Math.log10(about));
    const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= about) || about;
    const list = [];
    for (let at = Math.ceil((view[0] - whole[0]) / step) * step; at <= view[1] - whole[0]; at += step) list.push(at);
    return list;
  }

  function draw() {
    if (body.clientWidth < 2 * gutter) return; // not laid out, or no room to see anything
    const colors = Object.fromEntries(["compute", "communication", "memory", "line", "soft", "text", "muted", "card", "accent"].map((n) => [n, color(n)]));
    const [a, width] = prepare(axis);
    const marks = ticks(width);
    a.fillStyle = colors.muted;
    a.textAlign = "center";
    for (const at of marks) a.fillText(duration(at), Math.min(x(at + whole[0], width), width - 34), axisHeight / 2);

    const [c, , height] = prepare(body);
    c.fillStyle = colors.line;
    for (const at of marks) c.fillRect(x(at + whole[0], width), 0, 1, height);
    for (const r of rows) {
      if (r.lane) drawLane(c, r, width, colors);
      else if (r.marks) drawMarks(c, r, width, colors);
      else drawTitle(c, r, width, colors);
    }
    drawChosen(c, width, colors);
  }

  function drawTitle(c, r, width, colors) {
    c.fillStyle = colors.soft;
    c.fillRect(0, r.y, width, r.height);
    c.fillStyle = colors.text;
    c.textAlign = "left";
    const gpu = r.device.gpu ? ` · ${r.device.gpu}` : "";
    c.fillText(`${r.device.label}${gpu} · ${count(r.device.events)} events`, 8, r.y + r.height / 2);
  }

  function label(c, r, text, colors) {
    c.fillStyle = colors.card;
    c.fillRect(0, r.y, gutter - 1, r.height);
    c.fillStyle = colors.muted;
    c.textAlign = "right";
    c.fillText(text, gutter - 10, r.y + r.height / 2);
  }

  function drawMarks(c, r, width, colors) {
    r.marks.forEach((m, i) => {
      const from = x(m.start_ms * 1e6 + r.device.shift, width);
      const to = x((m.start_ms + m.wall_ms) * 1e6 + r.device.shift, width);
      if (to < gutter || from > width) return;
      const left = Math.max(from, gutter);
      c.globalAlpha = i % 2 ? 0.16 : 0.34;
      c.fillStyle = colors.muted;
      c.fillRect(left, r.y + 2, Math.max(to - left, 1), r.height - 4);
      c.globalAlpha = 1;
      write(c, m.iteration, left, Math.min(to, width), r, colors.text);
    });
    label(c, r, "iterations", colors);
  }

  // A text in a box, where it has room.
  function write(c, text, from, to, r, fill) {
    if (to - from < 26) return;
    c.save();
    c.beginPath();
    c.rect(from, r.y, to - from - 2, r.height);
    c.clip();
    c.fillStyle = fill;
    c.textAlign = "left";
    c.fillText(text, from + 4, r.y + r.height / 2);
    c.restore();
  }

  function drawLane(c, r, width, colors) {
    const { lane, device } = r;
    for (let i = firstVisible(lane, view[0] - device.shift); i < lane.start.length; i++) {
      const from = x(lane.start[i] + device.shift, width);
      if (from > width) break;
      const to = x(lane.start[i] + lane.dur[i] + device.shift, width);
      if (to < gutter) continue;
      const left = Math.max(from, gutter);
      const events = lane.count ? lane.count[i] : 1;
      c.globalAlpha = events > 1 && lane.dur[i] > 0 ? 0.3 + 0.7 * Math.min(1, lane.busy[i] / lane.dur[i]) : 1;
      c.fillStyle = colors[t.classes[lane.cls[i]]];
      c.fillRect(left, r.y + 2, Math.max(to - left - (to - left > 3 ? 0.5 : 0), 0.8), r.height - 4);
      c.globalAlpha = 1;
      if (to - left > 60) write(c, events > 1 ? `${count(events)} events` : t.names[lane.name[i]], left, Math.min(to, width), r, lane.cls[i] === 0 ? "#fff" : "#10141b");
    }
    label(c, r, lane.stream === null ? "no stream" : `stream ${lane.stream}`, colors);
  }

  function drawChosen(c, width, colors) {
    if (!chosen) return;
    const { lane, device, y, height } = chosen.row;
    c.strokeStyle = colors.accent;
    c.lineWidth = 2;
    if (chosen.index < 0) {
      c.strokeRect(1, y + 1, gutter - 4, height - 2);
      return;
    }
    const from = Math.max(x(lane.start[chosen.index] + device.shift, width), gutter);
    const to = Math.min(x(lane.start[chosen.index] + lane.dur[chosen.index] + device.shift, width), width);
    if (to >= gutter && from <= width) c.strokeRect(from - 1, y + 1, Math.max(to - from, 2) + 2, height - 2);
  }

  // The first box that can reach into the view; boxes are in order of their start.
  function firstVisible(lane, from) {
    let low = 0;
    let high = lane.start.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (lane.start[mid] + lane.longest < from) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  function hit(e) {
    const box = body.getBoundingClientRect();
    const y = e.clientY - box.top;
    const row = rows.find((r) => y >= r.y && y < r.y + r.height);
    if (!row || (!row.lane && !row.marks) || e.clientX - box.left < gutter) return null;
    const perPixel = (view[1] - view[0]) / (box.width - gutter);
    const ns = view[0] + (e.clientX - box.left - gutter) * perPixel - row.device.shift;
    if (row.marks) {
      const mark = row.marks.find((m) => ns >= m.start_ms * 1e6 && ns <= (m.start_ms + m.wall_ms) * 1e6);
      return mark ? { row, mark } : null;
    }
    const { lane } = row;
    let best = null;
    for (let i = firstVisible(lane, ns - 2 * perPixel); i < lane.start.length && lane.start[i] <= ns + 2 * perPixel; i++) {
      const away = Math.max(lane.start[i] - ns, ns - lane.start[i] - lane.dur[i], 0);
      if (away <= 2 * perPixel && (!best || away < best.away)) best = { row, index: i, away };
    }
    return best;
  }

  function describe({ row, index, mark }) {
    if (mark) return [`iteration ${mark.iteration} (${mark.producer})`, `${duration(mark.wall_ms * 1e6)} on the CPU, GPU busy ${duration(mark.gpu_busy_ms * 1e6)}`];
    const { lane, device } = row;
    const events = lane.count ? lane.count[index] : 1;
    const name = t.names[lane.name[index]];
    const time = `${duration(lane.dur[index])} from ${duration(lane.start[index] + device.shift - whole[0])}, ${t.classes[lane.cls[index]]}, stream ${lane.stream === null ? "–" : lane.stream}`;
    return events > 1 ? [`${count(events)} events, the longest: ${name}`, `${time}; ${duration(lane.busy[index])} of work`] : [name, time];
  }

  function zoom(factor, at) {
    const span = Math.max(20, Math.min((view[1] - view[0]) * factor, whole[1] - whole[0]));
    const part = (at - view[0]) / (view[1] - view[0]);
    show(at - span * part, span);
  }

  function show(from, span) {
    const start = Math.max(whole[0], Math.min(from, whole[1] - span));
    view = [start, start + span];
    draw();
  }

  const middle = () => (view[0] + view[1]) / 2;
  const move = (part) => show(view[0] + (view[1] - view[0]) * part, view[1] - view[0]);

  function pick(found) {
    chosen = found;
    if (found.index >= 0) picked.textContent = describe(found).join(" — ");
    draw();
  }

  // Brings the chosen box into view.
  function reveal() {
    const { lane, device } = chosen.row;
    const at = lane.start[chosen.index] + device.shift;
    if (at < view[0] || at > view[1]) show(at - (view[1] - view[0]) / 2, view[1] - view[0]);
    scroller.scrollTop = Math.min(Math.max(scroller.scrollTop, chosen.row.y + laneHeight - scroller.clientHeight), chosen.row.y);
  }

  function step(by) {
    if (!chosen) return otherLane(1);
    const last = chosen.row.lane.start.length - 1;
    pick({ row: chosen.row, index: Math.max(0, Math.min(chosen.index + by, last)) });
    reveal();
  }

  function otherLane(by) {
    const lanes = rows.filter((r) => r.lane);
    const at = chosen ? lanes.indexOf(chosen.row) + by : 0;
    const row = lanes[Math.max(0, Math.min(at, lanes.length - 1))];
    pick({ row, index: -1 });
    picked.textContent = `${row.device.label}, stream ${row.lane.stream === null ? "–" : row.lane.stream}: ${count(row.lane.events)} events`;
    scroller.scrollTop = Math.min(Math.max(scroller.scrollTop, row.y + laneHeight - scroller.clientHeight), row.y);
  }

  const keys = {
    ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), ArrowUp: () => otherLane(-1), ArrowDown: () => otherLane(1),
    "+": () => zoom(0.5, middle()), "=": () => zoom(0.5, middle()), "-": () => zoom(2, middle()), 0: () => show(whole[0], whole[1] - whole[0]),
    ",": () => step(-1), ".": () => step(1),
  };
  body.addEventListener("keydown", (e) => {
    if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    keys[e.key]();
  });
  body.addEventListener("wheel", (e) => {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    const box = body.getBoundingClientRect();
    const part = Math.max(0, (e.clientX - box.left - gutter) / (box.width - gutter));
    zoom(e.deltaY > 0 ? 1.25 : 0.8, view[0] + part * (view[1] - view[0]));
  }, { passive: false });

  let drag = null;
  body.addEventListener("pointerdown", (e) => {
    drag = { x: e.clientX, from: view[0], moved: false };
    body.setPointerCapture(e.pointerId);
  });
  body.addEventListener("pointermove", (e) => {
    if (!drag) {
      const found = hit(e);
      if (found) showTip(e.clientX, e.clientY, describe(found));
      else hideTip();
      return;
    }
    const by = e.clientX - drag.x;
    drag.moved ||= Math.abs(by) > 3;
    if (drag.moved) show(drag.from - (by * (view[1] - view[0])) / (body.clientWidth - gutter), view[1] - view[0]);
  });
  body.addEventListener("pointerup", (e) => {
    const found = drag && !drag.moved && hit(e);
    drag = null;
    if (found && found.row.lane) pick(found);
  });
  body.addEventListener("pointerleave", hideTip);
  body.addEventListener("dblclick", (e) => {
    const box = body.getBoundingClientRect();
    zoom(0.4, view[0] + ((e.clientX - box.left - gutter) / (box.width - gutter)) * (view[1] - view[0]));
  });

  const button = (text, label, key) => el("button", { type: "button", "aria-label": label, title: label, onclick: keys[key] }, text);
  const pane = el("div", { class: "card" },
    el("div", { class: "tools" },
      runs.length > 1 ? el("label", {}, "run", run) : null, el("label", {}, "align by", align),
      button("−", "Zoom out", "-"), button("+", "Zoom in", "+"), button("←", "Move left", "ArrowLeft"), button("→", "Move right", "ArrowRight"), button("all", "Show all", "0"),
      legend(breakdown.slice(0, 3).map(([name]) => [name, name]))),
    el("div", { class: "lanes" }, axis, scroller), picked, note);
  return [pane, () => { choose(); new ResizeObserver(draw).observe(body); }, draw];
}
