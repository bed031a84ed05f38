// Elements, numbers and units. Text goes into the page as text only.

const data = JSON.parse(document.getElementById("data").textContent);

function el(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (name === "width" || name === "background") e.style[name] = value;
    else if (value === true) e.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) e.setAttribute(name, value);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

// The resolved colour of a variable of the style sheet.
const probe = document.body.appendChild(el("span", { hidden: true }));
function color(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

const units = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]];

// The unit of a column of times, by the largest. No column is in seconds, in
// which small ones would be 0.000.
function timeUnit(largest) {
  return units.findLast((u) => u[1] < 1e9 && largest >= u[1]) || units[0];
}

function grouped(value, digits) {
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function count(n) {
  return n === null || n === undefined ? "–" : Number(n).toLocaleString("en-US");
}

function duration(ns) {
  if (ns === null || ns === undefined) return "–";
  const [name, size] = units.findLast((u) => Math.abs(ns) >= u[1]) || units[0];
  return `${(ns / size).toLocaleString("en-US", { maximumFractionDigits: size === 1 ? 0 : 3 })} ${name}`;
}

function percent(part, whole) {
  return whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : "–";
}

const byteUnits = [["B", 1], ["KiB", 1024], ["MiB", 1024 ** 2], ["GiB", 1024 ** 3]];

const timeScales = { ns: 1, us: 1e3, ms: 1e6 };

// What kind of number a column holds; its name says so.
function columnKind(name) {
  const suffix = name.slice(name.lastIndexOf("_") + 1);
  if (timeScales[suffix] && name.includes("_")) return { kind: "time", scale: timeScales[suffix], label: name.slice(0, -3) };
  if (suffix === "pct") return { kind: "percent", label: name.slice(0, -4) };
  if (name === "bytes" || suffix === "bytes") return { kind: "bytes", label: name === "bytes" ? "size" : name.slice(0, -6) };
  if (name.endsWith("_gb_per_s") || name === "gb_per_s") return { kind: "rate", label: name === "gb_per_s" ? "rate" : name.slice(0, -9) };
  return { kind: "", label: name };
}

// Numbers that name something and are no amounts.
const ordinals = ["rank", "device", "stream", "process", "device_type", "straggler"];

// How the values of a column are written: the unit in its head, the same for all
// rows, and a text per value.
function columnFormat(name, values) {
  const { kind, scale, label } = columnKind(name);
  const numbers = values.filter((v) => typeof v === "number");
  const largest = numbers.reduce((m, v) => Math.max(m, Math.abs(v)), 0);
  const head = label.replaceAll("_", " ");
  const numeric = numbers.length > 0;
  if (kind === "time") {
    const [unit, size] = timeUnit(largest * scale);
    const digits = size === 1 ? 0 : 3;
    return { head, unit, numeric: true, text: (v) => grouped((v * scale) / size, digits) };
  }
  if (kind === "percent") return { head, unit: "%", numeric: true, text: (v) => grouped(v, 2) };
  if (kind === "rate") return { head, unit: "GB/s", numeric: true, text: (v) => grouped(v, 3) };
  if (kind === "bytes") {
    let unit = byteUnits[0];
    for (const u of byteUnits) if (largest >= 10 * u[1]) unit = u;
    return { head, unit: unit[0], numeric: true, text: (v) => grouped(v / unit[1], unit[1] === 1 ? 0 : 2) };
  }
  if (ordinals.includes(name)) return { head, unit: "", numeric, text: String };
  const digits = numbers.every(Number.isInteger) ? 0 : 3;
  return { head, unit: "", numeric, text: (v) => grouped(v, digits) };
}

function rowsOf(name) {
  const t = data.tables[name];
  return t.rows.map((r) => Object.fromEntries(t.columns.map(([column], i) => [column, r[i]])));
}

// What to call a trace, rank or device. A single run needs no name.
const oneRun = rowsOf("totals")[0].runs === 1;

function rankLabel(r) {
  return oneRun ? `rank ${r.rank}` : `${r.run} · rank ${r.rank}`;
}

function traceLabel(r) {
  if (r.rank !== null) return rankLabel(r);
  return oneRun ? r.trace_id.slice(0, 8) : `${r.run} · ${r.trace_id.slice(0, 8)}`;
}

function deviceLabel(r) {
  const device = r.device === null ? "GPU ?" : `GPU ${r.device}`;
  return r.process === null ? `${traceLabel(r)} · ${device}` : `${traceLabel(r)} · process ${r.process} · ${device}`;
}

const tip = document.getElementById("tip");
function showTip(x, y, lines) {
  tip.replaceChildren(...lines.flatMap((l, i) => (i ? [el("br"), l] : [l])));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18}px`;
}
function hideTip() {
  tip.hidden = true;
}
