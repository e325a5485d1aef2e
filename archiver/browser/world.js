// The world that pywb and replayweb.page give a page: chance with a seed, and a clock that began when it was captured.
// Called as world(seconds, captured, ratio): the second of the page's capture, that of other documents by URL, and the
// pixels of the screen for each pixel of the page: one in pywb, two in replayweb.page. It notes if a script reads them.
(seconds, captured, ratio) => {
    const here = typeof location === "undefined" ? "" : location.href.split("#")[0]
    const start = captured[here] ?? seconds
    const kept = Symbol.for("archiver.world")
    if (globalThis[kept]) {
        globalThis[kept](start)
        return
    }
    const NativeDate = Date
    const now = NativeDate.now
    let seed, behind
    const begin = second => {
        seed = second
        behind = now() - second * 1000
    }
    begin(start)
    Object.defineProperty(globalThis, kept, { value: begin })

    const random = () => {
        seed = (seed * 9301 + 49297) % 233280
        return seed / 233280
    }
    Math.random = random
    if (globalThis.crypto && globalThis.Crypto) {
        Crypto.prototype.getRandomValues = function (numbers) {
            for (let at = 0; at < numbers.length; at++) numbers[at] = parseInt(4294967296 * random())
            return numbers
        }
    }

    class ShiftedDate extends NativeDate {
        constructor(...parts) {
            if (parts.length) super(...parts)
            else super(now() - behind)
        }
        static now() {
            return now() - behind
        }
        getTimezoneOffset() {
            return 0
        }
    }
    globalThis.Date = new Proxy(ShiftedDate, {
        apply: () => new ShiftedDate().toString(),
    })
    NativeDate.prototype.constructor = globalThis.Date

    if (globalThis.navigator && navigator.serviceWorker) {
        const never = new Promise(() => {})
        const container = Object.create(null, { controller: { value: null }, ready: { value: never } })
        container.register = () => Promise.reject(new DOMException("no service workers here", "SecurityError"))
        container.getRegistrations = () => Promise.resolve([])
        container.getRegistration = () => Promise.resolve(undefined)
        container.addEventListener = container.removeEventListener = () => {}
        Object.defineProperty(navigator, "serviceWorker", { get: () => container })
    }
    const get = () => {
        begin.dense = location.protocol !== "chrome-error:"  // Chromium's own page in a missing frame reads it
        return ratio
    }
    if (typeof document !== "undefined") Object.defineProperty(globalThis, "devicePixelRatio", { get })
}
