// Each check must be able to fail: it is fed one snippet that offends and one that does not.
import { describe, expect, it } from 'vitest';
import { decoderNameFindings, forbiddenTextFindings } from './forbidden_text.mjs';
import { includeDirectionFindings } from './include_direction.mjs';
import { doctestCounts, isGood, summaryLine, vitestCounts, withExitCode } from './run_tests.mjs';
import { cppFunctions, parameterCount, sizeFindings } from './size_limits.mjs';

const file = (path, text) => [{ path, text }];

describe('include direction', () => {
  const findings = (path, text) => includeDirectionFindings(file(path, text));

  it.each([
    ['src/kernels/a.cc', '#include "quant/packed.h"\n#include "kernels/b.h"\n#include <vector>\n'],
    ['src/lab/a.h', '#include "session/session.h"\n'],
    ['web/pages/chat/main.ts', "import { Engine } from 'headlight-wasm';\n"],
    ['web/pages/lab/main.ts', "import { HeadLab } from 'headlight-wasm/lab';\n"],
    ['examples/page/main.js', "import { Engine } from './headlight-wasm/index.js';\n"],
    ['tests/cpp/kv/kv_test.cc', '#include "session/session.h"\n'],
  ])('%s may include what comes before it', (path, text) => {
    expect(findings(path, text)).toEqual([]);
  });

  it.each([
    ['a later folder', 'src/kv/a.cc', '#include "model/model.h"\n'],
    ['a sibling', 'src/gguf/a.cc', '#include "quant/packed.h"\n'],
    ['a path relative to itself', 'src/kv/a.cc', '#include "../base/error.h"\n'],
    ['a bare name', 'src/kv/a.cc', '#include "kv_cache.h"\n'],
    ['the bindings', 'src/lab/a.cc', '#include "wasm/guard.h"\n'],
    ['the inside of the package', 'web/pages/chat/main.ts', "import '../../runtime/src/engine';\n"],
    ['a deep import of the lab', 'examples/a.ts', "import 'headlight-wasm/lab/shape.js';\n"],
    ['a deep import', 'examples/a.ts', "await import('headlight-wasm/dist/engine.js');\n"],
  ])('%s is an offence', (_what, path, text) => {
    expect(findings(path, text)).toHaveLength(1);
    expect(findings(path, `\n${text}`)[0]).toContain(`${path}:2`);
  });

  it('a folder outside the order is an offence', () => {
    expect(findings('src/utils/a.h', '')).toHaveLength(1);
  });
});

describe('size limits', () => {
  const lines = (n) => '  f();\n'.repeat(n);

  it('a file of 400 lines passes and one of 401 does not', () => {
    expect(sizeFindings(file('src/kv/a.h', '\n'.repeat(400)))).toEqual([]);
    expect(sizeFindings(file('src/kv/a.h', '\n'.repeat(401)))).toHaveLength(1);
    expect(sizeFindings(file('notes.md', '\n'.repeat(401)))).toEqual([]);
  });

  it('a function of 60 lines passes and one of 61 does not', () => {
    const text = (n) => `namespace a {\nvoid F(int x) {\n${lines(n - 2)}}\n}  // namespace a\n`;
    expect(sizeFindings(file('src/kv/a.cc', text(60)))).toEqual([]);
    expect(sizeFindings(file('src/kv/a.cc', text(61)))).toEqual([
      'src/kv/a.cc:2: a function of 61 lines, at most 60',
    ]);
  });

  it('six parameters pass and seven do not', () => {
    const text = (n) =>
      `int F(${Array(n).fill('std::map<int, int> m').join(', ')}) { return 0; }\n`;
    expect(sizeFindings(file('src/kv/a.cc', text(6)))).toEqual([]);
    expect(sizeFindings(file('src/kv/a.cc', text(7)))).toHaveLength(1);
  });

  it('braces in strings, comments, initialisers and classes do not confuse it', () => {
    const text = `
// { a comment (
constexpr int kTable[] = {1, 2};
struct S {
  S(int a, int b) : a_{a}, b_(b) { Run("}{"); }
  int Get() const noexcept { return a_; }
  int a_{0};
};
template <typename T>
auto Make(T t) -> int {
  auto f = [&](int x) { return x; };
  return f(t);
}
TEST_CASE("a name, with (a comma" * doctest::skip(true)) {
}
`;
    const found = cppFunctions(text).map(({ header }) => header.replace(/\s+/g, ' '));
    expect(found).toHaveLength(4);
    expect(found[0]).toMatch(/^S\(int a, int b\)/);
    expect(found[1]).toMatch(/^int Get/);
    expect(found[2]).toMatch(/Make\(T t\)/);
    expect(parameterCount(found[0])).toBe(2);
    expect(parameterCount('int F()')).toBe(0);
  });
});

describe('forbidden text', () => {
  it('a path of one machine or the host of a registry is an offence', () => {
    const root = ['', 'root', 'x'].join('/');
    const host = ['registry', 'npmjs', 'org'].join('.');
    expect(forbiddenTextFindings(file('a.md', `see ${root}`))).toHaveLength(1);
    expect(forbiddenTextFindings(file('a.sh', `cd "${root}"`))).toHaveLength(1);
    expect(forbiddenTextFindings(file('a.json', `"https://${host}/x"`))).toHaveLength(1);
    expect(forbiddenTextFindings(file('a.sh', 'ls "$prefix/root/usr" ./work/x'))).toEqual([]);
  });

  it('the decoder names no architecture; the table may', () => {
    expect(decoderNameFindings(file('src/model/decoder.cc', '// as Gemma2 does'))).toHaveLength(1);
    expect(decoderNameFindings(file('src/model/decoder.cc', 'LayerSpec spec;'))).toEqual([]);
    expect(decoderNameFindings(file('src/model/arch_table.cc', '"gemma2"'))).toEqual([]);
  });
});

describe('the summary of npm test', () => {
  it('reads the closing line of doctest and no other', () => {
    const line = '[doctest] test cases:  9 |  7 passed | 1 failed | 1 skipped';
    expect(doctestCounts(line)).toEqual({ passed: 7, failed: 1, skipped: 1 });
    expect(doctestCounts('[doctest] assertions: 9 | 9 passed | 0 failed |')).toBeUndefined();
  });

  it('a runner that crashes, or says nothing, has failed', () => {
    expect(withExitCode({ passed: 3, failed: 0, skipped: 0 }, 139).failed).toBe(1);
    expect(withExitCode(undefined, 0).failed).toBe(1);
    expect(withExitCode({ passed: 3, failed: 2, skipped: 0 }, 1).failed).toBe(2);
    expect(withExitCode({ passed: 3, failed: 0, skipped: 0 }, 0).failed).toBe(0);
  });

  it('a vitest file that did not load counts as a failure', () => {
    const report = {
      ...{ numPassedTests: 2, numFailedTests: 1, numPendingTests: 1, numTodoTests: 1 },
      testResults: [
        { status: 'failed', assertionResults: [] },
        { status: 'failed', assertionResults: [{}] },
        { status: 'passed', assertionResults: [{}] },
      ],
    };
    expect(vitestCounts(report)).toEqual({ passed: 2, failed: 2, skipped: 2 });
  });

  it('no test, a failure, or a skip where none may be, is not good', () => {
    expect(isGood({ passed: 0, failed: 0, skipped: 0 }, false)).toBe(false);
    expect(isGood({ passed: 5, failed: 1, skipped: 0 }, false)).toBe(false);
    expect(isGood({ passed: 5, failed: 0, skipped: 1 }, true)).toBe(false);
    expect(isGood({ passed: 5, failed: 0, skipped: 1 }, false)).toBe(true);
    expect(summaryLine({ passed: 5, failed: 0, skipped: 1 })).toBe('5 passed, 0 failed, 1 skipped');
  });
});
