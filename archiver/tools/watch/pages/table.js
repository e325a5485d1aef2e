// A table of any length of which only the rows in view are in the document.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./preact.js";
import { count } from "./text.js";

const AROUND = 6; // rows above and below those in view
const MOST = 56; // rows in the document
const NEAR = 40; // rows from the end at which the next page is asked for

/**
 * Show `rows`. `columns` are {head, cell(row), kind, open(row), label(row), sort}: `open` makes the cell a button, `kind`
 * is a class such as `n` for numbers. `name` is the class that sets the widths. With `follow` the end stays in view.
 */
export function Table(props) {
  const { name, label, columns, rows, keyOf, busy, error, loaded = true, follow } = props;
  const scroller = useRef(null);
  const wanted = useRef(false); // the active row is to get the focus
  const within = useRef(false); // the focus is in a row
  const [top, setTop] = useState(0);
  const [size, setSize] = useState({ height: 480, row: 30 });
  const [active, setActive] = useState(null);

  const shown = Math.min(MOST, Math.ceil(size.height / size.row) + 2 * AROUND);
  const first = Math.max(0, Math.min(Math.floor(top / size.row) - AROUND, rows.length - shown));
  const slice = rows.slice(first, first + shown);

  useLayoutEffect(() => measure(scroller.current, size, setSize));
  useEffect(() => {
    const observer = new ResizeObserver(() => measure(scroller.current, size, setSize));
    observer.observe(scroller.current);
    return () => observer.disconnect();
  }, [size]);
  useLayoutEffect(() => {
    if (follow) scroller.current.scrollTop = scroller.current.scrollHeight;
  }, [rows, follow, size]);
  useLayoutEffect(() => {
    const place = scroller.current;
    if (wanted.current) {
      wanted.current = false;
      place.querySelector("[data-active] button")?.focus({ preventScroll: true });
    } else if (within.current && document.activeElement === document.body) {
      place.focus({ preventScroll: true }); // its row has left the document
    }
    within.current = place.contains(document.activeElement) && document.activeElement !== place;
  });
  useEffect(() => {
    if (props.more && rows.length && first + shown > rows.length - NEAR) props.more();
  }, [first, rows.length]);

  const scrolled = event => {
    const place = event.currentTarget;
    setTop(place.scrollTop);
    const atEnd = place.scrollHeight - place.scrollTop - place.clientHeight < size.row;
    if (props.onFollow && atEnd !== Boolean(follow)) props.onFollow(atEnd);
  };
  const pressed = event => {
    const page = Math.max(1, Math.floor(size.height / size.row) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    const opening = columns.some(column => column.open);
    if (step === undefined || !opening || !rows.length || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const at = active === null ? -1 : rows.findIndex(row => keyOf(row) === active);
    const start = at >= 0 ? at : Math.floor(top / size.row) - (step > 0 ? 1 : 0);
    const next = Math.max(0, Math.min(rows.length - 1, start + step));
    if (props.onFollow && follow) props.onFollow(false);
    const place = scroller.current;
    const room = place.clientHeight - headOf(place) - size.row;
    place.scrollTop = Math.min(Math.max(place.scrollTop, next * size.row - room), next * size.row);
    wanted.current = true;
    setActive(keyOf(rows[next]));
    setTop(place.scrollTop);
  };

  const style = { paddingTop: `${first * size.row}px`, paddingBottom: `${Math.max(0, rows.length - first - slice.length) * size.row}px` };
  return html`
    <div class="scroller t-${name}" ref=${scroller} tabindex="0" role="region" aria-label=${label} aria-busy=${Boolean(busy)}
      onScroll=${scrolled} onKeyDown=${pressed}>
      <table role="table" aria-label=${label} aria-rowcount=${props.next ? -1 : rows.length + 1}>
        <thead role="rowgroup"><tr role="row" aria-rowindex="1">
          ${columns.map(column => html`<${Head} column=${column} sort=${props.sort} onSort=${props.onSort} />`)}
        </tr></thead>
        <tbody role="rowgroup" style=${style}>
          ${slice.map((row, place) => html`
            <${Row} key=${keyOf(row)} row=${row} columns=${columns} index=${first + place + 2} active=${keyOf(row) === active}
              choose=${() => setActive(keyOf(row))} kind=${props.kindOf?.(row) ?? ""} />`)}
        </tbody>
      </table>
      ${!rows.length && html`<${Blank} ...${{ busy, error, loaded, empty: props.empty }} />`}
    </div>`;
}

function measure(place, size, setSize) {
  if (!place) return;
  const row = place.querySelector("tbody tr")?.getBoundingClientRect().height || size.row;
  const height = place.clientHeight || size.height;
  if (Math.abs(row - size.row) > 0.01 || height !== size.height) setSize({ height, row });
}

function headOf(place) {
  return place.querySelector("thead").getBoundingClientRect().height;
}

function Head({ column, sort, onSort }) {
  const sorted = column.sort && column.sort === sort ? column.descending === false ? "ascending" : "descending" : undefined;
  const inside = column.sort
    ? html`<button class="sort" onClick=${() => onSort(column.sort)}>${column.head}</button>`
    : column.head || html`<span class="hidden">${column.label ?? "Actions"}</span>`;
  return html`<th role="columnheader" scope="col" class=${column.kind ?? ""} aria-sort=${sorted}>${inside}</th>`;
}

function Row({ row, columns, index, active, choose, kind }) {
  return html`
    <tr role="row" aria-rowindex=${index} class=${kind} data-active=${active ? "" : undefined}>
      ${columns.map(column => html`<td role="cell" class=${column.kind ?? ""}><div class="cell" data-head=${column.head}>
        ${column.open && column.open(row)
          ? html`<button class="link" tabindex="-1" onFocus=${choose} onClick=${column.open(row)}>${column.cell(row)}</button>`
          : column.cell(row)}
      </div></td>`)}
    </tr>`;
}

function Blank({ busy, error, loaded, empty }) {
  if (error) return html`<p class="blank bad">${error}</p>`;
  if (busy && !loaded) return html`<p class="blank">Loading…</p>`;
  return html`<p class="blank">${empty}</p>`;
}

/** Say how many rows there are, and what went wrong with the latest request. */
export function Tail({ list, noun }) {
  const { rows, next, error, cut, busy } = list;
  const more = next ? "Scroll down for more." : cut ? "There are more; search to find them." : "";
  return html`<p class="tail"><span>${count(rows.length)} ${noun}${next || cut ? " so far" : ""}. ${more}</span>
    ${error && rows.length > 0 && html`<span class="bad">${error}</span>`}
    <button class="quiet" disabled=${busy} onClick=${list.reload}>Reload</button></p>`;
}
