// What a crawl is doing now: its figures and the latest lines of its log, as server-sent events.

import { useEffect, useState } from "./preact.js";
import { crawlPath, get } from "./api.js";

const KEPT = 2000; // lines
const TOGETHER = 250; // milliseconds in which new lines are shown at once
const STALE = 5000; // milliseconds without figures, after which the crawl is not running
const RETRIES = [1000, 2000, 5000, 10_000]; // milliseconds until the next try
const RATES = 120; // rates that are kept for the small plot

/** The feed of one crawl. `change` is called when there is something new. */
export class Feed {
  constructor(id, change) {
    this.live = null;
    this.lines = []; // oldest first
    this.rates = [];
    this.dropped = 0; // lines that the control room left out, because there were too many
    this.loaded = false; // something has come
    this.orders = 0; // grows with each order that anyone gives
    this.connection = "connecting"; // connecting, open, lost
    this.id = id;
    this.change = change;
    this.number = 0;
    this.heard = 0; // when the latest figures came
    this.failures = 0;
    this.told = false;
    this.timer = 0;
    this.watch = setInterval(() => this.tick(), 1000);
    this.open();
  }

  get running() {
    return this.live !== null && this.live.state !== "ended";
  }

  open() {
    this.source = new EventSource(crawlPath(this.id, "/stream"));
    const seen = new Set(this.lines.slice(-500).map(lineKey)); // a new connection repeats lines
    this.source.onopen = () => {
      this.failures = 0;
      this.connection = "open";
      this.soon();
    };
    this.source.onerror = () => this.lost();
    this.hear("live", live => {
      this.live = live;
      this.heard = Date.now();
      this.rates = [...this.rates, Number(live.rate) || 0].slice(-RATES);
      this.soon();
    });
    this.hear("urls", ({ lines = [], dropped = 0 }) => {
      const fresh = seen.size ? lines.filter(line => !seen.delete(lineKey(line))) : lines;
      for (const line of fresh) line.number = ++this.number;
      this.lines = [...this.lines, ...fresh].slice(-KEPT);
      this.dropped += dropped;
      this.soon();
    });
    this.hear("orders", () => {
      this.orders += 1;
      this.soon();
    });
    this.hear("end", () => {
      this.live = null;
      this.soon();
    });
  }

  hear(name, take) {
    this.source.addEventListener(name, event => {
      let data;
      try {
        data = JSON.parse(event.data || "{}");
      } catch {
        return; // a cut event; the next one is whole
      }
      this.loaded = true;
      if (data !== null) take(data);
    });
  }

  lost() {
    this.connection = "lost";
    this.soon();
    if (this.source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    clearTimeout(this.again);
    this.again = setTimeout(async () => {
      try {
        await get("/api/crawls"); // says whether the control room still knows us
      } catch (fault) {
        if (fault.status === 401) return;
      }
      if (this.source.readyState === EventSource.CLOSED && !this.closed) this.open();
    }, RETRIES[Math.min(this.failures++, RETRIES.length - 1)]);
  }

  tick() {
    if (this.live && this.connection === "open" && Date.now() - this.heard > STALE) {
      this.live = null;
      this.soon();
    }
  }

  soon() {
    if (this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.change();
    }, TOGETHER);
  }

  close() {
    this.closed = true;
    this.source.close();
    clearInterval(this.watch);
    clearTimeout(this.timer);
    clearTimeout(this.again);
  }
}

function lineKey(line) {
  return `${line.at} ${line.status} ${line.url}`;
}

/** Return the feed of the crawl `id`, and draw again when it changes. */
export function useFeed(id) {
  const [{ feed }, setFeed] = useState({ feed: null });
  useEffect(() => {
    const opened = new Feed(id, () => setFeed({ feed: opened }));
    setFeed({ feed: opened });
    return () => opened.close();
  }, [id]);
  return feed;
}
