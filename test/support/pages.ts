/** The programs that pages of documentation show. */
import { readFile } from 'node:fs/promises';
import ts from 'typescript';

/** The blocks of one language in a page, in their order. */
export async function codeBlocks(page: string, language: string): Promise<string[]> {
  const text = await readFile(page, 'utf8');
  const blocks = text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'));
  return [...blocks].map(([, code = '']) => code);
}

const HOW = {
  node: { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext },
  bundler: { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler },
} as const;

/** Compiles programs to files beside their own, strictly. @returns what is wrong with them */
export function compile(files: readonly string[], resolution: keyof typeof HOW = 'node'): string[] {
  const program = ts.createProgram([...files], {
    ...HOW[resolution],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    verbatimModuleSyntax: true,
    target: ts.ScriptTarget.ES2023,
    types: ['node'],
  });
  const { diagnostics } = program.emit();
  const all = [...ts.getPreEmitDiagnostics(program), ...diagnostics];
  return all.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}
