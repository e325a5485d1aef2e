const said = document.body.appendChild(document.createElement("p"));
said.className = "unseen";
said.role = "status";

const copied = async text => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {  // a page from a file, or in a frame, may not use the clipboard: the older way needs a selection
    const box = document.body.appendChild(document.createElement("textarea"));
    box.value = text;
    box.select();
    try { return document.execCommand("copy"); } finally { box.remove(); }
  }
};

for (const line of document.querySelectorAll(".command")) {
  const code = line.querySelector("code");
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy the command " + code.textContent);
  button.onclick = async () => {
    const done = await copied(code.textContent);
    if (!done) getSelection().selectAllChildren(code);
    button.focus();
    button.textContent = said.textContent = done ? "Copied" : "Selected: press Ctrl+C";
    setTimeout(() => { button.textContent = "Copy"; said.textContent = ""; }, 3000);
  };
  code.after(button);
}

for (const head of document.querySelectorAll("th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  head.append(button);
  button.onclick = () => {
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
}
