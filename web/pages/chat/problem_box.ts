// An error as the page shows it: what happened, what to do, the buttons that do it, and details for a report.
import { el } from '../shared/dom.js';
import type { Explanation, Remedy } from '../shared/errors.js';

const labels: Record<Remedy, string> = {
  retry: 'Try again',
  'default-model': 'Load the default model',
  'free-memory': 'Unload the current model and try again',
  settings: 'Open the settings',
  reload: 'Load the model again',
  'default-options': 'Use automatic options and try again',
  model: 'Choose a model',
};

export function problemBox(
  explanation: Explanation,
  act: (remedy: Remedy) => void,
  dismiss?: () => void,
): HTMLElement {
  const buttons = explanation.remedies.map((remedy, index) => {
    const button = el(
      'button',
      { type: 'button', class: index === 0 ? 'button primary' : 'button', 'data-remedy': remedy },
      labels[remedy],
    );
    button.addEventListener('click', () => act(remedy));
    return button;
  });
  if (dismiss) {
    const close = el(
      'button',
      { type: 'button', class: 'button', 'data-testid': 'dismiss' },
      'Dismiss',
    );
    close.addEventListener('click', dismiss);
    buttons.push(close);
  }
  return el(
    'div',
    { class: 'problem', role: 'alert', 'data-testid': 'problem' },
    el('p', { class: 'problem-title' }, explanation.title),
    el('p', { class: 'problem-message' }, explanation.message),
    el('p', {}, explanation.advice),
    el(
      'details',
      {},
      el('summary', {}, 'Details for a report'),
      el('pre', { tabindex: 0 }, explanation.details),
    ),
    el('div', { class: 'button-row' }, ...buttons),
  );
}
