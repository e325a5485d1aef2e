// Requests to the control room, and hooks that repeat them or read a list page by page.

import { useCallback, useEffect, useRef, useState } from "./preact.js";

const FASTEST = 1; // seconds between two requests of the same thing
const MOST = 20_000; // rows of a list that are kept; a search finds the others

/** Hears `signed-out` when the control room no longer knows us. */
export const session = new EventTarget();

/** An answer that is not what was asked for; `status` is 0 if there was no answer. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function get(path, signal) {
  return ask(path, { signal });
}

export function post(path, body) {
  return ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

export function crawlPath(id, rest = "") {
  return `/api/crawls/${encodeURIComponent(id)}${rest}`;
}

export function query(values) {
  const given = Object.entries(values).filter(([, value]) => value !== "" && value != null);
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", redirect: "error", ...options });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new Refused(0, "The control room does not answer. Is archiver watch still running?");
  }
  if (answer.status === 401 && path !== "/api/session") session.dispatchEvent(new Event("signed-out"));
  if (answer.status === 204) return null;
  let body;
  try {
    body = await answer.json();
  } catch {
    throw new Refused(answer.status, `The control room answered ${answer.status} with something that is not JSON.`);
  }
  if (!answer.ok) throw new Refused(answer.status, String(body?.error ?? `The control room answered ${answer.status}.`));
  return body;
}

/** Ask for `path` now and every `every` seconds while the page is visible; null asks for nothing. */
export function usePolled(path, every) {
  const [state, setState] = useState({ data: null, error: "", path: null });
  const [turn, setTurn] = useState(0);
  const reload = useCallback(() => setTurn(number => number + 1), []);
  useEffect(() => {
    if (path === null) return undefined;
    const stop = new AbortController();
    let timer = 0;
    const next = async () => {
      if (!document.hidden) {
        try {
          const data = await get(path, stop.signal);
          setState({ data, error: "", path });
        } catch (fault) {
          if (stop.signal.aborted) return;
          setState(known => ({ data: known.path === path ? known.data : null, error: fault.message, path }));
        }
      }
      if (every && !stop.signal.aborted) timer = setTimeout(next, Math.max(every, FASTEST) * 1000);
    };
    next();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [path, every, turn]);
  return { data: state.path === path ? state.data : null, error: state.error, reload };
}

const NOTHING = { rows: [], next: null, error: "", busy: true, loaded: false, extra: {} };

/** Read the list at `path` page by page; `more` reads the next page. A list of one page is read again after `every` s. */
export function usePages(path, every = 0) {
  const [state, setState] = useState(NOTHING);
  const current = useRef({ path: "", busy: false, stop: null });
  const load = useCallback(async after => {
    const stop = new AbortController();
    current.current = { path, busy: true, stop };
    setState(known => ({ ...known, busy: true }));
    try {
      const page = await get(after === null ? path : path + (path.includes("?") ? "&" : "?") + new URLSearchParams({ after }), stop.signal);
      const { rows = [], next = null, ...extra } = page;
      setState(known => {
        const all = after === null ? rows : [...known.rows, ...rows];
        return { rows: all, next: all.length < MOST ? next : null, cut: all.length >= MOST && next !== null, error: "", busy: false, loaded: true, extra };
      });
    } catch (fault) {
      if (stop.signal.aborted) return;
      setState(known => ({ ...known, error: fault.message, busy: false, loaded: true }));
    }
    if (!stop.signal.aborted) current.current.busy = false;
  }, [path]);
  useEffect(() => {
    setState(NOTHING);
    load(null);
    return () => current.current.stop?.abort();
  }, [load]);
  const single = state.next === null;
  useEffect(() => {
    if (!every || !single) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden && !current.current.busy) load(null);
    }, Math.max(every, FASTEST) * 1000);
    return () => clearInterval(timer);
  }, [every, single, load]);
  const more = () => {
    if (state.next !== null && !current.current.busy) load(state.next);
  };
  return { ...state, more, reload: () => load(null) };
}
