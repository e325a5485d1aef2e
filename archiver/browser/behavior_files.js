// Behaviors of the user, in the class form of browsertrix: see docs/how-to/archive-pages-that-scripts-build.md.
// Evaluated once in an isolated world, as an object; `ran` is what is left of the behavior between two calls.
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

    return {
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
