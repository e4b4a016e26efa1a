// The benchmark's result for people.

const rate = (x) => (x >= 100 ? x.toFixed(0) : x.toFixed(1)).padStart(8);
const percent = (x) => `${(x * 100).toFixed(0)} %`;
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;

export function printReport(result) {
  const { ours, peer, limits, ratios } = result;
  const lines = [
    `${result.machine}, ${result.date}`,
    `${result.shape} ${result.type}, ${megabytes(result.fileBytes)}, prompt ${result.prompt}, generated ${result.gen}`,
    `module ${result.module} (dot: ${result.dotForm}), ${result.threads} thread(s), median of ${result.rounds.ours.length} (best)`,
    '',
    'tokens/s            decode              prefill',
    `headlight     ${rate(ours.decodeTokensPerSecond)} (${rate(ours.decodeBest).trim()})   ${rate(ours.prefillTokensPerSecond)} (${rate(ours.prefillBest).trim()})`,
  ];
  if (peer) {
    lines.push(
      `${peer.name.padEnd(12)}  ${rate(peer.decodeTokensPerSecond)} (${rate(peer.decodeBest).trim()})   ${rate(peer.prefillTokensPerSecond)} (${rate(peer.prefillBest).trim()})`,
      `ratio         ${ratios.decodeVsPeer.toFixed(2).padStart(8)}x          ${ratios.prefillVsPeer.toFixed(2).padStart(8)}x`,
    );
  }
  lines.push(
    '',
    `limits: read ${limits.readGBs.toFixed(1)} GB/s, dot ${limits.dotGops.toFixed(0)} Gop/s, multiply-add ${limits.fmaGflops.toFixed(0)} GFLOP/s`,
    `decode uses ${percent(ratios.decodeVsRead)} of the read limit, prefill ${percent(ratios.prefillVsDot)} of the dot limit`,
    `loaded in ${ours.loadMs.toFixed(0)} ms, WASM memory ${megabytes(ours.peakBytes)}, weights ${megabytes(ours.memory.weightsBytes)}`,
  );
  console.log(lines.join('\n'));
}
