// Keys of one letter, as in grab-site's dashboard, and the help that lists them.

import { html, useEffect, useState } from "./preact.js";
import { Dialog } from "./dialog.js";

const OFF = "archiver-keys-off"; // in the browser's storage: people who type with their voice turn the keys off
const pressed = new EventTarget();
const KEYS = [
  ["j", "next crawl"],
  ["k", "previous crawl"],
  ["a", "stream: show all lines"],
  ["n", "stream: show no lines"],
  ["f", "go to the filter or search"],
  ["z", "stream: freeze, or follow again"],
  ["?", "this help"],
];

/** Call `act` for the key `name` while the component is shown. */
export function useKey(name, act) {
  useEffect(() => {
    const take = event => event.detail === name && act();
    pressed.addEventListener("key", take);
    return () => pressed.removeEventListener("key", take);
  });
}

/** Listen to the keyboard; return what the help needs. */
export function useShortcuts() {
  const [open, show] = useState(false);
  const [off, setOff] = useState(() => stored() === "1");
  useEffect(() => {
    const take = event => {
      const { target, key } = event;
      if (off || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
      if (target.closest("input, select, textarea, dialog[open]") || document.querySelector("dialog[open]")) return;
      if (!KEYS.some(([name]) => name === key)) return;
      event.preventDefault();
      if (key === "?") show(true);
      else if (key === "f") document.querySelector("[data-filter]")?.focus();
      else pressed.dispatchEvent(new CustomEvent("key", { detail: key }));
    };
    addEventListener("keydown", take);
    return () => removeEventListener("keydown", take);
  }, [off]);
  const turn = value => {
    setOff(value);
    try {
      localStorage.setItem(OFF, value ? "1" : "");
    } catch {
      // a browser without storage forgets it
    }
  };
  return { open, show, off, turn };
}

function stored() {
  try {
    return localStorage.getItem(OFF);
  } catch {
    return null;
  }
}

export function Help({ open, show, off, turn }) {
  if (!open) return null;
  return html`
    <${Dialog} title="Keys" onClose=${() => show(false)}>
      <dl class="keys">${KEYS.map(([key, text]) => html`<dt><kbd>${key}</kbd></dt><dd>${text}</dd>`)}
        <dt><kbd>↑</kbd> <kbd>↓</kbd></dt><dd>in a table: choose a row; Page Up, Page Down, Home and End too</dd>
        <dt><kbd>Enter</kbd></dt><dd>on a row: explain this URL, exclude like it, retry it and more</dd>
        <dt><kbd>Esc</kbd></dt><dd>close a dialog</dd></dl>
      <p><label class="check"><input type="checkbox" checked=${off} onChange=${event => turn(event.target.checked)} /> Turn the keys of one letter off</label></p>
    <//>`;
}
