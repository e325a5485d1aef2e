// The views that are plain lists: refusals, problems, files, the report and the orders.

import { html, useEffect, useMemo, useState } from "./preact.js";
import { crawlPath, usePages, usePolled } from "./api.js";
import { Confirm } from "./orders.js";
import { Table, Tail } from "./table.js";
import { Command, Name, count, counted, moment, printable, volume } from "./text.js";

const EVERY = 10; // seconds

export function Refusals({ crawl }) {
  const list = usePages(crawlPath(crawl.id, "/refusals"), EVERY);
  const { held = [], blocked = [] } = list.extra;
  const [released, release] = useState(null);
  const refused = useMemo(() => [
    { head: "URLs", kind: "n a-count", cell: row => count(row.count) },
    { head: "Rule", kind: "a-url", cell: row => html`<${Name} text=${row.rule} width=300 />` },
    { head: "Example", kind: "a-note", open: row => row.example && (() => crawl.choose(row.example)), cell: row => html`<${Name} text=${row.example} width=400 />` },
  ], [crawl.choose]);
  const traps = useMemo(() => [
    { head: "URLs", kind: "n a-count", cell: row => count(row.count) },
    { head: "Pattern", kind: "a-url", open: row => row.example && (() => crawl.choose(row.example)), cell: row => html`<${Name} text=${row.pattern} width=300 />` },
    { head: "To release them", kind: "a-note", cell: row => html`<${Command} text=${row.command} />` },
    { head: "", kind: "a-act", cell: row => crawl.can("retry") && html`<button class="quiet" aria-label=${`Release ${printable(row.pattern, 100)}`} onClick=${() => release(row)}>Release…</button>` },
  ], [crawl.choose, crawl.can]);
  const sites = useMemo(() => [
    { head: "Since", kind: "n a-since", cell: row => moment(row.since) },
    { head: "Host", kind: "a-url", cell: row => html`<${Name} text=${row.host} width=200 />` },
    { head: "Why", kind: "a-note", cell: row => html`<${Name} text=${row.why} width=400 />` },
    { head: "", kind: "a-act", cell: row => crawl.can("unblock") && /person/.test(row.why) && html`<button class="quiet" onClick=${() => crawl.order("unblock", [row.pattern ?? row.host])}>Unblock</button>` },
  ], [crawl.order, crawl.operator]);
  useEffect(() => {
    if (crawl.orders) list.reload();
  }, [crawl.orders]);
  const shared = { loaded: list.loaded, busy: list.busy, error: list.error };
  return html`
    <h2>Held as suspected traps</h2>
    <p class="soft">The budget of the pattern is spent, so its other URLs wait for you. Release them if they are real pages.</p>
    <${Table} name="held" label="Held patterns" columns=${traps} rows=${held} keyOf=${row => row.pattern} ...${shared} empty="Nothing is held." />
    <h2>Blocked</h2>
    <p class="soft">Sites that refuse us, and hosts that you blocked. Their URLs keep their place in the queue.</p>
    <${Table} name="blocked" label="Blocked sites" columns=${sites} rows=${blocked} keyOf=${row => row.host} ...${shared} empty="No site is blocked." />
    <h2>Refused by a rule</h2>
    <p class="soft">URLs outside the scope, forbidden by robots.txt or excluded by a rule.</p>
    <${Table} name="refused" label="Refused URLs by rule" columns=${refused} rows=${list.rows} keyOf=${row => row.rule} ...${list} empty="Nothing was refused." />
    <${Tail} list=${list} noun=${list.rows.length === 1 ? "rule" : "rules"} />
    ${released && html`
      <${Confirm} title="Release held URLs" verb="retry" args=${["--held", released.pattern]} button="Release them" crawl=${crawl} onClose=${() => release(null)}>
        <p>${counted(released.count, "URL")} like <${Name} text=${released.example} width=300 /> go back into the queue, and their pattern gets another budget.</p>
      <//>`}`;
}

const ALL = { retry: [] };

export function Problems({ crawl }) {
  const [reading, setReading] = useState(true); // the control room reads the database piece by piece
  const list = usePages(crawlPath(crawl.id, "/problems"), reading ? 1 : EVERY);
  const { seen = 0, of = 0, complete = true } = list.extra;
  const [chosen, retry] = useState(null); // a row, or ALL
  useEffect(() => setReading(!complete), [complete]);
  const columns = useMemo(() => [
    { head: "URLs", kind: "n a-count", cell: row => count(row.count) },
    { head: "Reason", kind: "a-reason", cell: row => html`<${Name} text=${row.reason} width=200 />` },
    { head: "Host", kind: "a-host", cell: row => html`<${Name} text=${row.host} width=200 />` },
    { head: "Example", kind: "a-url", open: row => row.example && (() => crawl.choose(row.example)), cell: row => html`<${Name} text=${row.example} width=600 />` },
    { head: "Found on", kind: "a-note", open: row => row.via && (() => crawl.choose(row.via)), cell: row => html`<${Name} text=${row.via} width=400 />` },
    { head: "", kind: "a-act", cell: row => row.retry && crawl.can("retry") && html`<button class="quiet" aria-label=${`Retry ${printable(`${row.reason} ${row.host}`, 100)}`} onClick=${() => retry(row)}>Retry…</button>` },
  ], [crawl.choose, crawl.can]);
  return html`
    <p class="soft">What failed, by reason and host. The page that an example was found on may have a broken link.${complete ? "" : ` Read so far: ${count(seen)} of ${counted(of, "URL")}.`}</p>
    ${crawl.can("retry") && html`<p class="buttons"><button aria-haspopup="dialog" onClick=${() => retry(ALL)}>Retry all that failed…</button></p>`}
    <${Table} name="problems" label="Problems" columns=${columns} rows=${list.rows} keyOf=${row => `${row.reason} ${row.host}`} ...${list} empty="No problem so far." />
    <${Tail} list=${list} noun=${list.rows.length === 1 ? "problem" : "problems"} />
    ${chosen && html`
      <${Confirm} title="Queue URLs again" verb="retry" args=${chosen.retry} button="Retry them" crawl=${crawl} onClose=${() => retry(null)}>
        <p>${chosen === ALL ? "All URLs that failed or were excluded without a rule of a person go" : html`${counted(chosen.count, "URL")} of <${Name} text=${chosen.host} width=200 /> with ${chosen.reason} ${chosen.count === 1 ? "goes" : "go"}`}
          back into the queue, with no tries counted.</p>
      <//>`}`;
}

const FILES = [
  { head: "Name", kind: "a-url", cell: row => html`<${Name} text=${row.name} width=300 />` },
  { head: "Size", kind: "n a-size", cell: row => volume(row.bytes) },
  { head: "Captures", kind: "n a-count", cell: row => count(row.captures) },
  { head: "State", kind: "a-state", cell: row => [row.open ? "being written" : "closed", row.stored ? "in the store" : ""].filter(Boolean).join(", ") },
  { head: "Machine", kind: "a-host", cell: row => html`<${Name} text=${row.machine} width=100 />` },
];

export function Files({ crawl }) {
  const list = usePages(crawlPath(crawl.id, "/files"), EVERY);
  const live = crawl.feed?.live;
  const size = list.rows.reduce((sum, row) => sum + (row.bytes || 0), 0);
  return html`
    <dl class="facts">
      <dt>WARC files</dt><dd>${counted(list.rows.length, "file")}${list.next ? " so far" : ""}, ${volume(size)}</dd>
      <dt>Free on the disk</dt><dd>${volume(live?.disk_free ?? list.extra.disk_free)}</dd>
      <dt>Not on the disk yet</dt><dd>${live ? `${volume(live.spool_bytes)} of running requests, ${counted(live.unwritten ?? 0, "visit")} to write` : "–"}</dd>
      <dt>Not in the store yet</dt><dd>${live ? volume(live.store_backlog_bytes) : "–"}</dd>
      <dt>Latest commit</dt><dd>${live ? moment(live.last_commit) : "–"}</dd>
    </dl>
    <${Table} name="files" label="WARC files" columns=${FILES} rows=${list.rows} keyOf=${row => row.name} ...${list} empty="No WARC file yet." />
    <${Tail} list=${list} noun=${list.rows.length === 1 ? "file" : "files"} />`;
}

export function Report({ crawl }) {
  const { details, directory } = crawl;
  if (details === null) return html`<p class="soft">Loading…</p>`;
  const { text, findings = [] } = details.verdict ?? {};
  const running = details.running || crawl.feed?.running;
  return html`
    <h2>Verdict</h2>
    <p class="verdict"><${Name} text=${running ? `The ${crawl.recording ? "recording" : "crawl"} is running. So far:` : text || "No verdict yet."} /></p>
    <ul class="findings">${findings.map(finding => html`
      <li><${Name} text=${finding.text} />${finding.command && html`<br /><${Command} text=${finding.command} />`}</li>`)}</ul>
    <h2>Report</h2>
    ${details.report === false
      ? html`<p>No report is written yet. This command writes one: <${Command} text=${`archiver report ${directory} --html -o report.html`} /></p>`
      : html`<p><a class="button" href=${`/report/${encodeURIComponent(crawl.id)}`} target="_blank" rel="noopener">Open the report</a>
        <span class="soft"> It is made when you open it, and needs no scripts.</span></p>`}`;
}

const ORDERS = [
  { head: "When", kind: "n a-time", cell: row => moment(row.given) },
  { head: "Who", kind: "a-who", cell: row => html`<${Name} text=${row.who} width=100 />` },
  { head: "Order", kind: "a-url mono", cell: row => html`<${Name} text=${[row.verb, ...(row.arguments ?? [])].join(" ")} width=600 />` },
  { head: "Answer", kind: "a-note", cell: row => (row.answered == null ? html`<span class="soft">not done yet</span>` : html`<${Name} text=${row.answer} width=400 />`) },
];

export function Orders({ crawl }) {
  const { data, error, reload } = usePolled(crawlPath(crawl.id, "/orders"), EVERY);
  const rows = useMemo(() => [...(data?.rows ?? [])].sort((one, other) => other.id - one.id), [data]);
  useEffect(() => {
    if (crawl.orders) reload();
  }, [crawl.orders]);
  return html`
    <p class="soft">What people told this crawl, latest first. <${Command} text=${`archiver orders ${crawl.directory}`} /> prints the same. A metadata WARC holds it too.</p>
    <${Table} name="orders" label="Orders" columns=${ORDERS} rows=${rows} keyOf=${row => row.id} busy=${data === null} loaded=${data !== null} error=${data ? "" : error}
      empty="No order yet." />
    <p class="tail"><span>${counted(rows.length, "order")}.</span> ${data !== null && html`<span class="bad">${printable(error, 300)}</span>`}</p>`;
}
