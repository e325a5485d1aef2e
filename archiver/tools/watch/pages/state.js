// The state of a crawl in words, with a dot of a colour.

import { html } from "./preact.js";
import { printable } from "./text.js";

const STATES = {
  crawling: ["crawling", "go"],
  recording: ["recording", "go"],
  draining: ["stopping", "hold"],
  paused: ["paused", "hold"],
  offline: ["offline", "bad"],
  waiting: ["waiting", "go"],
  writing: ["writing", "go"],
  showing: ["showing pages", "go"],
  recovering: ["recovering", "hold"],
  running: ["running", "go"],
  done: ["done", "off"],
  stopped: ["stopped", "off"],
  ended: ["not running", "off"],
  unreadable: ["cannot be read", "bad"],
  "": ["not running", "off"],
};

export function stateText(state) {
  return STATES[state ?? ""]?.[0] ?? printable(state, 40);
}

export function Badge({ state }) {
  const kind = STATES[state ?? ""]?.[1] ?? "hold";
  return html`<span class="badge ${kind}"><i aria-hidden="true"></i>${stateText(state)}</span>`;
}
