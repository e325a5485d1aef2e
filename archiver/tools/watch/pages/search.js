// A search that waits until one stops typing.

import { html, useEffect, useState } from "./preact.js";

const PATIENCE = 300; // milliseconds

export function Search({ label, value, onSearch }) {
  const [text, setText] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => onSearch(text.trim()), PATIENCE);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<label class="field">${label} <input data-filter="" type="search" spellcheck="false" autocomplete="off" value=${text}
    onInput=${event => setText(event.target.value)} /></label>`;
}
