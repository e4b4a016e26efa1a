// What the store needs of a file system: a flat folder of files, byte access with a flush, and locks between tabs.
// opfs.ts is the browser's; tests have one in memory that can be killed between any two steps.

export interface StorePlace {
  /** Names of all files. */
  names(): Promise<string[]>;
  /** For writing; made when missing. Only one handle at a time: throws while another is open. */
  open(name: string): Promise<StoreFile>;
  /** For reading, also while others read. Undefined: there is none. */
  read(name: string): Promise<Blob | undefined>;
  /** Nothing happens where there is none. Throws while a handle is open. */
  remove(name: string): Promise<void>;
  /** Undefined: unknown. */
  freeBytes(): Promise<number | undefined>;
  /**
   * Waits for a lock that every tab sees; several may share it, or one have it alone. `onWait` is called when it has to
   * wait. Rejects with AbortedError when the signal fires before.
   */
  lock(name: string, mode: LockMode, wait: LockWait): Promise<Release>;
}

export type LockMode = 'shared' | 'exclusive';
export type Release = () => void;
export interface LockWait {
  signal: AbortSignal;
  onWait(): void;
}

/** As FileSystemSyncAccessHandle. What was written is safe from a kill once flush() has returned, and not before. */
export interface StoreFile {
  getSize(): number;
  read(to: Uint8Array, options: { at: number }): number;
  write(from: Uint8Array, options: { at: number }): number;
  truncate(nBytes: number): void;
  flush(): void;
  close(): void;
}
