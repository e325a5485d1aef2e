// The latest lines of the log, filtered.

import { html, useMemo, useRef, useState } from "./preact.js";
import { useKey } from "./keys.js";
import { Table } from "./table.js";
import { Name, count, hostOf, moment, volume } from "./text.js";

const CLASSES = [
  ["2", "2xx", "got the page"],
  ["3", "3xx", "redirects"],
  ["4", "4xx", "refused or not there"],
  ["5", "5xx", "errors of servers"],
  ["-", "none", "no answer, or not asked"],
];
const ALL = { classes: CLASSES.map(([name]) => name), host: "", regex: "", errors: false };
const LONGEST = 2000; // characters of a URL that a pattern is tried on

function classOf(status) {
  return status >= 200 && status < 600 ? String(status)[0] : status > 0 ? "2" : "-";
}

/** Return the test of the filter, and what is wrong with its pattern. */
function tester(filter) {
  let pattern = null;
  let fault = "";
  try {
    pattern = filter.regex ? new RegExp(filter.regex, "u") : null;
  } catch {
    fault = "This is not a regular expression yet.";
  }
  const host = filter.host.trim().toLowerCase();
  const test = line => {
    const kind = classOf(line.status);
    if (!filter.classes.includes(kind)) return false;
    if (filter.errors && kind !== "4" && kind !== "5" && kind !== "-") return false;
    if (host && !hostOf(line.url).includes(host)) return false;
    return pattern === null || pattern.test(line.url.slice(0, LONGEST));
  };
  return { test, fault };
}

export function Stream({ crawl }) {
  const { feed } = crawl;
  const [filter, setFilter] = useState(ALL);
  const [frozen, setFrozen] = useState(null); // the lines when it was frozen
  const all = feed?.lines ?? [];
  const source = frozen ?? all;
  const { test, fault } = useMemo(() => tester(filter), [filter]);
  const rows = useMemo(() => source.filter(test), [source, test]);
  const latest = useRef(all);
  latest.current = all;
  const follow = yes => setFrozen(yes ? null : known => known ?? latest.current);
  const fresh = frozen ? (all.at(-1)?.number ?? 0) - (frozen.at(-1)?.number ?? 0) : 0;
  useKey("a", () => setFilter(ALL));
  useKey("n", () => setFilter({ ...ALL, classes: [] }));
  useKey("z", () => follow(frozen !== null));
  const columns = useMemo(() => columnsOf(crawl.choose), [crawl.choose]);
  const put = (name, value) => setFilter({ ...filter, [name]: value });
  return html`
    <div class="filters">
      <fieldset class="chips"><legend class="hidden">Status</legend>
        ${CLASSES.map(([name, label, title]) => html`
          <label class="chip s${name === "-" ? "0" : name}" title=${title}><input type="checkbox" checked=${filter.classes.includes(name)}
            onChange=${() => put("classes", filter.classes.includes(name) ? filter.classes.filter(each => each !== name) : [...filter.classes, name])} />${label}</label>`)}
      </fieldset>
      <label class="field">Host <input data-filter="" type="search" value=${filter.host} onInput=${event => put("host", event.target.value)} /></label>
      <label class="field">Pattern <input class="mono" type="search" spellcheck="false" value=${filter.regex} aria-invalid=${Boolean(fault)}
        aria-describedby="pattern-fault" onInput=${event => put("regex", event.target.value)} /></label>
      <label class="check"><input type="checkbox" checked=${filter.errors} onChange=${event => put("errors", event.target.checked)} /> Only errors</label>
      <span class="grow"></span>
      <button aria-pressed=${frozen !== null} onClick=${() => follow(frozen !== null)}>Freeze</button>
    </div>
    <${Table} name="stream" label="Stream of URLs" columns=${columns} rows=${rows} keyOf=${line => line.number} kindOf=${line => `s${classOf(line.status) === "-" ? "0" : classOf(line.status)}`}
      follow=${frozen === null} onFollow=${follow} loaded=${Boolean(feed?.loaded)} busy=${!feed?.loaded}
      empty=${all.length ? "No line matches. Press a to show all." : "No line yet. Lines appear as URLs are stored."} />
    <p class="tail"><span>${count(rows.length)} of ${count(source.length)} lines${feed?.dropped ? `; ${count(feed.dropped)} more were too fast to show` : ""}.</span>
      <span id="pattern-fault" class="bad">${fault}</span>
      ${frozen !== null && html`<button class="quiet" onClick=${() => follow(true)}>${fresh ? `${count(fresh)} new, follow` : "Follow"}</button>`}</p>`;
}

function columnsOf(choose) {
  return [
    { head: "Time", kind: "a-time n", cell: line => moment(line.at) },
    { head: "Status", kind: "a-status n", cell: line => html`<span class="status">${line.status > 0 ? line.status : html`<span title="code in the log: ${line.status}">none</span>`}</span>` },
    { head: "Size", kind: "a-size n", cell: line => (line.bytes == null ? "–" : volume(line.bytes)) },
    { head: "URL", kind: "a-url", open: line => () => choose(line.url), cell: line => html`<${Name} text=${line.url} width=600 />` },
    { head: "Type", kind: "a-mime", cell: line => html`<${Name} text=${line.mime} width=80 />` },
    { head: "Note", kind: "a-note", cell: line => html`<${Name} text=${line.note} width=300 />` },
  ];
}
