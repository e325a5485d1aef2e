// The page: who is there, which view the address names, and what a screen reader is told.

import { html, render, useEffect, useState } from "./preact.js";
import { get, post, session } from "./api.js";
import { CrawlPage } from "./crawl.js";
import { CrawlList } from "./crawls.js";
import { Help, useShortcuts } from "./keys.js";
import { NewCrawl } from "./new_crawl.js";
import { Spoken } from "./spoken.js";

/** Return the view that the address names: #/crawls, #/new, #/crawl/ID/VIEW. */
function place() {
  const [kind = "", id = "", view = ""] = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
  return { kind, id, view };
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

function usePlace() {
  const [where, setWhere] = useState(place);
  useEffect(() => {
    const moved = () => setWhere(place());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return where;
}

/** Exchange the token in the address for a cookie, and take it out of the address. */
async function entered() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    history.replaceState(null, "", "/");
    await post("/api/session", { token });
  }
  return get("/api/session");
}

function App() {
  const [who, setWho] = useState(null); // {role, version, many}
  const [fault, setFault] = useState(null);
  const where = usePlace();
  const shortcuts = useShortcuts();
  const enter = first => first.then(setWho, setFault);
  useEffect(() => {
    enter(entered());
    const other = () => location.hash.includes("token=") && enter(entered().then(found => setFault(null) || found));
    addEventListener("hashchange", other); // a new address in the same tab
    const out = () => setWho(null) || setFault({ status: 401, message: "" });
    session.addEventListener("signed-out", out);
    return () => {
      session.removeEventListener("signed-out", out);
      removeEventListener("hashchange", other);
    };
  }, []);
  useEffect(() => {
    if (fault?.status !== 0) return undefined; // no answer: it may be starting again
    const timer = setTimeout(() => enter(get("/api/session").then(found => setFault(null) || found)), 2000);
    return () => clearTimeout(timer);
  }, [fault]);
  const signIn = given => enter(post("/api/session", given).then(() => get("/api/session")).then(found => setFault(null) || found));
  const main = who ? html`<${View} who=${who} where=${where} />`
    : fault ? html`<${SignIn} fault=${fault} onEnter=${signIn} />`
    : html`<main class="alone"><p>Loading…</p></main>`;
  return html`
    <a class="skip" href="#main" onClick=${toMain}>Skip to the content</a>
    <header class="top"><a class="brand" href="#/crawls">archiver watch</a>
      <span class="grow"></span>
      ${who && html`<span class="soft role">${who.role === "operator" ? "" : "you can look, but not change"}</span>`}
      <button class="quiet" aria-haspopup="dialog" onClick=${() => shortcuts.show(true)}>Keys</button>
    </header>
    ${main}
    <${Spoken} />
    <${Help} ...${shortcuts} />`;
}

function toMain(event) {
  event.preventDefault();
  document.querySelector("main")?.focus();
}

function View({ who, where }) {
  const operator = who.role === "operator";
  if (where.kind === "crawl" && where.id) {
    return html`<${CrawlPage} key=${where.id} id=${where.id} view=${where.view} operator=${operator} many=${who.many} />`;
  }
  if (where.kind === "new" && operator && who.folder) return html`<${NewCrawl} />`;
  return html`<${CrawlList} startable=${operator && who.folder} many=${who.many} />`;
}

function SignIn({ fault, onEnter }) {
  const [given, setGiven] = useState({ token: "", user: "", password: "" });
  const put = name => event => setGiven({ ...given, [name]: event.target.value });
  const send = event => {
    event.preventDefault();
    onEnter(given.token ? { token: given.token } : { user: given.user, password: given.password });
  };
  if (fault.status === 0) {
    return html`<main class="alone" id="main" tabindex="-1"><h1>No answer</h1><p>${fault.message}</p><p class="soft">Trying again every two seconds.</p></main>`;
  }
  return html`
    <main class="alone" id="main" tabindex="-1">
      <h1>Sign in</h1>
      <p>Open the address that <code>archiver watch</code> printed when it started. It holds the token. Or type it here.</p>
      ${fault.status !== 401 && html`<p class="bad" role="alert">${fault.message}</p>`}
      <form onSubmit=${send}>
        <label>Token <input type="password" autocomplete="off" value=${given.token} onInput=${put("token")} /></label>
        <p class="soft">With a file of users, use your name and password instead.</p>
        <label>User <input autocomplete="username" value=${given.user} onInput=${put("user")} /></label>
        <label>Password <input type="password" autocomplete="current-password" value=${given.password} onInput=${put("password")} /></label>
        <p><button class="main">Sign in</button></p>
      </form>
    </main>`;
}

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App} />`, root);
