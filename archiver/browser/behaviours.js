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
    // What scrolls within the page is scrolled at the same time. Each place is shown for *pause* milliseconds.
    async scroll(from, pause) {
        let y = from
        const within = this.scrollers()
        for (let screens = 0; screens < 20; screens++) {
            const rest = within.filter(each => !this.atEnd(each))
            if (y >= document.documentElement.scrollHeight && !rest.length) break
            if (y < document.documentElement.scrollHeight) {
                scrollTo({ top: y, behavior: "instant" })
                y += innerHeight
            }
            for (const each of rest) each.scrollBy({ top: each.clientHeight, left: each.clientWidth, behavior: "instant" })
            await new Promise(after => requestAnimationFrame(() => setTimeout(after, pause)) && setTimeout(after, 500))
        }
        return y
    },

    // Return true if there is more of the page than the place *reached*, or more of what scrolls within it.
    continues(reached) {
        return document.documentElement.scrollHeight > reached || this.scrollers().some(each => !this.atEnd(each))
    },

    // The elements that a person would scroll, at most 20 of the first 20,000.
    scrollers() {
        const own = [document.documentElement, document.body, document.scrollingElement]
        const scrolls = /auto|scroll/
        const found = []
        for (const each of [...document.querySelectorAll("*")].slice(0, 20000)) {
            if (each.clientHeight < 100 || each.clientWidth < 100 || own.includes(each)) continue
            if (each.scrollHeight <= each.clientHeight + 1 && each.scrollWidth <= each.clientWidth + 1) continue
            const { overflowX, overflowY } = getComputedStyle(each)
            if ((scrolls.test(overflowX) || scrolls.test(overflowY)) && found.push(each) === 20) break
        }
        return found
    },

    atEnd(element) {
        return element.scrollTop + element.clientHeight >= element.scrollHeight - 2 &&
            element.scrollLeft + element.clientWidth >= element.scrollWidth - 2
    },

    // The routes of an application in the links to the page itself, such as "#/about" and "#!/about".
    routes() {
        const here = location.href.split("#")[0]
        const found = new Set()
        for (const each of document.querySelectorAll("a[href*='#']")) {
            const [page, hash] = String(each.href).split(/#(.*)/s)
            if (page === here && /^!?\/./.test(hash ?? "")) found.add("#" + hash.slice(0, 1000))
            if (found.size === 1000) break
        }
        return [...found]
    },

    go(route) {
        location.hash = route
    },

    // The pictures that the document offers to screens of any size, at most 2,000.
    pictures() {
        const found = new Set()
        for (const each of document.querySelectorAll("[srcset], link[imagesrcset]")) {
            const offered = (each.srcset || each.imageSrcset || "").slice(0, 20000)
            for (const [, address] of offered.matchAll(/(\S*[^,\s])(?:\s+[\d.]+[wxh])*/g)) {
                try {
                    found.add(new URL(address, each.baseURI).href.slice(0, 4000))
                } catch {}
            }
        }
        return [...found].slice(0, 2000)
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

    // The links of the document, of frames of the same origin and of open shadow roots, at most 10,000: URL and text,
    // which is empty without *texts*.
    links(texts) {
        const found = new Map()
        const textOf = link => {
            const pictures = [...link.querySelectorAll("img[alt]")].map(each => each.alt)
            const text = [link.innerText ?? link.textContent, link.alt, ...pictures].join(" ").slice(0, 4000)
            return text.replace(/\s+/g, " ").trim().slice(0, 300)
        }
        const roots = [document]
        for (let root; (root = roots.pop()) && found.size < 10000; ) {
            for (const each of root.querySelectorAll("a[href], area[href]")) {
                try {
                    const address = new URL(each.href.baseVal ?? each.href, each.baseURI).href.slice(0, 4000)
                    if (!found.get(address)) found.set(address, texts ? textOf(each) : "")
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
