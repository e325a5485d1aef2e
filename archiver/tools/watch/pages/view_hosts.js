// Hosts: what waits on each, how fast it is asked, and why it waits.

import { html, useMemo, useState } from "./preact.js";
import { crawlPath, query, usePages } from "./api.js";
import { Search } from "./search.js";
import { Table, Tail } from "./table.js";
import { Name, count, moment, rate } from "./text.js";

const EVERY = 5; // seconds
const OF_RECORDINGS = ["Host", "Archived", "Failed"]; // columns: nothing waits, and clients decide how fast they ask

export function Hosts({ crawl }) {
  const [sort, setSort] = useState(crawl.recording ? "done" : "waiting");
  const [search, setSearch] = useState("");
  const list = usePages(crawlPath(crawl.id, `/hosts${query({ sort, search })}`), EVERY);
  const live = crawl.feed?.live?.hosts;
  const now = useMemo(() => new Map((live ?? []).map(host => [host.key, host])), [live]);
  const rows = useMemo(() => list.rows.map(row => ({ ...row, ...pick(now.get(row.key)) })), [list.rows, now]);
  const columns = useMemo(() => columnsOf(crawl).filter(column => !crawl.recording || OF_RECORDINGS.includes(column.head)), [crawl.id, crawl.recording]);
  return html`
    <div class="filters"><${Search} label="Host" value=${search} onSearch=${setSearch} /></div>
    <${Table} name="hosts" label="Hosts" columns=${columns} rows=${rows} keyOf=${row => row.key} ...${list} sort=${sort} onSort=${setSort}
      empty=${search ? "No host has this in its name." : "No host yet. Hosts appear with their first URL."} />
    <${Tail} list=${list} noun=${list.rows.length === 1 ? "host" : "hosts"} />`;
}

function pick(live) {
  if (!live) return {};
  const { waiting, active, why, slowed } = live;
  return { waiting, active, why, slowed };
}

function columnsOf(crawl) {
  return [
    { head: "Host", kind: "a-name", sort: "name", descending: false, open: row => () => crawl.choose(originOf(row.key)), cell: row => html`<${Name} text=${row.key} width=300 />` },
    { head: "Waiting", kind: "n a-waiting", sort: "waiting", cell: row => count(row.waiting) },
    { head: "Active", kind: "n a-active", cell: row => count(row.active) },
    { head: "Archived", kind: "n a-done", sort: "done", cell: row => count(row.done) },
    { head: "Failed", kind: "n a-failed", sort: "failed", cell: row => count(row.failed) },
    { head: "Rate", kind: "n a-rate", cell: row => (row.rate == null ? "" : `${rate(row.rate)}/s`) },
    { head: "Waits until", kind: "n a-until", cell: row => (row.until ? moment(row.until) : "") },
    { head: "Why", kind: "a-why", cell: row => html`${row.blocked ? html`<b>blocked </b>` : ""}<${Name} text=${[row.why, row.slowed].filter(Boolean).join(": ")} width=200 />` },
    { head: "robots.txt", kind: "a-robots", cell: row => html`<${Name} text=${row.robots} width=100 />` },
  ];
}

function originOf(key) {
  return key.includes("://") ? `${key}/` : `https://${key}/`;
}
