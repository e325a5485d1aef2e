// Text for people: numbers, sizes, times, and names from the network that are safe to show.

import { html } from "./preact.js";

const WIDTH = 2000; // characters of a name
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu; // controls, marks of direction, halves of pairs

/** Return `text` as one line of at most `width` characters, with invisible characters escaped. */
export function printable(text, width = WIDTH) {
  const whole = typeof text === "string" ? text : String(text ?? "");
  const shown = whole.slice(0, width).replace(INVISIBLE, escaped);
  return whole.length <= width && shown.length <= width ? shown : `${shown.slice(0, width - 1)}…`;
}

function escaped(char) {
  const code = char.codePointAt(0);
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** Show a name from the network. Its direction cannot change the text around it. */
export function Name({ text, width = WIDTH }) {
  return html`<bdi class="name">${printable(text, width)}</bdi>`;
}

/** Show a command that a person can type. */
export function Command({ text }) {
  return html`<code class="command"><bdi>${printable(text)}</bdi></code>`;
}

export function count(number) {
  return Number.isFinite(number) ? Math.round(number).toLocaleString("en") : "–";
}

export function counted(number, one, several = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : several}`;
}

export function rate(number) {
  if (!Number.isFinite(number)) return "–";
  return number >= 100 ? count(number) : number.toFixed(number >= 10 ? 1 : 2).replace(/\.?0+$/, "");
}

export function volume(bytes) {
  if (!Number.isFinite(bytes)) return "–";
  let amount = bytes;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (amount < 1000) return unit === "B" ? `${Math.round(amount)} B` : `${amount.toFixed(1)} ${unit}`;
    amount /= 1000;
  }
  return `${amount.toFixed(1)} TB`;
}

export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 60) return `${Math.max(0, seconds).toFixed(seconds < 10 ? 1 : 0)} s`;
  const whole = Math.floor(seconds);
  const [days, hours] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24];
  const [minutes, rest] = [Math.floor(whole / 60) % 60, two(whole % 60)];
  if (days) return `${days} d ${hours}:${two(minutes)}`;
  return hours ? `${hours}:${two(minutes)}:${rest}` : `${minutes}:${rest}`;
}

/** Return a duration in its largest unit, rounded down. */
export function about(seconds) {
  for (const [size, unit] of [[86400, "day"], [3600, "hour"], [60, "minute"]]) {
    if (seconds >= size) return counted(Math.floor(seconds / size), unit);
  }
  return counted(Math.max(0, Math.floor(seconds)), "second");
}

/** Return the time of day, with the date if that is not today. */
export function moment(seconds, now = Date.now()) {
  if (!Number.isFinite(seconds)) return "–";
  const [at, today] = [new Date(seconds * 1000), new Date(now)];
  if (Number.isNaN(at.getTime())) return "–";
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  if (at.toDateString() === today.toDateString()) return time;
  const day = `${at.getDate()} ${MONTHS[at.getMonth()]}`;
  return at.getFullYear() === today.getFullYear() ? `${day} ${time}` : `${day} ${at.getFullYear()} ${time.slice(0, 5)}`;
}

function two(number) {
  return String(number).padStart(2, "0");
}

/** Return a regular expression that matches exactly `text`. */
export function exactly(text) {
  return `^${text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;
}

/** Return the host of `address`, or "" if it has none. */
export function hostOf(address) {
  try {
    return new URL(address).hostname;
  } catch {
    return "";
  }
}
