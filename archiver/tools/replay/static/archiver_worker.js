// The first import of a worker that is a module: what the worker asks for is taken from the replay.
import "./wombatWorkers.js"
const told = new URL(import.meta.url).searchParams
new self.WBWombat({ prefix: told.get("prefix"), prefixMod: told.get("prefix") + "wkrf_/", originalURL: told.get("url") })
export * from "./archiver_modules.js"
