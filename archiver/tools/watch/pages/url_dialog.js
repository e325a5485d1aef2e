// Everything that can be done with one URL: explain, replay, retry, first, exclude like this, block or slow its host.

import { html, useEffect, useState } from "./preact.js";
import { crawlPath, get, query } from "./api.js";
import { Dialog } from "./dialog.js";
import { commandOf } from "./orders.js";
import { RulePreview } from "./preview.js";
import { Command, Name, exactly, hostOf, printable } from "./text.js";

const PACES = ["1", "1/2", "1/5", "1/10", "1/60"];

export function UrlDialog({ url, crawl, onClose }) {
  const host = hostOf(url);
  return html`
    <${Dialog} title="One URL" wide=${true} onClose=${onClose}>
      <p class="address"><${Name} text=${url} /></p>
      <${Explained} url=${url} crawl=${crawl} />
      <${Simple} url=${url} crawl=${crawl} onClose=${onClose} />
      ${crawl.operator && html`
        <${ExcludeLike} url=${url} crawl=${crawl} onDone=${onClose} />
        ${host && html`<${OfHost} host=${host} crawl=${crawl} onDone=${onClose} />`}`}
    <//>`;
}

function Explained({ url, crawl }) {
  const [state, setState] = useState({ lines: null, error: "" });
  useEffect(() => {
    const stop = new AbortController();
    get(crawlPath(crawl.id, `/explain${query({ url })}`), stop.signal).then(
      found => setState({ lines: found.lines ?? [], error: "" }),
      fault => stop.signal.aborted || setState({ lines: null, error: fault.message }),
    );
    return () => stop.abort();
  }, [url]);
  return html`
    <h3>Explain</h3>
    <div class="explained" tabindex="0" role="region" aria-label="Explanation" aria-busy=${!state.lines && !state.error}>
      ${state.error ? html`<p class="bad">${state.error}</p>`
        : state.lines === null ? html`<p class="soft">Loading…</p>`
        : state.lines.map(line => html`<div><bdi>${printable(line)}</bdi></div>`)}
    </div>`;
}

function Simple({ url, crawl, onClose }) {
  const { details, directory, order, can } = crawl;
  const give = (verb, args) => () => {
    onClose();
    order(verb, args);
  };
  return html`
    <p class="buttons">
      ${details?.replay && html`<a class="button" href=${details.replay + url} target="_blank" rel="noopener noreferrer">Open in replay</a>`}
      ${can("retry") && html`<button onClick=${give("retry", [url])} title=${printable(commandOf(directory, "retry", [url]), 300)}>Retry</button>`}
      ${can("first") && html`<button onClick=${give("first", [exactly(url)])} title=${printable(commandOf(directory, "first", [exactly(url)]), 300)}>Fetch first</button>`}
    </p>
    ${details && !details.replay && html`<p class="soft">To see the archived page, start <${Command} text=${`archiver replay ${directory}`} /></p>`}`;
}

/** Choose a rule from the URL, look what it would exclude, and exclude it. */
function ExcludeLike({ url, crawl, onDone }) {
  const [rows, setRows] = useState([]);
  const [error, setError] = useState("");
  const [regex, setRegex] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    get(crawlPath(crawl.id, `/suggest${query({ url })}`), stop.signal).then(
      found => setRows(found.rows ?? []),
      fault => stop.signal.aborted || setError(fault.message),
    );
    return () => stop.abort();
  }, [url]);
  return html`
    <h3>Exclude like this</h3>
    <fieldset class="choices"><legend class="hidden">Exclude</legend>
      ${rows.map(row => html`
        <label class="check"><input type="radio" name="like" value=${row.regex} checked=${regex === row.regex} onChange=${() => setRegex(row.regex)} />
          <span>${row.label}</span> <code><${Name} text=${row.regex} width=300 /></code></label>`)}
      ${error && html`<p class="bad">${error}</p>`}
    </fieldset>
    <label>Regular expression <input class="mono" value=${regex} spellcheck="false" autocomplete="off" onInput=${event => setRegex(event.target.value)} /></label>
    <${RulePreview} verb="exclude" argument=${regex} crawl=${crawl} button="Exclude" onDone=${onDone} />`;
}

function OfHost({ host, crawl, onDone }) {
  const [asked, ask] = useState("");
  const [pace, setPace] = useState("1");
  const rule = `host=${host} rate=${pace}`;
  return html`
    <h3>The host <${Name} text=${host} width=100 /></h3>
    <p class="buttons">
      ${crawl.can("block") && html`<button aria-expanded=${asked === "block"} onClick=${() => ask(asked === "block" ? "" : "block")}>Block this host…</button>`}
      <button aria-expanded=${asked === "slow"} onClick=${() => ask(asked === "slow" ? "" : "slow")}>Slow this host…</button>
    </p>
    ${asked === "block" && html`<${RulePreview} verb="block" argument=${host} crawl=${crawl} button="Block the host" onDone=${onDone} />`}
    ${asked === "slow" && html`
      <label>Requests per second <select value=${pace} onChange=${event => setPace(event.target.value)}>
        ${PACES.map(each => html`<option value=${each}>${each === "1" ? "1" : `1 in ${each.slice(2)} seconds`}</option>`)}</select></label>
      <p class="soft">The same as a command: <${Command} text=${commandOf(crawl.directory, "set", [rule])} /></p>
      <p class="buttons"><button class="main" onClick=${() => onDone() || crawl.order("set", [rule])}>Slow the host</button></p>`}`;
}
