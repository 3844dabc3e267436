"""The look of the explorer, for light and dark, wide and narrow."""

CSS = """
:root { --paper: #f6f5f1; --card: #ffffff; --ink: #1c2127; --soft: #5d6873; --faint: #8a949e; --line: #e4e2da;
  --track: #eceae3; --accent: #1f5f99; --accent-soft: #e6eef6; --guess: #b7791f; --guess-soft: #faf0dc;
  --good: #2b7a4b; --bad: #b23a2e; --shadow: 0 1px 2px rgb(30 30 20 / 6%), 0 6px 20px rgb(30 30 20 / 5%); }
body.body--dark { --paper: #14171b; --card: #1c2126; --ink: #e8eaed; --soft: #a3adb7; --faint: #7b8691; --line: #2d343b;
  --track: #2a3138; --accent: #79b4ea; --accent-soft: #22303d; --guess: #e6b158; --guess-soft: #352c1a; --good: #74c695;
  --bad: #ef8d82; --shadow: none; }
html { scroll-padding-top: 76px; }
body { background: var(--paper); color: var(--ink); font: 15.5px/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans",
  "DejaVu Sans", sans-serif; -webkit-font-smoothing: antialiased; }
body.body--light, body.body--dark { background: var(--paper); }
.nicegui-content { padding: 0; display: block; }
.nicegui-sub-pages { display: block; width: 100%; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
a:focus-visible, button:focus-visible, [tabindex]:focus-visible { outline: 2px solid var(--accent);
  outline-offset: 2px; border-radius: 6px; }
h1 { font-size: 30px; line-height: 1.2; font-weight: 650; letter-spacing: -.015em; margin: 0; }
h2 { font-size: 17px; line-height: 1.3; font-weight: 620; margin: 0 0 12px; }
h3 { font-size: 14px; line-height: 1.4; font-weight: 600; margin: 18px 0 6px; }
p { margin: 0; }
.num { font-variant-numeric: tabular-nums; }
.soft { color: var(--soft); }
.small { font-size: 13.5px; }
.mono { font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }

.q-header.top { background: color-mix(in srgb, var(--paper) 88%, transparent); backdrop-filter: blur(8px);
  color: var(--ink); border-bottom: 1px solid var(--line); box-shadow: none; padding: 0; }
.bar-top { display: flex; align-items: center; gap: 18px; max-width: 1120px; margin: 0 auto; padding: 9px 20px;
  width: 100%; }
.brand { font-weight: 700; font-size: 18px; letter-spacing: -.02em; color: var(--ink); display: flex; gap: 9px;
  align-items: center; }
.brand:hover { text-decoration: none; }
.brand svg { width: 24px; height: 24px; }
nav.main { display: flex; gap: 2px; overflow-x: auto; scrollbar-width: none; flex: 1; }
nav.main a { color: var(--soft); padding: 5px 10px; border-radius: 8px; white-space: nowrap; font-size: 14.5px; }
nav.main a:hover { background: var(--track); color: var(--ink); text-decoration: none; }
nav.main a[aria-current] { color: var(--ink); background: var(--track); font-weight: 560; }
.tool { color: var(--soft); }

main.page { max-width: 1120px; margin: 0 auto; padding: 26px 20px 64px; }
.stack { display: grid; gap: 18px; }
.three { display: grid; grid-template-columns: repeat(auto-fit, minmax(240px, 1fr)); gap: 8px 26px; }
.stack > *, .two > *, .three > * { min-width: 0; }
.beside { display: grid; grid-template-columns: 1fr 1fr; gap: 4px 40px; align-items: start; }
.beside > * { min-width: 0; }
.beside h4 { font-size: 13px; line-height: 1.5; font-weight: 450; color: var(--soft); margin: 0 0 4px; }
.group + .group { border-top: 1px solid var(--line); margin-top: 16px; padding-top: 14px; }
details.more { margin-top: 16px; border-top: 1px solid var(--line); padding-top: 12px; }
details.more > summary { cursor: pointer; color: var(--accent); }
details.more[open] > summary { margin-bottom: 14px; }
.group h3 { margin: 0 0 8px; font-size: 15.5px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 14px; padding: 18px 20px;
  box-shadow: var(--shadow); min-width: 0; }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 18px; align-items: start; }
.head { display: flex; flex-wrap: wrap; gap: 6px 14px; align-items: baseline; margin-bottom: 18px; }
.head .mono { color: var(--faint); overflow-wrap: anywhere; }
.tag { display: inline-block; font-size: 12.5px; line-height: 1.5; padding: 1px 9px; border-radius: 99px;
  background: var(--track); color: var(--soft); white-space: nowrap; }
.tag.guess { background: var(--guess-soft); color: var(--guess); }
.tag.known { background: var(--accent-soft); color: var(--accent); }

.hero { text-align: center; padding: 34px 0 8px; }
.hero h1 { font-size: clamp(28px, 5vw, 40px); }
.hero p { color: var(--soft); margin-top: 8px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px; }
.tiles.square { grid-template-columns: 1fr 1fr; height: 100%; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 12px 16px;
  color: inherit; }
a.tile:hover { border-color: var(--accent); text-decoration: none; }
.tile b { display: block; font-size: 22px; font-weight: 640; line-height: 1.3; letter-spacing: -.01em; }
.tile span { color: var(--soft); font-size: 13.5px; }
.chips { display: flex; flex-wrap: wrap; gap: 8px; }
.chip { display: inline-block; max-width: 100%; background: var(--card);
  border: 1px solid var(--line); border-radius: 99px; padding: 5px 13px; color: var(--ink); font-size: 14.5px;
  overflow-wrap: anywhere; }
.chip:hover { border-color: var(--accent); text-decoration: none; }
.chip i { font-style: normal; color: var(--soft); }
.chip .q { color: var(--accent); font-weight: 640; }

.field { width: 100%; }
.field .q-field__control { border-radius: 12px; background: var(--card); }
.field .q-field__control:before { border-color: var(--line); }
.body--dark .field .q-field__control:before { border-color: var(--line) !important; }
.search { max-width: 640px; margin: 22px auto 0; text-align: left; position: relative; }
.search-compact { position: relative; width: 210px; }
.search:not(:focus-within) .found, .search-compact:not(:focus-within) .found { display: none; }
.search-compact .found { width: 320px; left: auto; }
.asker .search { margin: 0; max-width: none; }
.found { position: absolute; left: 0; right: 0; top: calc(100% + 6px); z-index: 30; background: var(--card);
  border: 1px solid var(--line); border-radius: 12px; box-shadow: 0 10px 34px rgb(0 0 0 / 18%); overflow: hidden;
  max-height: 380px; overflow-y: auto; }
.found a { display: flex; gap: 10px; align-items: baseline; padding: 8px 14px; color: var(--ink); min-width: 0; }
.found a:hover, .found a:focus { background: var(--accent-soft); text-decoration: none; outline: none; }
.found .what { flex: 1; min-width: 0; overflow-wrap: anywhere; }
.found small { color: var(--faint); white-space: nowrap; font-size: 12.5px; }
.found p { padding: 10px 14px; color: var(--soft); }

.rows { display: grid; gap: 1px; }
.row-fact { display: grid; grid-template-columns: minmax(0, 1fr) minmax(90px, 150px) 44px; gap: 12px;
  align-items: center; padding: 4px 8px; margin: 0 -8px; border-radius: 8px; }
.row-fact:hover { background: color-mix(in srgb, var(--track) 55%, transparent); }
.row-fact .who { overflow-wrap: anywhere; min-width: 0; }
.row-fact .why { display: contents; color: inherit; }
.row-fact .why:hover { text-decoration: none; }
.value { text-align: right; font-variant-numeric: tabular-nums; color: var(--soft); font-size: 14px; }
.meter { position: relative; height: 9px; border-radius: 99px; background: var(--track); display: block; }
.meter .fill { position: absolute; left: 0; top: 0; bottom: 0; border-radius: 99px; background: var(--accent); }
.meter.guess .fill { background: repeating-linear-gradient(-55deg, var(--guess) 0 5px,
  color-mix(in srgb, var(--guess) 55%, transparent) 5px 9px); }
.meter .span { position: absolute; top: 50%; height: 2px; margin-top: -1px; background: var(--ink); }
.meter .span::before, .meter .span::after { content: ""; position: absolute; top: -4px; width: 2px; height: 10px;
  background: var(--ink); }
.meter .span::after { right: 0; }
.meter .mark { position: absolute; top: -3px; width: 15px; height: 15px; margin-left: -7px; border-radius: 99px;
  background: var(--accent); border: 3px solid var(--card); }
.meter.large { height: 16px; }
.meter.large .mark { top: -3px; width: 22px; height: 22px; margin-left: -11px; border-width: 4px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; color: var(--soft); font-size: 13.5px; margin-top: 12px; }
.legend span { display: inline-flex; gap: 7px; align-items: center; }
.legend .meter { width: 30px; }
.direction { color: var(--faint); font-weight: 400; }

.q-btn-toggle.seen { margin-top: 14px; border: 1px solid var(--line); border-radius: 10px; overflow: hidden; }
.seen .q-btn { padding: 3px 13px; color: var(--soft) !important; background: transparent !important; }
.seen .q-btn[aria-pressed="true"] { color: var(--accent) !important; background: var(--accent-soft) !important; }
.turn { color: var(--accent); border-radius: 10px; min-height: 40px; }
.answer { display: grid; grid-template-columns: 30px minmax(0, 1fr) minmax(120px, 280px) 48px; gap: 14px;
  align-items: center; padding: 8px; margin: 0 -8px; border-radius: 10px; }
.answer + .answer { border-top: 1px solid var(--line); border-radius: 0; }
.answer .place { color: var(--faint); text-align: right; font-variant-numeric: tabular-nums; }
.answer .why { display: contents; color: inherit; }
.sentence { display: flex; flex-wrap: wrap; gap: 8px 12px; align-items: baseline; font-size: 22px; font-weight: 600;
  letter-spacing: -.01em; line-height: 1.3; }
.sentence .relation { color: var(--soft); font-weight: 450; }
.sentence a { overflow-wrap: anywhere; }
.sentence.question a { color: var(--ink); }
.asker { display: grid; grid-template-columns: 1fr 1fr auto; gap: 12px; align-items: start; }
.asker > div { position: relative; min-width: 0; }

.reason { border-left: 3px solid var(--line); padding: 2px 0 2px 14px; margin-top: 16px; }
.reason.is-rule { border-color: var(--guess); }
.reason.is-observed { border-color: var(--accent); }
.reason.for { border-color: var(--good); }
.reason.against { border-color: var(--bad); }
.reason .kind { font-size: 12.5px; color: var(--soft); letter-spacing: .02em; }
.reason .sentence-text { overflow-wrap: anywhere; }
.reason .mono { color: var(--soft); margin-top: 4px; overflow-wrap: anywhere; }
.push { display: inline-block; min-width: 52px; font-variant-numeric: tabular-nums; font-weight: 600; }
.push.for { color: var(--good); }
.push.against { color: var(--bad); }

svg.graph, svg.plot { width: 100%; height: auto; display: block; }
svg.graph .edge { stroke: var(--accent); fill: none; stroke-linecap: round; opacity: .75; }
svg.graph .edge.guess { stroke: var(--guess); stroke-dasharray: 7 6; }
svg.graph .across { stroke: var(--faint); fill: none; opacity: .4; }
svg.graph .dot { fill: var(--card); stroke: var(--accent); stroke-width: 2; }
svg.graph .dot.guess { stroke: var(--guess); stroke-dasharray: 4 3; }
svg.graph .middle { fill: var(--accent); }
svg.graph text { fill: var(--ink); font-size: 14px; }
svg.graph text.on { fill: var(--faint); font-size: 11.5px; paint-order: stroke; stroke: var(--card); stroke-width: 4px;
  stroke-linejoin: round; }
svg.graph.narrow text { font-size: 17px; }
svg.graph.narrow text.on { font-size: 13.5px; }
svg.graph .name { font-weight: 640; paint-order: stroke; stroke: var(--card); stroke-width: 5px;
  stroke-linejoin: round; }
svg.graph a:hover text { fill: var(--accent); text-decoration: underline; }
svg.plot text { fill: var(--soft); font-size: 12.5px; font-variant-numeric: tabular-nums; }
svg.plot .axis { stroke: var(--line); }
svg.plot .ideal { stroke: var(--faint); stroke-dasharray: 5 5; }
svg.plot .curve { stroke: var(--accent); stroke-width: 2.5; fill: none; }
svg.plot .point { fill: var(--accent); stroke: var(--card); stroke-width: 2; }
svg.plot .column { fill: var(--accent); }
.narrow-only { display: none; }

table.plain { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 14.5px; }
table.plain th { text-align: left; font-weight: 500; color: var(--soft); font-size: 13px; padding: 4px 12px 6px 0; }
table.plain td { border-top: 1px solid var(--line); padding: 6px 12px 6px 0; vertical-align: middle;
  overflow-wrap: anywhere; }
table.plain .right { text-align: right; }
table.plain th:last-child, table.plain td:last-child { padding-right: 0; }
.scroll { overflow-x: auto; }
ul.lines { margin: 0; padding: 0; list-style: none; display: grid; gap: 9px; }
ul.lines li { padding-left: 18px; position: relative; }
ul.lines li::before { content: ""; position: absolute; left: 2px; top: .62em; width: 7px; height: 7px;
  border-radius: 9px; background: var(--guess); }

.rule-line { display: grid; grid-template-columns: minmax(0, 1fr) 150px 48px 92px; gap: 14px; align-items: center;
  padding: 9px 8px; margin: 0 -8px; color: inherit; border-top: 1px solid var(--line); }
.rule-line:hover { text-decoration: none; background: color-mix(in srgb, var(--track) 45%, transparent); }
.rule-line.title { color: var(--soft); font-size: 13px; border: 0; padding-bottom: 2px; }
.rule-line.title:hover { background: none; }
.formula { display: flex; flex-wrap: wrap; gap: 4px 8px; align-items: baseline; overflow-wrap: anywhere; }
.formula b { font-weight: 560; }
.formula .var { color: var(--guess); font-weight: 600; }
.formula .arrow { color: var(--faint); }
table.doubts { border-collapse: collapse; width: 100%; margin-top: 14px; }
.doubts th { text-align: left; font-weight: 500; color: var(--soft); font-size: 13px; padding: 4px 18px 6px 0; }
.doubts td { border-top: 1px solid var(--line); padding: 7px 18px 7px 0; overflow-wrap: anywhere; }
.doubts th.right, .doubts td.right { text-align: right; padding-right: 0; white-space: nowrap; }
.doubts td a { color: inherit; }
.doubts tr.doubt:hover { background: color-mix(in srgb, var(--track) 45%, transparent); }
.bar { display: grid; grid-template-columns: minmax(60px, 150px) 36px; gap: 10px; align-items: center; }
.wait { color: var(--soft); display: flex; gap: 10px; align-items: center; padding: 12px 0; }
pre.code { margin: 6px 0 0; padding: 10px 12px; background: var(--track); border-radius: 9px; overflow-x: auto;
  font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }

@media (max-width: 760px) {
  .bar-top { padding: 7px 14px; gap: 10px; flex-wrap: wrap; }
  nav.main { order: 3; flex-basis: 100%; margin: 0 -6px; }
  nav.main a { padding: 4px 9px; font-size: 14px; }
  .bar-top .gap { flex: 1; }
  main.page { padding: 18px 14px 48px; }
  .two, .asker, .beside { grid-template-columns: 1fr; }
  .beside { gap: 14px; }
  .card { padding: 15px 15px; border-radius: 12px; }
  .answer { grid-template-columns: 22px minmax(0, 1fr) 46px; gap: 4px 10px; }
  .answer .meter { grid-column: 2 / 3; }
  .answer .value { grid-column: 3; grid-row: 1; }
  .answer .gauge { grid-column: 2 / 4; }
  .rule-line { grid-template-columns: minmax(0, 1fr) 46px; gap: 6px 10px; }
  .rule-line.title { display: none; }
  .rule-line .formula { grid-column: 1 / 3; }
  .rule-line .count { display: none; }
  .doubts thead { display: none; }
  .doubts tr { display: grid; grid-template-columns: 1fr auto; gap: 2px 10px; padding: 8px 0;
    border-top: 1px solid var(--line); }
  .doubts td { border: 0; padding: 0; }
  .doubts td:first-child { grid-column: 1 / 3; }
  .doubts td[data-title] { grid-column: 1; display: grid; grid-template-columns: 70px 1fr; align-items: center;
    color: var(--soft); font-size: 13px; }
  .doubts td[data-title]::before { content: attr(data-title); }
  .doubts td.right { grid-column: 2; grid-row: 2 / 4; align-self: center; }
  .bar { grid-template-columns: 1fr 36px; }
  .row-fact { grid-template-columns: minmax(0, 1fr) 84px 38px; gap: 9px; }
  .reason .row-fact { grid-template-columns: minmax(0, 1fr) 56px 34px; gap: 7px; }
  .sentence { font-size: 19px; }
  .wide-only { display: none; }
  .narrow-only { display: block; }
}
@media (min-width: 761px) { .bar-top .gap { display: none; } }
@media (prefers-reduced-motion: no-preference) { .meter .fill { transition: width .35s ease-out; } }
"""
