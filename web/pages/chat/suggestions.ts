// What the empty page offers to try, and what may be asked next. For the default model: only what it was trained for and
// gets right with any seed (30 of 30 tried, at the page's settings).

export interface Suggestion {
  title: string;
  prompt: string;
  /** Offered once the answer has come, while it is the last one. */
  followUps: readonly string[];
}

const defaultModelSuggestions: readonly Suggestion[] = [
  {
    title: 'Remember what I tell you',
    prompt: 'My name is Nora. I keep a green kite in the attic.',
    followUps: ['What colour is my kite?', 'Where is my kite?', 'What is my name?'],
  },
  {
    title: 'Tell a story',
    prompt: 'Tell me a story about a brave mouse and a lantern.',
    followUps: ['Who was the story about?', 'Tell me another story.'],
  },
  {
    title: 'Look something up',
    prompt:
      'The code for box seven is 4192. The code for the red door is 8805. ' +
      'The code for gate two is 371. What is the code for the red door?',
    followUps: ['What is the code for box seven?', 'What is the code for gate two?'],
  },
  {
    title: 'Who has what',
    prompt:
      'Tom has a red boat. Lily has a blue hat. Omar keeps a silver key under the rug. Who has the hat?',
    followUps: ['Where is the key?', 'Who has the boat?'],
  },
  { title: 'Repeat after me', prompt: 'Repeat after me: café 你好 naïve', followUps: [] },
  { title: 'Introduce yourself', prompt: 'Who are you?', followUps: ['What can you do?'] },
];

const generalSuggestions: readonly Suggestion[] = [
  {
    title: 'Explain something',
    prompt: 'Explain in three short sentences how attention works in a language model.',
    followUps: ['Explain it to a ten-year-old.'],
  },
  {
    title: 'Write code',
    prompt: 'Write a JavaScript function that tells whether a word is a palindrome.',
    followUps: ['Add a test for it.'],
  },
  {
    title: 'Make a table',
    prompt: 'Compare tea and coffee in a short table.',
    followUps: ['Add a row about caffeine.'],
  },
  {
    title: 'Write a poem',
    prompt: 'Write a short poem about a lighthouse.',
    followUps: ['Make it rhyme.'],
  },
];

/** For models that only continue a text. */
const plainSuggestions: readonly Suggestion[] = [
  { title: 'Begin a story', prompt: 'Once upon a time, there was a little', followUps: [] },
  { title: 'Continue a sentence', prompt: 'The small boat left the harbour and', followUps: [] },
];

export type ModelKind = 'default' | 'chat' | 'plain';

export function suggestionsFor(kind: ModelKind): readonly Suggestion[] {
  if (kind === 'default') return defaultModelSuggestions;
  return kind === 'chat' ? generalSuggestions : plainSuggestions;
}

/** What to offer after `asked` (the user's messages so far): the rest of that suggestion's questions. */
export function followUpsFor(kind: ModelKind, asked: readonly string[]): string[] {
  const suggestions = suggestionsFor(kind);
  const prompts = suggestions.map(({ prompt }) => prompt);
  const started = asked.findLastIndex((text) => prompts.includes(text));
  const suggestion = suggestions.find(({ prompt }) => prompt === asked[started]);
  if (suggestion === undefined) return [];
  const since = asked.slice(started + 1);
  // The user took another way: no more help.
  if (!since.every((text) => suggestion.followUps.includes(text))) return [];
  return suggestion.followUps.filter((text) => !since.includes(text));
}
