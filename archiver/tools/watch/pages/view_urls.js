// URLs of the crawl, by state and by text.

import { html, useMemo, useState } from "./preact.js";
import { crawlPath, query, usePages } from "./api.js";
import { Search } from "./search.js";
import { Table, Tail } from "./table.js";
import { Name, count, printable } from "./text.js";

const STATES = ["", "waiting", "archived", "failed", "excluded", "held"];
const OF_RECORDINGS = ["", "archived", "failed"];

export function Urls({ crawl }) {
  const [state, setState] = useState("");
  const [search, setSearch] = useState("");
  const list = usePages(crawlPath(crawl.id, `/urls${query({ state, search })}`));
  const columns = useMemo(() => [
    { head: "State", kind: "a-state", cell: row => printable(row.state, 40) },
    { head: "Status", kind: "n a-status", cell: row => (row.status == null ? "" : count(row.status)) },
    { head: "URL", kind: "a-url", open: row => () => crawl.choose(row.url), cell: row => html`<${Name} text=${row.url} width=600 />` },
    { head: "Note", kind: "a-note", cell: row => html`<${Name} text=${row.note} width=400 />` },
  ], [crawl.choose]);
  return html`
    <div class="filters">
      <label class="field">State <select value=${state} onChange=${event => setState(event.target.value)}>
        ${(crawl.recording ? OF_RECORDINGS : STATES).map(each => html`<option value=${each}>${each || "any"}</option>`)}</select></label>
      <${Search} label="Text in the URL" value=${search} onSearch=${setSearch} />
    </div>
    <${Table} name="urls" label="URLs" columns=${columns} rows=${list.rows} keyOf=${row => row.url} ...${list}
      empty=${search ? "No URL in this state has this text." : state ? `No URL is ${state}.` : "No URL yet."} />
    <${Tail} list=${list} noun=${list.rows.length === 1 ? "URL" : "URLs"} />`;
}
