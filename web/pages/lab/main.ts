// The lab page: attention heads, understood and tried.
//
// Stable hooks for tests and for scripts (data-testid or id):
//   page       <body data-state="loading|ready">; model-files, drop-target, toast, theme-toggle
//   by hand    three-x/-wq/-wk/-wv (fields "-row-column"), three-q/-k/-v/-scores/-scaled/-masked/-weights/-out ([data-cell="i,j"]),
//              three-scale, three-mask, three-qknorm (three-qNormed, three-kNormed), three-padding, three-sink, three-reset, three-name, three-text, three-check; heads (fields), heads-n,
//              heads-list ([data-head]), heads-reset; seven (fields), seven-d, seven-shift, seven-article/-three/-equal,
//              seven-table, seven-facts; online-tile, online-next, online-back, online-all, online-table, online-text;
//              sat-d, sat-facts, sat-table, sat-factor, factor-result
//   positions  pos-schemes ([data-scheme]), pos-scaling, pos-style, pos-vectors, pos-d/-r/-b/-f/-t/-c/-h/-n/-m (fields), pos-examples,
//              pos-chart, pos-facts, pos-pairs ([data-pair]), pos-stretch, pos-slopes ([data-slope]), pos-turn-places/-theta (fields),
//              pos-turns ([data-turn])
//   look       <section id="look" data-look="reading|writing|ready">; look-model, look-files, look-text, look-run, look-write,
//              look-label, look-examples, look-status, look-maps (button[data-head]), look-head-name, look-pin, look-strip
//              ([data-row]), look-big, look-note, look-row-title, look-bars, look-facts ([data-facts]), look-labels
//              ([data-label-of]), look-survey-status
//   bytes      preset; preset-table (tr[data-row]; .exact, small), findings, loss-chart ([data-point]), loss-detail,
//              shape-H/-G/-qk/-v/-L/-D/-F/-V/-n (fields; sliders have "-slider"), shape-w, shape-c, shape-reset,
//              cost-parameters, cost-file, cost-kv-token, cost-kv, cost-flops, cost-moved, cost-rates, measure-device,
//              key-notes, item-chart ([data-item]); try-run, try-status, try-table ([data-try]);
//              tensor-tokens, tensor-article, tensor-table ([data-tensor]), tensor-notes; conc-memory, conc-weights, conc-workspace, conc-tokens, conc-unit,
//              conc-list ([data-conc]; .conc-n)
//   phases     phase-prompt, phase-layer, phase-what, phase-without, phase-again, phase-status,
//              phase-embedding, phase-mix, phase-table ([data-phase-tensor])
//   run        run-models, run-what, run-status, run-chart, run-table ([data-run])
//   change     edit-heads ([data-head-cell="layer.head"][data-fate]), edit-kv, edit-cache, edit-qk, edit-v, edit-keep,
//              edit-keep-text, edit-try (buttons), edit-window, edit-sinks, edit-budget, edit-same, edit-prompt, edit-measure, edit-undo, edit-export, edit-name, edit-status, edit-verdict,
//              edit-chart, edit-table ([data-figure]), edit-writes-before/-after, edit-wrong, tried-chart ([data-tried]),
//              tried-table ([data-tried-row]); toy-run, toy-status, toy-table ([data-toy]), toy-map
//   ranks      rank-status, rank-chart, rank-table ([data-rank-layer]), rank-layer, spectrum-chart
//   latent     mla-latent/-rotary/-heads/-width (fields), mla-result
//   exports    [data-export="svg|png|csv|json"]
import { byId } from '../shared/dom.js';
import { fillIcons } from '../shared/icons.js';
import { keepForOffline } from '../shared/offline.js';
import { wireThemeToggle } from '../shared/theme.js';
import { LabPage } from './lab_page.js';

fillIcons(document);
wireThemeToggle(byId('theme-toggle', HTMLButtonElement));
keepForOffline('../');
void new LabPage().start();
