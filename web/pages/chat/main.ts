// The chat page: puts its parts together. Everything that thinks lives in the modules; here are only the wires.
//
// Stable hooks for tests and for scripts (data-testid unless said otherwise):
//   page        <html data-theme="light|dark">; <body data-state="loading|ready|running|no-model">
//   header      model-button, new-chat, settings-button, theme-toggle
//   welcome     welcome, suggestions (buttons inside), follow-ups (buttons inside)
//   transcript  transcript; user-message (user-text, edit, copy; edit-input, edit-send, edit-cancel),
//               answer (answer-body, wait, answer-note, stats, copy, regenerate, variant-previous, variant-next,
//               variant-position, think, think-summary), notice, context-full; articles carry data-turn;
//               a running answer has aria-busy="true"; copy buttons of code have [data-copy-code]
//   composer    input, send, stop, composer-note (why sending is blocked), jump-to-end
//   status      context (role=meter inside), speed, runtime-button
//   loading     load-strip; loading, load-bytes, load-needs, load-cancel; no-model, strip-load-default;
//               problem (role=alert; buttons with data-remedy="retry|reload|default-model|free-memory|default-options|settings|model"), dismiss
//   dialogs     settings-dialog (system-prompt, field-temperature, field-topK, field-topP, field-minP,
//               field-repetitionPenalty, field-maxTokens, field-seed, sampling-reset, export-markdown, export-json,
//               keep-chat, clear-stored); model-dialog (model-info, info-name, reasons, model-files, load-default,
//               model-url, load-url, source-error, stored (stored-model; stored-load, stored-save, stored-delete), stored-use,
//               stored-status, field-nCtx, field-threads, field-module, field-kvCache, reload-model)
//   others      drop-target, toast, toast-action, live-log (sentences for screen readers), live-status
import { byId } from '../shared/dom.js';
import { fillIcons } from '../shared/icons.js';
import { keepForOffline } from '../shared/offline.js';
import { wireThemeToggle } from '../shared/theme.js';
import { ChatPage } from './page.js';

fillIcons(document);
wireThemeToggle(byId('theme-toggle', HTMLButtonElement));
keepForOffline('./');
new ChatPage().start();
