// The list of crawls: a row each.

import { html, useEffect, useRef } from "./preact.js";
import { usePolled } from "./api.js";
import { useKey } from "./keys.js";
import { say } from "./spoken.js";
import { Badge } from "./state.js";
import { Name, about, count, counted, moment, rate, volume } from "./text.js";
import { Table } from "./table.js";
import { Sparkline } from "./sparkline.js";

const EVERY = 2; // seconds

const COLUMNS = [
  { head: "Crawl", kind: "a-name", cell: row => html`<a href=${`#/crawl/${encodeURIComponent(row.id)}/stream`}><${Name} text=${row.name} width=200 /></a>` },
  { head: "State", kind: "a-state", cell: row => html`<${Badge} state=${row.state} />` },
  { head: "URLs/s", kind: "n a-rate", cell: row => html`<${Sparkline} values=${row.history} /> <span>${rate(row.rate)}</span>` },
  { head: "Archived", kind: "n a-done", cell: row => count(row.done) },
  { head: "Waiting", kind: "n a-waiting", cell: row => count(row.waiting) },
  { head: "Failed", kind: "n a-failed", cell: row => count(row.failed) },
  { head: "Held", kind: "n a-held", cell: row => count(row.held) },
  { head: "Size", kind: "n a-size", cell: row => volume(row.bytes) },
  { head: "Free disk", kind: "n a-disk", cell: row => html`${volume(row.disk_free)}${left(row)}` },
  { head: "Hosts and warnings", kind: "a-note", cell: row => html`<span>${hosts(row)}</span><span class="soft"><${Name} text=${row.warning} width=300 /></span>` },
];

function left({ disk_left_seconds: seconds }) {
  return Number.isFinite(seconds) ? html`<span class="soft"> for ${about(seconds)}</span>` : null;
}

function hosts(row) {
  const parts = [];
  if (row.slowed) parts.push(`${count(row.slowed)} slowed`);
  if (row.asleep) parts.push(`${count(row.asleep)} asleep`);
  return parts.join(", ");
}

export function CrawlList({ startable, many }) {
  const { data, error } = usePolled("/api/crawls", EVERY);
  const rows = data?.crawls ?? [];
  const place = useRef(null);
  useEffect(() => {
    document.title = "Crawls · archiver watch";
  }, []);
  useEffect(() => {
    if (data && !many && rows.length === 1) location.replace(`#/crawl/${encodeURIComponent(rows[0].id)}/stream`);
  }, [data]);
  useEffect(() => {
    if (data) say(`${counted(rows.length, "crawl")}, ${rows.filter(row => row.state === "crawling" || row.state === "recording").length} running`);
  }, [rows.length]);
  const step = by => {
    const links = [...place.current.querySelectorAll("tbody a")];
    const at = links.indexOf(document.activeElement);
    links[Math.max(0, Math.min(links.length - 1, at + by))]?.focus();
  };
  useKey("j", () => step(1));
  useKey("k", () => step(-1));
  const [latest] = rows.map(row => row.written).filter(Number.isFinite).sort((a, b) => b - a);
  return html`
    <main id="main" tabindex="-1" ref=${place}>
      <div class="title"><h1>Crawls</h1>
        ${startable && html`<a class="button main" href="#/new">New crawl</a>`}</div>
      <p class="soft">${data ? html`${counted(rows.length, "crawl")}${latest ? `, latest figures of ${moment(latest)}` : ""}` : "Loading…"}</p>
      ${error && html`<p class="banner bad">${error} Trying again.</p>`}
      <${Table} name="crawls" label="Crawls" columns=${COLUMNS} rows=${rows} keyOf=${row => row.id} loaded=${data !== null}
        busy=${data === null} error=${data ? "" : error} empty=${html`No crawl here yet. ${startable ? html`<a href="#/new">Start one</a>` : html`Start one with <code>archiver crawl URL</code>`}.`} />
    </main>`;
}
