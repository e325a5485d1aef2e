for (const head of document.querySelectorAll("th")) {
  const sort = () => {
    const table = head.closest("table"), place = head.cellIndex, up = head.ariaSort === "descending";
    const value = row => row.cells[place].dataset.v ?? row.cells[place].textContent;
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      return (up ? 1 : -1) * (head.className === "n" ? x - y : x.localeCompare(y));
    });
    for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
    head.ariaSort = up ? "ascending" : "descending";
    table.tBodies[0].append(...rows);
  };
  head.tabIndex = 0;
  head.onclick = sort;
  head.onkeydown = event => { if (event.key === "Enter") sort(); };
}
