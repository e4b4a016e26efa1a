// SHA-256 while bytes stream by, in WASM (hash-wasm). The browser's own digest() wants all bytes at once.
import { createSHA256 } from 'hash-wasm';

export interface Sha256 {
  update(bytes: Uint8Array): void;
  /** 64 hex digits. Call it once. */
  digest(): string;
}

export async function sha256(): Promise<Sha256> {
  const hasher = await createSHA256();
  return {
    update: (bytes) => void hasher.update(bytes),
    digest: () => hasher.digest('hex'),
  };
}

export async function sha256OfText(text: string): Promise<string> {
  const hash = await sha256();
  hash.update(new TextEncoder().encode(text));
  return hash.digest();
}
