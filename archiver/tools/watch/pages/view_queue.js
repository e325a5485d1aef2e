// The queue: how many URLs wait, by pattern, and what goes next on a host.

import { html, useEffect, useMemo, useState } from "./preact.js";
import { crawlPath, query, usePages, usePolled } from "./api.js";
import { Search } from "./search.js";
import { Table, Tail } from "./table.js";
import { Name, count, counted, moment } from "./text.js";

const EVERY = 10; // seconds

export function Queue({ crawl }) {
  return html`<${Patterns} crawl=${crawl} /><${Next} crawl=${crawl} />`;
}

function Patterns({ crawl }) {
  const [counting, setCounting] = useState(true); // the control room takes the sample in the background
  const { data, error, reload } = usePolled(crawlPath(crawl.id, "/patterns"), counting ? 1 : EVERY);
  const unknown = data === null || (!data.of && crawl.details?.counts?.waiting > 0);
  useEffect(() => setCounting(unknown), [unknown]);
  const rows = data?.rows ?? [];
  const whole = data !== null && data.sampled >= data.of;
  const columns = useMemo(() => [
    { head: "Waiting", kind: "n a-count", cell: row => count(row.count) },
    { head: "Share", kind: "a-share", cell: row => html`<meter min="0" max="1" value=${row.share} aria-label="Share of the queue">${Math.round(row.share * 100)} %</meter>` },
    { head: "Pattern", kind: "a-url", open: row => () => crawl.choose(row.example), cell: row => html`<${Name} text=${row.pattern} width=400 />` },
    { head: "Example", kind: "a-note", cell: row => html`<${Name} text=${row.example} width=400 />` },
  ], [crawl.choose]);
  const shares = useMemo(() => rows.map(row => ({ ...row, share: row.count / Math.max(data.sampled, 1) })), [data]);
  return html`
    <h2>Waiting by pattern</h2>
    <p class="soft">Digits are one pattern. A pattern with very many URLs may be a trap: choose it to exclude it.
      ${!unknown && (whole ? ` All ${counted(data.of, "waiting URL")} are counted.` : ` Counted in a sample of ${count(data.sampled)} of ${counted(data.of, "waiting URL")}.`)}</p>
    <${Table} name="patterns" label="Waiting URLs by pattern" columns=${columns} rows=${shares} keyOf=${row => row.pattern} busy=${unknown} loaded=${!unknown}
      error=${data ? "" : error} empty="Nothing waits." />
    <${Tail} list=${{ rows, next: null, error, busy: false, reload }} noun=${rows.length === 1 ? "pattern" : "patterns"} />`;
}

function Next({ crawl }) {
  const [host, setHost] = useState("");
  const list = usePages(crawlPath(crawl.id, `/queue${query({ host })}`), EVERY);
  const columns = useMemo(() => [
    { head: "Depth", kind: "n a-depth", cell: row => count(row.depth) },
    { head: "Due", kind: "n a-due", cell: row => (row.due ? moment(row.due) : "now") },
    { head: "URL", kind: "a-url", open: row => () => crawl.choose(row.url), cell: row => html`<${Name} text=${row.url} width=600 />` },
    { head: "Found on", kind: "a-note", cell: row => html`<${Name} text=${row.via} width=400 />` },
  ], [crawl.choose]);
  return html`
    <h2>What goes next${list.extra.host ? html` on <${Name} text=${list.extra.host} width=200 />` : ""}</h2>
    <div class="filters"><${Search} label="Host" value=${host} onSearch=${setHost} /></div>
    <${Table} name="queue" label="Queue" columns=${columns} rows=${list.rows} keyOf=${row => row.url} ...${list}
      empty=${host ? "Nothing waits on this host. Write it as in the table of hosts, for example https://example.org." : "Nothing waits."} />
    <${Tail} list=${list} noun=${list.rows.length === 1 ? "URL" : "URLs"} />`;
}
