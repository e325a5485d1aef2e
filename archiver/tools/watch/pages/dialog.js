// A dialog above the page. Escape closes it, and the focus goes back to where it was.

import { html, useLayoutEffect, useRef } from "./preact.js";

let number = 0;

export function Dialog({ title, onClose, children, wide }) {
  const place = useRef(null);
  const name = useRef(`dialog-${++number}`);
  useLayoutEffect(() => { // at once: a key that is pressed next belongs to the dialog
    const [dialog, before] = [place.current, document.activeElement];
    dialog.showModal();
    return () => {
      dialog.close(); // the page behind it can have the focus again
      if (before?.isConnected) before.focus();
    };
  }, []);
  const closed = event => {
    event.preventDefault();
    onClose();
  };
  return html`
    <dialog ref=${place} class=${wide ? "wide" : ""} aria-labelledby=${name.current} onCancel=${closed} onClose=${closed}>
      <div class="dialog-head"><h2 id=${name.current}>${title}</h2>
        <button class="quiet" onClick=${onClose}>Close</button></div>
      ${children}
    </dialog>`;
}
