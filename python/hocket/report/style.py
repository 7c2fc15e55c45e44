"""The style of the report: on a light or dark screen, and printed."""

CSS = """
:root { color-scheme: light dark;
  --paper: #fdfdfc; --ink: #1c1f23; --soft: #5b6168; --rule: #d9dcdf; --grid: #eceeef;
  --io: #0072b2; --waiting: #e69f00; --computing: #9aa1a8; --both: #a8326e;
  --spawning: #d55e00; --constant: #009e73; --variable: #8457c9; --resuming: #3a4046; --size: #d8e0e6;
  --expanded: #a9cbe4; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #15181b; --ink: #e8eaec; --soft: #a5acb3; --rule: #3a4046; --grid: #24292d;
  --io: #56b4e9; --waiting: #f0b429; --computing: #6d757d; --both: #e887b9;
  --spawning: #ff8a3d; --constant: #2fc39b; --variable: #b694f0; --resuming: #d5dadf; --size: #35404a;
  --expanded: #2f628a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 40px 32px 48px; max-width: 1224px; background: var(--paper); color: var(--ink);
  font: 16px/1.5 "Source Sans 3", "Segoe UI", "Helvetica Neue", Helvetica, Arial, sans-serif; }
header { margin-bottom: 24px; }
h1 { font-size: 28px; line-height: 1.2; font-weight: 600; margin: 0 0 6px; letter-spacing: -0.01em; }
h2 { font-size: 18px; font-weight: 600; margin: 0; }
p { margin: 0 0 8px; max-width: 76ch; }
.notes { color: var(--soft); max-width: none; margin: 0 0 2px; font-size: 15px; }
.finding { font-size: 18px; margin: 14px 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; margin: 0 0 10px; }
caption { text-align: left; font-weight: 600; padding-bottom: 8px; }
caption span { font-weight: 400; color: var(--soft); }
th, td { text-align: right; padding: 5px 0 5px 20px; vertical-align: bottom; }
th { font-weight: 600; font-size: 14px; line-height: 1.3; border-bottom: 1.5px solid var(--ink); }
th[scope=rowgroup] { border: 0; font-size: 16px; line-height: 1.5; vertical-align: top; white-space: nowrap; }
td.run { white-space: nowrap; }
td.run small { display: block; color: var(--soft); font-size: 12.5px; }
th:first-child, td.run, th.run { text-align: left; }
th:first-child { padding-left: 0; }
tbody tr:first-child > * { border-top: 1px solid var(--rule); }
tbody:first-of-type tr:first-child > * { border-top: 0; }
tbody:last-of-type { border-bottom: 1.5px solid var(--ink); }
td.none { color: var(--rule); }
table.resizes { margin-top: 32px; }
table.resizes th, table.resizes td { padding-left: 12px; }
table.resizes td { font-size: 15px; vertical-align: top; white-space: nowrap; }
table.resizes th[scope=rowgroup] { text-align: left; padding: 8px 0 0; }
table.resizes td small { display: block; color: var(--soft); font-size: 12.5px; }
table.resizes .words { text-align: left; }
table.resizes td.reason { text-align: left; white-space: normal; overflow-wrap: anywhere; color: var(--both); }
.key { display: flex; flex-wrap: wrap; gap: 6px 28px; margin: 32px 0 4px; padding: 0; list-style: none;
  font-size: 15px; }
.key svg { vertical-align: -6px; margin-right: 8px; }
figure { margin: 22px 0 0; break-inside: avoid; }
figcaption p { max-width: none; color: var(--soft); margin: 2px 0 6px; }
svg.timeline { display: block; width: 100%; height: auto; }
svg text { fill: var(--ink); font: 13px "Source Sans 3", "Segoe UI", "Helvetica Neue", Helvetica, Arial, sans-serif;
  font-variant-numeric: tabular-nums; }
svg text.name { font-size: 15px; font-weight: 600; }
svg text.about, svg text.tick { fill: var(--soft); font-size: 12.5px; }
.io { fill: var(--io); } .waiting { fill: var(--waiting); } .computing { fill: var(--computing); }
.both { fill: var(--both); } .size { fill: var(--size); }
.spawning { fill: var(--spawning); } .constant { fill: var(--constant); } .variable { fill: var(--variable); }
.resuming { fill: var(--resuming); }
.change { fill: var(--ink); fill-opacity: 0.16; } .change.given-up { fill: var(--both); fill-opacity: 0.3; }
.mark { fill: var(--ink); } .mark.given-up { fill: none; stroke: var(--both); stroke-width: 2.2; }
.size.expanded { fill: var(--expanded); }
.conflict { fill: var(--both); fill-opacity: 0.1; stroke: var(--both); stroke-dasharray: 3 2; }
.decided { fill: var(--ink); stroke: none; }
.decided.leaves { fill: var(--paper); stroke: var(--ink); stroke-width: 1.6; }
.decided.met { fill: var(--constant); } .decided.off { fill: none; stroke: var(--both); stroke-width: 2.2; }
svg text.count { font-size: 12.5px; }
.grid { stroke: var(--grid); } .axis { stroke: var(--soft); }
svg text.lost { fill: var(--both); font-size: 16px; font-weight: 600; }
table.decisions td { white-space: normal; text-align: left; }
table.decisions td:first-child, table.decisions td:nth-child(2) { white-space: nowrap; }
table.decisions .off { color: var(--both); }
g.lane rect:hover, rect.both:hover, .decided:hover { opacity: 0.75; }
footer { margin-top: 36px; padding-top: 10px; border-top: 1px solid var(--rule); color: var(--soft); font-size: 14px; }
footer p { max-width: none; margin: 0 0 4px; overflow-wrap: anywhere; }
@media screen and (max-width: 1000px) { /* the pictures shrink with the page, their letters less */
  svg text { font-size: 15.5px; } svg text.name { font-size: 16px; }
  svg text.about, svg text.tick { font-size: 14.5px; }
  th, td { padding-left: 12px; }
  table.resizes th, table.resizes td { padding-left: 7px; font-size: 13px; white-space: normal; } }
@page { size: A4 landscape; margin: 12mm; }
@media print {
  :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --rule: #bbb; --grid: #e6e6e6;
    --io: #0072b2; --waiting: #e69f00; --computing: #8a9097; --both: #a8326e;
    --spawning: #d55e00; --constant: #009e73; --variable: #8457c9; --resuming: #3a4046; --size: #d8e0e6;
    --expanded: #a9cbe4; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { padding: 0; max-width: none; font-size: 9.5pt; line-height: 1.35; }
  h1 { font-size: 17pt; }
  .notes { font-size: 9pt; }
  h2, .finding { font-size: 11.5pt; }
  .finding { margin: 8pt 0 10pt; max-width: none; }
  th, th[scope=rowgroup], .key { font-size: 9.5pt; }
  th, td { padding-top: 2pt; padding-bottom: 2pt; }
  table { break-inside: avoid; }
  .key { margin-top: 12pt; }
  figure { margin-top: 10pt; }
  footer { margin-top: 12pt; font-size: 8pt; break-inside: avoid; }
}
"""
