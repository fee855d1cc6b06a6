/** Shades of a heatmap, light theme and dark: from warm (low) over neutral to cool (high). */
const diverging: readonly (readonly [string, string])[] = [
  ["#f0a988", "#843a1d"],
  ["#f5c3a9", "#6b3420"],
  ["#f8d9c8", "#532e22"],
  ["#f9eae1", "#3d2b26"],
  ["#f1f0ea", "#2c2d2e"],
  ["#dbeae6", "#223637"],
  ["#bcdcd7", "#1a4446"],
  ["#97cac5", "#135356"],
  ["#6fb6b2", "#0c6367"],
];

/** For values that are not shares of success: more is only more. */
const sequential: readonly (readonly [string, string])[] = [
  ["#f3f2ee", "#26282b"],
  ["#e6ecea", "#243034"],
  ["#d8e6e4", "#22383d"],
  ["#c9e0dd", "#204046"],
  ["#b9d9d5", "#1d484f"],
  ["#a8d1cd", "#1a5057"],
  ["#95c8c5", "#175960"],
  ["#81bfbc", "#136169"],
  ["#6fb6b2", "#0c6a72"],
];

const shades = [
  ...diverging.map(([light, dark], index) => `.h${index}{background:light-dark(${light},${dark})}`),
  ...sequential.map(([light, dark], index) => `.amount .h${index}{background:light-dark(${light},${dark})}`),
].join("");

const lines = [
  ["#0f6a73", "#57c4cd", "none"],
  ["#b3541e", "#f0a06a", "6 3"],
  ["#5a4fa3", "#b3a8f5", "2 3"],
  ["#3c7a2a", "#93d07c", "10 3"],
  ["#9c2f62", "#f293bd", "6 3 2 3"],
  ["#7a6a12", "#d9c75a", "1 3"],
  ["#2b5ea8", "#8fb9f2", "12 4 2 4"],
  ["#5c5c5c", "#bdbdbd", "4 4"],
]
  .map(
    ([light, dark, dashes], index) =>
      `.c${index}{stroke:light-dark(${light},${dark});stroke-dasharray:${dashes}}.dot.c${index}{fill:light-dark(${light},${dark})}`,
  )
  .join("");

/** What every page has, on screens, in light and dark, and on paper. */
export const styles = `
:root{color-scheme:light dark;--paper:light-dark(#fcfbf8,#16181b);--raised:light-dark(#ffffff,#1d2024);--ink:light-dark(#1c1f21,#e9e6df);--soft:light-dark(#575b5e,#a9aaa8);--rule:light-dark(#dedbd3,#34383d);--accent:light-dark(#0f6a73,#6fd0d8);--pass:light-dark(#1d6b3f,#7fd3a0);--fail:light-dark(#a8261c,#ff9c8f);--inconclusive:light-dark(#7a5200,#f0c15e);--passed:light-dark(#e6f2ea,#17301f);--failed:light-dark(#fbe9e6,#3d1b17);--open:light-dark(#faf0da,#352a12);--gone:light-dark(#fbdcd7,#55241d);--come:light-dark(#d3ecdb,#1d4a2e);--mark:light-dark(#e4572e,#ff8c66)}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;overflow-wrap:anywhere}
h1,h2,h3{font-family:"Iowan Old Style","Palatino Linotype",Palatino,"Book Antiqua",Georgia,serif;font-weight:600;line-height:1.2;margin:0;text-wrap:balance}
a{color:var(--accent)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
code{font:.86em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
small,.note{color:var(--soft);font-size:.82rem}.note{margin:.2rem 0}
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;top:1rem;background:var(--raised);padding:.5rem 1rem;z-index:9}
.top{padding:3rem max(1.5rem,calc(50vw - 41rem)) 2rem;border-top:10px solid var(--v);border-bottom:1px solid var(--rule);background:var(--vb)}
.pass{--v:var(--pass);--vb:var(--passed)}.fail{--v:var(--fail);--vb:var(--failed)}.inconclusive{--v:var(--inconclusive);--vb:var(--open)}
.kicker{margin:0;letter-spacing:.14em;text-transform:uppercase;font-size:.75rem;color:var(--soft)}
.top h1{font-size:clamp(2.4rem,6vw,4rem);color:var(--v);margin:.2rem 0}
.top .name{font-size:1.15rem;margin:0;font-weight:600}.top .why{max-width:62ch;margin:.6rem 0 1.2rem}
.facts{display:flex;flex-wrap:wrap;gap:.8rem 2.2rem;margin:0}.facts dt{font-size:.75rem;color:var(--soft)}.facts dd{margin:0}.facts dd small{display:block}
main{max-width:82rem;margin:0 auto;padding:1.5rem}
section{margin:0 0 3rem}section>h2{font-size:1.7rem;margin:0 0 1rem;padding-top:.5rem}
.badge{display:inline-block;white-space:nowrap;font-size:.78rem;font-weight:600;line-height:1.5;padding:0 .55rem;border-radius:99px;color:var(--v);background:var(--vb);border:1px solid currentColor}
.badge.plain{color:var(--soft);background:none}
h4{margin:1rem 0 .3rem;font-size:.82rem;letter-spacing:.04em;text-transform:uppercase;color:var(--soft)}h4 small{text-transform:none;letter-spacing:0}
figure{margin:.7rem 0;min-width:0}figcaption{font-weight:600;margin-bottom:.4rem}
.scroll{overflow-x:auto;max-width:100%}svg{display:block;max-width:100%;height:auto}svg.narrow{display:none}
svg text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;fill:var(--ink)}svg .tick{fill:var(--soft);font-size:11px}
.grid{stroke:var(--rule);stroke-width:1}.grid.neutral{stroke:var(--soft)}
.row .focus{fill:none}.row:hover .focus,.row:focus .focus{fill:light-dark(#0000000a,#ffffff12)}.row:focus{outline:none}.row:focus-visible .focus{stroke:var(--accent);stroke-width:2}
.interval,.whisker{stroke:var(--v,var(--accent));stroke-width:2.2;fill:none}.whisker{stroke-width:1.6}
.point{fill:var(--v,var(--accent));stroke:var(--v,var(--accent));stroke-width:2}.inconclusive .point{fill:var(--raised)}.bar{fill:var(--accent)}
.margin{stroke:var(--ink);stroke-width:2;stroke-dasharray:4 3}
.line{fill:none;stroke-width:2;stroke-linejoin:round}.threshold{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:4 3}.span{fill:light-dark(#e4572e1f,#ff8c6630)}.diagonal{stroke:var(--soft);stroke-dasharray:3 4;fill:none}
.keys{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;margin:.3rem 0;padding:0;font-size:.82rem}.keys li{display:flex;gap:.4rem;align-items:center}
.step .time{fill:light-dark(#c9cdd0,#4a5056)}.step .decode{fill:light-dark(#8aa7a9,#4d7c80)}.step .prefill{fill:light-dark(#0f6a73,#57c4cd)}.step:hover rect,.step:focus rect{stroke:var(--ink);stroke-width:1.5}
.blamed .time{fill:var(--mark)}.flag{fill:var(--mark)}
table{border-collapse:collapse;margin:.8rem 0;font-size:.88rem;min-width:min(100%,30rem)}
caption{text-align:left;color:var(--soft);font-size:.82rem;padding-bottom:.4rem}
th,td{text-align:left;padding:.35rem .9rem .35rem 0;border-bottom:1px solid var(--rule);vertical-align:top}thead th{color:var(--soft);font-weight:600;font-size:.8rem}tbody th{font-weight:500}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}td small,th small{display:block}
table.heat{border-spacing:3px;border-collapse:separate;min-width:0}.heat td,.heat th{border:0;padding:.4rem .6rem}.heat tbody td{text-align:center;border-radius:4px;min-width:5.2rem;color:var(--ink)}.heat thead th{text-align:center}.heat b{display:block;font-variant-numeric:tabular-nums}.heat small{color:inherit;white-space:nowrap;font-size:.72rem}.heat .axes{color:var(--soft);font-size:.74rem;white-space:nowrap}.heat .axes span{display:block}.heat .empty{color:var(--soft)}
.legend{display:flex;align-items:center;gap:2px;font-size:.78rem;color:var(--soft)}.legend i{flex:0 1 1.4rem;height:.7rem;border-radius:2px}.legend span{padding:0 .3rem;overflow-wrap:normal}
${shades}${lines}
@media screen{th,td{overflow-wrap:break-word;max-width:32rem}.number{max-width:none}}
@media screen and (max-width:40rem){th,td{max-width:11rem}main{padding:1rem}svg.wide{display:none}svg.narrow{display:block}}
summary{cursor:pointer}
footer{max-width:82rem;margin:0 auto;padding:1rem 1.5rem 3rem;color:var(--soft);font-size:.82rem}
@media print{:root{color-scheme:light;--paper:#fff;--raised:#fff}body{font-size:10pt;display:block}.skip{display:none!important}.top{padding:0 0 1rem;border-top-width:4px}main,footer{padding:0;max-width:none}figure,tr{break-inside:avoid}h2,h3,h4,figcaption,caption{break-after:avoid}.scroll{overflow:visible}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}table{font-size:8.5pt}}
@media (prefers-reduced-motion:no-preference){html{scroll-behavior:smooth}}
`;
