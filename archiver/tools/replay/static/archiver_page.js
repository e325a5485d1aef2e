// Runs in each replayed page after pywb's wombat and before the scripts of the page, and adds what wombat lacks.
(() => {
    "use strict"
    const wombat = self._wb_wombat
    if (!wombat) return

    // The code of a `Function` is text. It sees the names of the replay as the code of scripts does.
    const NAMES = ["window", "self", "globalThis", "document", "location", "top", "parent", "frames", "opener"]
    const seen = name => wombat.local_init(name === "globalThis" ? "window" : name) || self[name]
    Object.defineProperty(self, "__archiver_seen", { value: seen })
    const has = (text, name) => new RegExp(`(?<![\\w$.])${name}(?![\\w$])`).test(text)
    const THIS = new RegExp(`\\breturn\\s+this\\b(?!\\s*[.$\\[(])|\\bthis(?=\\s*\\.\\s*(?:${NAMES.join("|")})\\b)`, "g")
    const checked = found => found.replace("this", "_____WB$wombat$check$this$function_____(this)")
    const rewritten = texts => {
        const code = String(texts.at(-1) ?? ""), parameters = texts.slice(0, -1).map(String)
        const wanted = NAMES.filter(name => has(code, name) && !parameters.some(text => has(text, name)))
        const strict = /^\s*(?:"use strict"|'use strict')/.exec(code)?.[0] ?? ""
        const names = wanted.map(name => `${name}=__archiver_seen("${name}")`)
        const begin = names.length ? `${strict};var ${names};` : ""
        return [...parameters, begin + code.replace(THIS, checked)]
    }
    const made = (kind, texts, target = kind) => {
        try {
            return Reflect.construct(kind, rewritten(texts), target)
        } catch {
            return Reflect.construct(kind, texts, target)  // a name is declared in it too, or it is no code at all
        }
    }
    for (const example of [function () {}, async function () {}, function* () {}, async function* () {}]) {
        const kind = example.constructor
        const replaced = new Proxy(kind, {
            apply: (_kind, _this, texts) => made(kind, texts),
            construct: (_kind, texts, target) => made(kind, texts, target === replaced ? kind : target),
        })
        Object.defineProperty(kind.prototype, "constructor", { value: replaced })
        if (kind === self.Function) self.Function = replaced
    }

    // Without a window before the dot, wombat does not know whose listener it is, and never calls it.
    for (const name of ["addEventListener", "removeEventListener"]) {
        const inner = EventTarget.prototype[name]
        const outer = { [name](...given) { return Reflect.apply(inner, this ?? self, given) } }[name]
        Object.defineProperty(EventTarget.prototype, name, { value: outer })
    }
})()
