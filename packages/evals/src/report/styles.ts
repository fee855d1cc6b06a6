/** What only this page has, over the styles of the kit. */
export const reportStyles = `
body>nav{max-width:82rem;margin:0 auto;padding:1.5rem 1.5rem 0;font-size:.9rem}
nav ul{list-style:none;margin:0;padding:0;display:flex;flex-wrap:wrap;gap:.3rem 1.2rem}nav ul ul{display:none}
nav button{margin-top:.8rem;font:inherit;font-size:.82rem;color:var(--soft);background:none;border:1px solid var(--rule);border-radius:99px;padding:.15rem .8rem;cursor:pointer}
.cards{list-style:none;margin:0 0 3rem;padding:0;display:grid;grid-template-columns:repeat(auto-fill,minmax(15.5rem,1fr));gap:.8rem}
.card{background:var(--raised);border:1px solid var(--rule);border-left:5px solid var(--v);border-radius:6px}
.card a{display:grid;gap:.3rem;justify-items:start;padding:.7rem .9rem;color:inherit;text-decoration:none;height:100%;align-content:start}.card a:hover b{text-decoration:underline}.card a>span:last-child{font-size:.84rem;color:var(--soft);display:-webkit-box;-webkit-line-clamp:4;-webkit-box-orient:vertical;overflow:hidden}
.check{background:var(--raised);border:1px solid var(--rule);border-radius:8px;padding:1.4rem 1.6rem;margin:0 0 1.5rem}
.heading{display:flex;flex-wrap:wrap;gap:.8rem;align-items:center}.check h3{font-size:1.4rem}
.question{font-style:italic;color:var(--soft);margin:.3rem 0 0}.summary{font-size:1.05rem;max-width:75ch}
.advice{border-left:4px solid var(--accent);padding:.1rem 0 .1rem 1rem;margin:1rem 0}.advice h4{margin-top:.2rem}.advice ol{margin:.2rem 0;padding-left:1.2rem}.advice small{display:block}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,34rem),1fr));gap:0 2rem;align-items:start}
.curves{display:flex;flex-wrap:wrap;gap:0 2rem}
.sample{display:flex;flex-wrap:wrap;gap:.2rem .8rem;align-items:center;margin:.6rem 0}.sample.short b{color:var(--inconclusive)}meter{width:9rem;height:.9rem}
.thumb{border:1px dashed var(--rule);border-radius:6px;padding:.6rem 1rem;margin:1rem 0;color:var(--soft);font-size:.9rem}.thumb p{margin:.2rem 0}.thumb b{color:var(--ink)}
.moved ol{padding-left:1.3rem}.moved li{margin:.6rem 0}.moved p{margin:.2rem 0}
.notes,.warnings{font-size:.88rem;padding-left:1.2rem;color:var(--soft)}.warnings{list-style:none;padding:.7rem 1rem;margin:0 0 1.5rem;border-left:4px solid var(--inconclusive);background:var(--open);color:var(--ink)}
.answer{font:.86em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre-wrap;background:var(--paper);border:1px solid var(--rule);border-radius:4px;padding:.5rem .7rem;margin:.2rem 0;max-height:28rem;overflow:auto;unicode-bidi:plaintext}
del{background:var(--gone);text-decoration:line-through;text-decoration-thickness:1px}ins{background:var(--come);text-decoration:underline;text-decoration-thickness:1px;text-underline-offset:2px}
.filter{display:flex;flex-wrap:wrap;gap:.6rem 1.5rem;align-items:center;margin:0 0 1rem;font-size:.9rem}.filter[hidden]{display:none}.filter fieldset{border:0;margin:0;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1rem}.filter legend{float:left;padding:0 .8rem 0 0;color:var(--soft)}.filter input[type=search]{font:inherit;color:inherit;background:var(--raised);border:1px solid var(--rule);border-radius:4px;padding:.25rem .5rem;width:18rem;max-width:100%}
.cases details{border-bottom:1px solid var(--rule);content-visibility:auto;contain-intrinsic-size:auto 2.3rem}.cases summary{padding:.35rem 0;display:flex;gap:.7rem;align-items:baseline;white-space:nowrap;overflow:hidden}.cases .first{overflow:hidden;text-overflow:ellipsis;color:var(--soft);font-size:.88rem}.cases .body{padding:0 0 1rem 1rem}
.state{flex:none;width:6.6rem;font-size:.78rem;font-weight:600;color:var(--soft)}.state.regressed,.state.failing,.bad{color:var(--fail)}.state.improved,.good{color:var(--pass)}
.tag{font-style:normal;font-size:.74rem;border:1px solid var(--rule);border-radius:99px;padding:0 .5rem;color:var(--soft)}.scores{list-style:none;padding:0;font-size:.88rem}
@media screen and (max-width:40rem){.check{padding:1rem .5rem}}
@media (min-width:90rem){body{display:grid;grid-template-columns:17rem minmax(0,1fr)}.skip,.top,footer{grid-column:1/-1}.top{padding-left:3rem}body>nav{position:sticky;top:0;align-self:start;max-height:100vh;overflow:auto;padding:2rem 0 2rem 3rem;margin:0;max-width:none}nav ul{display:block}nav li{margin:.35rem 0}nav ul ul{display:block;padding-left:.6rem;font-size:.82rem}nav .badge{font-size:.68rem;padding:0 .4rem}main{margin:0;padding:1.5rem 3rem;max-width:84rem}footer{margin:0;padding-left:20rem}}
@media print{nav,.filter{display:none!important}.check{border:0;border-top:2px solid var(--rule);border-radius:0;padding:1rem 0}.card,.advice,.thumb,.sample{break-inside:avoid}.answer{max-height:none;overflow:visible}.charts{display:block}.cases details{content-visibility:visible}}
`;
