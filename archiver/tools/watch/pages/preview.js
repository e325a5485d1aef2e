// Look what a rule would do before it is applied.

import { html, useState } from "./preact.js";
import { crawlPath, post } from "./api.js";
import { commandOf } from "./orders.js";
import { Command, Name, count, counted } from "./text.js";

const DOES = { exclude: "would be excluded", include: "would wait", block: "would wait until the host is unblocked" };

/** Show buttons for the rule `verb` `argument`. It can only be applied after its preview was shown. */
export function RulePreview({ verb, argument, crawl, button, onDone }) {
  const [seen, setSeen] = useState(null); // {verb, argument, found | error}
  const [busy, setBusy] = useState(false);
  const current = seen !== null && seen.argument === argument && seen.verb === verb ? seen : null;
  const look = async () => {
    setBusy(true);
    const found = await post(crawlPath(crawl.id, "/preview"), { verb, argument }).then(
      preview => ({ preview }),
      fault => ({ error: fault.message }),
    );
    setSeen({ verb, argument, ...found });
    setBusy(false);
  };
  const apply = async () => {
    setBusy(true);
    const done = await crawl.order(verb, [argument]);
    setBusy(false);
    if (!done.error) onDone(done);
    else setSeen({ verb, argument, error: done.error });
  };
  return html`
    <div class="preview">
      <p class="buttons">
        <button class=${current?.preview ? "" : "main"} disabled=${busy || !argument} onClick=${look}>${busy && !current ? "Looking…" : "Preview"}</button>
        <button class="main danger" disabled=${busy || !current?.preview} onClick=${apply}>${button}</button>
        ${!current && html`<span class="soft">Look what it would do first.</span>`}
      </p>
      ${current?.error && html`<p class="bad" role="alert"><${Name} text=${current.error} width=500 /></p>`}
      ${current?.preview && html`<${Seen} preview=${current.preview} verb=${verb} />`}
      ${argument && html`<p class="soft">The same as a command: <${Command} text=${current?.preview?.command ?? commandOf(crawl.directory, verb, [argument])} /></p>`}
    </div>`;
}

function Seen({ preview, verb }) {
  const { matching, of, complete, examples = [], archived = 0, warning = "" } = preview;
  const among = verb === "include" ? "refused or excluded URL" : "waiting URL";
  return html`
    <p data-matching=${matching}><b>${count(matching)}</b> of ${complete ? "" : "the first "}${counted(of, among)} ${DOES[verb]}.
      ${archived > 0 && ` ${counted(archived, "archived URL")} match${archived === 1 ? "es" : ""} too, and stay${archived === 1 ? "s" : ""}.`}</p>
    ${warning && html`<p class="banner warn"><${Name} text=${warning} width=500 /></p>`}
    ${examples.length > 0 && html`<ul class="examples" aria-label="Examples">${examples.map(url => html`<li><${Name} text=${url} width=300 /></li>`)}</ul>`}`;
}
