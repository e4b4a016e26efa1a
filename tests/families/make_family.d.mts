export function makeFamily(name: string): Buffer;
