"""The look of the audit page, for light and dark screens."""

CSS = """
:root { color-scheme: light dark; --paper: #fbfbf9; --card: #ffffff; --ink: #1d2126; --soft: #66707c; --line: #e3e5e8;
  --bar: #2f6f9f; --warn: #b4541a; --track: #eef0f2; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --card: #1c2024; --ink: #e6e8ea; --soft: #9aa4ae;
  --line: #2c3238; --bar: #6cb0e0; --warn: #eb9a5c; --track: #262b30; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 980px; margin: 0 auto; padding: 32px 20px 56px; }
h1 { font-size: 26px; margin: 0; }
h2 { font-size: 17px; margin: 0 0 12px; }
p.size, p.note { color: var(--soft); margin: 4px 0 20px; }
p.note { margin: 10px 0 0; font-size: 13px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px;
  margin: 0 0 18px; overflow-x: auto; }
ul { margin: 0; padding-left: 20px; }
li { margin: 4px 0; }

table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 14px 5px 0; text-align: right; border-bottom: 1px solid var(--line); }
p.note + table, .pictures + table { margin-top: 14px; }
th:last-child, td:last-child { padding-right: 0; }
tr:last-child td { border-bottom: 0; }
th { color: var(--soft); font-weight: 500; font-size: 13px; }
th.text, td.text { text-align: left; overflow-wrap: anywhere; }
td.text { min-width: 90px; }
td svg { display: block; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(280px, 1fr)); gap: 18px; }
figure { margin: 0; }
figcaption { font-size: 13px; color: var(--soft); margin-bottom: 4px; }
svg { max-width: 100%; height: auto; }
svg .bar { fill: var(--bar); }
svg .warn { fill: var(--warn); }
svg .track { fill: var(--track); }
svg .axis { stroke: var(--line); }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
"""
