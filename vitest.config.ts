// Two projects: `web` runs in Node (the package, the command line, the checks), `browser` drives real browsers.
import { defineConfig } from 'vitest/config';

// Loading a module and a model, and in `browser` starting a browser, on a slow machine.
const webTimeoutMs = 60_000;
const browserTimeoutMs = 180_000;

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'web',
          include: [
            'tests/web/**/*.test.ts',
            'tests/soak/*.test.ts',
            'tests/check/**/*.test.mjs',
            'examples/**/*.test.ts',
          ],
          testTimeout: webTimeoutMs,
          hookTimeout: webTimeoutMs,
        },
      },
      {
        test: {
          name: 'browser',
          include: ['tests/browser/**/*.test.ts', 'tests/soak/browser/**/*.test.ts'],
          testTimeout: browserTimeoutMs,
          hookTimeout: browserTimeoutMs,
          // One browser at a time: timings and memory are measured in some tests.
          fileParallelism: false,
        },
      },
    ],
  },
});
