/** The page's only styles. Colours hold 4.5:1 against their background in both schemes. */
export const styles = `
:root { color-scheme: light dark; --back: #fdfcfa; --text: #1d1b18; --soft: #625d55; --line: #ddd8cf; --card: #f4f1eb; --mark: #1f5fa8; --good: #1a6b3c; --bad: #a3261b; --open: #7a5200; --hit: #ffe9a8; }
@media (prefers-color-scheme: dark) { :root { --back: #171614; --text: #ece8e1; --soft: #aaa398; --line: #3a3732; --card: #211f1c; --mark: #7fb4f0; --good: #6fd39a; --bad: #ff9a8d; --open: #f0c265; --hit: #5c4a12; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
header, main, footer { max-width: 60rem; margin: 0 auto; padding: 1.5rem; }
header { padding-bottom: 0; }
h1 { margin: 0; font-size: 2.4rem; line-height: 1.2; }
h2 { margin: 0 0 .75rem; font-size: 1.25rem; }
.kicker { margin: 0; color: var(--soft); }
.identical h1, .near-lossless h1 { color: var(--good); }
.drift h1 { color: var(--bad); }
.inconclusive h1 { color: var(--open); }
section { margin: 0 0 2.5rem; }
figure { margin: 0 0 1rem; }
figcaption { color: var(--soft); font-size: .875rem; }
svg { display: block; width: 100%; min-width: 36rem; height: auto; margin: .25rem 0; font: 13px system-ui, sans-serif; }
svg .name, svg .value { fill: var(--text); }
svg .tick { fill: var(--soft); }
svg .grid { stroke: var(--line); }
svg .interval { stroke: var(--mark); stroke-width: 4; stroke-linecap: round; opacity: .55; }
svg .point, svg .bar { fill: var(--mark); }
svg .focus { fill: none; stroke: none; pointer-events: all; }
svg .row:hover .focus { fill: var(--card); }
svg .row:focus { outline: none; }
svg .row:focus-visible .focus { stroke: var(--mark); stroke-width: 2; fill: var(--card); }
.scroll { overflow-x: auto; margin: 0 0 1rem; }
.scroll:focus-visible, .skip:focus-visible { outline: 2px solid var(--mark); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; }
caption { text-align: left; color: var(--soft); padding: .25rem 0; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { color: var(--soft); font-weight: 600; }
tbody th { font-weight: 600; white-space: nowrap; }
.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.number small { display: block; color: var(--soft); }
.text { font-family: ui-monospace, monospace; font-size: .8rem; overflow-wrap: anywhere; min-width: 18rem; white-space: pre-wrap; }
code { font-family: ui-monospace, monospace; background: var(--card); padding: 0 .25rem; border-radius: 3px; white-space: pre-wrap; }
mark { background: var(--hit); color: inherit; }
footer { color: var(--soft); font-size: .875rem; border-top: 1px solid var(--line); }
.skip { position: absolute; left: -999rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--back); color: var(--mark); padding: .5rem; }
`.trim();
