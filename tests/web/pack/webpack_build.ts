// Builds an app with webpack as it is without any configuration: entry src/index.js, output dist/main.js.
import { createRequire } from 'node:module';
import path from 'node:path';
import { installOnDemand } from '../../on_demand.mjs';

/** The part of webpack's API that is used; its own types come with its package, which may not be there yet. */
type Webpack = (
  options: { context: string; mode: 'production'; output: { path: string } },
  done: (
    error: Error | null,
    stats?: { toJson(options: object): { errors: Problem[]; warnings: Problem[] } },
  ) => void,
) => { close(done: () => void): void };
interface Problem {
  message: string;
}

const FOLDER = path.join(import.meta.dirname, 'webpack');

/** Resolves to the warnings, and rejects when the build fails. */
export async function buildWithWebpack(context: string): Promise<string[]> {
  installOnDemand(FOLDER);
  const webpack = createRequire(path.join(FOLDER, 'package.json'))('webpack') as Webpack;
  return new Promise((resolve, reject) => {
    const options = { context, mode: 'production', output: { path: path.join(context, 'dist') } };
    const compiler = webpack(options as Parameters<Webpack>[0], (error, stats) => {
      const { errors = [], warnings = [] } =
        stats?.toJson({ all: false, errors: true, warnings: true }) ?? {};
      compiler.close(() => {
        if (error !== null) reject(error);
        else if (errors.length > 0) reject(new Error(errors.map((e) => e.message).join('\n')));
        else resolve(warnings.map(({ message }) => message));
      });
    });
  });
}
