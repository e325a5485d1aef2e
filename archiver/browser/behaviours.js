// What a view does with a page, where the scripts of the page cannot see it. Evaluated as behaviours.NAME(…).
({
    // Open what is folded, load what waits to be seen, and begin to play media without sound.
    open() {
        for (const each of document.querySelectorAll("details:not([open])")) each.open = true
        for (const each of document.querySelectorAll("[loading=lazy]")) each.loading = "eager"
        for (const each of [...document.querySelectorAll("video, audio")].slice(0, 20)) {
            each.muted = true
            each.preload = "auto"
            Promise.resolve(each.play()).catch(() => 0)
            setTimeout(() => each.pause(), 2000)
        }
    },

    // Scroll from the place *from* to the end of the page, at most 20 screens; return the place that was reached.
    async scroll(from) {
        let y = from
        for (let screens = 0; screens < 20 && y < document.documentElement.scrollHeight; screens++) {
            scrollTo({ top: y, behavior: "instant" })
            await new Promise(after => requestAnimationFrame(() => setTimeout(after, 50)) && setTimeout(after, 500))
            y += innerHeight
        }
        return y
    },

    height() {
        return document.documentElement.scrollHeight
    },

    // Click a button that says that it loads more; return false if there is none.
    more() {
        const says = /^\W*(?:(?:load|show|see|view)\s+(?:\d+\s+)?(?:all|more)|more\s+\w+|next\s+page|(?:mehr|weitere)\s+(?:laden|anzeigen)|(?:voir|charger|afficher)\s+plus|(?:cargar|ver)\s+más)\b/i
        for (const each of document.querySelectorAll("button, [role=button], a[href='#'], a:not([href])")) {
            if (each.disabled || (each.form && each.type === "submit") || !each.getClientRects().length) continue
            if (!says.test(each.textContent.slice(0, 200))) continue
            each.scrollIntoView({ block: "center", behavior: "instant" })
            each.click()
            return true
        }
        return false
    },

    rewind() {
        scrollTo({ top: 0, behavior: "instant" })
        return new Promise(after => requestAnimationFrame(() => setTimeout(after)) && setTimeout(after, 500))
    },

    // The visible text of the document, of open shadow roots, and of frames of the same origin.
    text() {
        const most = 1 << 20
        const found = []
        let size = 0
        const roots = [document]
        for (let root; (root = roots.pop()) && size < most; ) {
            for (const each of root.body ? [root.body] : root.children) {
                const text = each.checkVisibility() && !["STYLE", "SCRIPT"].includes(each.tagName) ? each.innerText ?? "" : ""
                if (text.trim()) found.push(text.slice(0, most - size))
                size += text.length
                if (size >= most) break
            }
            const inner = []
            for (const each of root.querySelectorAll("*")) {
                if (each.shadowRoot) inner.push(each.shadowRoot)
                try {
                    if (each.contentDocument) inner.push(each.contentDocument)
                } catch {}
            }
            roots.push(...inner.reverse().slice(0, 1000))
        }
        return found.join("\n")
    },

    // The links of the document, of frames of the same origin and of open shadow roots, at most 10,000.
    links() {
        const found = new Set()
        const roots = [document]
        for (let root; (root = roots.pop()) && found.size < 10000; ) {
            for (const each of root.querySelectorAll("a[href], area[href]")) {
                try {
                    found.add(new URL(each.href.baseVal ?? each.href, each.baseURI).href.slice(0, 4000))
                } catch {}
            }
            for (const each of root.querySelectorAll("*")) {
                if (each.shadowRoot) roots.push(each.shadowRoot)
                try {
                    if (each.contentDocument) roots.push(each.contentDocument)
                } catch {}
            }
        }
        return [...found].slice(0, 10000)
    },
})
