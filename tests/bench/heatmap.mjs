// node tests/bench/heatmap.mjs [--seconds 3]: frames a second and main-thread time a frame while the pointer moves over the lab
// page's largest map, 512 x 512 weights, in Chromium. Needs the built pages; prints one JSON line.
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import puppeteer from 'puppeteer-core';
import { serve } from '../../web/serve.mjs';

const pages = fileURLToPath(new URL('../../build/pages', import.meta.url));
const { values } = parseArgs({ options: { seconds: { type: 'string', default: '3' } } });
const seconds = Number(values.seconds);
if (!(seconds > 0)) throw new Error(`--seconds ${values.seconds}: give a number above 0`);

/** More tokens than the page shows, which are 512. */
const kText = 'Once upon a time a small lamp stood in a window. '.repeat(60);

const server = await serve({ mounts: { '/': pages }, isolation: true });
const browser = await puppeteer.launch({
  executablePath: process.env.HEADLIGHT_CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu'],
});
try {
  const page = await browser.newPage();
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(`${server.url}lab/?lt=${encodeURIComponent(kText)}`);
  await page.waitForFunction(() => document.body.dataset.state === 'ready');
  await page.evaluate(() => document.getElementById('look').scrollIntoView());
  const canvas = await page.waitForFunction(
    () => {
      const map = document.querySelector('#look-big canvas');
      const isReady = document.getElementById('look').dataset.look === 'ready';
      return isReady && map?.width === 512 && map;
    },
    { timeout: 120_000 },
  );
  await canvas.evaluate((map) => map.scrollIntoView({ block: 'center' }));
  const box = await canvas.boundingBox();
  // Frames are counted in the page, between the first move and the last.
  await page.evaluate(() => {
    globalThis.frames512 = [];
    const tick = (at) => {
      globalThis.frames512.push(at);
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  const before = await page.metrics();
  const start = performance.now();
  let moves = 0;
  while (performance.now() - start < seconds * 1000) {
    const share = (performance.now() - start) / 1000;
    const along = (speed) => 0.5 + 0.49 * Math.sin(speed * share);
    await page.mouse.move(box.x + box.width * along(5), box.y + box.height * along(3.1));
    moves += 1;
  }
  const after = await page.metrics();
  const times = await page.evaluate(() => globalThis.frames512);
  const gaps = times.slice(1).map((at, i) => at - times[i]);
  gaps.sort((a, b) => a - b);
  const of = (share) => Number(gaps[Math.floor(share * (gaps.length - 1))].toFixed(1));
  const elapsed = times.at(-1) - times[0];
  console.log(
    JSON.stringify({
      date: new Date().toISOString().slice(0, 10),
      cpu: cpus()[0]?.model,
      load: loadavg()[0],
      version: await browser.version(),
      weights: '512 x 512',
      moves,
      framesPerSecond: Number(((1000 * gaps.length) / elapsed).toFixed(1)),
      frameMs: { median: of(0.5), p95: of(0.95), longest: of(1) },
      mainThreadMsPerFrame: Number(
        ((1000 * (after.TaskDuration - before.TaskDuration)) / gaps.length).toFixed(2),
      ),
    }),
  );
} finally {
  await browser.close();
  await server.close();
}
