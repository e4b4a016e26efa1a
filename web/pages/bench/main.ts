// The bench page: how fast this browser runs a model, next to what the machine allows.
//
// Stable hooks for tests and for scripts (data-testid):
//   page     <body data-state="idle|running|done|failed">
//   controls model-files, model-name, use-default, module, threads, run, stop, progress, step
//   results  results; decode-rate, prefill-rate, decode-share, prefill-share, verdict (data-verdict="right|wrong|unknown"),
//            hash, figure, stages ([data-stage]), limits, machine, model, stats, report (the text), copy, save
//   others   problem, drop-target, toast, theme-toggle
import { byId } from '../shared/dom.js';
import { fillIcons } from '../shared/icons.js';
import { keepForOffline } from '../shared/offline.js';
import { wireThemeToggle } from '../shared/theme.js';
import { BenchPage } from './bench_page.js';

fillIcons(document);
wireThemeToggle(byId('theme-toggle', HTMLButtonElement));
keepForOffline('../');
new BenchPage().start();
