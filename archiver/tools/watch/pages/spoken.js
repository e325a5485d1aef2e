// What a screen reader is told: one polite region, seldom, and never the stream.

import { html, useEffect, useState } from "./preact.js";

const SELDOM = 5000; // milliseconds between two texts

const heard = new EventTarget();

/** Say `text`. If several texts come at once, only the latest is said. */
export function say(text) {
  heard.dispatchEvent(new CustomEvent("text", { detail: text }));
}

/** The only live region of the page. */
export function Spoken() {
  const [text, setText] = useState("");
  useEffect(() => {
    let [last, timer, next] = [-SELDOM, 0, ""];
    const tell = () => {
      timer = 0;
      last = performance.now();
      setText(next);
    };
    const take = event => {
      next = event.detail;
      if (!timer) timer = setTimeout(tell, Math.max(0, last + SELDOM - performance.now()));
    };
    heard.addEventListener("text", take);
    return () => {
      clearTimeout(timer);
      heard.removeEventListener("text", take);
    };
  }, []);
  return html`<p class="hidden" role="status" aria-live="polite">${text}</p>`;
}
