// The hand-written wasm/headlight.d.ts says what the live module has: no method more, none less.
import { existsSync, readFileSync } from 'node:fs';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import type createHeadlight from '../../../wasm/headlight.js';

const declarationsUrl = new URL('../../../wasm/headlight.d.ts', import.meta.url);
const glueUrl = new URL('../../../web/runtime/dist/wasm/headlight-simd.node.mjs', import.meta.url);

/** Names of the methods of an interface in the declarations, its own only. */
function declaredMethods(interfaceName: string): string[] {
  const source = ts.createSourceFile(
    'headlight.d.ts',
    readFileSync(declarationsUrl, 'utf8'),
    ts.ScriptTarget.Latest,
  );
  const found: string[] = [];
  source.forEachChild((node) => {
    if (!ts.isInterfaceDeclaration(node) || node.name.text !== interfaceName) return;
    for (const member of node.members) {
      if (ts.isMethodSignature(member)) found.push((member.name as ts.Identifier).text);
    }
  });
  return found.sort();
}

type Live = Record<string, { prototype: object }> & Awaited<ReturnType<typeof createHeadlight>>;

async function loadModule(): Promise<Live> {
  if (!existsSync(glueUrl)) throw new Error('the module is not built: run `npm run build:wasm`');
  const glue = (await import(glueUrl.href)) as { default: typeof createHeadlight };
  return (await glue.default()) as Live;
}

/** Methods that Embind gives to every object. */
const kEmbindMethods = new Set([
  'constructor',
  'clone',
  'delete',
  'deleteLater',
  'isAliasOf',
  'isDeleted',
]);

describe('headlight.d.ts', async () => {
  const module = await loadModule();

  it.each(['Runtime', 'Loader', 'Model', 'Session', 'Calibration'])(
    '%s: declares exactly the live methods',
    (name) => {
      const live = Object.getOwnPropertyNames(module[name]?.prototype).filter(
        (m) => !kEmbindMethods.has(m),
      );
      expect(live.sort()).toEqual(declaredMethods(name));
    },
  );

  it('HeadlightModule: every declared function is there', () => {
    const declared = declaredMethods('HeadlightModule');
    expect(declared).toContain('probe');
    for (const name of declared) expect(module[name], name).toBeTypeOf('function');
  });

  it('probe: has exactly the declared fields', () => {
    const fields = ['dotForm', 'relaxedBuild', 'relaxedOk', 'threadsBuild'];
    expect(Object.keys(module.probe()).sort()).toEqual(fields);
    expect(module.probe()).toMatchObject({
      dotForm: 'wide',
      relaxedBuild: false,
      threadsBuild: false,
    });
  });

  it('errors are data: a bad argument gives a code, a message and details', () => {
    const { error } = module.createRuntime(0);
    expect(error).toMatchObject({ code: 'BadOption', details: { option: 'threads' } });
  });
});
