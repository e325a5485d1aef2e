const [bar, found, list] = ["filter", "found", "list"].map(name => document.getElementById(name));
const label = bar.appendChild(document.createElement("label"));
const field = document.createElement("input");
field.type = "search";
label.append("Title or URL ", field);
const data = document.currentScript.dataset.pages;
let pages;

const show = () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  list.hidden = words.length > 0;
  found.replaceChildren();
  if (list.hidden && pages) {
    const right = pages.filter(page => words.every(word => (page[1] + " " + page[2]).toLowerCase().includes(word)));
    found.append(right.length + " of " + pages.length + " found" + (right.length > 500 ? ", the first 500:" : ""));
    const rows = found.appendChild(document.createElement("ul"));
    rows.className = "pages";
    for (const [path, title, address, date] of right.slice(0, 500)) {
      const row = rows.appendChild(document.createElement("li"));
      const link = row.appendChild(document.createElement("a"));
      link.className = "title";
      link.href = path;
      link.textContent = title || address;
      if (title) {
        const shown = row.appendChild(document.createElement("span"));
        shown.className = "url";
        shown.textContent = address;
      }
      row.appendChild(document.createElement("div")).textContent = date;
    }
  }
};

window.archive = rows => {
  pages = rows;
  show();
};

field.oninput = () => {
  if (!document.querySelector("script[src]")) {
    const loaded = document.createElement("script");
    loaded.src = data;
    document.head.append(loaded);
  }
  show();
};
