// A small plot of the latest values, without a scale.

import { html } from "./preact.js";

const [WIDTH, HEIGHT] = [120, 24];

export function Sparkline({ values = [] }) {
  const most = Math.max(...values, 0);
  const step = WIDTH / Math.max(values.length - 1, 1);
  const points = values.map((value, at) => `${(at * step).toFixed(1)},${(HEIGHT - 1.5 - ((value || 0) / (most || 1)) * (HEIGHT - 3)).toFixed(1)}`);
  return html`
    <svg class="spark" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true" focusable="false">
      <path class="floor" d="M0,${HEIGHT - 0.5}H${WIDTH}" />
      ${points.length > 1 && html`<polyline points=${points.join(" ")} />`}
    </svg>`;
}
