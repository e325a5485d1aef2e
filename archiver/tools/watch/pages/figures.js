// The main figures of a crawl, as in its report.

import { html } from "./preact.js";
import { Sparkline } from "./sparkline.js";
import { count, rate, volume } from "./text.js";

export function Figures({ live, counts, rates, recording }) {
  const figure = name => (name === "archived" ? live?.done ?? live?.results?.archived : live?.[name]) ?? counts?.[name];
  const bad = name => (figure(name) > 0 ? "bad" : "");
  return html`
    <ul class="cards" aria-label="Figures">
      <li><b>${count(figure("archived"))}</b><span>archived</span></li>
      ${!recording && html`<li><b>${count(figure("waiting"))}</b><span>waiting</span></li>`}
      <li class=${bad("failed")}><b>${count(figure("failed"))}</b><span>failed</span></li>
      ${!recording && html`
        <li class=${bad("held")}><b>${count(figure("held"))}</b><span>held as traps</span></li>
        <li><b>${count(figure("excluded"))}</b><span>excluded</span></li>`}
      ${Number.isFinite(counts?.received) && html`<li><b>${volume(counts.received)}</b><span>received</span></li>`}
      ${live && html`
        <li class="plot"><b>${rate(live.rate)}</b><span>URLs per second</span><${Sparkline} values=${rates} /></li>
        <li><b>${volume(live.disk_free)}</b><span>free disk</span></li>
        ${!recording && html`<li class="wide"><b>${count(live.hosts_total?.due)}</b><span>hosts due${slow(live.hosts_total ?? {})}</span></li>`}`}
    </ul>`;
}

function slow(total) {
  const parts = ["slowed", "asleep", "held"].filter(name => total[name]).map(name => `${count(total[name])} ${name}`);
  return parts.length ? html`<br />${parts.join(", ")}` : "";
}
