// A form that starts a crawl, with a preview of its crawl.toml.

import { html, useEffect, useState } from "./preact.js";
import { post } from "./api.js";
import { say } from "./spoken.js";
import { Command, Name, printable } from "./text.js";

const SCOPES = [
  ["host", "host: the seed's host"],
  ["domain", "domain: its registered domain"],
  ["prefix", "prefix: the path below the seed"],
  ["page", "page: only the seeds"],
  ["any", "any: every site that is linked"],
];
const EMPTY = { seeds: "", scope: "host", rate: "5", contact: "", "max-urls": "", "max-time": "", more: "" };
const PLAIN = { scope: "host", rate: "5" }; // the defaults, which are not sent

/** Return what the form asks for: {seeds, settings}. */
function wanted(form) {
  const settings = {};
  for (const key of ["scope", "rate", "contact", "max-urls", "max-time"]) {
    const value = form[key].trim();
    if (value && value !== PLAIN[key]) settings[key] = value;
  }
  for (const line of form.more.split("\n").map(each => each.trim()).filter(Boolean)) {
    const [, key, value] = /^([^=\s]+)\s*=?\s*(.*)$/.exec(line) ?? [];
    if (key) settings[key] = key in settings ? [settings[key], value].flat() : value;
  }
  return { seeds: form.seeds.split("\n").map(each => each.trim()).filter(Boolean), settings };
}

export function NewCrawl() {
  const [form, setForm] = useState(EMPTY);
  const [seen, setSeen] = useState(null); // {asked, toml, directory, command} or {asked, error}
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    document.title = "New crawl · archiver watch";
  }, []);
  const asked = JSON.stringify(wanted(form));
  const current = seen?.asked === asked ? seen : null;
  const put = name => event => setForm({ ...form, [name]: event.target.value });
  const ask = async path => {
    setBusy(true);
    const came = await post(path, wanted(form)).catch(fault => ({ error: fault.message }));
    setBusy(false);
    if (came.error) say(printable(came.error, 200));
    return came;
  };
  const look = async event => {
    event.preventDefault();
    setSeen({ asked, ...(await ask("/api/crawls/preview")) });
  };
  const start = async () => {
    const came = await ask("/api/crawls");
    if (came.error) setSeen({ ...current, error: came.error });
    else location.hash = `#/crawl/${encodeURIComponent(came.id)}/stream`;
  };
  return html`
    <main id="main" tabindex="-1">
      <p class="crumbs"><a href="#/crawls">Crawls</a></p>
      <h1>New crawl</h1>
      <form class="new" onSubmit=${look}>
        <label>Seeds, one URL a line <textarea data-filter="" rows="4" class="mono" required spellcheck="false" value=${form.seeds} onInput=${put("seeds")}></textarea>
          <span class="soft">Behind a URL you can write title='…', note='…' and collection='…'. Reports and packages show them.</span></label>
        <label>Scope <select value=${form.scope} onChange=${put("scope")}>${SCOPES.map(([name, text]) => html`<option value=${name}>${text}</option>`)}</select></label>
        <label>Requests per second on one host <input inputmode="decimal" value=${form.rate} onInput=${put("rate")} /></label>
        <label>Contact <input autocomplete="email" placeholder="you@example.org" value=${form.contact} onInput=${put("contact")} />
          <span class="soft">A URL or an address for the sites' owners. It goes into the user agent.</span></label>
        <label>Stop after this many URLs <input inputmode="numeric" placeholder="no limit" value=${form["max-urls"]} onInput=${put("max-urls")} /></label>
        <label>Stop after this time <input placeholder="no limit; or 90m, 2h" value=${form["max-time"]} onInput=${put("max-time")} /></label>
        <label>Other settings, one a line <textarea rows="3" class="mono" spellcheck="false" placeholder="exclude=/calendar/" value=${form.more} onInput=${put("more")}></textarea>
          <span class="soft">KEY=VALUE, with the names of the options of archiver crawl.</span></label>
        <p class="buttons"><button class=${current?.toml ? "" : "main"} disabled=${busy}>Preview crawl.toml</button>
          <button type="button" class="main" disabled=${busy || !current?.toml} onClick=${start}>Start the crawl</button></p>
      </form>
      ${current?.error && html`<p class="bad" role="alert"><${Name} text=${current.error} width=500 /></p>`}
      ${current?.toml && html`
        <h2><${Name} text=${current.directory} width=300 />/crawl.toml</h2>
        <pre class="toml" tabindex="0" aria-label="crawl.toml">${current.toml.split("\n").map(line => html`<bdi>${printable(line)}</bdi>${"\n"}`)}</pre>
        <p class="soft">The same as a command: <${Command} text=${current.command} /></p>`}
    </main>`;
}
