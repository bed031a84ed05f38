// Tables that are searched, sorted and read page by page.

const pageRows = 25;

// Columns with names out of programs.
const codeColumns = ["name", "path", "top_kernel", "op", "api", "code", "iteration", "does_instead", "shape", "shapes", "module", "collective", "content_digest", "trace_id"];

// Builds a table. hide lists columns that say nothing new, lead those that come
// first; label names it for the search field.
function buildTable(name, { hide = [], lead = [], label = name, note = null, rows = pageRows } = {}) {
  const t = data.tables[name];
  const columns = t.columns
    .map(([column, doc], i) => ({ column, doc, i, format: columnFormat(column, t.rows.map((r) => r[i])) }))
    .filter((c) => !hide.includes(c.column) && t.rows.some((r) => r[c.i] !== null && r[c.i] !== "") && !(c.column === "run" && oneRun && name !== "runs"));
  const place = (c) => (lead.includes(c.column) ? lead.indexOf(c.column) : lead.length);
  columns.sort((a, b) => place(a) - place(b) || a.i - b.i);
  const texts = t.rows.map((r) => columns.map((c) => (r[c.i] === null ? "" : String(r[c.i]))).join("\u0001").toLowerCase());
  const state = { words: [], by: null, descending: false, page: 0 };

  const search = el("input", { type: "search", placeholder: "Search", "aria-label": `Search ${label}`, oninput: () => {
    state.words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    state.page = 0;
    draw();
  } });
  const range = el("span", { class: "end", "aria-live": "polite" });
  const back = el("button", { type: "button", "aria-label": `Previous rows of ${label}`, onclick: () => turn(-1) }, "‹");
  const on = el("button", { type: "button", "aria-label": `Next rows of ${label}`, onclick: () => turn(1) }, "›");
  const head = el("tr", {});
  const body = el("tbody", {});

  for (const c of columns) {
    const unit = c.format.unit ? el("small", {}, ` ${c.format.unit}`) : null;
    const button = el("button", { type: "button", title: c.doc, onclick: () => sortBy(c) }, c.format.head, unit);
    c.th = el("th", { scope: "col", class: c.format.numeric ? "n" : null, "data-column": c.column }, button);
    head.append(c.th);
  }

  function turn(pages) {
    state.page += pages;
    draw();
  }

  // Numbers sort largest first, texts from A; the same column again turns it round.
  function sortBy(c) {
    state.descending = state.by === c ? !state.descending : c.format.numeric;
    state.by = c;
    state.page = 0;
    for (const other of columns) other.th.removeAttribute("aria-sort");
    c.th.setAttribute("aria-sort", state.descending ? "descending" : "ascending");
    draw();
  }

  function compare(a, b) {
    const x = a[state.by.i];
    const y = b[state.by.i];
    if (x === null || y === null) return (x === null) - (y === null); // missing values last
    const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
    return state.descending ? -order : order;
  }

  function draw() {
    let found = t.rows.filter((_, i) => state.words.every((w) => texts[i].includes(w)));
    if (state.by) found = found.slice().sort(compare);
    const pages = Math.max(1, Math.ceil(found.length / rows));
    state.page = Math.max(0, Math.min(state.page, pages - 1));
    const first = state.page * rows;
    const shown = found.slice(first, first + rows);
    body.replaceChildren(...shown.map((r) => el("tr", {}, ...columns.map((c) => cell(c, r[c.i])))));
    if (!shown.length) body.append(el("tr", {}, el("td", { class: "none", colspan: columns.length }, "Nothing matches.")));
    range.textContent = found.length ? `${count(first + 1)}–${count(first + shown.length)} of ${count(found.length)}` : "0 rows";
    back.disabled = state.page === 0;
    on.disabled = state.page >= pages - 1;
  }
  draw();

  const left = t.total - t.rows.length;
  const notes = [note, left > 0 ? `${count(left)} of ${count(t.total)} rows are left out of this file.` : null].filter(Boolean);
  const tools = t.rows.length > 8 ? el("div", { class: "tools" }, search, ...notes.map((n) => el("span", { class: "muted" }, n)), range, ...(t.rows.length > rows ? [back, on] : [])) : null;
  return el("div", { class: "card table", "data-table": name },
    tools,
    tools ? null : notes.length ? el("p", { class: "muted" }, notes.join(" ")) : null,
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table of ${label}` },
      el("table", {}, el("thead", {}, head), body)));
}

const classNames = ["compute", "communication", "memory"];

function cell(c, value) {
  if (value === null) return el("td", { class: c.format.numeric ? "n muted" : "muted" }, "–");
  if (typeof value !== "number") {
    const text = typeof value === "object" ? JSON.stringify(value) : String(value);
    if (c.column === "verdict") return el("td", { "data-value": text }, el("span", { class: `badge ${["good", "fair", "poor"].includes(text) ? text : ""}` }, text));
    if (c.column === "class") return el("td", { "data-value": text }, el("span", { class: `chip ${classNames.includes(text) ? text : ""}` }, text));
    const code = codeColumns.includes(c.column);
    if (c.column === "trace_id") return el("td", { "data-value": text, title: text }, el("code", {}, text.slice(0, 8)));
    if (text.length <= 40) return el("td", { "data-value": text }, code ? el("code", {}, text) : text);
    const button = el("button", { type: "button", class: code ? "cut code" : "cut", title: text, "aria-expanded": "false", onclick: () => {
      button.setAttribute("aria-expanded", button.getAttribute("aria-expanded") === "false");
    } }, text);
    return el("td", { class: "text", "data-value": text }, button);
  }
  const exact = columnKind(c.column).kind ? `${value.toLocaleString("en-US", { maximumFractionDigits: 9 })} (${c.column})` : null;
  if (c.column === "share_pct" || c.column === "gpu_share_pct" || c.column === "busy_pct") {
    return el("td", { class: "n share", "data-value": value }, el("div", {}, el("i", { width: `${Math.max(0, Math.min(100, value)) * 0.5}px` }), c.format.text(value)));
  }
  return el("td", { class: "n", "data-value": value, title: exact }, c.format.text(value));
}
