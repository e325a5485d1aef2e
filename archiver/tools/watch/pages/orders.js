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

const ENDINGS = {
  drain: {
    title: "Stop after the requests under way",
    text: "No new request starts. Requests under way end, everything is stored, and the run ends. archiver resume continues it.",
    button: "Stop the crawl",
  },
  stop: {
    title: "Stop at once",
    text: "Requests under way are cut. Their URLs stay in the queue. Everything else is stored, and the run ends. archiver resume continues it.",
    button: "Stop at once",
  },
};

/** The buttons that change a whole crawl. */
export function Controls({ crawl, running }) {
  const [asked, ask] = useState("");
  const { details, feed, order } = crawl;
  const paused = Boolean(details?.paused) || feed?.live?.state === "paused";
  const act = verb => {
    ask("");
    order(verb);
  };
  return html`
    <div class="controls" role="group" aria-label="Change the crawl">
      <button class="main" disabled=${details === null} onClick=${() => act(paused ? "go" : "pause")}>${paused ? "Go on" : "Pause"}</button>
      ${crawl.can("drain") && html`<button disabled=${!running} onClick=${() => ask("drain")}>Drain…</button>`}
      ${crawl.can("stop") && html`<button disabled=${!running} onClick=${() => ask("stop")}>Stop…</button>`}
      ${crawl.can("note") && html`<button onClick=${() => ask("note")}>Note…</button>`}
    </div>
    ${ENDINGS[asked] && html`<${Ending} verb=${asked} crawl=${crawl} onGive=${act} onClose=${() => ask("")} />`}
    ${asked === "note" && html`<${Note} crawl=${crawl} onClose=${() => ask("")} />`}`;
}

function Ending({ verb, crawl, onGive, onClose }) {
  const { title, text, button } = ENDINGS[verb];
  return html`
    <${Dialog} title=${title} onClose=${onClose}>
      <p>${text}</p>
      <p class="soft">The same as a command: <${Command} text=${commandOf(crawl.directory, verb)} /></p>
      <p class="buttons"><button class="main danger" onClick=${() => onGive(verb)}>${button}</button>
        <button onClick=${onClose}>Let it run</button></p>
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
