// How a page looks. Invariant: no reference outside the page; light in print and by default, dark
// where the reader's screen asks for it; wide tables scroll by themselves on a phone.
#pragma once

namespace hebe::report {

inline constexpr const char* kPageStyle = R"css(
:root { color-scheme: light dark; --ground: #ffffff; --ink: #1c2126; --faint: #5b6570; --rule: #d5dade; --tint: #f3f5f7;
  --good: #1d6b34; --bad: #a3231c; --banner: #8a1c14; --banner-ink: #ffffff; }
@media screen and (prefers-color-scheme: dark) { :root { --ground: #161a1e; --ink: #e8eaed; --faint: #a3adb8; --rule: #363d45;
  --tint: #20262b; --good: #7fd191; --bad: #ff9c92; --banner: #b3362b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem 1rem 3rem; max-width: 60rem; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, "Liberation Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0.4rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 0.6rem; padding-top: 0.6rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1.05rem; margin: 1.6rem 0 0.5rem; overflow-wrap: anywhere; }
.verdict { font-size: 1.15rem; margin: 0.6rem 0; overflow-wrap: anywhere; }
.banner { background: var(--banner); color: #ffffff; font-weight: 700; padding: 0.7rem 1rem; border-radius: 4px; }
.good { color: var(--good); font-weight: 600; white-space: nowrap; } .bad { color: var(--bad); font-weight: 600; white-space: nowrap; }
.unknown { color: var(--faint); font-style: italic; } small { color: var(--faint); font-weight: 400; font-size: 0.85em; }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 0.82em; overflow-wrap: anywhere; word-break: break-all; }
pre { overflow-x: auto; font-size: 0.82rem; background: var(--tint); padding: 0.8rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.6rem 0.35rem 0; border-bottom: 1px solid var(--rule); }
th { font-weight: 600; } tbody th[scope="row"] { font-weight: 400; color: var(--faint); }
td { overflow-wrap: anywhere; } .number { white-space: nowrap; }
.scroll { overflow-x: auto; } .scroll table { min-width: 44rem; }
.effects .group th { background: var(--tint); padding: 0.45rem 0.5rem; border-bottom: 0; }
.effects td { overflow-wrap: normal; white-space: nowrap; } .effects tbody th[scope="row"] { padding-left: 0.5rem; white-space: nowrap; }
.arms { table-layout: fixed; } .arms th:first-child { width: 28%; }
.facts th { width: 28%; overflow-wrap: anywhere; } .conditions { table-layout: fixed; }
.conditions th:first-child { width: 26%; } .conditions th:nth-child(2) { width: 11%; }
.forest { display: block; width: 100%; max-width: 36rem; height: auto; margin: 0 auto; }
@media (max-width: 34rem) { body { padding: 0.8rem 0.7rem 2rem; } h1 { font-size: 1.35rem; } table { font-size: 0.84rem; }
  .arms th:first-child, .facts th { width: 30%; } .conditions th:first-child { width: 30%; } .conditions th:nth-child(2) { width: 16%; } }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } .banner { border: 2px solid #8a1c14; color: #8a1c14; background: none; }
  table { font-size: 8.5pt; } .forest { max-width: 25rem; margin: 0; } .scroll { overflow: visible; } .scroll table { min-width: 0; font-size: 8pt; } tr, svg { break-inside: avoid; } h2, h3 { break-after: avoid; } }
)css";

} // namespace hebe::report
