// The functions that chat templates may call besides Jinja's own: range, strftime_now, raise_exception.
// For chat_template.ts. Written here because the library's are unbounded and take the browser's language.

import type { WorkBudget } from './jinja_budget.js';

/** What the template itself refuses, e.g. roles that do not alternate. */
export class TemplateRefusal extends Error {}

export function templateGlobals(budget: WorkBudget, now: Date): Record<string, unknown> {
  return {
    true: true,
    false: false,
    none: null,
    True: true,
    False: false,
    None: null,
    range: (first: number, stop?: number, step?: number) => range(budget, first, stop, step),
    strftime_now: (format: string) => strftime(now, format),
    raise_exception: (message: unknown) => {
      throw new TemplateRefusal(String(message));
    },
  };
}

/** Python's range(), paid for before it is made. */
function range(budget: WorkBudget, first: number, stop?: number, step = 1): number[] {
  const from = stop === undefined ? 0 : first;
  const to = stop ?? first;
  if (step === 0) throw new Error('range() step must not be zero');
  const count = Math.max(Math.ceil((to - from) / step), 0);
  budget.spend(count);
  return Array.from({ length: count }, (_, i) => from + i * step);
}

const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];
const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const SHORT_NAME = 3;

/** C's strftime in the C locale, local time; conversions that it does not know stay as they are. */
export function strftime(date: Date, format: string): string {
  const two = (n: number): string => String(n).padStart(2, '0');
  const hour12 = date.getHours() % 12 === 0 ? 12 : date.getHours() % 12;
  const month = MONTHS[date.getMonth()] ?? '';
  const day = DAYS[date.getDay()] ?? '';
  const fields: Record<string, string> = {
    Y: String(date.getFullYear()),
    y: two(date.getFullYear() % 100),
    m: two(date.getMonth() + 1),
    d: two(date.getDate()),
    e: String(date.getDate()).padStart(2),
    B: month,
    b: month.slice(0, SHORT_NAME),
    A: day,
    a: day.slice(0, SHORT_NAME),
    H: two(date.getHours()),
    I: two(hour12),
    M: two(date.getMinutes()),
    S: two(date.getSeconds()),
    p: date.getHours() < 12 ? 'AM' : 'PM',
    '%': '%',
  };
  return format.replace(/%([-]?)([A-Za-z%])/g, (whole, minus: string, letter: string) => {
    const field = fields[letter];
    if (field === undefined) return whole;
    return minus === '' ? field : field.replace(/^[0 ](?=.)/, '');
  });
}
