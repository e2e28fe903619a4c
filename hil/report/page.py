"""Style sheet and script of report.html. Colours are the variables of `style.COLOURS`."""

from __future__ import annotations

STYLE = """
*{box-sizing:border-box}
body{margin:0;background:var(--band_a);color:var(--fg);
 font:14px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif}
main{max-width:1480px;margin:0 auto;padding:14px 20px 48px}
header{display:flex;justify-content:space-between;align-items:flex-start;gap:12px}
h1{margin:0;font-size:24px;letter-spacing:-.01em}
header p{margin:2px 0 10px;color:var(--muted)}
h2{margin:0 0 6px;font-size:16px}
.verdict{font-size:13px;font-weight:700;text-transform:uppercase;letter-spacing:.06em;color:#fff;padding:3px 10px;
 border-radius:99px;vertical-align:4px;margin-left:6px}
.verdict.passed{background:#1a8a54}.verdict.failed{background:#c9302c}
#theme{border:1px solid var(--grid);background:var(--panel);color:var(--fg);border-radius:8px;font-size:16px;
 line-height:1;padding:7px 10px;cursor:pointer}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(148px,1fr));gap:10px;margin-bottom:10px}
.tile{background:var(--panel);border:1px solid var(--grid);border-radius:10px;padding:8px 12px;min-width:0}
.tile span{display:block;color:var(--muted);font-size:12px}
.tile b{display:block;font-size:21px;font-weight:650;white-space:nowrap;font-variant-numeric:tabular-nums}
.tile b code{font-size:13px;line-height:31px}
.tile.bad b{color:var(--red)}
.tile small{font-size:13px;font-weight:500;color:var(--muted)}
.tile i{display:block;font-style:normal;color:var(--muted);font-size:12px}
section,.hero figure{background:var(--panel);border:1px solid var(--grid);border-radius:10px}
section{padding:14px 16px;margin-top:14px}
.top{align-items:start}.top section{height:calc(100% - 14px)}
.sub{color:var(--muted);margin:-4px 0 8px}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,520px),1fr));gap:12px}
.hero figure:only-child{max-width:860px}
figure{margin:0;min-width:0}
.hero figure{padding:8px 10px}.pair:not(.hero) figure{max-width:760px}
figure svg{display:block;width:100%;height:auto}
figure svg text{font-family:inherit!important}
.note{background:var(--panel);border:1px solid var(--grid);border-left:5px solid var(--muted);border-radius:8px;
 padding:8px 12px;margin-bottom:10px}
.note.warn{border-left-color:var(--gold)}.note.bad{border-left-color:var(--red)}
.note ul{margin:4px 0;padding-left:20px}.note p{margin:4px 0 0}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:auto;min-width:min(100%,420px);margin:4px 0}
th{color:var(--muted);font-weight:500;font-size:12.5px;text-align:left}
td,th{padding:4px 16px 4px 0;border-bottom:1px solid var(--grid);vertical-align:top}
table.numbers td:not(:first-child),table.numbers th:not(:first-child){text-align:right;
 font-variant-numeric:tabular-nums}
.ok{color:var(--green);font-weight:650}span.bad{color:var(--red);font-weight:750}
span.warn{color:var(--gold);font-weight:650}
code{font:12.5px/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(190px,1fr));gap:6px 18px;margin:8px 0 0}
dl div{min-width:0}dt{color:var(--muted);font-size:12px}dd{margin:0;overflow-wrap:anywhere}
summary{cursor:pointer;color:var(--blue);padding:4px 0}
@media print{body{background:#fff}#theme{display:none}section,figure{break-inside:avoid}}
"""

SCRIPT = """
document.getElementById('theme').onclick=()=>{const r=document.documentElement;
const dark=r.dataset.theme?r.dataset.theme==='dark':matchMedia('(prefers-color-scheme:dark)').matches;
r.dataset.theme=dark?'light':'dark'};
"""
