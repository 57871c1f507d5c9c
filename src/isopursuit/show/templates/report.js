"use strict";

// Tables sort by the button in each column's head: a click, Enter or Space.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const key = (row, column) => row.cells[column].dataset.sort ?? row.cells[column].textContent;
  const compare = (a, b) => (isNaN(a) || isNaN(b) ? a.localeCompare(b, undefined, { numeric: true }) : a - b || 0);
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].sort((a, b) => compare(key(a, column), key(b, column)) * (down ? -1 : 1));
      body.append(...rows);
    });
  });
}

// The Gram matrix names the pair under the pointer or the focus; arrows, Home and End move between cells.
for (const grid of document.querySelectorAll("table.gram")) {
  const readout = document.getElementById(grid.getAttribute("aria-describedby"));
  const rows = [...grid.tBodies[0].rows].map((row) => [...row.querySelectorAll("td")]);
  const names = [...grid.tBodies[0].rows].map((row) => row.cells[0].textContent);
  const size = rows.length;
  let current = rows[0][0];
  const show = (cell) => {
    const i = cell.parentElement.rowIndex - 1, j = cell.cellIndex - 1;
    current.classList.remove("on");
    current.tabIndex = -1;
    current = cell;
    cell.classList.add("on");
    cell.tabIndex = 0;
    const value = Number(cell.dataset.value);
    const cosine = value / Math.sqrt(Number(rows[i][i].dataset.value) * Number(rows[j][j].dataset.value));
    const text = (x) => String(Number(x.toPrecision(4))).replace("-", "−");
    readout.textContent = i === j
      ? `${names[i]}: squared length ${text(value)}, length ${text(Math.sqrt(value))} (ideal 1)`
      : `${names[i]} · ${names[j]}: inner product ${text(value)} (ideal 0), cosine ${text(cosine)}`;
  };
  grid.addEventListener("mouseover", (event) => { const cell = event.target.closest("tbody td"); if (cell) show(cell); });
  grid.addEventListener("focusin", (event) => { const cell = event.target.closest("tbody td"); if (cell) show(cell); });
  grid.addEventListener("keydown", (event) => {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -size], End: [0, size] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const inside = (x) => Math.min(size - 1, Math.max(0, x));
    rows[inside(current.parentElement.rowIndex - 1 + move[0])][inside(current.cellIndex - 1 + move[1])].focus();
  });
}
