// Behaviors of the user, in the class form of browsertrix, and flows of Chrome's recorder: see docs/how-to/write-a-behavior.md.
// Evaluated once in an isolated world, as an object; `steps` is what is left of the behavior between two calls.
(() => {
    const unit = 200 // milliseconds
    const sleep = time => new Promise(after => setTimeout(after, time))
    const links = new Set()
    let steps, context

    // Wait until *found* returns something, at most *time*; return that, or null.
    const until = async (found, time, pause = unit) => {
        for (const end = performance.now() + time; performance.now() < end; await sleep(pause)) {
            const value = found()
            if (value) return value
        }
        return found() || null
    }
    const evaluate = (path, root, kind) => document.evaluate(path, root ?? document, null, kind)
    const xpathNode = (path, root) => evaluate(path, root, XPathResult.FIRST_ORDERED_NODE_TYPE).singleNodeValue
    const xpathNodes = function* (path, root) {
        const found = evaluate(path, root, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE)
        for (let at = 0; at < found.snapshotLength; at++) yield found.snapshotItem(at)
    }
    const scrollIntoView = element => element?.scrollIntoView({ block: "center", behavior: "instant" })

    // Yield what *list* returns, also what comes within *time* after the last one.
    const arriving = async function* (list, time) {
        const seen = new WeakSet()
        const next = () => [...list()].find(each => !seen.has(each))
        for (let each; (each = await until(next, time)); ) {
            seen.add(each)
            yield each
        }
    }

    const Lib = {
        sleep,
        waitUnit: unit,
        waitUntil: async (done, pause = unit) => {
            while (!done()) await sleep(pause)
        },
        waitUntilNode: (path, root = document, old = null, time = 5000, pause = unit) =>
            until(() => {
                const node = xpathNode(path, root)
                return node !== old && node
            }, time, pause),
        xpathNode,
        xpathNodes,
        xpathString: (path, root) => evaluate(path, root, XPathResult.STRING_TYPE).stringValue,
        iterChildElem: (root, time = 5 * unit) => arriving(() => root?.children ?? [], time),
        iterChildMatches: (path, root, time = 5 * unit) => arriving(() => xpathNodes(path, root), time),
        isInViewport: element => {
            const { top, left, bottom, right } = element.getBoundingClientRect()
            return top >= 0 && left >= 0 && bottom <= innerHeight && right <= innerWidth
        },
        scrollIntoView,
        scrollToOffset: (element, offset = 0) =>
            scrollTo({ top: element.getBoundingClientRect().top + scrollY + offset, behavior: "instant" }),
        scrollAndClick: async (element, time = 500) => {
            scrollIntoView(element)
            await sleep(time)
            element.click()
            await sleep(time)
        },
        // Count *name* in the state, and return a message about it: getState(context, message, name), or without the first.
        getState: (...words) => {
            const [message, name] = typeof words[0] === "object" ? words.slice(1) : words
            if (name) context.state[name] = (context.state[name] ?? 0) + 1
            return { state: context.state, msg: message }
        },
        addLink: address => void (links.size < 10000 && links.add(new URL(address, document.baseURI).href.slice(0, 4000))),
        assertContentValid: (valid, reason = "invalid") => {
            if (!valid()) throw new Error(`the content is not valid: ${reason}`)
        },
    }

    const PATIENCE = 5000 // milliseconds in which an element of a flow must come
    const PAUSE = 500 // after a step
    const ALIKE = 3 // times that a flow clicks the same element, before it goes on as long as the page changes

    // The elements for one selector of a flow below *root*: CSS, or with one of the prefixes of Chrome's recorder.
    const named = element =>
        element.ariaLabel ?? element.labels?.[0]?.textContent ?? element.alt ?? (element.textContent.trim() || element.title)
    const matches = (selector, root) => {
        const [, kind, rest] = selector.match(/^(aria|text|xpath|pierce)\/(.*)$/s) ?? [, "css", selector]
        const all = () => [...root.querySelectorAll("*")]
        if (kind === "xpath") return [...xpathNodes(rest, root)]
        if (kind === "text") {
            const whole = all().filter(each => each.textContent.includes(rest))
            return whole.filter(each => ![...each.children].some(inner => whole.includes(inner)))
        }
        if (kind === "aria") {
            const wanted = rest.replace(/\[\w+="[^"]*"\]/g, "").trim()
            const role = rest.match(/\[role="([^"]*)"\]/)?.[1]
            const found = all().filter(each => named(each)?.trim() === wanted && (!role || (each.role ?? role) === role))
            return found.filter(each => !found.some(inner => inner !== each && each.contains(inner)))
        }
        return [...root.querySelectorAll(rest)]
    }
    // The elements for *selectors*, of which each is another way to the same: parts, each in the shadow of the one before.
    const located = ({ selectors = [], frame = [] }) => {
        const start = frame.reduce((found, at) => found?.defaultView?.frames[at]?.document, document)
        for (const way of start ? selectors : []) {
            try {
                const parts = [way].flat()
                const inner = found => found.shadowRoot ?? found
                const found = parts.reduce((roots, part) => roots.flatMap(root => matches(part, inner(root))), [start])
                if (found.length) return found
            } catch {} // a selector that this browser does not know
        }
        return []
    }
    const fire = (element, Kind, names, more) =>
        names.forEach(name => element.dispatchEvent(new Kind(name, { bubbles: true, cancelable: true, composed: true, ...more })))
    const click = element => {
        scrollIntoView(element)
        fire(element, PointerEvent, ["pointerdown"])
        fire(element, MouseEvent, ["mousedown"])
        fire(element, PointerEvent, ["pointerup"])
        fire(element, MouseEvent, ["mouseup"])
        element.click()
    }
    const compared = { ">=": (a, b) => a >= b, "<=": (a, b) => a <= b, "==": (a, b) => a === b }
    const actions = {
        click,
        doubleClick: element => {
            click(element)
            click(element)
            fire(element, MouseEvent, ["dblclick"])
        },
        hover: element => {
            scrollIntoView(element)
            fire(element, PointerEvent, ["pointerover", "pointerenter"])
            fire(element, MouseEvent, ["mouseover", "mouseenter", "mousemove"])
        },
        change: (element, { value }) => {
            element.focus()
            if (element.isContentEditable) element.textContent = value
            else element.value = value
            fire(element, Event, ["input", "change"])
        },
        scroll: (element, { x = 0, y = 0 }) => (element ?? window).scrollTo({ left: x, top: y, behavior: "instant" }),
        keyDown: (_, { key }) => fire(document.activeElement ?? document.body, KeyboardEvent, ["keydown", "keypress"], { key }),
        keyUp: (_, { key }) => fire(document.activeElement ?? document.body, KeyboardEvent, ["keyup"], { key }),
        waitForElement: () => {},
        waitForExpression: (_, { expression }) => until(expression, PATIENCE),
    }

    return {
        // Return the class for the *script* of a flow: its steps on one page, whose address begins with *url*.
        flow: (id, url, script) => class {
            static id = id
            static isMatch() {
                return location.href.startsWith(url)
            }
            async* run() {
                const times = new Map()
                for (const [number, step] of script.entries()) {
                    const wanted = step.count ?? 1
                    const there = () => {
                        const found = located(step)
                        return compared[step.operator ?? ">="](found.length, wanted) && (found[0] ?? true)
                    }
                    const element = step.selectors && (await until(there, PATIENCE))
                    if (element === null && number === 0) return // another page than the one that was recorded
                    if (element === null) continue
                    const alike = step.type === "click" ? JSON.stringify(step.selectors) : ""
                    times.set(alike, (times.get(alike) ?? 0) + 1)
                    let target = element, changed
                    do {
                        changed = false
                        const observer = new MutationObserver(() => (changed = true))
                        observer.observe(document, { childList: true, subtree: true, characterData: true })
                        await actions[step.type](target, step)
                        await sleep(PAUSE)
                        yield
                        observer.disconnect()
                        target = located(step)[0]
                    } while (alike && times.get(alike) >= ALIKE && changed && target)
                }
            }
        },

        // Return what is wrong with *Behavior*; "" if nothing is.
        fault(Behavior) {
            if (typeof Behavior !== "function" || !/^class\b/.test(`${Behavior}`)) return "it is no class"
            if (typeof Behavior.id !== "string" || !Behavior.id) return "its class has no `static id` with a name"
            if (typeof Behavior.isMatch !== "function") return "its class has no `static isMatch()`"
            if (typeof (Behavior.init ?? (() => 0)) !== "function") return "`static init` of its class is no method"
            if (typeof Behavior.prototype.run !== "function") return "its class has no `async* run(ctx)`"
            return ""
        },

        // Begin *Behavior* if it is for this page, or for this frame of one (*framed*); return its id, or "".
        async begin(Behavior, framed) {
            if ((framed && Behavior.runInIframe !== true) || !Behavior.isMatch()) return ""
            const { state, opts } = Behavior.init?.() ?? {}
            context = { Lib, state: state ?? {}, opts: opts ?? {}, log: () => {} }
            context.getState = Lib.getState
            const behavior = new Behavior()
            await behavior.awaitPageLoad?.(context)
            steps = behavior.run(context)
            return Behavior.id.slice(0, 200)
        },

        // Make the next step; return false at the end.
        async step() {
            return !(await steps.next()).done
        },

        links: () => [...links],
    }
})()
