// Orders to the crawl: the buttons, the command that does the same, and what came of it.

import { html, useState } from "./preact.js";
import { Dialog } from "./dialog.js";
import { Command, Name, moment } from "./text.js";

const SAFE = /^[\w@%+=:,./-]+$/;
const OPPOSITE = { pause: "go", go: "pause", block: "unblock", unblock: "block" };

/** Return the command that gives the order. */
export function commandOf(directory, verb, args = [], undo = false) {
  return ["archiver", verb, quoted(directory), ...args.map(quoted), ...(undo ? ["--undo"] : [])].join(" ");
}

function quoted(word) {
  return SAFE.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

/** The buttons that change a whole crawl. */
export function Controls({ crawl, running }) {
  const [asked, ask] = useState("");
  const { details, feed, order } = crawl;
  const paused = Boolean(details?.paused) || feed?.live?.state === "paused";
  const close = () => ask("");
  return html`
    <div class="controls" role="group" aria-label="Change the crawl">
      <button class="main" disabled=${details === null} onClick=${() => order(paused ? "go" : "pause")}>${paused ? "Go on" : "Pause"}</button>
      ${crawl.can("stop") && html`<button aria-haspopup="dialog" disabled=${!running} onClick=${() => ask("stop")}>Stop…</button>`}
      ${crawl.can("add") && html`<button aria-haspopup="dialog" onClick=${() => ask("add")}>Add seeds…</button>`}
      ${crawl.can("note") && html`<button aria-haspopup="dialog" onClick=${() => ask("note")}>Note…</button>`}
    </div>
    ${asked === "stop" && html`<${Stop} crawl=${crawl} onClose=${close} />`}
    ${asked === "add" && html`<${AddSeeds} crawl=${crawl} onClose=${close} />`}
    ${asked === "note" && html`<${Note} crawl=${crawl} onClose=${close} />`}`;
}

/** Ask whether the order `verb` `args` is to be given, with the command that does the same. */
export function Confirm({ title, verb, args, undo = false, button, crawl, onClose, children }) {
  const give = () => {
    onClose();
    crawl.order(verb, args, undo);
  };
  return html`
    <${Dialog} title=${title} onClose=${onClose}>
      ${children}
      <p class="soft">The same as a command: <${Command} text=${commandOf(crawl.directory, verb, args, undo)} /></p>
      <p class="buttons"><button class="main" onClick=${give}>${button}</button><button onClick=${onClose}>Cancel</button></p>
    <//>`;
}

function Stop({ crawl, onClose }) {
  const [now, setNow] = useState(false);
  const args = now ? ["--now"] : [];
  return html`
    <${Confirm} title="Stop the crawl" verb="stop" args=${args} button=${now ? "Stop at once" : "Stop the crawl"} ...${{ crawl, onClose }}>
      <p>No new request starts, in all processes and on all machines of the crawl. Everything is stored, and the run ends. This command continues it:
        <${Command} text=${`archiver resume ${quoted(crawl.directory)}`} /></p>
      <p><label class="check"><input type="checkbox" checked=${now} onChange=${event => setNow(event.target.checked)} /> Cut requests under way; their URLs stay in the queue</label></p>
    <//>`;
}

/** Return a text of a seed as `archiver add` reads it. */
function textOf(value) {
  return value.includes('"') ? `'${value.replaceAll("'", `'"'"'`)}'` : `"${value}"`;
}

function AddSeeds({ crawl, onClose }) {
  const [text, setText] = useState("");
  const [about, setAbout] = useState({ title: "", note: "", collection: "" });
  const urls = text.split("\n").map(each => each.trim()).filter(Boolean);
  const given = Object.entries(about).filter(([key, value]) => value.trim() && (key !== "title" || urls.length < 2));
  const words = given.map(([key, value]) => ` ${key}=${textOf(value.trim())}`).join("");
  const seeds = urls.map(each => each + words);
  const put = name => event => setAbout({ ...about, [name]: event.target.value });
  const send = event => {
    event.preventDefault();
    onClose();
    crawl.order("add", seeds);
  };
  return html`
    <${Dialog} title="Add seeds" onClose=${onClose}>
      <form onSubmit=${send}>
        <p>The scope of the crawl grows with them. A crawl that runs starts on them within seconds.</p>
        <label>URLs, one a line <textarea rows="4" class="mono" required spellcheck="false" value=${text} onInput=${event => setText(event.target.value)}></textarea></label>
        <label>Title, for one URL <input maxlength="300" disabled=${urls.length > 1} value=${about.title} onInput=${put("title")} /></label>
        <label>Note <input maxlength="2000" value=${about.note} onInput=${put("note")} /></label>
        <label>Collection <input maxlength="100" value=${about.collection} onInput=${put("collection")} /></label>
        <p class="soft">Title, note and collection may stay empty. Reports and packages show them.</p>
        <p class="soft">The same as a command: <${Command} text=${commandOf(crawl.directory, "add", seeds)} /></p>
        <p class="buttons"><button class="main" disabled=${!seeds.length}>Add the seeds</button></p>
      </form>
    <//>`;
}

function Note({ crawl, onClose }) {
  const [text, setText] = useState("");
  const send = event => {
    event.preventDefault();
    onClose();
    crawl.order("note", [text.trim()]);
  };
  return html`
    <${Dialog} title="Write a note" onClose=${onClose}>
      <form onSubmit=${send}>
        <p>Colleagues see it under Orders, for example why the crawl is slow on purpose. It is archived with the crawl.</p>
        <label>Note <input value=${text} maxlength="500" required onInput=${event => setText(event.target.value)} /></label>
        <p class="soft">The same as a command: <${Command} text=${commandOf(crawl.directory, "note", [text])} /></p>
        <p class="buttons"><button class="main" disabled=${!text.trim()}>Add the note</button></p>
      </form>
    <//>`;
}

/** Return the order that takes back the order of `answer`, or null. */
export function undoOf(answer) {
  if (answer.pending || answer.error) return null;
  if (OPPOSITE[answer.verb]) return [OPPOSITE[answer.verb], answer.args, false];
  if (answer.verb === "exclude" || answer.verb === "include") return [answer.verb, answer.args, !answer.undo];
  return null;
}

/** The line with the latest order from this page. */
export function Answer({ answer, crawl, onClose }) {
  const undo = answer && undoOf(answer);
  return html`
    <aside class=${answer ? "answer given" : "answer"} aria-label="Latest order">
      ${answer === null
        ? html`<p class="soft">What you change here shows the command that does the same, and the answer of the crawl.</p>`
        : html`
          <p class="came ${answer.error ? "bad" : ""}"><span class="soft">${answer.pending ? "" : moment(answer.at)}</span>
            <b>${answer.pending ? "Waiting for the answer…" : html`<${Name} text=${answer.error ?? answer.text} width=500 />`}</b></p>
          <p class="same"><${Command} text=${answer.command} /></p>
          <p class="buttons">
            ${undo && html`<button onClick=${() => crawl.order(...undo)}>Undo</button>`}
            <${Copy} text=${answer.command} />
            <button class="quiet" onClick=${onClose}>Dismiss</button></p>`}
    </aside>`;
}

function Copy({ text }) {
  const [done, setDone] = useState("");
  if (!navigator.clipboard) return null;
  return html`<button class="quiet" onClick=${() => navigator.clipboard.writeText(text).then(() => setDone(text), () => setDone(""))}>${done === text ? "Copied" : "Copy"}</button>`;
}
