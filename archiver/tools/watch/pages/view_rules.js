// Rules of the crawl with their hits, a form for a new one, and the settings that can be changed while it runs.

import { html, useEffect, useMemo, useState } from "./preact.js";
import { crawlPath, usePolled } from "./api.js";
import { Confirm, commandOf } from "./orders.js";
import { RulePreview } from "./preview.js";
import { Table } from "./table.js";
import { Command, Name, count, printable } from "./text.js";

const EVERY = 10; // seconds

export function Rules({ crawl }) {
  const { data, error, reload } = usePolled(crawlPath(crawl.id, "/rules"), EVERY);
  const [removed, remove] = useState(null);
  const rows = useMemo(() => (data?.rows ?? []).map((row, number) => ({ ...row, number })), [data]);
  useEffect(() => {
    if (crawl.orders) reload();
  }, [crawl.orders]);
  const columns = useMemo(() => [
    { head: "Kind", kind: "a-kind", cell: row => printable(row.kind, 40) },
    { head: "Rule", kind: "a-url mono", cell: row => html`<${Name} text=${row.text} width=600 />` },
    { head: "Hits", kind: "n a-count", cell: row => (row.hits == null ? "" : count(row.hits)) },
    { head: "", kind: "a-act", cell: row => crawl.operator && ["exclude", "include"].includes(row.kind) && crawl.can(row.kind) && html`<button class="quiet" onClick=${() => remove(row)}>Remove…</button>` },
  ], [crawl.can]);
  return html`
    <h2>Rules</h2>
    <p class="soft">Hits are URLs that the rule decided. Removing an exclusion queues exactly the waiting URLs that it excluded.</p>
    <${Table} name="rules" label="Rules" columns=${columns} rows=${rows} keyOf=${row => row.number} busy=${data === null} loaded=${data !== null}
      error=${data ? "" : error} empty="No rules: everything in scope is taken." />
    ${crawl.operator && html`<${NewRule} crawl=${crawl} /><${Settings} crawl=${crawl} />`}
    ${removed && html`<${Removal} row=${removed} crawl=${crawl} onClose=${() => remove(null)} />`}`;
}

function NewRule({ crawl }) {
  const [verb, setVerb] = useState("exclude");
  const [regex, setRegex] = useState("");
  return html`
    <h2>Add a rule</h2>
    <div class="row">
      <label class="field">Kind <select value=${verb} onChange=${event => setVerb(event.target.value)}>
        <option value="exclude">exclude</option>${crawl.can("include") && html`<option value="include">include</option>`}</select></label>
      <label class="field grow">Regular expression <input data-filter="" class="mono" spellcheck="false" autocomplete="off" value=${regex} onInput=${event => setRegex(event.target.value)} /></label>
    </div>
    <${RulePreview} verb=${verb} argument=${regex} crawl=${crawl} button=${verb === "exclude" ? "Exclude" : "Include"} onDone=${() => setRegex("")} />`;
}

function Removal({ row, crawl, onClose }) {
  return html`
    <${Confirm} title="Remove a rule" verb=${row.kind} args=${[row.text]} undo=${true} button="Remove the rule" ...${{ crawl, onClose }}>
      <p>${row.kind} <code><${Name} text=${row.text} /></code></p>
    <//>`;
}

function Settings({ crawl }) {
  const keys = crawl.details?.live_keys ?? [];
  const values = crawl.details?.settings ?? {};
  const [key, setKey] = useState("rate");
  const [typed, setTyped] = useState(null); // null: the value in force
  const known = values[key];
  const value = typed ?? (Array.isArray(known) ? known.join(",") : String(known ?? ""));
  const send = event => {
    event.preventDefault();
    crawl.order("set", [`${key}=${value}`]).then(done => done.error || setTyped(null));
  };
  const choose = event => {
    setKey(event.target.value);
    setTyped(null);
  };
  return html`
    <h2>Settings</h2>
    <p class="soft">These can be changed while the crawl runs. A lower rate holds from the next request on.</p>
    <form class="row" onSubmit=${send}>
      <label class="field">Setting <select value=${key} onChange=${choose}>${keys.map(each => html`<option value=${each}>${each}</option>`)}</select></label>
      <label class="field grow">Value <input class="mono" spellcheck="false" autocomplete="off" value=${value} onInput=${event => setTyped(event.target.value)} /></label>
      <button class="main" disabled=${typed === null}>Set</button>
    </form>
    <p class="soft">The same as a command: <${Command} text=${commandOf(crawl.directory, "set", [`${key}=${value}`])} /></p>`;
}
