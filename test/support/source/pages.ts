/** Pages of documentation: their code blocks, prose, paths and links. */
import { readFile } from 'node:fs/promises';
import ts from 'typescript';

const BLOCKS = /^```(\w*)\n(.*?)^```$/gms;

/** The code blocks of one language in a page, in their order; `''` is the language of blocks that name none. */
export async function codeBlocks(page: string, language: string): Promise<string[]> {
  const blocks = (await readFile(page, 'utf8')).matchAll(BLOCKS);
  return [...blocks].filter(([, named]) => named === language).map(([, , code = '']) => code);
}

/** The inline code of a page that starts with a text, in its order. */
export async function readInlineCode(page: string, start: string): Promise<string[]> {
  const spans = withoutBlocks(await readFile(page, 'utf8')).matchAll(/`([^`]+)`/g);
  return [...spans].map(([, code = '']) => code).filter((code) => code.startsWith(start));
}

/** The text without its code blocks. */
export function withoutBlocks(markdown: string): string {
  return markdown.replace(BLOCKS, '');
}

/** The files and folders of this repository that a text names. Of a compiled file it is the source. */
export function findPaths(text: string): string[] {
  const paths = text.matchAll(/(?<![\w./@{}-])(?:dist\/)?((?:src|test|docs|proto|gen|\.ci)\/[\w./*-]*)/g);
  return [...paths].map(([named, path = '']) =>
    (named === path ? path : path.replace(/\.js$/, '.ts')).replace(/\.$/, ''),
  );
}

/** The relative links of a page, as their target and the heading in it. */
export function findLinks(markdown: string): { target: string; heading: string | undefined }[] {
  const links = markdown.matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g);
  return [...links].map(([, target = '', heading]) => ({ target, heading }));
}

/** The anchors of a page's headings, as GitHub makes them. */
export function findAnchors(markdown: string): string[] {
  const headings = withoutBlocks(markdown).matchAll(/^#+ (.*)$/gm);
  return [...headings].map(([, text = '']) =>
    text
      .toLowerCase()
      .replace(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  );
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
