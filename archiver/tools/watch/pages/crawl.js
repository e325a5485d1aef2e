// One crawl: what it does, the buttons that change it, and its views.

import { html, useCallback, useEffect, useMemo, useState } from "./preact.js";
import { crawlPath, get, post, usePolled } from "./api.js";
import { useFeed } from "./feed.js";
import { Figures } from "./figures.js";
import { useKey } from "./keys.js";
import { Answer, Controls, commandOf } from "./orders.js";
import { say } from "./spoken.js";
import { Badge, stateText } from "./state.js";
import { Command, Name, count, counted, duration, moment, printable, rate } from "./text.js";
import { UrlDialog } from "./url_dialog.js";
import { Hosts } from "./view_hosts.js";
import { Files, Orders, Problems, Refusals, Report } from "./view_lists.js";
import { Queue } from "./view_queue.js";
import { Rules } from "./view_rules.js";
import { Stream } from "./view_stream.js";
import { Urls } from "./view_urls.js";

const DETAILS = 5; // seconds between two looks at what does not come with the stream
const SUMMARY = 30_000; // milliseconds between two summaries for a screen reader

const VIEWS = {
  stream: ["Stream", Stream],
  hosts: ["Hosts", Hosts],
  queue: ["Queue", Queue],
  rules: ["Rules", Rules],
  refusals: ["Refusals", Refusals],
  problems: ["Problems", Problems],
  urls: ["URLs", Urls],
  files: ["Files", Files],
  report: ["Report", Report],
  orders: ["Orders", Orders],
};
const OF_RECORDINGS = ["stream", "hosts", "problems", "urls", "files", "report"]; // a recording has no queue and takes no orders

export function CrawlPage({ id, view, operator, many }) {
  const feed = useFeed(id);
  const { data: details, error, reload } = usePolled(crawlPath(id), DETAILS);
  const [answer, setAnswer] = useState(null);
  const [chosen, setChosen] = useState(null); // the URL of the open dialog
  const [given, setGiven] = useState(0); // orders from this page
  const orders = (feed?.orders ?? 0) + given;
  const recording = Boolean(details?.recording);
  const names = recording ? OF_RECORDINGS : Object.keys(VIEWS);
  const shown = names.includes(view) ? view : "stream";
  const mayOrder = operator && !recording;
  const directory = details?.directory ?? "DIR";

  const order = useCallback(async (verb, args = [], undo = false) => {
    setAnswer({ pending: true, verb, args, undo, command: commandOf(directory, verb, args, undo) });
    try {
      const came = await post(crawlPath(id, "/orders"), { verb, arguments: args, undo });
      const done = { verb, args, undo, command: came.command, text: came.answer, at: Date.now() / 1000 };
      setAnswer(done);
      say(`${verb}: ${printable(came.answer, 200)}`);
      return done;
    } catch (fault) {
      const failed = { verb, args, undo, command: commandOf(directory, verb, args, undo), error: fault.message, at: Date.now() / 1000 };
      setAnswer(failed);
      say(printable(fault.message, 200));
      return failed;
    } finally {
      setGiven(number => number + 1);
      reload();
    }
  }, [id, directory]);
  const crawl = useMemo(
    () => ({ id, details, directory, feed, operator: mayOrder, order, orders, recording, choose: setChosen, can: verb => mayOrder && Boolean(details?.verbs?.includes(verb)) }),
    [id, details, feed, feed?.live, feed?.lines, mayOrder, recording, order, orders],
  );
  useEffect(() => {
    if (orders) reload();
  }, [orders]);
  useEffect(() => {
    document.title = `${printable(details?.name ?? "Crawl", 80)} · ${VIEWS[shown][0]} · archiver watch`;
  }, [details?.name, shown]);
  useSummary(feed);
  useNeighbours(id, shown);
  const Shown = VIEWS[shown][1];
  return html`
    <main id="main" tabindex="-1">
      <${Header} ...${{ crawl, error, many }} />
      <nav class="views" aria-label="Views of the crawl">
        ${names.map(name => html`
          <a href=${`#/crawl/${encodeURIComponent(id)}/${name}`} aria-current=${name === shown ? "page" : undefined}>${VIEWS[name][0]}</a>`)}
      </nav>
      <section class="view" aria-label=${VIEWS[shown][0]}>
        <${Shown} key=${shown} crawl=${crawl} />
      </section>
      ${!recording && html`<${Answer} answer=${answer} crawl=${crawl} onClose=${() => setAnswer(null)} />`}
    </main>
    ${chosen !== null && html`<${UrlDialog} key=${chosen} url=${chosen} crawl=${crawl} onClose=${() => setChosen(null)} />`}`;
}

function Header({ crawl, error, many }) {
  const { feed, details, operator, recording } = crawl;
  const live = feed?.live ?? null;
  const running = Boolean(feed?.running || details?.running);
  const state = feed?.running ? live.state : details?.paused ? "paused" : details?.state ?? "";
  const known = details !== null || live !== null;
  return html`
    ${many && html`<p class="crumbs"><a href="#/crawls">Crawls</a></p>`}
    <div class="title">
      <h1><${Name} text=${details?.name ?? (error ? "Crawl" : "…")} width=200 /></h1>
      ${known && html`<${Badge} state=${state} />`}
      ${operator && html`<${Controls} crawl=${crawl} running=${running} />`}
    </div>
    <p class="why">${feed?.running ? why(live) : known ? html`<span class="soft">Figures are those of the database.</span>` : "Loading…"}</p>
    <${Notices} ...${{ crawl, running, error }} />
    <${Figures} live=${feed?.running ? live : null} counts=${details?.counts} rates=${feed?.rates ?? []} recording=${recording} />`;
}

function why(live) {
  const parts = [`running for ${duration(live.elapsed)}`];
  if (live.active) parts.push(counted(live.active, "request") + " under way");
  const text = live.waiting_for ? html` · waits for: <${Name} text=${live.waiting_for} width=300 />` : "";
  return html`${parts.join(" · ")}${text}`;
}

/** Say what is unusual: not running, paused, no answer, no network, a warning. */
function Notices({ crawl, running, error }) {
  const { feed, details, directory, recording } = crawl;
  const live = feed?.live;
  const warning = live?.warnings?.at(-1);
  const notices = [];
  if (feed?.connection === "lost" || error) {
    notices.push(html`<p class="banner bad">${error || "The control room does not answer."} Trying again; the figures are the last known.</p>`);
  } else if (details && !running && feed?.connection === "open" && recording) {
    notices.push(html`<p class="banner"><strong>Nothing is recorded now.</strong> Record more with <${Command} text=${`archiver record -o ${directory}`} /></p>`);
  } else if (details && !running && feed?.connection === "open") {
    notices.push(html`<p class="banner"><strong>This crawl is not running.</strong> ${details.paused ? "It is paused: a run starts no request until you let it go on. " : ""}Continue it with <${Command} text=${`archiver resume ${directory}`} /></p>`);
  }
  if (feed?.running && live.network_lost) notices.push(html`<p class="banner bad"><strong>The network is down.</strong> The crawl probes it and goes on by itself. No URL loses a retry.</p>`);
  if (feed?.running && warning) notices.push(html`<p class="banner warn"><span class="soft">${moment(warning.at)}</span> <${Name} text=${warning.text} width=500 /></p>`);
  return notices.map((notice, place) => html`<div key=${place}>${notice}</div>`);
}

/** Say a short summary now and then, for a screen reader. */
function useSummary(feed) {
  useEffect(() => {
    const tell = () => {
      if (!feed || document.hidden) return;
      const live = feed.live;
      say(feed.running
        ? `${stateText(live.state)}: ${count(live.done)} archived, ${live.waiting ? `${count(live.waiting)} waiting, ` : ""}${count(live.failed)} failed, ${rate(live.rate)} URLs per second`
        : feed.connection === "open" ? "The crawl is not running" : "No connection to the control room");
    };
    const timer = setInterval(tell, SUMMARY);
    return () => clearInterval(timer);
  }, [feed]);
  useEffect(() => {
    if (feed?.connection === "open") say(feed.running ? `Crawl is ${stateText(feed.live.state)}` : "The crawl is not running");
  }, [feed?.connection, feed?.running, feed?.live?.state]);
}

/** Open the next and the previous crawl with j and k. */
function useNeighbours(id, view) {
  const step = async by => {
    const { crawls } = await get("/api/crawls").catch(() => ({ crawls: [] }));
    const next = crawls[crawls.findIndex(crawl => crawl.id === id) + by];
    if (next) location.hash = `#/crawl/${encodeURIComponent(next.id)}/${view}`;
  };
  useKey("j", () => step(1));
  useKey("k", () => step(-1));
}
