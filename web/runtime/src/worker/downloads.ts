// What loading makes of downloads and stored files: begins anew where it must, takes out of the store what is no good, waits
// for other tabs, and tells in the end where the bytes came from.
import { HeadlightError } from '../errors.js';
import type { SourceWire } from '../protocol.js';
import type { DownloadReport } from '../store/stored_source.js';
import { StartAnew } from '../store/transfer.js';
import type { DownloadInfo } from '../types.js';
import { type OpenedSource, openSource, type SourceContext } from './sources.js';

/** A server whose file changes during each download, or breaks off without a way to go on. */
const MAX_RESTARTS = 3;
const WAITING_MS = 200;

/** A download or a stored file may turn out to be of no use when a part of it is loaded already. */
export async function startingAnew<T>(
  work: (notices: readonly string[]) => Promise<T>,
): Promise<T> {
  const notices: string[] = [];
  for (;;) {
    try {
      return await work(notices);
    } catch (error) {
      if (!(error instanceof StartAnew)) throw error;
      if (notices.length === MAX_RESTARTS) throw error.failure;
      notices.push(`begun anew: ${error.message}`);
    }
  }
}

/** Workers that look into the store at the same moment wait for each other too short to be told. */
export async function openAfterWaiting(
  source: SourceWire,
  index: number,
  context: Omit<SourceContext, 'onWait'>,
  onWaiting: () => void,
): Promise<OpenedSource> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const onWait = () => {
    timer ??= setTimeout(onWaiting, WAITING_MS);
  };
  try {
    return await openSource(source, index, { ...context, onWait });
  } finally {
    clearTimeout(timer);
  }
}

/** What is no good must not stay in the store. What came from there gets one more chance, from the network. */
export async function afterFault(opened: OpenedSource, error: unknown): Promise<unknown> {
  if (!(error instanceof HeadlightError)) return error;
  const isBroken = error.code === 'BadModel' || error.code === 'Integrity';
  if (isBroken || (error.code === 'Unsupported' && !opened.fromStore)) await opened.forget?.();
  return isBroken && opened.fromStore ? new StartAnew(error) : error;
}

/** A file's report, and that of its download ahead of its turn. */
export interface FileReports {
  main: DownloadReport;
  ahead: DownloadReport | undefined;
}

export function downloadInfo(
  reports: readonly FileReports[],
  notices: readonly string[],
): DownloadInfo | undefined {
  if (reports.length === 0) return undefined;
  const files = reports.map(({ main, ahead }) => {
    const aheadBytes = ahead?.fromNetworkBytes ?? 0;
    const fromNetworkBytes = main.fromNetworkBytes + aheadBytes;
    // What came ahead went through the store only to be read from there.
    return {
      ...main,
      fromNetworkBytes,
      fromStoreBytes: Math.max(0, main.fromStoreBytes - aheadBytes),
    };
  });
  const sum = (bytes: 'fromNetworkBytes' | 'fromStoreBytes') =>
    files.reduce((total, file) => total + file[bytes], 0);
  return {
    fromNetworkBytes: sum('fromNetworkBytes'),
    fromStoreBytes: sum('fromStoreBytes'),
    kept: files.every(({ kept }) => kept),
    sha256: files.map(({ sha256 }) => sha256),
    notices: [...notices, ...files.flatMap((file) => file.notices)],
  };
}
