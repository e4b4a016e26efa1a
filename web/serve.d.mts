/** Types of serve.mjs, for the TypeScript tests. */

export interface ServeOptions {
  /** URL prefix, ending in '/', to folder; the longest prefix wins. */
  mounts: Record<string, string>;
  /** First port to try; 0 (default): any free one. */
  port?: number;
  /** Send COOP and COEP (default true). */
  isolation?: boolean;
  /** Another policy than the pages', or none. */
  contentSecurityPolicy?: string | false;
}

export interface RunningServer {
  /** With a slash at its end. */
  url: string;
  port: number;
  close(): Promise<void>;
}

export declare function serve(options: ServeOptions): Promise<RunningServer>;
export declare function responseHeaders(
  isolation: boolean,
  contentSecurityPolicy?: string | false,
): Record<string, string>;
