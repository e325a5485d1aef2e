// What modules of a replayed page import in place of the browser's own names, and in place of import().
const seen = name => (self._wb_wombat && self._wb_wombat.local_init && self._wb_wombat.local_init(name)) || self[name]

if (!self.__WB_pmw) self.__WB_pmw = function (source) { this.__WB_source = source; return this }

export const window = seen("window")
export const document = seen("document")
export const location = seen("location")
export const top = seen("top")
export const parent = seen("parent")
export const frames = seen("frames")
export const opener = seen("opener")
const own = seen("self")
const everything = self.window ? window : self
export { own as self, everything as globalThis }

const isAddress = name => /^(?:https?:\/\/|\/|\.\.?\/)/.test(name)

export function __archiver_import(prefix, base, specifier, options) {
    const name = String(specifier)
    const there = name.startsWith(self.location.origin + "/") || name.startsWith(prefix)
    return import(isAddress(name) && !there ? prefix + new URL(name, base).href : name, options)
}

export function __archiver_resolve(base, meta) {
    return specifier => isAddress(String(specifier)) ? new URL(specifier, base).href : meta.resolve(specifier)
}
