// Which key strokes mean what. Pure, so that the cases (input methods above all) stand in a table of tests.

export interface KeyStroke {
  key: string;
  shiftKey: boolean;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  isComposing: boolean;
  keyCode: number;
}

// While an input method composes, Enter accepts its candidate. Safari ends the composition before it reports that key,
// which then only carries this code.
const compositionKeyCode = 229;

export function isComposingKey({ isComposing, keyCode }: KeyStroke): boolean {
  return isComposing || keyCode === compositionKeyCode;
}

/** Enter sends (also with Ctrl or Cmd); Shift+Enter and Alt+Enter make a new line. */
export function isSubmitKey(stroke: KeyStroke): boolean {
  return stroke.key === 'Enter' && !stroke.shiftKey && !stroke.altKey && !isComposingKey(stroke);
}

/** A plain Arrow Up in an empty field: edit the last message. */
export function isRecallKey(stroke: KeyStroke, fieldText: string): boolean {
  const modified = stroke.shiftKey || stroke.ctrlKey || stroke.metaKey || stroke.altKey;
  return stroke.key === 'ArrowUp' && !modified && !isComposingKey(stroke) && fieldText === '';
}
